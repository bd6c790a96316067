//! A light reader of PTX: the header and the parameters of each entry.
//!
//! It reads what NVRTC writes, by the grammar of the PTX ISA (9.0): directives at the start of words, parameters as
//! `.param [.align N] .type [.ptr ...] name[[bytes]]`.

use cubinder_bundle::{KernelFacts, KernelParam};

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
}

/// Reads a PTX text, with or without a NUL at its end.
///
/// # Errors
/// Where it has no `.version` or `.target`, or an entry's parameters cannot be read.
pub fn read_ptx(bytes: &[u8]) -> Result<PtxFacts, CubinError> {
    let text = text_of(bytes)?;
    let version = argument(&text, ".version").and_then(|version| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    let version = version.ok_or_else(|| CubinError::Ptx("it has no `.version`".to_owned()))?;
    let target = argument(&text, ".target").map(|target| target.trim_end_matches(',').to_owned());
    let target = target.ok_or_else(|| CubinError::Ptx("it has no `.target`".to_owned()))?;
    let mut kernels = Vec::new();
    for entry in entries(&text) {
        kernels.push(entry?.0);
    }
    kernels.sort_by(|a: &KernelFacts, b| a.symbol.cmp(&b.symbol));
    kernels.dedup_by(|a, b| a.symbol == b.symbol);
    Ok(PtxFacts { version, target, kernels })
}

/// What an entry demands of its launch; nothing where the text has no such entry.
pub(super) fn launch_rules(bytes: &[u8], symbol: &str) -> Result<LaunchRules, CubinError> {
    let text = text_of(bytes)?;
    for entry in entries(&text) {
        let (kernel, rules) = entry?;
        if kernel.symbol == symbol {
            return Ok(rules);
        }
    }
    Ok(LaunchRules::default())
}

fn text_of(bytes: &[u8]) -> Result<String, CubinError> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| CubinError::Ptx(error.to_string()))?;
    Ok(without_comments(text))
}

fn entries(text: &str) -> impl Iterator<Item = Result<(KernelFacts, LaunchRules), CubinError>> + use<'_> {
    text.match_indices(".entry").filter_map(|(at, word)| {
        let rest = &text[at + word.len()..];
        rest.starts_with(char::is_whitespace).then(|| entry(rest.trim_start()))
    })
}

fn without_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for line in text.lines() {
        clean.push_str(line.split("//").next().unwrap_or_default());
        clean.push('\n');
    }
    clean
}

/// The word after the first line that starts with a directive.
fn argument<'a>(text: &'a str, directive: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(directive)).then(|| words.next())?
    })
}

/// An entry from its name on: parameters in parentheses if there are any, then directives up to the body.
fn entry(text: &str) -> Result<(KernelFacts, LaunchRules), CubinError> {
    let name_end = text.find(|c: char| c == '(' || c == '{' || c.is_whitespace()).unwrap_or(text.len());
    let symbol = text[..name_end].to_owned();
    let rest = text[name_end..].trim_start();
    let (params, rest) = match rest.strip_prefix('(') {
        Some(list) => {
            let (list, rest) = list
                .split_once(')')
                .ok_or_else(|| CubinError::Ptx(format!("the parameters of `{symbol}` do not end")))?;
            (params(list, &symbol)?, rest)
        }
        None => (Vec::new(), rest),
    };
    let directives = rest.split(['{', ';']).next().unwrap_or_default();
    let most = numbers(directives, "maxntid");
    let block = numbers(directives, "reqntid");
    let is_clustered = has(directives, "explicitcluster");
    let cluster = match numbers(directives, "reqnctapercluster") {
        Some(size) => Cluster::of(size),
        None => is_clustered.then_some(Cluster::AtLaunch),
    };
    let product = |axes: [u32; 3]| axes.into_iter().fold(1, u32::saturating_mul);
    let facts = KernelFacts {
        symbol,
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: [most, block].into_iter().flatten().map(product).min(),
        params,
    };
    Ok((facts, LaunchRules { block, cluster }))
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

fn params(list: &str, symbol: &str) -> Result<Vec<KernelParam>, CubinError> {
    let mut params = Vec::new();
    let mut end = 0_u32;
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let unreadable = || CubinError::Ptx(format!("a parameter of `{symbol}` cannot be read: `{text}`"));
        let (size, align) = size_and_align(text).ok_or_else(unreadable)?;
        let offset = end.checked_next_multiple_of(align).ok_or_else(unreadable)?;
        end = offset.checked_add(size).ok_or_else(unreadable)?;
        params.push(KernelParam { offset, size });
    }
    Ok(params)
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
        assert_eq!(rules(exact), LaunchRules { block: Some([8, 4, 1]), cluster: None });
        let cluster = |cluster| LaunchRules { block: None, cluster: Some(cluster) };
        assert_eq!(rules(".explicitcluster\n.reqnctapercluster 2, 1, 1"), cluster(Cluster::Of([2, 1, 1])));
        assert_eq!(rules(".explicitcluster"), cluster(Cluster::AtLaunch));
        assert_eq!(rules(".maxntid 128\n.maxclusterrank 4"), LaunchRules::default());
        assert_eq!(launch_rules(TEXT.as_bytes(), "no such entry"), Ok(LaunchRules::default()));
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
            let _ = read_ptx(&bytes);
        }

        #[test]
        fn any_damage_is_read(at in 0..TEXT.len(), byte: u8) {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = (read_ptx(&bytes), launch_rules(&bytes, "k"));
        }
    }
}
