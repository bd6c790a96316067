//! Rebuilds the installed form in other folders: equal bytes.

use anyhow::{Result, bail};
use fs_err as fs;

use crate::dist::{self, Checkout, Dist};
use crate::{files, workspace};

pub(super) fn same_from_another_folder(first: &Dist, mut echo: impl FnMut(&str)) -> Result<()> {
    let work = tempfile::Builder::new().prefix("cubinder-again-").tempdir()?;
    let root = work.path().join("a folder with a longer name/checkout");
    files::copy_tree(&workspace::root(), &root, &["target", "build", ".git"])?;
    let [cargo_home, temporary] = ["cargo", "temporary"].map(|name| work.path().join(name));
    fs::create_dir(&temporary)?;
    files::copy_tree(&Checkout::this()?.cargo_home.join("registry"), &cargo_home.join("registry"), &["src"])?;
    let copied = Checkout { target: root.join("target"), root, cargo_home, temporary };
    let second = dist::build(&copied, &work.path().join("out"), &mut echo)?;
    for (first, second) in [(&first.archive, &second.archive), (&first.wheel, &second.wheel)] {
        if fs::read(first)? != fs::read(second)? {
            bail!(
                "`{}` differs when it is built in another folder; the second build is in `{}`",
                first.display(),
                work.keep().display()
            );
        }
    }
    Ok(())
}
