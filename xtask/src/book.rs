//! `cargo xtask book`: the documentation as HTML.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{process, setup, workspace};

const VERSION: &str = "0.5.4";

pub(crate) fn run() -> Result<()> {
    let mdbook = program(&setup::cache()?)?;
    let root = workspace::root();
    let mut command = Command::new(mdbook);
    let output = process::capture(command.arg("build").current_dir(&root))?;
    // mdBook only warns about missing pages and includes.
    ensure!(!output.contains("ERROR") && !output.contains("WARN"), "mdBook finds mistakes:\n{output}");
    let page = root.join("target/book/index.html");
    ensure!(page.exists(), "mdBook made no `{}`", page.display());
    println!("{}", page.display());
    Ok(())
}

fn program(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("tools").join(format!("mdbook-{VERSION}"));
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        println!("building mdBook {VERSION}, which takes some minutes");
        let mut command = workspace::cargo();
        // Runs outside of the checkout, whose cargo settings do not apply.
        command.args(["install", "mdbook", "--version", VERSION, "--locked"]);
        command.args(["--no-default-features", "--root"]);
        process::capture(command.arg(&folder).current_dir(std::env::temp_dir()))
            .context("mdBook could not be built")?;
    }
    Ok(program)
}
