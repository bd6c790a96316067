use std::fs;

use super::*;

struct Machine {
    folder: tempfile::TempDir,
    client: Client,
}

impl Machine {
    fn new() -> Machine {
        Machine { folder: tempfile::tempdir().unwrap(), client: Client::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn python(&self, name: &str, modules: &[(&str, &str)]) -> PathBuf {
        let folder = self.folder.path().display();
        let modules: Vec<String> = modules
            .iter()
            .map(|(name, version)| {
                format!(r#"{{"module": "{name}", "folder": "{folder}/{name}", "version": "{version}"}}"#)
            })
            .collect();
        self.program(
            name,
            &format!(
                r#"echo '{{"event": "found", "python": "3.12.1", "modules": [{}]}}'"#,
                modules.join(", ")
            ),
        )
    }

    fn search(&self, homes: &[(Kind, &str)], pythons: &[&str]) -> Search {
        Search {
            homes: homes.iter().map(|(kind, name)| (*kind, self.path(name))).collect(),
            pythons: pythons.iter().map(|name| self.path(name)).collect(),
            path: vec![PathBuf::new(), self.path("bin")],
        }
    }

    /// Runs while no other thread has a script open for writing.
    fn find(&self, search: &Search, choice: Option<&Choice>) -> Result<Vec<Installation>, Vec<Diagnostic>> {
        loop {
            match search.find(choice, &self.client) {
                Err(errors) if errors.iter().any(|error| error.message.contains("Text file busy")) => {}
                found => return found,
            }
        }
    }

    fn described(&self, search: &Search, choice: Option<&Choice>) -> Vec<String> {
        let root = format!("{}/", self.folder.path().display());
        let found = self.find(search, choice).unwrap();
        found.iter().map(|one| one.describe().replace(&root, "")).collect()
    }
}

#[test]
fn named_folders_come_first_then_python_then_the_path() {
    let machine = Machine::new();
    let search = machine.search(&[(Kind::Rtx, "rtx"), (Kind::Full, "full")], &["p/python3"]);
    machine.program("rtx/bin/tensorrt_rtx", "");
    machine.program("full/trtexec", "");
    machine.program("bin/tensorrt_rtx", "");
    machine.program("bin/trtexec", "");
    machine.python("p/python3", &[("tensorrt_bindings", "10.15.1"), ("tensorrt_rtx", "1.7.1.116")]);
    assert_eq!(
        machine.described(&search, None),
        [
            "TensorRT-RTX: `rtx/bin/tensorrt_rtx`",
            "TensorRT: `full/trtexec`",
            "TensorRT-RTX 1.7.1.116: the Python module `tensorrt_rtx` of `p/python3`",
            "TensorRT 10.15.1: the Python module `tensorrt_bindings` of `p/python3`",
            "TensorRT-RTX: `bin/tensorrt_rtx`",
            "TensorRT: `bin/trtexec`",
        ]
    );
    let full = Choice::from(OsString::from("tensorrt"));
    assert_eq!(machine.described(&search, Some(&full)).len(), 3);
    assert_eq!(machine.described(&search, Some(&full))[0], "TensorRT: `full/trtexec`");
}

#[test]
fn a_choice_is_a_product_a_program_a_python_or_a_folder() {
    let machine = Machine::new();
    let search = machine.search(&[], &[]);
    machine.program("rtx/bin/tensorrt_rtx", "");
    fs::create_dir(machine.path("rtx/lib")).unwrap();
    for name in ["libtensorrt_rtx.so", "libtensorrt_rtx.so.1.7.1"] {
        fs::write(machine.path("rtx/lib").join(name), "").unwrap();
    }
    machine.program("bin/trtexec-10.9", "");
    machine.python("env/bin/python3", &[("tensorrt_rtx", "1.7.1.116")]);
    let at = |name: &str| machine.described(&search, Some(&Choice::Path(machine.path(name))));
    let rtx = ["TensorRT-RTX 1.7.1: `rtx/bin/tensorrt_rtx`"];
    assert_eq!(
        (at("rtx"), at("rtx/bin/tensorrt_rtx")),
        (rtx.map(str::to_owned).to_vec(), rtx.map(str::to_owned).to_vec())
    );
    assert_eq!(at("bin/trtexec-10.9"), ["TensorRT: `bin/trtexec-10.9`"]);
    assert_eq!(at("env"), at("env/bin/python3"));
    assert_eq!(
        machine.described(&search, Some(&Choice::Path("trtexec-10.9".into()))),
        ["TensorRT: `bin/trtexec-10.9`"]
    );
    for name in ["bin", "none", "rtx/lib/libtensorrt_rtx.so"] {
        let errors = machine.find(&search, Some(&Choice::Path(machine.path(name)))).unwrap_err();
        assert!(errors[0].message.starts_with("cannot find TensorRT in `"), "{name}: {errors:?}");
    }
}

#[test]
fn a_broken_python_is_an_error_only_if_nothing_else_is_found() {
    let machine = Machine::new();
    let search = machine.search(&[], &["p/python3"]);
    machine.program("p/python3", "kill -11 $$");
    let errors = machine.find(&search, None).unwrap_err();
    assert!(errors[0].message.ends_with("python3`: its process was ended by SIGSEGV"), "{errors:?}");
    machine.program("bin/trtexec", "");
    assert_eq!(machine.described(&search, None), ["TensorRT: `bin/trtexec`"]);
}

#[test]
fn a_named_folder_without_its_program_is_an_error() {
    let machine = Machine::new();
    machine.program("bin/trtexec", "");
    let search = machine.search(&[(Kind::Full, "full")], &[]);
    let errors = machine.find(&search, None).unwrap_err();
    assert!(errors[0].message.starts_with("`TENSORRT_HOME` is `"), "{errors:?}");
    let rtx = machine.find(&search, Some(&Choice::Kind(Kind::Rtx))).unwrap_err();
    assert_eq!(rtx[0].message, "cannot find TensorRT-RTX");
}

#[test]
fn the_active_environment_comes_before_other_pythons() {
    let machine = Machine::new();
    for name in ["env/bin/python3", "own/python3", "bin/python3", "named"] {
        machine.program(name, "");
    }
    let (env, bin) = (machine.path("env"), machine.path("bin"));
    let mut variables = vec![("VIRTUAL_ENV", env.clone()), ("PATH", bin)];
    let pythons = |variables: &[(&str, PathBuf)], beside: &str| {
        let value =
            |name: &str| Some(variables.iter().find(|(key, _)| *key == name)?.1.clone().into_os_string());
        Search::from_variables(Some(&machine.path(beside)), &value).pythons
    };
    let names = |names: &[&str]| names.iter().map(|name| machine.path(name)).collect::<Vec<_>>();
    assert_eq!(pythons(&variables, "own"), names(&["env/bin/python3", "own/python3", "bin/python3"]));
    assert_eq!(pythons(&variables, "env/bin"), names(&["env/bin/python3", "bin/python3"]));
    variables.push(("CUBINDER_PYTHON", machine.path("named")));
    assert_eq!(pythons(&variables, "own"), names(&["named"]));
}

#[test]
fn only_the_wheels_of_tensorrt_rtx_lack_a_link() {
    let machine = Machine::new();
    let libraries = machine.path("libs");
    fs::create_dir(&libraries).unwrap();
    let route = Route::Program("tensorrt_rtx".into());
    let rtx = Installation { kind: Kind::Rtx, route, version: None, libraries: Some(libraries.clone()) };
    assert_eq!(rtx.missing_link(), None, "no library at all");
    fs::write(libraries.join("libtensorrt_rtx.so.1"), "").unwrap();
    assert_eq!(rtx.missing_link().unwrap().link, libraries.join("libtensorrt_rtx.so"));
    assert_eq!(Installation { kind: Kind::Full, ..rtx.clone() }.missing_link(), None);
    fs::write(libraries.join("libtensorrt_rtx.so"), "").unwrap();
    assert_eq!(rtx.missing_link(), None);
}
