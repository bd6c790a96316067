//! Random manifests, always the same: everything that is proved of them holds in every node that they allow.

// Clippy knows test functions, not their helpers.
#![allow(clippy::expect_used, clippy::panic)]

use std::sync::atomic::Ordering;

use cubinder_fuzz_targets::prover::{Counts, bytes, check_bytes};

/// How many manifests the suite tries. `CUBINDER_PROVER_MANIFESTS` tries so many of the larger ones that the fuzzer makes.
const MANIFESTS: u64 = 250;

#[test]
fn everything_proved_holds_in_every_node() {
    let large = std::env::var("CUBINDER_PROVER_MANIFESTS").ok();
    let count = large.as_ref().map_or(MANIFESTS, |count| count.parse().expect("a number of manifests"));
    let counts = Counts::default();
    let next = std::sync::atomic::AtomicU64::new(0);
    let failed = std::thread::scope(|scope| {
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    return;
                }
                check_bytes(&bytes(seed), large.is_some(), &counts);
            }
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().filter(|_| true).map(|worker| worker.join().is_err()).collect::<Vec<bool>>()
    });
    println!("of {count} manifests: {counts:?}");
    assert!(!failed.contains(&true), "{counts:?}");
    // A generator whose manifests are rejected would find nothing.
    assert!(counts.manifests.load(Ordering::Relaxed) > count / 4, "{counts:?}");
    assert!(counts.proved.load(Ordering::Relaxed) > count * 2, "{counts:?}");
}
