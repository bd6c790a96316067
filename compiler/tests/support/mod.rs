//! Runs the program in a small project with its own home and cache, and this machine's toolkit.

// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]
// Clippy exempts only test functions.
#![allow(clippy::unwrap_used)]

pub mod corpus;
#[path = "../../testing/sample.rs"]
pub mod manifest;
pub mod models;
pub mod path_arguments;
pub mod tensorrt;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_skip::skip;
use tempfile::TempDir;

pub const CONFIG: &str = r#"[library]
name = "scale"
targets = ["sm_89", "compute_80"]
"#;

pub const MANIFEST: &str = r#"schema = 1

[plugin]
name = "scale_plugin"
namespace = "test"
version = "1"

[attributes.factor]
type = "f32"

[[inputs]]
name = "x"
type = "T"

[[outputs]]
name = "y"
type = "T"
shape = "x.shape"

[types]
T = ["f32", "f16"]

[[launches]]
source = "../kernels/scale.cu"
kernel = "scale<T>"
grid = ["ceil_div(numel(y), 256)"]
block = ["256"]

[launches.args]
x = "x"
y = "y"
count = "numel(y)"
factor = "factor"
"#;

pub const KERNEL: &str = "\
// Multiplies every element.
template <typename T>
__global__ void scale(const T* x, T* y, unsigned count, float factor)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        y[index] = static_cast<T>(static_cast<float>(x[index]) * factor);
}
";

pub fn toolkit() -> Option<Toolkit> {
    match Toolkit::locate(&Overrides::from_env(None)) {
        Ok(toolkit) => Some(toolkit),
        Err(error) => {
            skip(&format!("no NVRTC: {} {:?}", error.message, error.notes));
            None
        }
    }
}

pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    pub fn assert_ok(&self) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
    }

    /// Expects exit code 1, no stdout, and an error on stderr.
    #[track_caller]
    pub fn assert_refused(&self, what: &str) {
        assert_eq!(self.code, Some(1), "{what}: {}{}", self.stdout, self.stderr);
        let begins = |word: &str| self.stderr.lines().any(|line| line.starts_with(word));
        assert!(
            self.stderr.starts_with("error") || self.stderr.starts_with("warning"),
            "{what}: {}",
            self.stderr
        );
        assert!(begins("error") && !begins("thread"), "{what}: {}", self.stderr);
        assert_eq!(self.stdout, "", "{what}");
    }
}

/// Runs a newly copied program. Retries while another thread's forked child has it open for writing, which the kernel refuses.
pub fn run_copy(command: &mut Command) -> Run {
    loop {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            output => return Run::of(output.unwrap()),
        }
    }
}

/// A folder with `home`, `cache` and `project`.
pub struct Project {
    folder: TempDir,
    pub runtime_library: Option<PathBuf>,
}

impl Project {
    /// `None` without NVRTC or the runtime library.
    pub fn new() -> Option<Project> {
        let project = Project::without_tools();
        toolkit()?;
        if project.runtime_library.is_none() {
            skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
            return None;
        }
        project.link_toolkit("cache");
        Some(project)
    }

    /// Creates a project with an empty cache and without NVRTC.
    pub fn without_tools() -> Project {
        let runtime_library = std::env::var_os("CUBINDER_RUNTIME_LIBRARY").map(PathBuf::from);
        let project = Project { folder: tempfile::tempdir().unwrap(), runtime_library };
        fs::create_dir(project.folder.path().join("home")).unwrap();
        project.write("cubinder.toml", CONFIG);
        project.write("manifests/scale.toml", MANIFEST);
        project.write("kernels/scale.cu", KERNEL);
        project
    }

    /// Creates a cache with this machine's toolkit only.
    pub fn link_toolkit(&self, cache: &str) {
        let cache = self.outer(cache);
        fs::create_dir_all(&cache).unwrap();
        let toolkit = Overrides::from_env(None).cache.unwrap().join("toolkit");
        if toolkit.is_dir() {
            std::os::unix::fs::symlink(toolkit, cache.join("toolkit")).unwrap();
        }
    }

    /// Returns a path beside the project.
    pub fn outer(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.outer("project").join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// Replaces `from`, which must be present.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no `{from}`");
        self.write(name, text.replacen(from, to, 1));
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cubinder"));
        command.args(arguments).current_dir(self.outer("project"));
        command.env("HOME", self.outer("home")).env("CUBINDER_CACHE", self.outer("cache"));
        command.env_remove("XDG_CACHE_HOME").env_remove("CUBINDER_RUNTIME_LIBRARY");
        command.envs(self.runtime_library.iter().map(|path| ("CUBINDER_RUNTIME_LIBRARY", path)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    /// Expects no warning.
    #[track_caller]
    pub fn compile(&self, arguments: &[&str]) -> Run {
        let run = self.run(&[&["compile"], arguments].concat());
        run.assert_ok();
        run
    }

    /// Removes machine-dependent paths.
    pub fn plain(&self, text: &str) -> String {
        let mut text = text.replace(&self.folder.path().display().to_string(), "[TEMP]");
        let program = Path::new(env!("CARGO_BIN_EXE_cubinder")).parent().unwrap();
        text = text.replace(&program.display().to_string(), "[BIN]");
        if let Some(path) = &self.runtime_library {
            text = text.replace(&path.display().to_string(), "[RUNTIME]");
        }
        text
    }
}
