//! Pipes, devices and sockets for every path argument: no command may wait, read endlessly, or replace them.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Project;
use crate::support::models;
use crate::support::path_arguments::{PATH_ARGUMENTS, PathArgument, Use};

const PATIENCE: Duration = Duration::from_secs(20);

const CASES: &str = "manifest = \"manifests/scale.toml\"\n\n[[cases]]\nname = \"a\"\nshapes = { x = [4] }\n\
                     types = { x = \"f32\" }\nattributes = { factor = 1.0 }\n";

const PTX: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\nret;\n}\n";

fn special_files(folder: &Path) -> Vec<&'static str> {
    fs::create_dir_all(folder).unwrap();
    let make = |program: &str, name: &str, rest: &[&str]| {
        let mut command = Command::new(program);
        command.arg(folder.join(name)).args(rest).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    assert!(make("mkfifo", "pipe", &[]));
    drop(std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap());
    let mut names = vec!["pipe", "socket"];
    // The numbers of `/dev/zero`.
    if make("mknod", "device", &["c", "1", "5"]) {
        // The file system may forbid devices.
        if fs::File::open(folder.join("device")).is_ok() {
            names.push("device");
        }
    } else {
        println!("without a device: this process cannot create one");
    }
    names
}

struct Outcome {
    is_ended: bool,
    code: Option<i32>,
    stderr: String,
}

fn run(project: &Project, words: &[String]) -> Outcome {
    let errors = project.outer("stderr");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = project.command(&words);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(fs::File::create(&errors).unwrap()).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let stderr = String::from_utf8_lossy(&fs::read(errors).unwrap()).into_owned();
    Outcome { is_ended: status.is_some(), code: status.and_then(|status| status.code()), stderr }
}

fn check(project: &Project, argument: &PathArgument, kind: &str) -> Result<(), String> {
    let folder = project.outer("special");
    let _ = fs::remove_dir_all(&folder);
    special_files(&folder);
    let path = folder.join(kind);
    let before = fs::symlink_metadata(&path).unwrap();
    let words: Vec<String> =
        argument.call.split(' ').map(|word| word.replace("{}", path.to_str().unwrap())).collect();
    let Outcome { is_ended, code, stderr } = run(project, &words);
    let what = format!("`{}` with a {kind}: exit code {code:?}\n{stderr}", argument.call);
    if !is_ended {
        return Err(format!("does not end: {what}"));
    }
    let after = fs::symlink_metadata(&path).map_err(|error| format!("{error}: {what}"))?;
    if (after.ino(), after.file_type()) != (before.ino(), before.file_type()) {
        return Err(format!("it was replaced: {what}"));
    }
    let names = fs::read_dir(&folder).unwrap().count();
    if names != special_files_count(&folder) {
        return Err(format!("a file was left next to it: {what}"));
    }
    let is_refused = code.is_some_and(|code| code != 0) && stderr.contains("error");
    let may_be_unused = matches!(argument.used, Use::Searches | Use::Runs);
    match is_refused || may_be_unused {
        true => Ok(()),
        false => Err(format!("no error: {what}")),
    }
}

fn special_files_count(folder: &Path) -> usize {
    let is_special = |name: &&str| {
        fs::symlink_metadata(folder.join(name)).is_ok_and(|facts| {
            let kind = facts.file_type();
            kind.is_fifo() || kind.is_socket() || kind.is_char_device()
        })
    };
    ["pipe", "socket", "device"].into_iter().filter(is_special).count()
}

#[test]
fn no_command_waits_for_them_or_replaces_them() {
    let Some(project) = Project::new() else { return };
    project.write("cases.toml", CASES);
    project.write("k.ptx", PTX);
    project.write("k.json", "{}");
    project.write("model.onnx", &models::right().first().unwrap().model);
    project.compile(&[]);
    let kinds = special_files(&project.outer("special"));
    let failures: Vec<String> = PATH_ARGUMENTS
        .iter()
        .flat_map(|argument| kinds.iter().map(move |kind| (argument, kind)))
        .filter_map(|(argument, kind)| check(&project, argument, kind).err())
        .collect();
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures.join("\n"));
}
