//! Replays seeds and corpus with the stable compiler.

// Clippy exempts test functions but not their helpers.
#![allow(clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use cubinder_fuzz_targets::{TARGETS, Target, seeds};

const MOST_FILES: usize = 300;
const MOST_BYTES: usize = 1 << 20;

fn fuzz() -> PathBuf {
    seeds::root().join("tests/fuzz")
}

fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a file");
            (path, bytes)
        })
        .collect()
}

fn replay(target: &Target) {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} begins with nothing", target.name);
    seeds.iter().for_each(|seed| target.run_in_time(seed));
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "{} has no corpus: `cargo xtask fuzz {}`", target.name, target.name);
    for (path, bytes) in &corpus {
        println!("{}", path.display());
        target.run_in_time(bytes);
    }
}

macro_rules! replayed {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(&cubinder_fuzz_targets::$name::TARGET);
        })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(TARGETS.map(|target| target.name), [$(stringify!($name)),*]);
        }
    };
}

replayed!(
    cases, config, container, cubin, cuda, expression, interface, manifest, numpy, onnx, prover, ptx, remote,
    triton, tuning
);

#[test]
fn the_corpus_is_small() {
    for target in TARGETS {
        let corpus = corpus(target);
        let bytes: usize = corpus.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(corpus.len() <= MOST_FILES, "{}: {} files", target.name, corpus.len());
        assert!(bytes <= MOST_BYTES, "{}: {bytes} bytes", target.name);
    }
}

#[test]
fn every_target_has_a_program_and_a_dictionary() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("the manifest of the programs");
    for target in TARGETS {
        let source = format!("fuzz_targets/{}.rs", target.name);
        assert!(manifest.contains(&format!("path = \"{source}\"")), "{}", target.name);
        for path in [source, format!("dictionaries/{}.dict", target.name)] {
            assert!(fuzz().join(Path::new(&path)).is_file(), "{path}");
        }
        assert!(!target.words().is_empty());
    }
}
