//! Data of a cache server: readers return no more bytes than announced.

use std::sync::OnceLock;

use cubinder_remote::untrusted::{compress, decompress, result_size};
use cubinder_remote::{Action, Command, InputRoot};

use crate::{Target, seeds};

/// The readers of compressed streams and of results.
pub static TARGET: Target =
    Target::new("remote", run, seeds::remote, include_str!("../../dictionaries/remote.dict"));

/// The limit of results in bytes.
const MOST: u64 = 256 << 20;

fn run(bytes: &[u8]) {
    let whole = decompress(bytes, 1 << 20);
    assert!(whole.len() <= 1 << 20);
    for limit in [0, 1, bytes.len(), whole.len() / 2] {
        let part = decompress(bytes, limit);
        assert!(part.len() <= limit && whole.starts_with(&part), "{limit}");
    }
    assert_eq!(decompress(&compress(bytes), bytes.len() + 1), bytes);
    if let Ok(Some(size)) = result_size(action(), bytes) {
        assert!(size <= MOST);
    }
}

fn action() -> &'static Action {
    static ACTION: OnceLock<Action> = OnceLock::new();
    ACTION.get_or_init(|| {
        let outputs = ["code", "log"].map(str::to_owned).to_vec();
        Action::new(&Command { outputs, ..Command::default() }, InputRoot::default().encode().root)
    })
}
