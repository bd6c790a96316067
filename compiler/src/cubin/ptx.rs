//! A light reader of PTX: the header and the parameters of each entry.
//!
//! It reads what NVRTC, nvcc, Triton and Numba write, by the grammar of the PTX ISA (9.0): directives at the start of words, parameters
//! as `.param [.align N] .type [.ptr ...] name[[bytes]]`. Goes over a text once, whatever is in it ([`scan`]).

mod scan;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cubinder_bundle::{KernelFacts, KernelParam};

use self::scan::{Module, module};
use super::{Cluster, CubinError, LaunchRules};

/// What a PTX text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxFacts {
    /// `.version`, the edition of the PTX language: `(9, 0)`.
    pub version: (u32, u32),
    /// `.target`: `sm_89`.
    pub target: String,
    /// The entries, sorted by symbol. Registers and memory are known only to the driver that compiles it.
    pub kernels: Vec<KernelFacts>,
    /// What each of them demands of its launch, by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
}

/// What a parameter of PTX says of itself besides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtxParam {
    /// `.ptr`: an address.
    Pointer,
    /// `.u32`, `.s64`: an integer, or an address of which nothing is said.
    Integer,
    /// `.f32`, `.f64`.
    Float,
    /// `.b32`, `.b8 x[16]`: bits of anything.
    Bits,
}

/// What an entry of PTX from another compiler says of itself besides its [`KernelFacts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxEntry {
    /// Its symbol.
    pub symbol: String,
    /// Its parameters, as many as the facts have.
    pub params: Vec<PtxParam>,
    /// Whether it uses dynamic shared memory (`.extern .shared`) itself.
    pub uses_dynamic_shared: bool,
    /// Its static shared memory in bytes, as far as it is declared in the entry itself.
    pub shared_bytes: u32,
}

/// What PTX from another compiler says of itself besides its [`PtxFacts`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PtxOrigin {
    /// Functions that are declared and called, and that it does not have (`.extern .func`), each once.
    pub undefined: Vec<String>,
    /// The entries, in the text's order.
    pub entries: Vec<PtxEntry>,
    /// The bits of an address: 32 where it does not say (PTX ISA 9.0, `.address_size`).
    pub address_bits: u32,
}

/// Reads what [`read_ptx`] leaves out.
///
/// # Errors
/// As [`read_ptx`].
pub fn ptx_origin(bytes: &[u8]) -> Result<PtxOrigin, CubinError> {
    let text = text_of(bytes)?;
    let module = module(&text).map_err(|(_, error)| error)?;
    let dynamic: BTreeSet<&str> = module.dynamic_shared.iter().copied().collect();
    let entries = module.entries.iter().map(|Entry { facts, params, body, .. }| {
        let body = body.unwrap_or_default();
        PtxEntry {
            symbol: facts.symbol.clone(),
            params: params.iter().map(|(_, _, says)| *says).collect(),
            uses_dynamic_shared: words(body).any(|word| dynamic.contains(word)),
            shared_bytes: static_shared(body),
        }
    });
    let entries = entries.collect();
    Ok(PtxOrigin { undefined: undefined(&text, &module), entries, address_bits: module.address_bits })
}

/// Identifiers, registers (`%r1`) and directives (`.shared`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(is_letter(c) || matches!(c, '$' | '%' | '.'))).filter(|word| !word.is_empty())
}

/// The bytes of `.shared` variables in a body.
fn static_shared(body: &str) -> u32 {
    let mut end = 0_u32;
    for (at, word) in body.match_indices(".shared") {
        // Loads and stores have it in the middle of a word: `ld.shared.b32`.
        let is_declaration =
            body[..at].ends_with(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if !is_declaration {
            continue;
        }
        let statement = statement(&body[at + word.len()..]);
        if let Some((size, align)) = size_and_align(&format!(".param{statement}")) {
            end = end.checked_next_multiple_of(align).unwrap_or(u32::MAX).saturating_add(size);
        }
    }
    end
}

/// What stands before the next semicolon. No declaration of a variable has more bytes than this.
fn statement(text: &str) -> &str {
    const MOST: usize = 1024;
    let end = text.bytes().take(MOST).position(|byte| byte == b';');
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Functions that are only declared, and called.
fn undefined(text: &str, module: &Module<'_>) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for name in &module.declared {
        if known.insert(name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    // A declaration is one use; a call is another.
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for word in words(text) {
        *uses.entry(word).or_default() += 1;
    }
    let is_called = |name: &&str| uses.get(name).is_some_and(|uses| *uses > 1);
    names.into_iter().filter(is_called).map(str::to_owned).collect()
}

/// Reads a PTX text, with or without a NUL at its end.
///
/// # Errors
/// Where it has no `.version` or `.target`, or an entry's parameters cannot be read.
pub fn read_ptx(bytes: &[u8]) -> Result<PtxFacts, CubinError> {
    let text = text_of(bytes)?;
    let module = module(&text);
    // What is no PTX at all is told before what is wrong with it.
    let head = module.as_ref().map_or_else(|(head, _)| *head, |module| module.head);
    let version = head.version.and_then(|version| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    let version = version.ok_or_else(|| CubinError::Ptx("it has no `.version`".to_owned()))?;
    let target = head.target.ok_or_else(|| CubinError::Ptx("it has no `.target`".to_owned()))?;
    let entries = module.map_err(|(_, error)| error)?.entries;
    let rules = entries.iter().map(|entry| (entry.facts.symbol.clone(), entry.rules)).collect();
    let mut kernels: Vec<KernelFacts> = entries.into_iter().map(|entry| entry.facts).collect();
    kernels.sort_by(|a: &KernelFacts, b| a.symbol.cmp(&b.symbol));
    Ok(PtxFacts { version, target: target.to_owned(), kernels, rules })
}

/// What an entry demands of its launch; nothing where the text has no such entry.
pub(super) fn launch_rules(bytes: &[u8], symbol: &str) -> Result<LaunchRules, CubinError> {
    let text = text_of(bytes)?;
    let module = module(&text).map_err(|(_, error)| error)?;
    let entry = module.entries.into_iter().find(|entry| entry.facts.symbol == symbol);
    Ok(entry.map(|entry| entry.rules).unwrap_or_default())
}

fn text_of(bytes: &[u8]) -> Result<String, CubinError> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| CubinError::Ptx(error.to_string()))?;
    Ok(without_comments(text))
}

/// The text with blanks in the place of comments and of what stands between quotes.
fn without_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        clean.push_str(before);
        let (end, blank) = if from.starts_with("//") {
            (from.find('\n').unwrap_or(from.len()), "")
        } else if from.starts_with("/*") {
            (from.find("*/").map_or(from.len(), |end| end + 2), " ")
        } else if let Some(quoted) = from.strip_prefix('"') {
            (quoted.find(['"', '\n']).map_or(from.len(), |end| end + 2), "\"\"")
        } else {
            (1, "/")
        };
        clean.push_str(blank);
        rest = &from[end..];
    }
    clean.push_str(rest);
    clean
}

/// An entry as it is read.
#[derive(Debug)]
struct Entry<'t> {
    facts: KernelFacts,
    rules: LaunchRules,
    params: Vec<(u32, u32, PtxParam)>,
    /// What stands between its braces; nothing where it is only declared.
    body: Option<&'t str>,
}

/// An entry: its name, its parameters, the directives behind them, its body.
fn entry<'t>(
    symbol: &str,
    list: &str,
    directives: &str,
    body: Option<&'t str>,
) -> Result<Entry<'t>, CubinError> {
    let params = params(list, symbol)?;
    let most = numbers(directives, "maxntid");
    let block = numbers(directives, "reqntid");
    let is_clustered = has(directives, "explicitcluster");
    let cluster = match numbers(directives, "reqnctapercluster") {
        Some(size) => Cluster::of(size),
        None => is_clustered.then_some(Cluster::AtLaunch),
    };
    let product = |axes: [u32; 3]| axes.into_iter().fold(1, u32::saturating_mul);
    let facts = KernelFacts {
        symbol: symbol.to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: [most, block].into_iter().flatten().map(product).min(),
        params: params.iter().map(|(offset, size, _)| KernelParam { offset: *offset, size: *size }).collect(),
    };
    Ok(Entry {
        facts,
        rules: LaunchRules { block, cluster, blocks_are_clusters: has(directives, "blocksareclusters") },
        params,
        body,
    })
}

/// The words after a directive that starts with this name.
fn directive<'a>(directives: &'a str, name: &str) -> Option<&'a str> {
    directives
        .split('.')
        .find_map(|text| text.trim().strip_prefix(name))
        .filter(|rest| !rest.starts_with(is_letter))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn has(directives: &str, name: &str) -> bool {
    directive(directives, name).is_some()
}

/// `maxntid 256, 2` as three numbers: what is left out is 1.
fn numbers(directives: &str, name: &str) -> Option<[u32; 3]> {
    let mut axes = [1; 3];
    let words: Vec<&str> = directive(directives, name)?.split(',').map(str::trim).collect();
    for (axis, word) in axes.iter_mut().zip(words.iter().copied()) {
        *axis = word.parse().ok()?;
    }
    (words.len() <= 3).then_some(axes)
}

/// Offset, size and what each says of itself.
fn params(list: &str, symbol: &str) -> Result<Vec<(u32, u32, PtxParam)>, CubinError> {
    let mut params = Vec::new();
    let mut end = 0_u32;
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let unreadable = || CubinError::Ptx(format!("a parameter of `{symbol}` cannot be read: `{text}`"));
        let (size, align) = size_and_align(text).ok_or_else(unreadable)?;
        let offset = end.checked_next_multiple_of(align).ok_or_else(unreadable)?;
        end = offset.checked_add(size).ok_or_else(unreadable)?;
        params.push((offset, size, says(text)));
    }
    Ok(params)
}

fn says(param: &str) -> PtxParam {
    let mut words = param.split_whitespace();
    if words.clone().any(|word| word == ".ptr") {
        return PtxParam::Pointer;
    }
    let is_type = |word: &&str| size_of_type(word).is_some();
    match words.find(is_type).and_then(|word| word.chars().nth(1)) {
        Some('f') => PtxParam::Float,
        Some('u' | 's') => PtxParam::Integer,
        _ => PtxParam::Bits,
    }
}

/// The size of one parameter and what its offset is a multiple of.
fn size_and_align(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split_whitespace();
    if words.next() != Some(".param") {
        return None;
    }
    let (mut align, mut element) = (None, None);
    while let Some(word) = words.next() {
        match word {
            ".align" if element.is_none() => align = Some(words.next()?.parse().ok()?),
            word if word.starts_with('.') && element.is_none() => element = Some(size_of_type(word)?),
            _ => {}
        }
    }
    let element = element?;
    let count: u32 = match text.split_once('[') {
        Some((_, rest)) => rest.split(']').next()?.trim().parse().ok()?,
        None => 1,
    };
    let align = align.unwrap_or(element);
    (align > 0).then_some(())?;
    Some((element.checked_mul(count)?, align))
}

fn size_of_type(word: &str) -> Option<u32> {
    let bits = word.trim_start_matches(['.', 'b', 'u', 's', 'f']);
    match bits {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "//\n// Generated\n\n.version 9.0\n.target sm_89\n.address_size 64\n\n\
        \t// .weak\tk\n.weak .entry k(\n\t.param .u64 .ptr .global .align 1 k_0,\n\t.param .align 4 .b8 k_1[36],\n\
        \t.param .u8 k_2,\n\t.param .f64 k_3\n)\n.maxntid 256, 2, 1\n.minnctapersm 2\n{\n\tret;\n}\n\
        .visible .entry none()\n{\n\tret;\n}\n";

    #[test]
    fn entries_are_read() {
        let facts = read_ptx(TEXT.as_bytes()).unwrap();
        assert_eq!((facts.version, facts.target.as_str()), ((9, 0), "sm_89"));
        let [k, none] = facts.kernels.as_slice() else { panic!("{facts:?}") };
        let params: Vec<(u32, u32)> = k.params.iter().map(|param| (param.offset, param.size)).collect();
        assert_eq!((k.symbol.as_str(), params), ("k", vec![(0, 8), (8, 36), (44, 1), (48, 8)]));
        assert_eq!(k.max_threads, Some(512));
        assert_eq!(launch_rules(TEXT.as_bytes(), "k"), Ok(LaunchRules::default()));
        assert_eq!((none.symbol.as_str(), none.params.len(), none.max_threads), ("none", 0, None));
        assert_eq!(read_ptx(format!("{TEXT}\0").as_bytes()), Ok(facts));
    }

    #[test]
    fn what_an_entry_demands_is_read() {
        let rules = |directives: &str| {
            let text = format!(".version 9.0\n.target sm_90\n.entry k(\n)\n{directives}\n{{\n\tret;\n}}\n");
            launch_rules(text.as_bytes(), "k").unwrap()
        };
        let exact = ".blocksareclusters\n.reqntid 8, 4\n.reqnctapercluster 1, 1, 1";
        assert_eq!(
            rules(exact),
            LaunchRules { block: Some([8, 4, 1]), cluster: None, blocks_are_clusters: true }
        );
        let cluster = |cluster| LaunchRules { cluster: Some(cluster), ..LaunchRules::default() };
        assert_eq!(rules(".explicitcluster\n.reqnctapercluster 2, 1, 1"), cluster(Cluster::Of([2, 1, 1])));
        assert_eq!(rules(".explicitcluster"), cluster(Cluster::AtLaunch));
        assert_eq!(rules(".maxntid 128\n.maxclusterrank 4"), LaunchRules::default());
        assert_eq!(launch_rules(TEXT.as_bytes(), "no such entry"), Ok(LaunchRules::default()));
    }

    #[test]
    fn what_other_compilers_write_is_read() {
        let text = ".version 8.5 // .entry no\n.target sm_90a, debug\n.file 1 \".entry quoted(\"\n/* .entry neither(\n */\n\
            .extern .func (.param .b32 r) vprintf(.param .b64 a);\n.extern .func idle(.param .b32 a);\n\
            .extern .func (.param .f64 r) mine$f\n(.param .f64 a)\n;\n\
            .extern .shared .align 16 .b8 smem[];\n.extern .shared .b8 other[];\n\
            .visible .entry k(.param .u64 .ptr .global .align 1 p0, .param .s32 p1, .param .f32 p2, .param .b32 p3)\n\
            .reqntid 32\n{\n{ .shared .align 4 .b8 tile[10]; .shared .f64 one; }\nld.shared.b32 %r1, [smem];\n\
            call (r), vprintf, (a);\ncall (r), mine$f, (a);\n}\n.entry plain()\n{ ret; }\n";
        let facts = read_ptx(text.as_bytes()).unwrap();
        assert_eq!((facts.version, facts.target.as_str(), facts.kernels.len()), ((8, 5), "sm_90a", 2));
        let origin = ptx_origin(text.as_bytes()).unwrap();
        assert_eq!(origin.undefined, ["vprintf", "mine$f"]);
        let [k, plain] = origin.entries.as_slice() else { panic!("{origin:?}") };
        assert_eq!(k.params, [PtxParam::Pointer, PtxParam::Integer, PtxParam::Float, PtxParam::Bits]);
        assert!(k.uses_dynamic_shared && !plain.uses_dynamic_shared);
        assert_eq!((k.shared_bytes, plain.shared_bytes), (24, 0));
    }

    #[test]
    fn what_an_entry_demands_is_found_wherever_it_stands() {
        let text = ".version 8.5 .target sm_90a,debug .address_size 64\n\
            .visible .entry k(.param .u64 p);\n\
            .visible .entry k(.param .u64 p) .pragma \"nounroll\"; .reqntid 64 .pragma \"a; { b\";\n\
            {\n .shared .b8 tile[32];\n ret; }\n.entry late() .maxntid 8 { ret; }\n";
        let facts = read_ptx(text.as_bytes()).unwrap();
        assert_eq!((facts.version, facts.target.as_str(), facts.kernels.len()), ((8, 5), "sm_90a", 2));
        assert_eq!((facts.kernels[0].max_threads, facts.kernels[1].max_threads), (Some(64), Some(8)));
        assert_eq!(launch_rules(text.as_bytes(), "k").unwrap().block, Some([64, 1, 1]));
        let origin = ptx_origin(text.as_bytes()).unwrap();
        assert_eq!((origin.address_bits, origin.entries.len()), (64, 2));
        assert_eq!(origin.entries[0].shared_bytes, 32);
        // The definition may stand first.
        let text = ".version 8.5\n.target sm_90\n.entry k() .reqntid 64 { ret; }\n.entry k();\n";
        assert_eq!(launch_rules(text.as_bytes(), "k").unwrap().block, Some([64, 1, 1]));
        assert_eq!(ptx_origin(text.as_bytes()).unwrap().address_bits, 32);
    }

    #[test]
    fn a_text_is_gone_over_once() {
        let head = ".version 8.5\n.target sm_80\n.address_size 64\n";
        for (part, count) in [
            (".entry a\n", 100_000),
            (".entry a(", 100_000),
            (".entry a(){\n", 100_000),
            (".extern\n", 100_000),
            (".extern .func f;\n", 50_000),
            (".extern .func (", 50_000),
            (".extern .shared ", 50_000),
            (".shared ", 100_000),
            (".entry k(){.shared .b8 a[1", 40_000),
            ("{", 400_000),
            (".pragma \"", 50_000),
            (".target ,", 100_000),
        ] {
            for open in ["", ".entry k() { "] {
                let text = format!("{head}{open}{}", part.repeat(count / 5));
                let began = std::time::Instant::now();
                let _ = (
                    read_ptx(text.as_bytes()),
                    ptx_origin(text.as_bytes()),
                    launch_rules(text.as_bytes(), "k"),
                );
                assert!(began.elapsed() < std::time::Duration::from_secs(4), "{part}: {:?}", began.elapsed());
            }
        }
        let many: String =
            (0..10_000).map(|n| format!(".extern .func f{n};\n.entry k{n}() {{ call f{n}; }}\n")).collect();
        let text = format!("{head}{many}");
        let began = std::time::Instant::now();
        assert_eq!(ptx_origin(text.as_bytes()).unwrap().undefined.len(), 10_000);
        assert_eq!(read_ptx(text.as_bytes()).unwrap().kernels.len(), 10_000);
        assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    }

    #[test]
    fn what_is_no_ptx_is_refused() {
        let error = |text: &str| read_ptx(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error(""), "not readable PTX: it has no `.version`");
        assert_eq!(error(".version 9.0\n"), "not readable PTX: it has no `.target`");
        assert_eq!(
            error(".version 9.0\n.target sm_80\n.entry k(.param .v4 x)\n"),
            "not readable PTX: a parameter of `k` cannot be read: `.param .v4 x`"
        );
        assert!(read_ptx(&[0xff, 0xfe]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (read_ptx(&bytes), ptx_origin(&bytes));
        }

        #[test]
        fn any_damage_is_read(at in 0..TEXT.len(), byte: u8) {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = (read_ptx(&bytes), ptx_origin(&bytes), launch_rules(&bytes, "k"));
        }
    }
}
