//! Finders of several TensorRTs, built from `tests/tensorrt.c`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::tests::{Mood, ProbeCreator, QuickProbeCreator};

const KINDS: [(&str, &[&str]); 5] = [
    ("ten", &["-DVERSION=101501"]),
    ("eleven", &["-DVERSION=110400", "-DBASE"]),
    ("early", &["-DVERSION=100200"]),
    ("plain", &["-DVERSION=100801"]),
    ("rtx", &["-DVERSION=10701", "-DBASE"]),
];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("lib{name}.so"))
    }

    fn compile(&self, name: &str, options: &[&str]) {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/tensorrt.c");
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-g0"]).arg("-o").arg(self.file(name)).arg(source);
        let status = command.arg(format!("-L{}", self.0.path().display())).args(options).status().unwrap();
        assert!(status.success(), "{name}");
    }

    fn open(&self, name: &str) -> TensorRt {
        let (_, options) = KINDS.into_iter().find(|(kind, _)| name.starts_with(kind)).unwrap();
        if !self.file(name).exists() {
            static COMPILED: OnceLock<Folder> = OnceLock::new();
            let compiled = COMPILED.get_or_init(|| {
                let folder = Folder::new();
                KINDS.iter().for_each(|(kind, options)| folder.compile(kind, options));
                folder
            });
            let kind = KINDS.into_iter().find(|(_, known)| *known == options).unwrap().0;
            std::fs::copy(compiled.file(kind), self.file(name)).unwrap();
        }
        TensorRt::open(&self.file(name), libc::RTLD_LOCAL)
    }
}

struct TensorRt {
    handle: *mut c_void,
    file: PathBuf,
}

impl TensorRt {
    fn open(file: &Path, visibility: c_int) -> Self {
        let name = CString::new(file.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: this file's libraries have harmless initializers.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | visibility) };
        assert!(!handle.is_null(), "{}", file.display());
        Self { handle, file: file.to_owned() }
    }

    fn function<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: `tensorrt.c` has this function.
        unsafe {
            let symbol = libc::dlsym(self.handle, name.as_ptr());
            assert!(!symbol.is_null(), "{name:?}");
            std::mem::transmute_copy::<*mut c_void, F>(&symbol)
        }
    }

    fn finder(&self) -> *mut c_void {
        self.function::<extern "C" fn() -> *mut c_void>(c"staticFinder")()
    }

    fn logged(&self) -> i32 {
        self.function::<extern "C" fn() -> i32>(c"countLogged")()
    }

    fn hide(&self, is_hidden: bool) {
        self.function::<extern "C" fn(i32)>(c"hideLogger")(i32::from(is_hidden));
    }

    fn load_into(&self, finders: &Finders) {
        // SAFETY: the finder is a static of the mapped library.
        unsafe { finders.set(self.finder()) };
    }

    /// Calls `body` from C. It must not panic: unwinding through C is undefined.
    fn call(&self, mut body: &mut dyn FnMut()) {
        self.function::<Call>(c"callPlugin")(run_body, (&raw mut body).cast());
    }

    /// Runs `body` at unload; it must outlive the library.
    fn at_unload(&self, body: &mut &mut dyn FnMut()) {
        type AtUnload = extern "C" fn(extern "C" fn(*mut c_void), *mut c_void);
        self.function::<AtUnload>(c"atUnload")(run_body, (&raw mut *body).cast());
    }

    fn close(self) {
        // SAFETY: later, only the code under test uses the library, and must detect that.
        unsafe { libc::dlclose(self.handle) };
    }

    fn is_mapped(file: &Path) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(file.to_str().unwrap())
    }
}

type Call = extern "C" fn(extern "C" fn(*mut c_void), *mut c_void) -> c_int;

extern "C" fn run_body(body: *mut c_void) {
    // SAFETY: `call` and `at_unload` pass a pointer to this type.
    unsafe { (*body.cast::<&mut dyn FnMut()>())() };
}

fn log_to(finders: &Finders) -> Delivery {
    finders.log(Severity::ERROR, c"refused")
}

#[test]
fn a_finder_of_an_unloaded_tensorrt_is_not_called() {
    for (first, second) in [("ten", "eleven"), ("eleven", "ten")] {
        let (folder, finders) = (Folder::new(), Finders::new());
        let (a, b) = (folder.open(first), folder.open(second));
        a.load_into(&finders);
        b.load_into(&finders);
        assert_eq!(log_to(&finders), Delivery::Logged);
        assert_eq!((a.logged(), b.logged()), (0, 1));
        let file = b.file.clone();
        b.close();
        assert!(!TensorRt::is_mapped(&file), "a finder keeps its TensorRT mapped");
        assert_eq!(log_to(&finders), Delivery::Logged);
        assert_eq!(a.logged(), 1);
        a.close();
        assert_eq!(log_to(&finders), Delivery::NoFinder);
    }
}

#[test]
fn a_tensorrt_that_is_loaded_again_is_found_where_it_was_or_left_alone() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let first = folder.open("ten");
    first.load_into(&finders);
    first.close();
    let moved = folder.open("eleven-in-its-place");
    let again = folder.open("ten");
    let known = finders.list()[0].object;
    let expected = if known == again.finder() { Delivery::Logged } else { Delivery::NoFinder };
    assert_eq!(log_to(&finders), expected);
    again.load_into(&finders);
    assert_eq!(log_to(&finders), Delivery::Logged);
    assert_eq!(finders.list().len(), 1);
    moved.close();
    again.close();
}

#[test]
fn what_lies_in_the_place_of_a_finder_is_checked() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let tensorrt = folder.open("ten");
    tensorrt.load_into(&finders);
    let vptr = tensorrt.finder().cast::<*const c_void>();
    // SAFETY: the library's static, only used here.
    unsafe {
        let slots = vptr.read();
        vptr.write(ptr::null());
        assert_eq!(log_to(&finders), Delivery::NoFinder);
        vptr.write(slots);
    }
    assert_eq!(log_to(&finders), Delivery::Logged);
    let image = Image::holding(tensorrt.finder()).unwrap();
    let outside = ptr::without_provenance_mut(8);
    let finder = Finder { object: outside, generation: Generation::Bare, version: 101_501, image, pin: None };
    assert_eq!(finder.log(false, Severity::ERROR, c"refused"), Delivery::NoFinder);
    tensorrt.close();
}

#[test]
fn the_tensorrt_that_calls_is_asked_first() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let all = ["ten", "eleven", "rtx"].map(|name| folder.open(name));
    all.iter().for_each(|tensorrt| tensorrt.load_into(&finders));
    for caller in &all {
        let before = caller.logged();
        caller.call(&mut || assert_eq!(log_to(&finders), Delivery::Logged));
        assert_eq!(caller.logged(), before + 1, "{}", caller.file.display());
    }
    all[0].hide(true);
    all[0].call(&mut || assert_eq!(log_to(&finders), Delivery::Logged));
    assert_eq!(all.each_ref().map(TensorRt::logged), [1, 1, 2]);
}

/// The loader's destructors may wait for a thread that logs.
#[test]
fn a_called_plugin_logs_without_the_lock_of_the_loader() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let (caller, closed) = (folder.open("eleven"), folder.open("ten"));
    caller.load_into(&finders);
    let wait_for = |flag: &AtomicBool| {
        (0..10_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            flag.load(Ordering::Acquire)
        })
    };
    let call: Call = caller.function(c"callPlugin");
    let [is_called, is_closing, is_logged] = [const { AtomicBool::new(false) }; 3];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut plugin = || {
                is_called.store(true, Ordering::Release);
                wait_for(&is_closing);
                is_logged.store(log_to(&finders) == Delivery::Logged, Ordering::Release);
            };
            let mut plugin: &mut dyn FnMut() = &mut plugin;
            call(run_body, (&raw mut plugin).cast());
        });
        assert!(wait_for(&is_called));
        let mut is_logged_before_the_end = false;
        let mut destructor = || {
            is_closing.store(true, Ordering::Release);
            is_logged_before_the_end = wait_for(&is_logged);
        };
        let mut destructor: &mut dyn FnMut() = &mut destructor;
        closed.at_unload(&mut destructor);
        closed.close();
        assert!(is_logged_before_the_end);
    });
    assert_eq!(caller.logged(), 1);
}

#[test]
fn a_logger_that_comes_later_is_found() {
    for name in ["ten", "eleven"] {
        let (folder, finders) = (Folder::new(), Finders::new());
        assert_eq!(log_to(&finders), Delivery::NoFinder);
        let tensorrt = folder.open(name);
        tensorrt.load_into(&finders);
        tensorrt.hide(true);
        assert_eq!([log_to(&finders), log_to(&finders)], [Delivery::NoLogger; 2]);
        tensorrt.hide(false);
        assert_eq!(log_to(&finders), Delivery::Logged);
        // SAFETY: the function accepts null.
        unsafe { finders.set(ptr::null_mut()) };
        assert_eq!(log_to(&finders), Delivery::NoFinder);
    }
}

#[test]
fn a_finder_on_the_heap_keeps_its_tensorrt() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let tensorrt = folder.open("ten");
    let finder = tensorrt.function::<extern "C" fn() -> *mut c_void>(c"newFinder")();
    // SAFETY: the object is never freed, so it outlives its registration.
    unsafe { finders.set(finder) };
    let file = tensorrt.file.clone();
    tensorrt.close();
    assert_eq!(log_to(&finders), Delivery::Logged);
    finders.clear();
    assert!(!TensorRt::is_mapped(&file));
}

#[test]
fn a_tensorrt_is_unloaded_while_the_finders_are_not_locked() {
    let remove: [fn(&Finders, *mut c_void); 2] = [
        |finders, _| finders.clear(),
        // SAFETY: a static of the mapped library.
        |finders, other| unsafe { finders.set(other) },
    ];
    for remove in remove {
        let (folder, finders) = (Folder::new(), Finders::new());
        let tensorrt = folder.open("ten");
        let finder = tensorrt.function::<extern "C" fn() -> *mut c_void>(c"newFinder")();
        let other = tensorrt.finder();
        // SAFETY: the object is never freed, so it outlives its registration.
        unsafe { finders.set(finder) };
        let mut is_unlocked = None;
        let mut body = || is_unlocked = Some(finders.list.try_lock().is_ok());
        let mut body: &mut dyn FnMut() = &mut body;
        tensorrt.at_unload(&mut body);
        tensorrt.close();
        remove(&finders, other);
        assert_eq!(is_unlocked, Some(true));
    }
}

#[test]
fn the_version_of_another_tensorrt_is_not_taken() {
    let (folder, finders) = (Folder::new(), Finders::new());
    folder.compile("shared", &["-DVERSION=110400", "-DBASE"]);
    let options = ["-lshared", "-Wl,--no-as-needed,-rpath,$ORIGIN"];
    folder.compile("linked", &[&options[1..], &options[..1]].concat());
    let linked = TensorRt::open(&folder.file("linked"), libc::RTLD_LOCAL);
    let found: extern "C" fn() -> i32 = linked.function(c"getInferLibVersion");
    assert_eq!(found(), 110_400, "`dlsym` finds the version of the library that it is linked with");
    linked.load_into(&finders);
    assert_eq!(log_to(&finders), Delivery::NoFinder);

    // With another TensorRT's global symbol.
    let _shared = TensorRt::open(&folder.file("shared"), libc::RTLD_GLOBAL);
    // SAFETY: a constant and a C string.
    assert!(!unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getInferLibVersion".as_ptr()) }.is_null());
    static SLOTS: [usize; 8] = [0; 8];
    let mut finder = Object { vptr: (&raw const SLOTS).cast(), logger: ptr::null_mut() };
    // SAFETY: the object is live, and its slots are never called.
    unsafe { finders.set((&raw mut finder).cast()) };
    assert_eq!(log_to(&finders), Delivery::NoFinder);
}

#[test]
fn the_oldest_full_release_counts_where_the_caller_is_unknown() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let unknown = |oldest_full| Caller::Unknown { oldest_full };
    assert_eq!(finders.caller(), unknown(None));
    for (name, oldest) in
        [("rtx", None), ("eleven", Some(110_400)), ("early", Some(100_200)), ("ten", Some(100_200))]
    {
        folder.open(name).load_into(&finders);
        assert_eq!(finders.caller(), unknown(oldest), "{name}");
    }
    finders.clear();
    assert_eq!(finders.caller(), unknown(None));
}

#[test]
fn a_closed_release_does_not_count() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let (stays, goes) = (folder.open("eleven"), folder.open("early"));
    stays.load_into(&finders);
    goes.load_into(&finders);
    goes.close();
    assert_eq!(finders.caller(), Caller::Unknown { oldest_full: Some(110_400) });
}

#[test]
fn the_calling_release_is_identified() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let releases = [("rtx", 10_701), ("eleven", 110_400), ("early", 100_200)];
    let all = releases.map(|(name, version)| (folder.open(name), version));
    all.iter().for_each(|(tensorrt, _)| tensorrt.load_into(&finders));
    for (tensorrt, version) in &all {
        let mut caller = None;
        tensorrt.call(&mut || caller = Some(finders.caller()));
        assert_eq!(caller, Some(Caller::Release(*version)));
    }
    let full = [10_701, 99_999, 100_000, 110_400].map(|version| Caller::Release(version).full_version());
    assert_eq!(full, [None, None, Some(100_000), Some(110_400)]);
}

#[test]
fn a_registry_deregisters_what_it_registered() {
    for order in [["eleven", "plain"], ["plain", "eleven"]] {
        let (folder, finders) = (Folder::new(), Finders::new());
        let library = crate::Library::new(|| {
            let mut list = crate::CreatorList::new();
            list.push_quick(QuickProbeCreator::new(Mood::Well));
            list.push(ProbeCreator::new(Mood::Well));
            Ok(list)
        });
        let registries = order.map(|name| folder.open(name));
        let ask = |tensorrt: &TensorRt| {
            let mut given = Vec::new();
            tensorrt.call(&mut || given = library.creators_for(finders.caller()).to_vec());
            given
        };
        let registered = registries.each_ref().map(|tensorrt| {
            tensorrt.load_into(&finders);
            library.expect_loading();
            ask(tensorrt)
        });
        let counts = registered.each_ref().map(Vec::len);
        assert_eq!(counts, order.map(|name| if name == "plain" { 1 } else { 2 }));
        assert_eq!(registries.each_ref().map(ask), registered, "{order:?}");
        let all = library.creators().as_slice();
        assert_eq!(library.creators_for(finders.caller()), all, "{order:?}");
    }
}

#[test]
fn finders_of_closed_tensorrts_are_forgotten() {
    let (folder, finders) = (Folder::new(), Finders::new());
    for turn in 0..5 {
        let tensorrt = folder.open(&format!("early-{turn}"));
        tensorrt.load_into(&finders);
        tensorrt.load_into(&finders);
        tensorrt.close();
    }
    let stays = folder.open("ten");
    stays.load_into(&finders);
    assert_eq!(finders.list().len(), 1);
}

#[test]
fn finders_change_while_others_log() {
    let (folder, finders) = (Folder::new(), Finders::new());
    let stays = folder.open("eleven");
    stays.load_into(&finders);
    let is_done = AtomicBool::new(false);
    let sent: i32 = std::thread::scope(|scope| {
        let log = || {
            let mut sent = 0;
            while !is_done.load(Ordering::Relaxed) || sent == 0 {
                assert_eq!(log_to(&finders), Delivery::Logged);
                sent += 1;
            }
            sent
        };
        let loggers = [(); 3].map(|()| scope.spawn(log));
        for _ in 0..300 {
            let goes = folder.open("ten");
            goes.load_into(&finders);
            goes.close();
            stays.load_into(&finders);
        }
        is_done.store(true, Ordering::Relaxed);
        loggers.map(|logger| logger.join().unwrap()).iter().sum()
    });
    assert!(stays.logged() <= sent);
    assert!(!TensorRt::is_mapped(&folder.file("ten")));
}

#[test]
fn a_library_logs_through_its_finders_until_it_is_released() {
    let _turn = crate::tests::PROCESS_FINDERS.lock().unwrap();
    let folder = Folder::new();
    let tensorrt = folder.open("eleven");
    assert_eq!(caller().full_version(), None);
    // SAFETY: the finder is a static of the mapped library.
    unsafe { set_finder(tensorrt.finder()) };
    assert_eq!(caller().full_version(), Some(110_400));
    let logged = |log: &dyn Fn()| {
        let before = tensorrt.logged();
        log();
        tensorrt.logged() > before
    };
    assert!(logged(&|| log(Severity::INFO, "text")));
    assert!(logged(&|| verbose(|| "text".to_owned())));
    assert!(logged(&|| error("text")));
    assert!(logged(&|| error_of(c"plugin", &Error::internal("text"))));
    // SAFETY: the library has no creators.
    unsafe { crate::Library::new(|| Err(Error::internal("none"))).release() };
    assert_eq!(caller().full_version(), None);
    assert!(FINDERS.list().is_empty());
    verbose(|| panic!("built for no one"));
    tensorrt.close();
}
