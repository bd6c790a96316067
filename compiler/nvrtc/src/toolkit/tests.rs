use super::*;

fn touch(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, b"x").unwrap();
}

fn lines(diagnostic: &Diagnostic, root: &Path) -> String {
    let mut text = format!("{}\n", diagnostic.message);
    for note in &diagnostic.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str(&format!("help: {help}\n"));
    }
    text.replace(&root.display().to_string(), "<root>")
}

fn prepared(root: &Path) -> Overrides {
    for package in packages().unwrap() {
        let folder = root.join("toolkit").join(package.folder());
        package.library.iter().for_each(|library| touch(&folder.join(library)));
        package.include.iter().for_each(|include| std::fs::create_dir_all(folder.join(include)).unwrap());
    }
    Overrides { cache: Some(root.to_owned()), ..Overrides::default() }
}

#[test]
fn the_cache_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let toolkit = Toolkit::locate(&prepared(&root)).unwrap();
    assert_eq!(toolkit.nvrtc, root.join("toolkit/nvidia-cuda-nvrtc-13.0.88/nvidia/cu13/lib/libnvrtc.so.13"));
    assert_eq!(toolkit.include.len(), 4);
    assert!(toolkit.include[3].ends_with("nvidia-cuda-cccl-13.0.85/nvidia/cu13/include/cccl"));
}

#[test]
fn what_is_named_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut overrides = prepared(&root.join("cache"));
    let home = root.join("cuda");
    touch(&home.join("lib64/libnvrtc.so.12.9.86"));
    touch(&home.join("lib64/libnvrtc.so.13.0.88"));
    touch(&home.join("lib64/libnvrtc.so"));
    touch(&home.join("lib64/libnvrtc.so.backup"));
    touch(&home.join("include/cuda_fp16.h"));
    overrides.cuda_home = Some(home.clone());
    let toolkit = Toolkit::locate(&overrides).unwrap();
    assert_eq!(toolkit.nvrtc, home.join("lib64/libnvrtc.so.13.0.88"));
    assert_eq!(toolkit.include, [home.join("include")]);

    let named = root.join("mine/lib/libnvrtc.so.12");
    touch(&named);
    for given in [named.clone(), root.join("mine"), root.join("mine/lib")] {
        overrides.nvrtc = Some(given);
        assert_eq!(Toolkit::locate(&overrides).unwrap().nvrtc, named);
    }
}

#[test]
fn the_folders_of_a_toolkit_have_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    touch(&root.join("include/cuda_fp16.h"));
    let home = || Toolkit::locate(&Overrides { cuda_home: Some(root.clone()), ..Overrides::default() });
    let named = || {
        let nvrtc = Some(root.clone());
        let cache = Some(root.clone());
        locate_nvrtc(&Overrides { nvrtc, cache, ..Overrides::default() })
    };
    for (added, of_home, of_named) in [
        ("nvidia/cu13/lib", None, "nvidia/cu13/lib"),
        ("lib", Some("lib"), "lib"),
        ("targets/x86_64-linux/lib", Some("targets/x86_64-linux/lib"), "lib"),
        ("lib64", Some("lib64"), "lib64"),
        ("", Some("lib64"), ""),
    ] {
        touch(&root.join(added).join("libnvrtc.so.13"));
        let library = |folder: &str| root.join(folder).join("libnvrtc.so.13");
        assert_eq!(home().ok().map(|toolkit| toolkit.nvrtc), of_home.map(library), "{added}");
        assert_eq!(named().unwrap(), library(of_named), "{added}");
    }
}

#[test]
fn a_link_to_nvrtc_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    touch(&root.join("cuda/lib64/libnvrtc.so.13"));
    touch(&root.join("cuda/include/cuda_fp16.h"));
    let link = root.join("libnvrtc.so");
    std::os::unix::fs::symlink(root.join("cuda/lib64/libnvrtc.so.13"), &link).unwrap();
    let toolkit = Toolkit::locate(&Overrides { nvrtc: Some(link), ..Overrides::default() }).unwrap();
    assert_eq!(toolkit.nvrtc, root.join("cuda/lib64/libnvrtc.so.13"));
    assert_eq!(toolkit.include, [root.join("cuda/include")]);
}

/// Keep equal to the test of this name in `xtask/src/setup/mod.rs`.
#[test]
fn the_cache_is_where_the_user_says() {
    let cache = |variables: &[(&str, &str)]| {
        let lookup = |name: &str| Some(OsString::from(variables.iter().find(|(key, _)| *key == name)?.1));
        Overrides::from_variables(None, &lookup).cache.map(|path| path.display().to_string())
    };
    let home = ("HOME", "/users/me");
    assert_eq!(cache(&[home]).unwrap(), "/users/me/.cache/cubinder");
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/xdg")]).unwrap(), "/xdg/cubinder");
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "relative")]).unwrap(), "/users/me/.cache/cubinder");
    assert_eq!(cache(&[home, ("CUBINDER_CACHE", "/mine"), ("XDG_CACHE_HOME", "/xdg")]).unwrap(), "/mine");
    assert_eq!(cache(&[home, ("CUBINDER_CACHE", "")]).unwrap(), "/users/me/.cache/cubinder");
    assert_eq!(cache(&[("HOME", "relative")]), None);
    assert_eq!(cache(&[]), None);
}

#[test]
fn headers_beside_a_named_nvrtc_belong_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut overrides = prepared(&root.join("cache"));
    touch(&root.join("mine/lib/libnvrtc.so.12"));
    overrides.nvrtc = Some(root.join("mine"));
    assert!(Toolkit::locate(&overrides).unwrap().include[0].starts_with(root.join("cache")));
    touch(&root.join("mine/include/cuda_fp16.h"));
    assert_eq!(Toolkit::locate(&overrides).unwrap().include, [root.join("mine/include")]);
}

#[test]
fn a_named_place_without_nvrtc_is_an_error_though_the_cache_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let cache = prepared(&root.join("cache"));
    assert!(Toolkit::locate(&cache).is_ok());
    let nowhere = root.join("empty");
    std::fs::create_dir(&nowhere).unwrap();
    for missing in [nowhere, root.join("absent")] {
        let named = Overrides { nvrtc: Some(missing.clone()), ..cache.clone() };
        assert!(Toolkit::locate(&named).is_err(), "{named:?}");
        let home = Overrides { cuda_home: Some(missing), ..cache.clone() };
        assert!(Toolkit::locate(&home).is_err(), "{home:?}");
    }
    let without_headers = root.join("cuda");
    touch(&without_headers.join("lib64/libnvrtc.so.13"));
    let home = Overrides { cuda_home: Some(without_headers), ..cache };
    assert!(Toolkit::locate(&home).is_err(), "headers of the cache belong to another release");
}

#[test]
fn what_is_missing_is_said_with_the_commands_that_help() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let empty = Overrides { cache: Some(root.clone()), ..Overrides::default() };
    insta::assert_snapshot!("nothing_there", lines(&Toolkit::locate(&empty).unwrap_err(), &root));
    let named = Overrides { nvrtc: Some(root.join("nothing")), ..empty.clone() };
    insta::assert_snapshot!("named_folder_is_empty", lines(&Toolkit::locate(&named).unwrap_err(), &root));
    let home = Overrides { cuda_home: Some(root.join("cuda")), ..empty };
    insta::assert_snapshot!("cuda_home_is_not_there", lines(&Toolkit::locate(&home).unwrap_err(), &root));
    let with_nvrtc = Overrides { nvrtc: Some(root.join("libnvrtc.so.13")), ..home.clone() };
    touch(&root.join("libnvrtc.so.13"));
    assert_eq!(Toolkit::locate(&with_nvrtc).unwrap_err(), Toolkit::locate(&home).unwrap_err());
    std::fs::create_dir(root.join("cuda")).unwrap();
    insta::assert_snapshot!("cuda_home_is_empty", lines(&Toolkit::locate(&home).unwrap_err(), &root));
    insta::assert_snapshot!("no_home", lines(&Toolkit::locate(&Overrides::default()).unwrap_err(), &root));
}

#[test]
fn headers_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    touch(&root.join("mine/libnvrtc.so.13"));
    let nvrtc = Some(root.join("mine"));
    let empty = Overrides { nvrtc, cache: Some(root.join("cache")), ..Overrides::default() };
    let toolkit = Toolkit::locate(&empty).unwrap();
    assert!(toolkit.include.is_empty() && !toolkit.is_pinned);
    insta::assert_snapshot!("no_headers", lines(&toolkit.without_headers.unwrap(), &root));
    let homeless = Overrides { cache: None, ..empty };
    assert!(Toolkit::locate(&homeless).unwrap().without_headers.is_some());
}

fn installed(packages: &Path) {
    for file in [
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/include/cuda_fp16.h",
        "nvidia/cu13/include/crt/mma.h",
        "nvidia/cu13/include/cccl/nv/target",
    ] {
        touch(&packages.join(file));
    }
}

#[test]
fn the_python_environment_goes_before_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut overrides = prepared(&root.join("cache"));
    let packages = root.join("site-packages");
    overrides.packages = Some(packages.clone());
    let toolkit = Toolkit::locate(&overrides).unwrap();
    assert!(toolkit.nvrtc.starts_with(root.join("cache")) && toolkit.is_pinned, "no package is installed");

    installed(&packages);
    let include = packages.join("nvidia/cu13/include");
    let toolkit = Toolkit::locate(&overrides).unwrap();
    assert_eq!(toolkit.nvrtc, packages.join("nvidia/cu13/lib/libnvrtc.so.13"));
    assert_eq!(toolkit.include, [include.clone(), include.join("cccl")]);
    assert!(!toolkit.is_pinned, "pip may have installed other versions");

    std::fs::remove_file(include.join("crt/mma.h")).unwrap();
    let toolkit = Toolkit::locate(&overrides).unwrap();
    assert!(toolkit.nvrtc.starts_with(&packages));
    assert_eq!(toolkit.include.len(), 4, "incomplete headers are ignored");
    overrides.cache = None;
    assert!(Toolkit::locate(&overrides).unwrap().without_headers.is_some());

    let named = root.join("mine/libnvrtc.so.12");
    touch(&named);
    overrides.nvrtc = Some(named.clone());
    assert_eq!(Toolkit::locate(&overrides).unwrap().nvrtc, named);
}

#[test]
fn headers_of_another_release_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    touch(&root.join("lib64/libnvrtc.so.13"));
    touch(&root.join("include/cuda_fp16.h"));
    let toolkit =
        Toolkit::locate(&Overrides { cuda_home: Some(root.clone()), ..Overrides::default() }).unwrap();
    assert_eq!(toolkit.doubt_of_headers((13, 0)), None, "unknown release");
    let says = |version: &str| {
        let text = format!("/* cuda.h */\n#define CUDA_VERSION {version}\n");
        std::fs::write(root.join("include/cuda.h"), text).unwrap();
    };
    says("13000");
    assert_eq!(toolkit.doubt_of_headers((13, 0)), None);
    says("nothing");
    assert_eq!(toolkit.doubt_of_headers((13, 0)), None);
    says("12090");
    insta::assert_snapshot!(
        "headers_of_another_release",
        lines(&toolkit.doubt_of_headers((13, 0)).unwrap(), &root)
    );
}

/// Uses a link that refers to itself: a folder without permissions would not stop root.
#[test]
fn what_cannot_be_looked_at_is_not_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let endless = root.join("endless");
    std::os::unix::fs::symlink(&endless, &endless).unwrap();
    let refused = |overrides: Overrides| {
        let error = Toolkit::locate(&overrides).unwrap_err();
        let place = error.message.strip_suffix("`: Too many levels of symbolic links (os error 40)");
        place
            .and_then(|place| place.strip_prefix("cannot access `"))
            .unwrap_or_else(|| panic!("{error:?}"))
            .to_owned()
    };
    let named = |place: PathBuf| refused(Overrides { nvrtc: Some(place), ..Overrides::default() });
    let home = |place: PathBuf| refused(Overrides { cuda_home: Some(place), ..Overrides::default() });
    assert_eq!(named(endless.clone()), endless.display().to_string());
    assert_eq!(named(endless.join("libnvrtc.so")), endless.join("libnvrtc.so").display().to_string());
    assert_eq!(home(endless.clone()), endless.display().to_string());
    let library = root.join("cuda/lib64");
    std::fs::create_dir(root.join("cuda")).unwrap();
    std::os::unix::fs::symlink(&endless, &library).unwrap();
    for place in [named(root.join("cuda")), home(root.join("cuda"))] {
        assert_eq!(place, library.display().to_string());
    }
    std::fs::remove_file(&library).unwrap();
    touch(&library.join("libnvrtc.so.13"));
    std::os::unix::fs::symlink(&endless, root.join("cuda/include")).unwrap();
    assert_eq!(home(root.join("cuda")), root.join("cuda/include").display().to_string());
    let pinned = root.join("toolkit");
    std::os::unix::fs::symlink(&endless, &pinned).unwrap();
    let cache = refused(Overrides { cache: Some(root.clone()), ..Overrides::default() });
    assert!(cache.starts_with(&pinned.display().to_string()), "{cache}");
}
