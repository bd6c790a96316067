//! With the real NVRTC, and with entries of the cache that no session of this release wrote.

use super::*;
use crate::test_support::{show, toolkit, unit};

const KERNEL: &str = "__global__ void k(int* x) { x[0] = 1; }\n";

#[test]
fn an_entry_whose_code_cannot_be_read_is_compiled_again_and_replaced() {
    let Some(toolkit) = toolkit("an_entry_whose_code_cannot_be_read_is_compiled_again_and_replaced") else {
        return;
    };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target: Target = "sm_89".parse().unwrap();
    let session = || Session::new(toolkit.clone(), Settings::default(), Cache::open(cache.path())).unwrap();
    let prepared = session().prepare(unit(folder.path(), KERNEL, "k", &[]));
    let build = || {
        let session = session();
        let compiled =
            session.compile(&prepared, target).unwrap_or_else(|errors| panic!("{}", show(&errors)));
        let Statistics { nvrtc_calls, cache_hits, .. } = session.statistics();
        (compiled, nvrtc_calls, cache_hits)
    };
    let (right, calls, hits) = build();
    assert_eq!((right.cached, calls, hits), (false, 1, 0));

    let entry = |bytes: &[u8]| {
        let raw = Raw { bytes: bytes.to_vec(), symbol: right.symbol.clone(), log: String::new(), read: None };
        CodeEntry::new(raw, right.nvrtc)
    };
    let whole = right.object.bytes.unpack(right.object.digest).unwrap().to_vec();
    let as_no_code_is = CodeEntry { unpacked: Some(1), stored: Vec::new(), ..entry(&whole) };
    let of_other_code = CodeEntry { digest: Digest::of(b"other"), ..entry(&whole) };
    for wrong in [entry(b"no code"), entry(&whole[..whole.len() / 2]), as_no_code_is, of_other_code] {
        let session = session();
        let key = session.key("code", &prepared, Purpose::Code(target));
        session.store(&prepared, &key, &wrong, None);
        let reason = wrong.object(target).unwrap_err();
        let (again, calls, hits) = build();
        assert_eq!((again.cached, calls, hits), (false, 1, 0), "{reason}");
        assert_eq!(again.object, right.object);
        let (kept, calls, hits) = build();
        assert_eq!((kept.cached, calls, hits), (true, 0, 1), "{reason}");
        assert_eq!(kept.object, right.object);
    }
}
