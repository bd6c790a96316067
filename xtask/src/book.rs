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
    ensure!(!output.contains("ERROR") && !output.contains("WARN"), "mdBook reports errors:\n{output}");
    let page = root.join("target/book/index.html");
    ensure!(page.exists(), "mdBook did not write `{}`", page.display());
    println!("{}", page.display());
    Ok(())
}

fn program(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("tools").join(format!("mdbook-{VERSION}-search"));
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        println!("building mdBook {VERSION}, which takes a few minutes");
        let mut command = workspace::cargo();
        // Outside the checkout, whose cargo settings do not apply.
        command.args(["install", "mdbook", "--version", VERSION, "--locked"]);
        command.args(["--no-default-features", "--features", "search", "--root"]);
        process::capture(command.arg(&folder).current_dir(std::env::temp_dir()))
            .context("cannot build mdBook")?;
    }
    Ok(program)
}
