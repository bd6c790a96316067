use std::ptr;
use std::sync::Mutex;

use super::*;
use crate::raw::APILanguage;

#[repr(C)]
struct Object {
    vptr: *const c_void,
    logger: *mut c_void,
}

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log_here(this: *mut c_void, severity: Severity, text: *const c_char) {
    // SAFETY: the client passes a live C string.
    let text = unsafe { CStr::from_ptr(text) };
    LOGGED.lock().unwrap().push(format!("{:x} {severity:?} {}", this.addr(), text.to_string_lossy()));
}

unsafe extern "C-unwind" fn find(this: *mut c_void) -> *mut c_void {
    // SAFETY: only `Object`s are passed.
    unsafe { (*this.cast::<Object>()).logger }
}

unsafe extern "C" fn language(_this: *mut c_void) -> APILanguage {
    APILanguage::CPP
}
unsafe extern "C" fn finder_info(_this: *mut c_void) -> InterfaceInfo {
    InterfaceInfo { kind: c"ILoggerFinder".as_ptr(), major: 1, minor: 0 }
}
unsafe extern "C" fn logger_info(_this: *mut c_void) -> InterfaceInfo {
    InterfaceInfo { kind: c"ILogger".as_ptr(), major: 1, minor: 0 }
}
unsafe extern "C" fn later_logger_info(_this: *mut c_void) -> InterfaceInfo {
    InterfaceInfo { kind: c"ILogger".as_ptr(), major: 2, minor: 0 }
}
unsafe extern "C" fn destroy(_this: *mut c_void) {}

fn versioned(get_interface_info: unsafe extern "C" fn(*mut c_void) -> InterfaceInfo) -> VersionedSlots {
    VersionedSlots { get_api_language: language, get_interface_info, destroy, destroy_and_free: destroy }
}

fn log_through_fakes<F, L>(finder: &F, logger: &L, generation: Generation) -> (Delivery, Vec<String>) {
    let mut logger = Object { vptr: ptr::from_ref(logger).cast(), logger: ptr::null_mut() };
    let mut finder = Object { vptr: ptr::from_ref(finder).cast(), logger: (&raw mut logger).cast() };
    let own = format!("{:x} ", (&raw const logger).addr());
    // SAFETY: live objects with that generation's vtables.
    let logged = unsafe { log_through((&raw mut finder).cast(), generation, Severity::WARNING, c"hello") };
    let mut all = LOGGED.lock().unwrap();
    let mine =
        all.extract_if(.., |line| line.starts_with(&own)).map(|line| line[own.len()..].to_owned()).collect();
    (logged, mine)
}

fn expected() -> (Delivery, Vec<String>) {
    (Delivery::Logged, vec!["Severity::WARNING hello".to_owned()])
}

#[test]
fn the_first_generation_has_no_base() {
    let (finder, logger) = (BareSlots::<FindLogger> { method: find }, BareSlots::<Log> { method: log_here });
    assert_eq!(log_through_fakes(&finder, &logger, Generation::Bare), expected());
}

#[test]
fn the_second_generation_has_a_base() {
    let finder = DerivedSlots::<FindLogger> { versioned: versioned(finder_info), method: find };
    let logger = DerivedSlots::<Log> { versioned: versioned(logger_info), method: log_here };
    assert_eq!(log_through_fakes(&finder, &logger, Generation::Versioned), expected());
}

#[test]
fn a_logger_of_a_later_kind_is_left_alone() {
    let finder = DerivedSlots::<FindLogger> { versioned: versioned(finder_info), method: find };
    let logger = DerivedSlots::<Log> { versioned: versioned(later_logger_info), method: log_here };
    assert_eq!(log_through_fakes(&finder, &logger, Generation::Versioned), (Delivery::NoFinder, vec![]));
}

#[test]
fn versions_decide_the_generation() {
    let of = Generation::of_version;
    for version in [10_300, 10_400, 10_499, 100_000, 101_501, 109_999] {
        assert_eq!(of(version), Some(Generation::Bare), "{version}");
    }
    for version in [10_500, 10_601, 10_701, 20_000, 110_000, 110_400] {
        assert_eq!(of(version), Some(Generation::Versioned), "{version}");
    }
    for version in [i32::MIN, 0, 8_601, 10_200] {
        assert_eq!(of(version), None, "{version}");
    }
}

#[test]
fn texts_with_nul_are_not_cut() {
    assert_eq!(to_c_string("a\0b").as_c_str(), c"a b");
}

#[test]
fn messages_without_a_logger_are_all_written_and_explained_once() {
    let notes = Notes::new();
    let line = |delivery| {
        let line = notes.line(delivery, Severity::WARNING, c"m");
        line.map(|line| String::from_utf8(line).unwrap())
    };
    assert_eq!(line(Delivery::Logged), None);
    let first = line(Delivery::NoLogger).unwrap();
    assert!(first.starts_with("m\n(TensorRT has no logger yet;") && first.ends_with(")\n"), "{first}");
    assert_eq!(
        [line(Delivery::NoLogger), line(Delivery::NoLogger)],
        [Some("m\n".to_owned()), Some("m\n".to_owned())]
    );
    let first = line(Delivery::NoFinder).unwrap();
    assert!(
        first.starts_with("m\n(TensorRT's logger cannot be reached") && first.ends_with(")\n"),
        "{first}"
    );
    assert_eq!([line(Delivery::NoFinder), line(Delivery::Logged)], [None, None]);
}

#[test]
fn only_warnings_and_errors_are_written_without_a_logger() {
    for delivery in [Delivery::NoLogger, Delivery::NoFinder] {
        for (severity, is_written) in [
            (Severity::INTERNAL_ERROR, true),
            (Severity::ERROR, true),
            (Severity::WARNING, true),
            (Severity::INFO, false),
            (Severity::VERBOSE, false),
        ] {
            let notes = Notes::new();
            assert_eq!(notes.line(delivery, Severity::VERBOSE, c"m"), None);
            let line = notes.line(delivery, severity, c"m");
            assert_eq!(line.is_some_and(|line| line.starts_with(b"m\n(")), is_written, "{severity:?}");
        }
    }
}

mod images;
