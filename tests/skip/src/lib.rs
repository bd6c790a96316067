//! Reports that a test cannot run here.

/// Prints why a test cannot run here, for `cargo xtask test`.
///
/// # Panics
/// If `CUBINDER_REQUIRE_TOOLKIT` is 1: missing tools are failures.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CUBINDER_REQUIRE_TOOLKIT").is_none_or(|value| value != "1"), "{reason}");
    does_not_apply(reason);
}

/// Prints that a test is for another machine or user.
pub fn does_not_apply(reason: &str) {
    println!("skipped: {reason}");
}
