//! Checks proofs about random manifests in every node.

// Clippy exempts test functions, not their helpers.
#![allow(clippy::expect_used, clippy::panic)]

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cubinder_fuzz_targets::prover::{Counts, bytes, check_bytes};

/// `CUBINDER_PROVER_MANIFESTS`: another number, and thorough checks.
const MANIFESTS: u64 = 16;

/// Past false proofs: conditions that never have a value.
const FOUND: [u64; 2] = [160, 310];

#[test]
fn everything_proved_holds_in_every_node() {
    let thorough = std::env::var("CUBINDER_PROVER_MANIFESTS").ok();
    let count = thorough.as_ref().map_or(MANIFESTS, |count| count.parse().expect("a number of manifests"));
    let counts = Counts::default();
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let found = usize::try_from(number.wrapping_sub(count)).ok().and_then(|at| FOUND.get(at));
            if found.is_none() && number >= count {
                return;
            }
            let number = found.copied().unwrap_or(number);
            let check = || check_bytes(&bytes(number), thorough.is_some(), &counts);
            if catch_unwind(AssertUnwindSafe(check)).is_err() {
                failed.lock().expect("no thread panics while it holds the lock").push(number);
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let failed = failed.into_inner().expect("no thread panics while it holds the lock");
    println!("of {count} manifests: {counts:?}");
    assert!(failed.is_empty(), "manifests {failed:?}: {counts:?}");
    // Detects mostly invalid manifests.
    assert!(counts.manifests.load(Ordering::Relaxed) > count / 2, "{counts:?}");
    assert!(counts.proved.load(Ordering::Relaxed) > count * 8, "{counts:?}");
}
