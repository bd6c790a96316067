//! Finds native-route kernels in an engine: PTX with symbols as [`cubinder_launch::native::symbol`].
//!
//! Full TensorRT's layout is unknown: only unchanged texts are found. Runs in linear time.

use std::collections::BTreeMap;

use cubinder_code_object::cubin;
use cubinder_launch::native::op_of_symbol;
use cubinder_model::Digest;
use serde::Serialize;

/// A kernel that TensorRT launches itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NativeReport {
    /// Op: `sample::circ_pad_plugin`.
    pub op: String,
    /// Symbol.
    pub symbol: String,
    /// PTX target: `compute_80`.
    pub target: String,
    /// Offsets of its copies, bytes.
    pub offsets: Vec<u64>,
    /// Size of one copy, bytes.
    pub bytes: u64,
    /// Digest of the text, hexadecimal.
    pub digest: String,
}

/// Precedes every PTX text's first entry (PTX ISA 9.0, "PTX module directives: .version").
const VERSION: &[u8] = b".version ";

pub(super) fn kernels(bytes: &[u8]) -> Vec<NativeReport> {
    let mut found: BTreeMap<Digest, NativeReport> = BTreeMap::new();
    for (start, text) in texts(bytes) {
        // Comments and paths may have any encoding.
        let Ok(facts) = cubin::read_ptx(String::from_utf8_lossy(text).as_bytes()) else { continue };
        // PTX of other compilers may have more kernels.
        let named = facts.kernels.iter().find_map(|kernel| Some((kernel, op_of_symbol(&kernel.symbol)?)));
        let Some((kernel, op)) = named else { continue };
        let digest = Digest::compute(text);
        let entry = found.entry(digest).or_insert_with(|| NativeReport {
            op,
            symbol: kernel.symbol.clone(),
            target: facts.target.replacen("sm_", "compute_", 1),
            offsets: Vec::new(),
            bytes: text.len() as u64,
            digest: digest.to_string(),
        });
        entry.offsets.push(start as u64);
    }
    let mut found: Vec<NativeReport> = found.into_values().collect();
    found.sort_by_key(|kernel| kernel.offsets.first().copied());
    found
}

fn texts(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    // The next non-text byte, searched once.
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = at + position(bytes.get(at..)?, VERSION)?;
        if end <= start {
            let behind = bytes.get(start..)?.iter().position(|byte| !is_text(*byte));
            end = behind.map_or(bytes.len(), |behind| start + behind);
        }
        let rest = bytes.get(start..end)?;
        let length = length(rest);
        at = start + length;
        Some((start, rest.get(..length)?))
    })
}

/// Returns a module's length: up to the next `.version`, or a byte allowed only in comments and quotes.
fn length(text: &[u8]) -> usize {
    let mut at = VERSION.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(VERSION) || rest.first().is_some_and(|byte| !byte.is_ascii()) {
            break;
        }
        at += cubin::opaque(rest);
    }
    at.min(text.len())
}

fn is_text(byte: u8) -> bool {
    !byte.is_ascii_control() || byte.is_ascii_whitespace() || byte == VERTICAL_TAB
}

const VERTICAL_TAB: u8 = 0x0b;

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symbol: &str) -> String {
        format!(
            ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry {symbol}(\n.param .u64 a\n)\n{{\nret;\n}}\n"
        )
    }

    #[test]
    fn kernels_are_found_wherever_they_stand() {
        let (one, other) = (text("cubinder__sample__circ_pad"), text("cubinder____plain"));
        let other = other.replace(".visible", ".entry another()\n{\nret;\n}\n.visible");
        let file = format!("\u{1}head{one}\0{other}{one}\0{}\0.version 9\0", text("somebody_else"));
        let found = kernels(file.as_bytes());
        let ops: Vec<(&str, usize)> =
            found.iter().map(|kernel| (kernel.op.as_str(), kernel.offsets.len())).collect();
        assert_eq!(ops, [("sample::circ_pad", 2), ("plain", 1)]);
        assert_eq!((found[0].target.as_str(), found[0].bytes), ("compute_80", one.len() as u64));
        assert!(file[found[1].offsets[0] as usize..].starts_with(&other));
    }

    #[test]
    fn a_text_is_whole_whatever_its_comments_hold() {
        let body = "/* .version 8.0 */ .file 1 \"m\u{fc}ller/.version 1/k.cu\"\n// pr\u{fc}ft .version 2\n";
        let one = text("cubinder__sample__one").replace(".visible", &format!("{body}.visible"));
        let other = text("cubinder__sample__other").into_bytes();
        // A comment in a single-byte encoding; text before other bytes.
        let other = [&other[..], b"// \xfc\n", b"\xfe\xff"].concat();
        let file = [b"\0", one.as_bytes(), &other[..], b"rest\0"].concat();
        let found = kernels(&file);
        let sizes: Vec<(&str, u64)> = found.iter().map(|kernel| (kernel.op.as_str(), kernel.bytes)).collect();
        assert_eq!(sizes, [("sample::one", one.len() as u64), ("sample::other", other.len() as u64 - 2)]);
    }

    #[test]
    fn a_file_is_gone_over_once() {
        let size = 1 << 20;
        for part in [
            ".version ",
            ".version\n",
            ".version /*",
            ".version //",
            ".version \"",
            ".version 9.0\n.target sm_80\n",
        ] {
            let began = std::time::Instant::now();
            assert_eq!(kernels(&part.repeat(size / part.len()).into_bytes()), []);
            assert!(began.elapsed() < std::time::Duration::from_secs(10), "{part}: {:?}", began.elapsed());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = kernels(&[VERSION, &bytes, VERSION].concat());
        }
    }
}
