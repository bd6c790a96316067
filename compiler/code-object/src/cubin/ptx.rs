//! Reads PTX of NVRTC, nvcc, Triton and Numba in one scan ([`scan`]).
//!
//! Parameters are `.param [.align N] .type [.ptr ...] name[[bytes]]` (PTX ISA 9.0).

mod rename;
mod scan;
mod shared;
mod usage;
mod variable;

use std::collections::{BTreeMap, HashMap, HashSet};

use cubinder_model::{KernelFacts, KernelParam};

pub use self::rename::{opaque, renamed};
use self::scan::{Head, Module, Tokens, integer};
use self::variable::{Element, element, lengths, variables};
use super::{Cluster, CubinError, LaunchRules};

/// A PTX text's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxFacts {
    /// PTX version: `(9, 0)`.
    pub version: (u32, u32),
    /// `.target`: `sm_89`.
    pub target: String,
    /// Entries by symbol.
    pub kernels: Vec<KernelFacts>,
    /// Launch requirements by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
}

/// Kind of a PTX parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtxParam {
    /// Address, by `.ptr` or use.
    Pointer,
    /// `.u32`, `.s64`: perhaps an address.
    Integer,
    /// `.f32`, `.f64`.
    Float,
    /// `.b32`, `.b8 x[16]`: untyped bits.
    Bits,
}

/// Entry facts that [`KernelFacts`] lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxEntry {
    /// Its symbol.
    pub symbol: String,
    /// Parameters, parallel to the facts'.
    pub params: Vec<PtxParam>,
    /// Whether it certainly writes through each parameter.
    pub are_written: Vec<bool>,
}

/// PTX facts that [`PtxFacts`] lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PtxOrigin {
    /// Unique undefined functions and variables.
    pub undefined: Vec<String>,
    /// Entries in text order.
    pub entries: Vec<PtxEntry>,
    /// Address bits, default 32 (PTX ISA 9.0, `.address_size`).
    pub address_bits: u32,
}

/// Parses a PTX text's origin.
pub fn ptx_origin(bytes: &[u8]) -> Result<PtxOrigin, CubinError> {
    let text = text_of(bytes)?;
    let module = scan::module(&text).map_err(|(_, error)| error)?;
    let entries = module.entries.iter().map(entry_with_uses).collect();
    Ok(PtxOrigin { undefined: undefined(&text, &module), entries, address_bits: module.address_bits })
}

fn entry_with_uses(entry: &Entry<'_>) -> PtxEntry {
    let names: Vec<&str> = entry.params.iter().map(|param| param.name).collect();
    let uses = usage::uses(entry.body.unwrap_or_default(), &names);
    let says = |(param, found): (&Param<'_>, &usage::ParamUse)| match param.kind {
        PtxParam::Integer | PtxParam::Bits if found.is_address => PtxParam::Pointer,
        kind => kind,
    };
    PtxEntry {
        symbol: entry.facts.symbol.clone(),
        params: entry.params.iter().zip(&uses).map(says).collect(),
        are_written: uses.iter().map(|found| found.is_written).collect(),
    }
}

fn module(text: &str) -> Result<Module<'_>, (Head<'_>, CubinError)> {
    let mut module = scan::module(text)?;
    let shared = shared::entries(&module);
    for (entry, shared) in module.entries.iter_mut().zip(shared) {
        entry.rules.shared_bytes = shared.bytes;
        entry.rules.dynamic_shared = shared.dynamic;
    }
    Ok(module)
}

/// Splits identifiers, registers (`%r1`), directives (`.shared`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(is_letter(c) || matches!(c, '$' | '%' | '.'))).filter(|word| !word.is_empty())
}

/// ptxas 12.9 and 13.0 reject these, but zero-fill sized variables, losing another file's data.
fn undefined(text: &str, module: &Module<'_>) -> Vec<String> {
    let of_module = || module.variables.iter().filter(|one| one.space != ".shared");
    let names = |is_extern: bool| {
        let declarations = of_module().filter(move |one| one.is_extern == is_extern);
        declarations.flat_map(|one| variables(one.text)).map(|variable| variable.name)
    };
    let defined: HashSet<&str> = names(false).collect();
    let mut declared: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for name in module.declared.iter().copied().chain(names(true)).filter(|name| !defined.contains(name)) {
        let times = declared.entry(name).or_default();
        *times += 1;
        if *times == 1 {
            order.push(name);
        }
    }
    if order.is_empty() {
        return Vec::new();
    }
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for word in words(text) {
        *uses.entry(word).or_default() += 1;
    }
    let is_used = |name: &&str| uses.get(name) > declared.get(name);
    order.into_iter().filter(is_used).map(str::to_owned).collect()
}

/// Parses PTX, also without final NUL; fails for invalid `.version`, `.target` or parameters.
pub fn read_ptx(bytes: &[u8]) -> Result<PtxFacts, CubinError> {
    let text = text_of(bytes)?;
    let module = module(&text);
    // Text that is not PTX takes precedence over other errors.
    let head = module.as_ref().map_or_else(|(head, _)| *head, |module| module.head);
    let version = head.version.and_then(|version| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    let version = version.ok_or_else(|| CubinError::Ptx("missing `.version`".to_owned()))?;
    let target = head.target.ok_or_else(|| CubinError::Ptx("missing `.target`".to_owned()))?;
    let entries = module.map_err(|(_, error)| error)?.entries;
    let rules = entries.iter().map(|entry| (entry.facts.symbol.clone(), entry.rules)).collect();
    let mut kernels: Vec<KernelFacts> = entries.into_iter().map(|entry| entry.facts).collect();
    kernels.sort_by(|a: &KernelFacts, b| a.symbol.cmp(&b.symbol));
    Ok(PtxFacts { version, target: target.to_owned(), kernels, rules })
}

fn text_of(bytes: &[u8]) -> Result<String, CubinError> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| CubinError::Ptx(error.to_string()))?;
    Ok(without_comments(text))
}

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

#[derive(Debug)]
struct Param<'t> {
    /// Name; empty for arrays of bytes.
    name: &'t str,
    offset: u32,
    size: u32,
    kind: PtxParam,
}

#[derive(Debug)]
struct Entry<'t> {
    facts: KernelFacts,
    rules: LaunchRules,
    params: Vec<Param<'t>>,
    /// `None` for a declaration.
    body: Option<&'t str>,
}

fn entry<'t>(
    symbol: &str,
    list: &'t str,
    directives: &str,
    body: Option<&'t str>,
) -> Result<Entry<'t>, CubinError> {
    let params = params(list, symbol)?;
    let bound = |name: &str| numbers(directives, name, symbol);
    let (most, block) = (bound("maxntid")?, bound("reqntid")?);
    let is_clustered = directive(directives, "explicitcluster").is_some();
    let cluster = match bound("reqnctapercluster")? {
        Some(size) => Cluster::from_size(size),
        None => is_clustered.then_some(Cluster::AtLaunch),
    };
    let product = |axes: [u32; 3]| axes.into_iter().fold(1, u32::saturating_mul);
    let facts = KernelFacts {
        symbol: symbol.to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: [most, block].into_iter().flatten().map(product).min(),
        params: params.iter().map(|param| KernelParam { offset: param.offset, size: param.size }).collect(),
    };
    let rules = LaunchRules {
        block,
        cluster,
        blocks_are_clusters: directive(directives, "blocksareclusters").is_some(),
        max_cluster: bound("maxclusterrank")?.map(product),
        min_blocks: bound("minnctapersm")?.map(product),
        max_registers: bound("maxnreg")?.map(product),
        ..LaunchRules::default()
    };
    Ok(Entry { facts, rules, params, body })
}

fn directive<'a>(directives: &'a str, name: &str) -> Option<&'a str> {
    directives
        .split('.')
        .find_map(|text| text.trim().strip_prefix(name))
        .filter(|rest| !rest.starts_with(is_letter))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Parses `maxntid 256, 2`; missing numbers are 1.
fn numbers(directives: &str, name: &str, symbol: &str) -> Result<Option<[u32; 3]>, CubinError> {
    let Some(text) = directive(directives, name) else { return Ok(None) };
    let mut axes = [1; 3];
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    for (axis, word) in axes.iter_mut().zip(words.iter().copied()) {
        *axis = integer(word).unwrap_or(0);
    }
    if words.len() > axes.len() || axes.contains(&0) {
        let text = text.trim();
        return Err(CubinError::Ptx(format!("cannot read `.{name}` of `{symbol}`: `{text}`")));
    }
    Ok(Some(axes))
}

fn params<'t>(list: &'t str, symbol: &str) -> Result<Vec<Param<'t>>, CubinError> {
    let mut params: Vec<Param<'t>> = Vec::new();
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let end = params.last().map_or(0, |last| last.offset + last.size);
        params
            .push(param(text, end).ok_or_else(|| {
                CubinError::Ptx(format!("cannot read a parameter of `{symbol}`: `{text}`"))
            })?);
    }
    Ok(params)
}

fn param(text: &str, end: u32) -> Option<Param<'_>> {
    let mut tokens = Tokens::new(text);
    tokens.word().filter(|word| *word == ".param")?;
    let Element { word, bytes, align } = element(&mut tokens)?;
    let name = tokens.word().unwrap_or_default();
    let name = if tokens.peek() == Some("[") { "" } else { name };
    let size = lengths(&mut tokens, bytes)?;
    let align = align.map_or(bytes, integer).filter(|align| *align > 0)?;
    let offset = end.checked_next_multiple_of(align)?;
    offset.checked_add(size)?;
    let kind = match word.chars().nth(1) {
        _ if text.split_whitespace().any(|word| word == ".ptr") => PtxParam::Pointer,
        Some('f') => PtxParam::Float,
        Some('u' | 's') => PtxParam::Integer,
        _ => PtxParam::Bits,
    };
    Some(Param { name, offset, size, kind })
}

#[cfg(test)]
mod tests {
    use super::super::Dynamic;
    use super::*;
    use proptest::prelude::*;

    fn launch_rules(bytes: &[u8], symbol: &str) -> Result<LaunchRules, CubinError> {
        let (_, mut rules) = super::super::kernels("compute_90".parse().unwrap(), bytes)?;
        Ok(rules.remove(symbol).unwrap_or_default())
    }

    const TEXT: &str = "//\n// Generated\n\n.version 9.0\n.target sm_89\n.address_size 64\n\n\
        \t// .weak\tk\n.weak .entry k(\n\t.param .u64 .ptr .global .align 1 k_0,\n\t.param .align 4 .b8 k_1[36],\n\
        \t.param .u8 k_2,\n\t.param .f64 k_3\n)\n.maxntid 256, 2, 1\n.minnctapersm 2\n{\n\tret;\n}\n\
        .visible .entry none()\n{\n\tret;\n}\n";

    const NONE: LaunchRules = LaunchRules {
        min_blocks: None,
        max_registers: None,
        block: None,
        cluster: None,
        blocks_are_clusters: false,
        max_cluster: None,
        shared_bytes: 0,
        dynamic_shared: Dynamic::No,
    };

    #[test]
    fn entries_are_read() {
        let facts = read_ptx(TEXT.as_bytes()).unwrap();
        assert_eq!((facts.version, facts.target.as_str()), ((9, 0), "sm_89"));
        let [k, none] = facts.kernels.as_slice() else { panic!("{facts:?}") };
        let params: Vec<(u32, u32)> = k.params.iter().map(|param| (param.offset, param.size)).collect();
        assert_eq!((k.symbol.as_str(), params), ("k", vec![(0, 8), (8, 36), (44, 1), (48, 8)]));
        assert_eq!(k.max_threads, Some(512));
        assert_eq!(launch_rules(TEXT.as_bytes(), "k"), Ok(LaunchRules { min_blocks: Some(2), ..NONE }));
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
        assert_eq!(rules(exact), LaunchRules { block: Some([8, 4, 1]), blocks_are_clusters: true, ..NONE });
        let cluster = |cluster| LaunchRules { cluster: Some(cluster), ..NONE };
        assert_eq!(rules(".explicitcluster\n.reqnctapercluster 2, 1, 1"), cluster(Cluster::Of([2, 1, 1])));
        assert_eq!(rules(".explicitcluster"), cluster(Cluster::AtLaunch));
        assert_eq!(rules(".maxntid 128\n.maxclusterrank 0x4"), LaunchRules { max_cluster: Some(4), ..NONE });
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
        assert_eq!(plain.params, []);
        assert_eq!(k.are_written, [false; 4]);
        let shared = |symbol| facts.rules.get(symbol).map(|rules| (rules.shared_bytes, rules.dynamic_shared));
        assert_eq!(shared("k"), Some((18, Dynamic::Yes)));
        assert_eq!(shared("plain"), Some((0, Dynamic::No)));
    }

    #[test]
    fn a_number_that_the_body_uses_as_an_address_is_a_pointer() {
        let text = ".version 9.0\n.target sm_90\n\
            .entry k(.param .u64 x, .param .b64 y, .param .u64 n, .param .align 8 .b8 s[16])\n\
            { ld.param.u64 %rd1, [x]; ld.global.f32 %f1, [%rd1]; ld.param.u64 %rd2, [y]; st.global.f32 [%rd2], %f1;\n\
            ld.param.u64 %rd3, [n]; ld.param.u64 %rd4, [s]; st.global.f32 [%rd4], %f1; ret; }\n";
        let origin = ptx_origin(text.as_bytes()).unwrap();
        let [k] = origin.entries.as_slice() else { panic!("{origin:?}") };
        assert_eq!(k.params, [PtxParam::Pointer, PtxParam::Pointer, PtxParam::Integer, PtxParam::Bits]);
        assert_eq!(k.are_written, [false, true, false, false]);
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
        assert_eq!(facts.rules["k"].shared_bytes, 32);
        let text = ".version 8.5\n.target sm_90\n.entry k() .reqntid 64 { ret; }\n.entry k();\n";
        assert_eq!(launch_rules(text.as_bytes(), "k").unwrap().block, Some([64, 1, 1]));
        assert_eq!(ptx_origin(text.as_bytes()).unwrap().address_bits, 32);
    }

    /// Compares with the behaviour of ptxas 12.9 and 13.0.
    #[test]
    fn bounds_are_read_in_every_spelling_or_refused() {
        let text = |directives: &str| {
            format!(".version 9.0\n.target sm_90\n.entry k()\n{directives}\n{{\n\tret;\n}}\n").into_bytes()
        };
        let block = |directives| launch_rules(&text(directives), "k").unwrap().block;
        assert_eq!(block(".reqntid 0x40"), Some([64, 1, 1]));
        assert_eq!(block(".reqntid 010, 4U"), Some([8, 4, 1]));
        let most = |directives| read_ptx(&text(directives)).unwrap().kernels[0].max_threads;
        assert_eq!((most(".maxntid 128U"), most(".maxntid 0b100,0X2")), (Some(128), Some(8)));
        for (directives, what) in [
            (".maxntid 128u", "cannot read `.maxntid` of `k`: `128u`"),
            (".maxntid 0", "cannot read `.maxntid` of `k`: `0`"),
            (".reqntid 1, 2, 3, 4", "cannot read `.reqntid` of `k`: `1, 2, 3, 4`"),
            (".reqnctapercluster x", "cannot read `.reqnctapercluster` of `k`: `x`"),
            (".maxclusterrank", "cannot read `.maxclusterrank` of `k`: ``"),
        ] {
            let error = read_ptx(&text(directives)).unwrap_err().to_string();
            assert_eq!(error, format!("invalid PTX: {what}"));
        }
    }

    #[test]
    fn variables_of_other_files_are_told_where_they_are_used() {
        let undefined = |declarations: &str| {
            let text = format!(
                ".version 9.0\n.target sm_90\n{declarations}\n.entry k()\n{{ mov.u64 %rd1, table; ld.const.u32 %r1, [other+4]; }}\n"
            );
            ptx_origin(text.as_bytes()).unwrap().undefined
        };
        assert_eq!(undefined(".extern .global .align 4 .b8 table[16];"), ["table"]);
        assert_eq!(
            undefined(".extern .global .b8 unused[], table[];\n.extern .const .b32 other[2];"),
            ["table", "other"]
        );
        let defined = ".visible .global .align 4 .b8 table[2] = {1, 2};\n";
        assert_eq!(undefined(defined), [""; 0]);
        assert_eq!(undefined(&format!("{defined}.extern .global .align 4 .b8 table[2];")), [""; 0]);
        assert_eq!(undefined(".extern .shared .b8 table[];"), [""; 0]);
        assert_eq!(undefined(".extern .global .b8 unused;\n.extern .global .b8 unused;"), [""; 0]);
        assert_eq!(undefined(".extern .global .u64 table;\n.global .u64 pointer = table;"), ["table"]);
    }

    #[test]
    fn shared_memory_is_that_of_all_that_is_called() {
        let shared = |module: &str, body: &str| {
            let text = format!(".version 9.0\n.target sm_90\n{module}\n.entry k()\n{{ {body} }}\n");
            let rules = launch_rules(text.as_bytes(), "k").unwrap();
            (rules.shared_bytes, rules.dynamic_shared)
        };
        let (none, yes) = (Dynamic::No, Dynamic::Yes);
        assert_eq!(shared("", "{ .shared .b8 t[0x10000]; } { .shared .b8 u[4]; }"), (65_540, none));
        assert_eq!(shared(".shared .b8 t[20000], u[20000];", ""), (0, none));
        assert_eq!(
            shared(".shared .b8 t[20000], u[20000];", "st.shared.u32 [u+4], 1; mov.u32 %r1, u;"),
            (20_000, none)
        );
        let called = ".shared .b8 t[400];\n.func g(); .func f() { .shared .f64 own[2]; call g, (); st.shared.u32 [t], 1; }\n\
                      .func (.param .b32 r) g(.param .b32 a)\n{ call f, (); mov.u32 %r1, d; }\n.extern .shared .b8 d[];";
        assert_eq!(shared(called, ""), (0, none));
        assert_eq!(shared(called, "call f, ();"), (416, yes));
        assert_eq!(shared(called, "st.shared.u32 [t], 1; call g, ();"), (416, yes));
    }

    #[test]
    fn calls_are_followed_so_far() {
        let functions: String =
            (0..10_000).map(|n| format!(".func f{n}() {{ call f{}, (); }}\n", n + 1)).collect();
        let entries: String = (0..10_000).map(|n| format!(".entry k{n}() {{ call f0, (); }}\n")).collect();
        let text = format!(".version 9.0\n.target sm_90\n{functions}{entries}");
        let began = std::time::Instant::now();
        let rules = read_ptx(text.as_bytes()).unwrap().rules;
        assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!(
            (rules["k0"].dynamic_shared, rules["k9999"].dynamic_shared),
            (Dynamic::No, Dynamic::NotTold)
        );
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
            (".extern .shared .b8 a[", 50_000),
            (".global .b8 a = {", 50_000),
            (".func f() { call f; ", 50_000),
            (".shared .b8 a,", 50_000),
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
        assert_eq!(error(""), "invalid PTX: missing `.version`");
        assert_eq!(error(".version 9.0\n"), "invalid PTX: missing `.target`");
        assert_eq!(
            error(".version 9.0\n.target sm_80\n.entry k(.param .v4 x)\n"),
            "invalid PTX: cannot read a parameter of `k`: `.param .v4 x`"
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
