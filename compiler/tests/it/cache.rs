use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{self, KERNEL, Project, Run};

const LIBRARY: &str = "build/libscale.so";

/// `.NAME` is a draft.
fn entries(project: &Project) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for shard in fs::read_dir(project.outer("cache/code")).unwrap() {
        for entry in fs::read_dir(shard.unwrap().path()).unwrap() {
            found.push(entry.unwrap().path());
        }
    }
    found.sort();
    found
}

#[test]
fn eight_processes_fill_one_cache() {
    let Some(project) = Project::new() else { return };
    let outputs: Vec<String> = (0..8).map(|number| format!("out{number}")).collect();
    let children: Vec<_> = outputs
        .iter()
        .map(|output| {
            let mut command = project.command(&["compile", "--out-dir", output]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        Run::of(child.wait_with_output().unwrap()).assert_ok();
    }
    let [first, rest @ ..] = outputs.as_slice() else { panic!("no outputs") };
    let first = project.read(&format!("{first}/libscale.so"));
    for output in rest {
        assert!(project.read(&format!("{output}/libscale.so")) == first, "{output}");
    }
    assert_eq!(
        entries(&project).len(),
        7,
        "4 code objects, 2 signatures and the list of the files that all of them read, and no file that was left behind"
    );
    assert!(project.compile(&[]).stdout.contains("no NVRTC calls"));
}

/// The include scan cannot evaluate the header's macro.
#[test]
fn a_file_that_only_nvrtc_finds_is_not_cached() {
    let Some(project) = Project::new() else { return };
    let toolkit = support::toolkit().unwrap();
    let include = project.outer("cuda/include");
    fs::create_dir_all(&include).unwrap();
    for header in toolkit.include.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let header = header.unwrap();
        let _ = std::os::unix::fs::symlink(header.path(), include.join(header.file_name()));
    }
    fs::write(include.join("named.h"), "#include NAMED\n").unwrap();
    let nvrtc = toolkit.nvrtc.to_str().unwrap();
    let compile = |named: &str, value: u32| {
        project.write("kernels/value.h", format!("#define VALUE {value}\n"));
        let text =
            format!("#define NAMED {named}\n#include <named.h>\n#ifndef VALUE\n#define VALUE 0\n#endif\n");
        let kernel = KERNEL.replace("* factor", "* factor + VALUE");
        project.write("kernels/scale.cu", format!("{text}{kernel}"));
        let mut command = project.command(&["compile", "--nvrtc", nvrtc]);
        let run = Run::of(command.env("CUDA_HOME", project.outer("cuda")).output().unwrap());
        run.assert_ok();
        (project.read(LIBRARY), run.stdout.contains("no NVRTC calls"))
    };
    assert!(!compile("<cuda_fp16.h>", 1).1);
    assert!(compile("<cuda_fp16.h>", 2).1);
    let (one, _) = compile("\"value.h\"", 1);
    let (two, is_cached) = compile("\"value.h\"", 2);
    assert!(!is_cached && one != two);
    assert!(!compile("\"value.h\"", 2).1);
}

#[test]
fn line_information_is_of_the_folder_it_was_compiled_in() {
    let (Some(here), Some(there)) = (Project::new(), Project::new()) else { return };
    for project in [&here, &there] {
        project.edit("manifests/scale.toml", "[types]", "[compile]\ndebug = \"line\"\n\n[types]");
    }
    here.compile(&[]);
    let compile = |arguments: &[&str]| {
        let mut command = there.command(arguments);
        command.env("CUBINDER_CACHE", here.outer("cache"));
        Run::of(command.output().unwrap()).assert_ok();
        there.read(LIBRARY)
    };
    let found = compile(&["compile"]);
    assert!(compile(&["compile", "--no-cache"]) == found, "the code is of another folder's files");
    assert!(here.read(LIBRARY) != found, "this proves nothing where the folder is not in the code");
    assert!(here.compile(&[]).stdout.contains("no NVRTC calls"));
}

#[test]
fn the_file_of_a_table_counts() {
    let Some(project) = Project::new() else { return };
    let table = "[tables.window]\ntype = \"f32\"\nfile = \"window.bin\"\n\n[types]";
    project.edit("manifests/scale.toml", "[types]", table);
    project.edit("kernels/scale.cu", "* factor)", "* factor * manifest::window[index % 2])");
    project.write("manifests/window.bin", [0_u8; 8]);
    project.compile(&[]);
    let before = project.read(LIBRARY);
    assert!(project.compile(&[]).stdout.contains("no NVRTC calls"));
    project.write("manifests/window.bin", [1_u8; 8]);
    project.compile(&[]);
    assert!(project.read(LIBRARY) != before, "the old bytes are in the code");
    fs::remove_file(project.path("manifests/window.bin")).unwrap();
    project.run(&["compile"]).assert_refused("a table without its file");
}

#[test]
fn a_header_in_a_folder_that_is_not_utf_8_counts() {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(project) = Project::new() else { return };
    let folder = project.path("include").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(&folder).unwrap();
    project.write("kernels/scale.cu", format!("#include \"number.h\"\n{KERNEL}"));
    project.edit("kernels/scale.cu", "* factor)", "* factor * NUMBER)");
    let compile = |number: u32| {
        fs::write(folder.join("number.h"), format!("#define NUMBER {number}\n")).unwrap();
        let run = Run::of(project.command(&["compile", "--include"]).arg(&folder).output().unwrap());
        run.assert_ok();
        (run.stdout.contains("no NVRTC calls"), project.read(LIBRARY))
    };
    let (first, again, other) = (compile(2), compile(2), compile(3));
    assert_eq!((first.0, again.0, other.0), (false, true, false));
    assert!(first.1 == again.1 && again.1 != other.1);
}

#[test]
fn damaged_entries_are_compiled_again() {
    let Some(project) = Project::new() else { return };
    project.compile(&[]);
    let library = project.read(LIBRARY);
    let good: Vec<(PathBuf, Vec<u8>)> =
        entries(&project).into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    assert_eq!(good.len(), 7);
    type Damage = fn(&[u8]) -> Vec<u8>;
    let damages: [(&str, Damage); 5] = [
        ("cut in half", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("emptied", |_| Vec::new()),
        ("a bit of the value flipped", |bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        }),
        ("a bit of the digest flipped", |bytes| {
            let mut bytes = bytes.to_vec();
            bytes[8] ^= 1;
            bytes
        }),
        ("longer", |bytes| [bytes, b"x"].concat()),
    ];
    for (what, damage) in damages {
        for (path, bytes) in &good {
            fs::write(path, damage(bytes)).unwrap();
        }
        let run = project.compile(&[]);
        assert!(
            run.stdout.contains("5 NVRTC calls, ") && run.stdout.contains("; 0 cached)"),
            "{what}: {}",
            run.stdout
        );
        assert!(project.read(LIBRARY) == library, "{what}");
        for (path, bytes) in &good {
            assert!(fs::read(path).unwrap() == *bytes, "{what}: {} is not repaired", path.display());
        }
    }
    // Results without the list of the files that were read cannot be shared.
    for (path, bytes) in &good {
        fs::remove_file(path).unwrap();
        project.compile(&[]);
        assert!(fs::read(path).unwrap() == *bytes, "{} is not restored", path.display());
    }
    // Swapped entries are intact but misnamed.
    for ((path, _), (_, other)) in good.iter().zip(good.iter().cycle().skip(1)) {
        fs::write(path, other).unwrap();
    }
    assert!(project.compile(&[]).stdout.contains("5 NVRTC calls, "), "entries of others were used");
    assert!(project.read(LIBRARY) == library);
    let (path, bytes) = &good[3];
    fs::write(path, &bytes[1..]).unwrap();
    assert!(project.compile(&[]).stdout.contains("(1 NVRTC call, "));
}

/// A file, which stops even root.
#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let Some(project) = Project::new() else { return };
    fs::write(project.outer("cache/code"), "").unwrap();
    let run = project.run(&["compile"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stderr.matches("warning: ").count(), 1, "{}", run.stderr);
    let said = project.plain(&run.stderr);
    let (before, place) = said.split_once("[TEMP]/cache/code/").unwrap();
    insta::assert_snapshot!(format!("{before}[TEMP]/cache/code/[..]{}", &place[2..]));
    let library = project.read(LIBRARY);
    fs::remove_file(project.outer("cache/code")).unwrap();
    project.compile(&[]);
    assert!(project.read(LIBRARY) == library);
}

#[test]
fn a_read_only_cache_is_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(project) = Project::new() else { return };
    let cache = project.outer("cache");
    let permit = |mode| fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
    permit(0o555);
    if fs::write(cache.join("probe"), "").is_ok() {
        permit(0o755);
        cubinder_skip::does_not_apply("this user may write to read-only folders");
        return;
    }
    let run = project.run(&["compile"]);
    permit(0o755);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.starts_with("warning: cannot cache compiled code: "), "{}", run.stderr);
}

fn run_and_kill(mut command: Command, after: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

#[test]
fn a_killed_run_leaves_no_half_written_library() {
    let Some(project) = Project::new() else { return };
    project.compile(&[]);
    let old = project.read(LIBRARY);
    project.write("kernels/scale.cu", KERNEL.replace("* factor", "/ factor"));
    let started = Instant::now();
    project.compile(&["--no-cache", "--out-dir", "new"]);
    let whole = started.elapsed();
    let new = project.read("new/libscale.so");
    assert!(old != new);
    let mut killed = 0;
    for tenth in 0..10_u32 {
        fs::remove_dir_all(project.outer("cache/code")).unwrap();
        killed += u32::from(run_and_kill(project.command(&["compile"]), whole * tenth / 9));
        assert_old_or_new(&project.path(LIBRARY), &old, &new);
        fs::create_dir_all(project.outer("cache/code")).unwrap();
    }
    assert!(killed >= 4, "only {killed} of 10 were killed before their end");
    project.compile(&["--out-dir", "other"]);
    let started = Instant::now();
    project.compile(&["--out-dir", "other"]);
    let whole = started.elapsed();
    for tenth in 0..20_u32 {
        fs::write(project.path(LIBRARY), &old).unwrap();
        run_and_kill(project.command(&["compile"]), whole * tenth / 19);
        assert_old_or_new(&project.path(LIBRARY), &old, &new);
    }
    project.compile(&[]);
    assert!(project.read(LIBRARY) == new, "the next run works");
}

#[track_caller]
fn assert_old_or_new(path: &Path, old: &[u8], new: &[u8]) {
    let found = fs::read(path).unwrap();
    assert!(found == old || found == new, "{} bytes that are neither", found.len());
}
