#![allow(unreachable_pub)]
use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_model::container::FORMAT_VERSION;
use cubinder_skip::skip;
use cubinder_tests::application::{Answer, Application};
use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Scene {
    folder: TempDir,
    application: Application,
    pub compiler: PathBuf,
    pub generic: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Fields,
    Embedded,
}

pub const FORMS: [Form; 2] = [Form::Fields, Form::Embedded];
pub const PLUGINS: [(&str, &str); 2] = [("pad", "circ_pad_plugin"), ("add", "elemwise_add_plugin")];

impl Form {
    pub fn folder(self) -> &'static str {
        match self {
            Form::Fields => "fields",
            Form::Embedded => "embedded",
        }
    }
}

impl Scene {
    pub fn new() -> Option<Scene> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let names = ("CUBINDER_BIN", "CUBINDER_RUNTIME_LIBRARY");
        let (Some(compiler), Some(generic), Some(application)) =
            (variable(names.0), variable(names.1), Application::from_environment())
        else {
            skip(
                "`CUBINDER_BIN`, `CUBINDER_RUNTIME_LIBRARY` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it",
            );
            return None;
        };
        let scene = Scene { folder: tempfile::tempdir().unwrap(), application, compiler, generic };
        for form in FORMS {
            PLUGINS.iter().for_each(|(name, plugin)| scene.compile(form, name, plugin));
        }
        Some(scene)
    }

    pub fn compile(&self, form: Form, name: &str, plugin: &str) {
        let folder = if plugin == "circ_pad_plugin" { "tests/data/run" } else { "manifests" };
        let said = self.compile_manifest(form, name, &format!("{folder}/{plugin}.toml"));
        assert_eq!(said, "");
    }

    pub fn compile_manifest(&self, form: Form, name: &str, manifest: &str) -> String {
        let mut command = Command::new(&self.compiler);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        command.args(["compile", "--name", name, "--target", "sm_89,compute_80", "--quiet", "--out-dir"]);
        command.arg(self.path(form.folder())).arg(manifest);
        command.args((form == Form::Embedded).then_some("--embed"));
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(done.stdout.is_empty(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn ops(&self, form: Form, name: &str) -> PathBuf {
        self.path(form.folder()).join(format!("lib{name}.so"))
    }

    pub fn code(&self, name: &str) -> PathBuf {
        self.path("embedded").join(format!("lib{name}-code.so"))
    }

    pub fn run(&self, steps: &[Value]) -> Vec<Answer> {
        self.application.run(steps).unwrap()
    }

    pub fn inspected(&self, file: &Path, arguments: &[&str]) -> String {
        let done = self.inspect_command(file).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    pub fn inspect_command(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.compiler);
        command.current_dir(file.parent().unwrap()).arg("inspect").arg(file.file_name().unwrap());
        command
    }

    pub fn inspect(&self, file: &Path) -> Value {
        let done = Command::new(&self.compiler).args(["inspect", "--json"]).arg(file).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    pub fn bundle(&self, library: &Path) -> String {
        self.inspect(library)["containers"][0]["digest"].as_str().unwrap().to_owned()
    }

    pub fn kernel(&self, name: &str) -> String {
        format!("cubinder::Kernel-{} {FORMAT_VERSION}", &self.bundle(&self.code(name))[..16])
    }
}

pub fn load(path: &Path) -> Value {
    json!({"do": "load", "path": path})
}

pub fn unload(path: &Path) -> Value {
    json!({"do": "unload", "path": path})
}

pub fn node(op: &str, name: &str, attributes: &Value) -> Value {
    json!([op, name, attributes])
}

pub fn pad(attributes: &Value) -> Value {
    node("circ_pad_plugin", "pad_1", attributes)
}

pub fn add(attributes: &Value) -> Value {
    node("elemwise_add_plugin", "add_1", attributes)
}

pub struct Case {
    pub form: Form,
    pub ty: &'static str,
    pub dynamic: bool,
}

impl Case {
    pub fn all() -> impl Iterator<Item = Case> {
        FORMS.into_iter().flat_map(|form| {
            ["f32", "f16"]
                .into_iter()
                .flat_map(move |ty| [false, true].map(|dynamic| Case { form, ty, dynamic }))
        })
    }

    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.form.folder(), self.ty, if self.dynamic { "dynamic" } else { "static" })
    }

    pub fn plan(&self, scene: &Scene, run: usize) -> PathBuf {
        scene.path(&format!("{}-{run}.plan", self.name()))
    }

    pub fn steps(&self, scene: &Scene) -> Vec<Value> {
        let model = scene.path(&format!("{}.onnx", self.name()));
        let shape = if self.dynamic { json!(["n", 3, "h", "w"]) } else { json!([2, 3, 8, 8]) };
        let nodes = [
            node("circ_pad_plugin", "pad_1", &json!({"pads": [1, 1, 2, 2], "aot": 1})),
            node("circ_pad_plugin", "pad_2", &json!({"pads": [3, 0], "aot": 1})),
            add(&json!({"block_size": 256, "aot": 1})),
        ];
        let profile = self.dynamic.then(|| json!([[1, 3, 4, 4], [2, 3, 8, 8], [4, 3, 64, 64]]));
        let code = PLUGINS.map(|(name, _)| scene.code(name));
        let serialize = if self.form == Form::Embedded { code.to_vec() } else { Vec::new() };
        let libraries = PLUGINS.map(|(name, _)| scene.ops(self.form, name));
        let build = |run| json!({"do": "build", "onnx": model, "output": self.plan(scene, run), "profile": profile, "serialize": serialize});
        let mut steps = libraries.iter().map(|path| load(path)).collect::<Vec<_>>();
        steps.push(json!({"do": "model", "path": model, "nodes": nodes, "type": self.ty, "shape": shape}));
        steps.extend([build(1), build(2)]);
        steps.extend(libraries.iter().map(|path| unload(path)));
        steps
    }
}
