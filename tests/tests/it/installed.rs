//! `cargo xtask dist` in empty folders: compiles the README's smallest plugin.

use std::path::{Path, PathBuf};

use anyhow::Result;
use cubinder_skip::skip;
use cubinder_tests::installed::{Installed, capture};
use serde_json::Value;

const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// Bytes of `libcubinder.so`, which each plugin library contains.
const MAX_RUNTIME_LIBRARY: u64 = 1_500_000;

const NOT_SET: &str =
    "`CUBINDER_TEST_ARCHIVE` or `CUBINDER_TEST_WHEEL` is not set; `cargo xtask test` sets it";

fn nvrtc() -> PathBuf {
    use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
    Toolkit::locate(&Overrides::from_env(None)).unwrap().nvrtc
}

fn smallest_plugin(folder: &Path) {
    let readme = include_str!("../../../README.md");
    for (name, language) in [("add_one.toml", "toml"), ("add_one.cu", "cuda")] {
        let (_, rest) = readme.split_once(&format!("`{name}`:\n\n```{language}\n")).unwrap();
        let (text, _) = rest.split_once("\n```\n").unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn compile(installed: &Installed, variables: &[(&str, &Path)]) -> Result<()> {
    let work = installed.work("my plugins")?;
    smallest_plugin(&work);
    let cubinder = || {
        let mut command = installed.command("cubinder");
        command.current_dir(&work).envs(variables.iter().copied());
        command
    };
    let said = capture(cubinder().args(["compile", "add_one.toml", "--target", "sm_89,compute_80"]))?;
    assert!(said.stdout.contains("1 plugin, 2 code objects"), "{}", said.stdout);
    let said = capture(cubinder().args(["inspect", "libadd_one.so"]))?;
    assert!(said.stdout.contains("mine::add_one") || said.stdout.contains("add_one"), "{}", said.stdout);
    Ok(())
}

#[test]
fn the_archive_works_where_it_is_unpacked() -> Result<()> {
    let Some(installed) = Installed::archive()? else {
        skip(NOT_SET);
        return Ok(());
    };
    compile(&installed, &[("CUBINDER_NVRTC", &nvrtc())])?;
    let said = capture(installed.command("cubinder").args(["paths", "--json"]))?;
    let paths: Value = serde_json::from_str(&said.stdout)?;
    let expected = |path: &str| installed.prefix().join(path).to_str().unwrap().to_owned();
    assert_eq!(paths["runtime_library"], expected("lib/libcubinder.so"));
    assert_eq!(paths["cmake"], expected("lib/cmake/cubinder"));
    let mut files = Vec::new();
    list(installed.prefix(), installed.prefix(), &mut files);
    files.sort();
    let pages = files.iter().filter(|file| file.starts_with("share/man/man1/cubinder")).count();
    assert!(pages > 10, "{files:?}");
    // One page per operator with published times.
    files.retain(|file| {
        !file.starts_with("share/man/") && !file.starts_with("share/doc/cubinder/contributing/performance/")
    });
    insta::assert_snapshot!(files.join("\n"));
    let notices = std::fs::read_to_string(installed.prefix().join("share/doc/cubinder/THIRD-PARTY.txt"))?;
    assert!(notices.contains("\n  blake3 "), "the licences of linked libraries are included");
    Ok(())
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => list(root, &path, files),
            false => files.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()),
        }
    }
}

#[test]
fn the_wheel_with_its_extra_needs_nothing_else() -> Result<()> {
    let Some(installed) = Installed::wheel(true)? else {
        skip(NOT_SET);
        return Ok(());
    };
    compile(&installed, &[])?;
    let paths: Value =
        serde_json::from_str(&capture(installed.command("cubinder").args(["paths", "--json"]))?.stdout)?;
    for key in ["program", "runtime_library", "cmake", "plugins", "nvrtc"] {
        let path = paths[key].as_str().unwrap_or_default();
        assert!(path.starts_with(installed.prefix().to_str().unwrap()), "{key}: {paths}");
    }
    assert_eq!(paths["include"].as_array().unwrap().len(), 2, "{paths}");
    assert_eq!(paths["missing"], serde_json::json!({}), "{paths}");
    let work = installed.work("halves")?;
    std::fs::write(work.join("half.cu"), HALF)?;
    smallest_plugin(&work);
    let manifest = std::fs::read_to_string(work.join("add_one.toml"))?;
    std::fs::write(work.join("half.toml"), manifest.replace("f32", "f16").replace("add_one.cu", "half.cu"))?;
    let mut command = installed.command("cubinder");
    capture(command.current_dir(&work).args(["compile", "half.toml", "--target", "sm_89"]))?;
    let manifest = Path::new(paths["plugins"].as_str().unwrap()).join("circ_pad_plugin.toml");
    let mut command = installed.command("python");
    command.args(["-m", "cubinder", "compile"]).arg(manifest).args(["--target", "sm_89"]);
    let said = capture(command.current_dir(&work))?;
    assert!(
        said.stdout.contains("1 plugin") && work.join("libcirc_pad_plugin.so").is_file(),
        "{}",
        said.stdout
    );
    let script = "import cubinder as c; print(c.program(), c.runtime_library(), c.cmake_dir(), c.manifests_dir(), sep='\\n')";
    let said = capture(installed.command("python").args(["-c", script]))?;
    let said: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(
        said,
        ["program", "runtime_library", "cmake", "plugins"].map(|key| paths[key].as_str().unwrap())
    );
    std::fs::remove_file(said[1])?;
    let lost =
        installed.command("python").args(["-c", "import cubinder; cubinder.runtime_library()"]).output()?;
    let lost = String::from_utf8(lost.stderr)?;
    assert!(lost.contains("has no `lib/libcubinder.so`: install it from its wheel"), "{lost}");
    Ok(())
}

#[test]
fn the_wheel_has_the_files_of_the_archive() -> Result<()> {
    let (Some(archive), Some(wheel)) = (Installed::archive()?, Installed::wheel(false)?) else {
        skip(NOT_SET);
        return Ok(());
    };
    for file in ["bin/cubinder", "lib/libcubinder.so", "lib/cmake/cubinder/cubinder-config.cmake"] {
        let bytes = |installed: &Installed| std::fs::read(installed.prefix().join(file));
        assert!(bytes(&archive)? == bytes(&wheel)?, "{file}");
    }
    Ok(())
}

const HALF: &str = "\
#include <mma.h>
#include <cuda/std/array>
__global__ void add_one(const __half* x, __half* y, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = __hadd(x[i], __float2half(1.0f));
}
";

#[test]
fn the_wheel_alone_says_what_it_lacks() -> Result<()> {
    let Some(installed) = Installed::wheel(false)? else {
        skip(NOT_SET);
        return Ok(());
    };
    let work = installed.work("my plugins")?;
    smallest_plugin(&work);
    let mut command = installed.command("cubinder");
    let refused =
        command.current_dir(&work).args(["compile", "add_one.toml", "--target", "sm_89"]).output()?;
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr)?;
    assert!(said.contains("pip install nvidia-cuda-nvrtc"), "{said}");
    Ok(())
}

fn glibc_versions(bytes: &[u8]) -> Vec<(u32, u32)> {
    let name = b"GLIBC_2.";
    let at = bytes
        .windows(name.len())
        .enumerate()
        .filter(|(_, window)| window == name)
        .map(|(at, _)| at + name.len());
    let minor = |at: usize| {
        let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
    };
    at.filter_map(minor).map(|minor| (2, minor)).collect()
}

#[test]
fn the_runtime_library_is_small() -> Result<()> {
    let Some(installed) = Installed::archive()? else {
        skip(NOT_SET);
        return Ok(());
    };
    let bytes = std::fs::metadata(installed.prefix().join("lib/libcubinder.so"))?.len();
    assert!(bytes <= MAX_RUNTIME_LIBRARY, "{bytes} bytes, expected at most {MAX_RUNTIME_LIBRARY}");
    Ok(())
}

#[test]
fn old_systems_and_other_machines_will_do() -> Result<()> {
    let Some(installed) = Installed::archive()? else {
        skip(NOT_SET);
        return Ok(());
    };
    for file in ["bin/cubinder", "lib/libcubinder.so", "lib/libcubinder_torch.so"] {
        let bytes = std::fs::read(installed.prefix().join(file))?;
        let versions = glibc_versions(&bytes);
        assert!(versions.contains(&(2, 28)) || versions.contains(&(2, 18)), "{file}: {versions:?}");
        assert!(versions.iter().all(|version| *version <= OLDEST_GLIBC), "{file}: {versions:?}");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        for library in ["libgcc_s.so", "libstdc++.so"] {
            assert!(!has(library), "{file} needs {library}");
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for folder in
            [root.to_str(), std::env::home_dir().as_deref().and_then(Path::to_str), Some(".cargo/registry")]
        {
            let folder = folder.unwrap();
            assert!(folder.len() < 4 || !has(folder), "{file} names {folder}");
        }
    }
    Ok(())
}
