//! Builds are equal for all users and locations; exceptions are reported.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Project, Run};

const LIBRARIES: [&str; 2] = ["libscale.so", "libscale-code.so"];

/// Uses all constructs that may put paths into code.
fn project(names: [&str; 2], in_header: &str) -> Option<Project> {
    let project = Project::new()?;
    project.edit("cubinder.toml", "[library]", "[library]\ninclude = [\"include\"]");
    project.write(
        "kernels/beside.cuh",
        format!("static __device__ const char* beside() {{ return {in_header}; }}\n"),
    );
    project.write("include/deep/own.cuh", "namespace { __device__ int counter; }\n#include <cuda_fp16.h>\n");
    project.write("manifests/window.bin", [7_u8; 8]);
    project.edit(
        "kernels/scale.cu",
        "template",
        "#include \"beside.cuh\"\n#include \"deep/own.cuh\"\ntemplate",
    );
    project.edit(
        "kernels/scale.cu",
        "* factor)",
        "* factor + manifest::window[index % 2] + beside()[count] + __FILE__[count] + counter)",
    );
    let table = "[tables.window]\ntype = \"f32\"\nfile = \"window.bin\"\n\n[types]";
    project.edit("manifests/scale.toml", "[types]", table);
    let manifest = String::from_utf8(project.read("manifests/scale.toml")).unwrap();
    fs::remove_file(project.path("manifests/scale.toml")).unwrap();
    for name in names {
        project.write(&format!("manifests/{name}.toml"), manifest.replace("scale_plugin", name));
    }
    Some(project)
}

fn libraries(folder: &Path) -> Vec<(Vec<u8>, u32)> {
    let read = |name| {
        let path = folder.join(name);
        (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().permissions().mode())
    };
    LIBRARIES.map(read).into()
}

fn of_another_user(project: &Project, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$0\" \"$@\""]);
    let own = project.command(arguments);
    command.arg(own.get_program()).args(own.get_args()).current_dir(own.get_current_dir().unwrap());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for folder in ["home of another", "temporary"] {
        fs::create_dir_all(project.outer(folder)).unwrap();
    }
    command.env("HOME", project.outer("home of another")).env("TMPDIR", project.outer("temporary"));
    command.env("USER", "another").env("LOGNAME", "another").env("LC_ALL", "C").env("TZ", "Asia/Tokyo");
    command
}

#[test]
fn another_folder_and_another_user_give_the_same_bytes() {
    let Some(first) = project(["one", "two"], "__FILE__") else { return };
    let Some(second) = project(["two", "one"], "__FILE__") else { return };
    first.compile(&["--embed"]);
    let expected = libraries(&first.path("build"));
    let moved = second.outer("a longer name/of a folder");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(second.outer("project"), &moved).unwrap();
    let compile = |arguments: &[&str]| {
        let arguments = [&["compile", "--embed", "--out-dir", "out"], arguments].concat();
        Run::of(of_another_user(&second, &arguments).current_dir(&moved).output().unwrap()).assert_ok();
        assert!(libraries(&moved.join("out")) == expected, "{arguments:?}");
    };
    compile(&["--no-cache", "--jobs", "1"]);
    compile(&["--jobs", "2"]);
    compile(&[]);
    compile(&["--config", "cubinder.toml"]);
    compile(&["--config", "./manifests/../cubinder.toml"]);
    compile(&["--config", "cubinder.toml", "--depfile", "depfile"]);
}

#[test]
fn a_project_may_be_named_from_anywhere() {
    let Some(project) = project(["one", "two"], "__func__") else { return };
    project.edit("cubinder.toml", "\"include\"", "\"include\", \"../far\"");
    fs::create_dir_all(project.outer("far")).unwrap();
    fs::write(project.outer("far/far.cuh"), "// far\n").unwrap();
    project.edit("include/deep/own.cuh", "namespace", "#include <far.cuh>\nnamespace");
    project.compile(&["--embed"]);
    let expected = libraries(&project.path("build"));
    let config = project.path("cubinder.toml");
    let out = project.outer("out");
    for folder in ["", "project/kernels"] {
        let mut command = project.command(&["compile", "--embed", "--no-cache", "--config"]);
        command.arg(&config).arg("--out-dir").arg(&out).current_dir(project.outer(folder));
        Run::of(command.output().unwrap()).assert_ok();
        assert!(libraries(&out) == expected, "started in `{folder}`");
    }
}

/// A header's `__FILE__` is the path by which it was found.
#[test]
fn a_path_of_the_machine_in_the_code_is_told() {
    let Some(project) = project(["one", "two"], "__FILE__") else { return };
    project.compile(&[]);
    let expected = project.read("build/libscale.so");
    let compile = |target: &str| {
        let mut command = project.command(&["compile", "--out-dir", "out", "--target", target, "--config"]);
        command.arg(project.path("cubinder.toml")).output().unwrap()
    };
    for target in ["sm_89", "compute_80"] {
        let run = Run::of(compile(target));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let folder = project.path("manifests/../kernels/");
        let message =
            format!("the code of `scale<float>` contains the path of a header in `{}`", folder.display());
        assert!(run.stderr.contains(&message), "{target}: {}", run.stderr);
    }
    let run = Run::of(compile("sm_89,compute_80"));
    assert!(project.read("out/libscale.so") != expected, "{}", run.stderr);
}
