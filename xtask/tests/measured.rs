//! Tests of `cargo xtask`'s measurements of processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

/// Returns wall seconds, processor seconds, and megabytes.
fn measured(script: &str) -> [f64; 3] {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cost");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let status = command.arg("measured").arg(&file).args(["sh", "-c", script]).status().unwrap();
    assert!(status.success(), "{status}");
    let cost: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    ["wall", "cpu", "peak"].map(|name| cost[name].as_f64().unwrap())
}

#[test]
fn a_peak_is_that_of_the_command_alone_and_of_what_it_starts() {
    // `tail` keeps all of it.
    let [wall, cpu, large] = measured("head -c 64000000 /dev/zero | tail -c 64000000 > /dev/null; sleep 0.1");
    assert!(large > 61.0 && large < 200.0, "{large} MB");
    assert!(wall >= 0.1 && cpu > 0.0 && cpu < wall + 10.0, "{wall} s, {cpu} s of a processor");
    let [_, _, small] = measured("exit 0");
    assert!(small > 0.1 && small < 30.0, "{small} MB");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("measured").arg(folder.path().join("cost")).args(["sh", "-c", script]).output().unwrap()
    };
    assert_eq!(run("exit 3").status.code(), Some(3));
    let killed = run("kill -9 $$");
    assert_eq!(killed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&killed.stderr).contains("signal: 9"), "{killed:?}");
}
