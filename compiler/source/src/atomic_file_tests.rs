use super::*;

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_left_is_taken_away_and_what_is_being_made_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let left = folder.path().join(".cubinder-AbC123.tmp");
    for other in [".cubinder-AbC1234.tmp", ".cubinder-AbC12-.tmp", ".cubinder-AbC123", "AbC123.tmp"] {
        fs::write(folder.path().join(other), "").unwrap();
    }
    fs::create_dir(folder.path().join(".cubinder-folder.tmp")).unwrap();
    fs::write(&left, "").unwrap();
    let before = names(folder.path());
    let draft = AtomicFile::with_bytes(&place, b"whole").unwrap();
    assert!(is_of_draft(draft.0.path().file_name().unwrap()));
    assert!(!left.exists());
    sweep(folder.path());
    assert_eq!(names(folder.path()).len(), before.len());
    draft.persist(&place).unwrap();
    assert_eq!(fs::read(&place).unwrap(), b"whole");
    drop(AtomicFile::with_bytes(&place, b"other").unwrap());
    assert_eq!((names(folder.path()).len(), fs::read(&place).unwrap()), (before.len(), b"whole".to_vec()));
}

#[test]
fn all_are_placed_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (old, absent, blocked) = (at("old"), at("absent"), at("blocked"));
    fs::write(&old, "old").unwrap();
    fs::create_dir_all(blocked.join("in")).unwrap();
    let draft = |place: &Path| AtomicFile::with_bytes(place, b"new").unwrap();
    let placing = |places: &[&'static str]| -> Vec<PathBuf> { places.iter().map(|name| at(name)).collect() };
    type Persist = fn(Vec<(AtomicFile, PathBuf)>) -> Result<(), NotPersisted>;
    let try_all = |places: &[PathBuf], placed: Persist| {
        placed(places.iter().map(|place| (draft(place), place.clone())).collect())
    };
    let three = placing(&["old", "absent", "blocked"]);
    assert_eq!(try_all(&three, persist_all).unwrap_err().place, blocked);
    assert_eq!((fs::read(&old).unwrap(), absent.exists()), (b"old".to_vec(), false));
    assert_eq!(try_all(&placing(&["absent", "old"]), persist_all_new).unwrap_err().place, old);
    assert_eq!((fs::read(&old).unwrap(), absent.exists()), (b"old".to_vec(), false));
    assert_eq!(names(folder.path()), ["blocked", "old"]);
    try_all(&placing(&["old", "absent"]), persist_all).unwrap();
    assert_eq!((fs::read(&old).unwrap(), fs::read(&absent).unwrap()), (b"new".to_vec(), b"new".to_vec()));
    assert_eq!(names(folder.path()), ["absent", "blocked", "old"]);
}

#[test]
fn places_that_cannot_be_restored_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (link, blocked) = (folder.path().join("link"), folder.path().join("blocked"));
    std::os::unix::fs::symlink("nothing", &link).unwrap();
    fs::create_dir_all(blocked.join("in")).unwrap();
    let placing = |place| (AtomicFile::with_bytes(place, b"new").unwrap(), place);
    let error = persist_all(vec![placing(&link), placing(&blocked)]).unwrap_err();
    assert_eq!((&error.place, error.changed.as_slice()), (&blocked, &[link.clone()][..]));
    assert!(Diagnostic::from(error).notes[0].contains(&link.display().to_string()));
}

fn without_waiting<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(20)).expect("opening does not wait")
}

#[test]
fn a_pipe_in_the_place_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (name, _file) = without_waiting(move || second_name(&pipe).unwrap());
    assert!(is_of_draft(name.file_name().unwrap()));
}

#[test]
fn only_old_files_are_swept_from_shared_file_systems() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = File::create(&path).unwrap();
    let this = [rustix::fs::fstatfs(&file).unwrap().f_type];
    sweep_one(&path, &this);
    assert!(path.exists());
    file.set_modified(std::time::SystemTime::now() - LONG_AGO - Duration::from_secs(60)).unwrap();
    file.try_lock().unwrap();
    sweep_one(&path, &this);
    assert!(path.exists());
    file.unlock().unwrap();
    sweep_one(&path, &this);
    assert!(!path.exists());
    File::create(&path).unwrap();
    sweep_one(&path, &[]);
    assert!(!path.exists());
}

#[test]
fn what_may_not_be_written_is_not_replaceable() {
    // A running program can be replaced, but not opened for writing.
    let program = std::env::current_exe().unwrap();
    check_replaceable(&program, &program, "`--output`").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let place = folder.path().join("file");
    fs::write(&place, "old").unwrap();
    // Root may write everything: change the user.
    let is_root = rustix::process::geteuid().is_root();
    fs::set_permissions(&place, Permissions::from_mode(if is_root { 0o200 } else { 0o020 })).unwrap();
    let check = move || {
        if is_root {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        }
        check_replaceable(&place, Path::new("shown"), "`--output`").unwrap_err()
    };
    let error = std::thread::spawn(check).join().unwrap();
    assert_eq!(error.message, "cannot write `shown`: Permission denied (os error 13)");
}

#[test]
fn only_regular_files_are_replaced() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink("pipe", at("link to a pipe")).unwrap();
    symlink("/proc/self/fd/1", at("standard output")).unwrap();
    let before = names(folder.path());
    for name in ["pipe", "socket", "link to a pipe", "standard output"] {
        let place = at(name);
        assert_eq!(
            write_help(&AtomicFile::beside(&place).unwrap_err()),
            Some("specify a file, or remove the option")
        );
        assert_eq!(AtomicFile::beside(&place).unwrap_err().to_string(), NotRegular.to_string(), "{name}");
        let draft = || AtomicFile::in_folder(folder.path()).unwrap();
        assert_eq!(draft().persist(&place).unwrap_err().to_string(), NotRegular.to_string(), "{name}");
        let last = at("last");
        let both = [(draft(), &last), (draft(), &place)];
        let error = persist_all(both.into()).unwrap_err();
        assert_eq!((error.place, error.error.to_string()), (place.clone(), NotRegular.to_string()));
        let error = check_replaceable(&place, &place, "`--output`").unwrap_err();
        assert_eq!(error.help.as_deref(), Some("specify a file, or remove the option"), "{}", error.message);
    }
    assert!(fs::metadata(at("link to a pipe")).unwrap().file_type().is_fifo());
    assert!(fs::metadata(at("socket")).unwrap().file_type().is_socket());
    assert_eq!(names(folder.path()), before);
    // Links are replaced, even if dangling.
    fs::write(at("file"), "old").unwrap();
    for target in ["file", "nothing"] {
        let link = at(&format!("link to {target}"));
        symlink(target, &link).unwrap();
        AtomicFile::with_bytes(&link, b"new").unwrap().persist(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }
    assert_eq!(fs::read(at("file")).unwrap(), b"old");
    assert!(!at("nothing").exists());
    assert!(AtomicFile::in_folder(folder.path()).unwrap().persist(folder.path()).is_err());
}

#[test]
fn two_that_write_a_pair_do_not_mix_it() {
    let folder = tempfile::tempdir().unwrap();
    let places = ["a", "b"].map(|name| folder.path().join(name));
    let write = |text: &str| {
        let placings =
            places.iter().map(|place| (AtomicFile::with_bytes(place, text.as_bytes()).unwrap(), place));
        persist_all(placings.collect()).unwrap();
    };
    // Both files must have the same last writer.
    for round in 0..150 {
        std::thread::scope(|scope| {
            for thread in ["1", "2", "3", "4"] {
                scope.spawn(move || write(thread));
            }
        });
        let [a, b] = places.each_ref().map(|place| fs::read(place).unwrap());
        assert_eq!(a, b, "{round}");
    }
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn what_another_has_put_there_is_not_undone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let file = AtomicFile::with_bytes(&place, b"mine").unwrap().put(&place).unwrap();
    AtomicFile::with_bytes(&place, b"another's").unwrap().persist_unsynced(&place).unwrap();
    assert_eq!(undo(Placed { file, place: place.clone(), before: Before::Absent }), None);
    assert_eq!(fs::read(&place).unwrap(), b"another's");
    let file = AtomicFile::with_bytes(&place, b"mine").unwrap().put(&place).unwrap();
    assert_eq!(undo(Placed { file, place: place.clone(), before: Before::Unknown }), Some(place));
}

#[test]
fn nobody_loses_what_he_makes_to_another() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let place = folder.path().join(thread.to_string());
            scope.spawn(move || {
                (0..100).for_each(|_| {
                    AtomicFile::with_bytes(&place, b"x").unwrap().persist_unsynced(&place).unwrap();
                });
            });
        }
    });
    assert_eq!(names(folder.path()), ["0", "1", "2", "3"]);
}

const NEW: [fn(AtomicFile, &Path) -> io::Result<File>; 2] = [put_new, claim];

#[test]
fn one_of_many_gets_a_new_place() {
    let folder = tempfile::tempdir().unwrap();
    for (way, put) in NEW.into_iter().enumerate() {
        for round in 0..50 {
            let place = folder.path().join(format!("{way}-{round}"));
            let write = |text: String| put(AtomicFile::with_bytes(&place, text.as_bytes()).unwrap(), &place);
            let outcomes = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..4).map(|thread| scope.spawn(move || write(thread.to_string()))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            let first = outcomes.iter().position(Result::is_ok).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), first.to_string());
            let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
            assert_eq!(refused.len(), 3);
            assert!(refused.iter().all(|error| error.kind() == io::ErrorKind::AlreadyExists), "{refused:?}");
        }
    }
    assert_eq!(names(folder.path()).len(), 100);
}

#[test]
fn a_claim_without_a_file_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let draft = AtomicFile::with_bytes(&place, b"mine").unwrap();
    fs::remove_file(draft.0.path()).unwrap();
    let error = claim(draft, &place).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(!error.to_string().contains("an empty file remains"), "{error}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn file_systems_without_a_call_get_the_file_by_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let refused =
        |error: io::Error| PersistError { error, file: AtomicFile::with_bytes(&place, b"mine").unwrap().0 };
    let error = put_otherwise(refused(io::ErrorKind::StorageFull.into()), &place).unwrap_err();
    assert_eq!((error.kind(), place.exists()), (io::ErrorKind::StorageFull, false));
    put_otherwise(refused(rustix::io::Errno::NOSYS.into()), &place).unwrap();
    assert_eq!(fs::read(&place).unwrap(), b"mine");
}

#[test]
fn what_appeared_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (place, link) = (folder.path().join("a"), folder.path().join("b"));
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
    for put in NEW {
        let draft = AtomicFile::with_bytes(&place, b"mine").unwrap();
        fs::write(&place, "another's").unwrap();
        assert_eq!(put(draft, &place).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&place).unwrap(), b"another's");
        let error = put(AtomicFile::with_bytes(&link, b"mine").unwrap(), &link).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn the_help_is_that_of_the_error() {
    assert_eq!(
        write_help(&io::Error::new(io::ErrorKind::InvalidInput, NotRegular)),
        Some("specify a file, or remove the option")
    );
    assert_eq!(write_help(&io::Error::new(io::ErrorKind::InvalidInput, "another error")), None);
    assert_eq!(write_help(&io::ErrorKind::InvalidInput.into()), None);
    for (kind, words) in [
        (io::ErrorKind::StorageFull, "free disk space"),
        (io::ErrorKind::QuotaExceeded, "free disk space"),
        (io::ErrorKind::ReadOnlyFilesystem, "is read-only"),
        (io::ErrorKind::PermissionDenied, "write permission"),
    ] {
        let help = write_help(&kind.into()).unwrap();
        assert!(help.contains(words), "{kind}: {help}");
    }
}

#[test]
fn file_systems_without_a_call_are_told_from_those_that_fail() {
    use rustix::io::Errno;
    for errno in [Errno::PERM, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL] {
        assert!(is_unknown_there(&errno.into()), "{errno}");
    }
    assert!(!is_unknown_there(&Errno::EXIST.into()));
    assert!(!is_unknown_there(&io::Error::other("no number")));
}
