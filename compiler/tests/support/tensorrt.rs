//! Stand-ins for Python, `trtexec` and `tensorrt_rtx`: shell scripts in the only folder on `PATH`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::{Project, Run};

/// A project and its programs' folder.
pub struct Machine {
    pub project: Project,
}

/// Answers of a Python with TensorRT-RTX to `builder.py`; `$1` is the script, `$2` the command.
pub const FOUND: &str = r#"{"event": "found", "python": "3.11.7", "modules": [{"module": "tensorrt_rtx", "folder": "/p/tensorrt_rtx", "version": null}, {"module": "tensorrt_rtx_bindings", "folder": "/p/tensorrt_rtx_bindings", "version": "1.7.1.116"}]}"#;

impl Machine {
    pub fn new(project: Project) -> Machine {
        fs::create_dir(project.outer("bin")).unwrap();
        Machine { project }
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.project.outer("bin").join(name)
    }

    /// Writes a shell script.
    pub fn install(&self, name: &str, script: &str) {
        let path = self.program(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Installs a Python that prints `found`, and runs `build` for builds, with the plan's path in `$plan`.
    pub fn python(&self, found: &str, build: &str) {
        let script = format!(
            "if [ \"$2\" = find ]; then echo '{found}'; exit; fi\n\
             if [ \"$2\" = load ]; then echo '{{\"event\": \"loaded\"}}'; exit; fi\n\
             while [ $# -gt 0 ]; do if [ \"$1\" = --save ]; then plan=\"$2\"; fi; shift; done\n{build}"
        );
        self.install("python3", &script);
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.command(arguments);
        command.env("PATH", self.project.outer("bin")).env("TMPDIR", self.project.outer("tmp"));
        fs::create_dir_all(self.project.outer("tmp")).unwrap();
        for name in
            ["VIRTUAL_ENV", "CUBINDER_PYTHON", "TENSORRT_HOME", "TENSORRT_RTX_HOME", "LD_LIBRARY_PATH"]
        {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        super::run_copy(&mut self.command(arguments))
    }
}
