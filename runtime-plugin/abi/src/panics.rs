//! A silent panic hook that stores each thread's last location. Rust's has a `thread_local` with a destructor, which
//! would keep the library mapped after `dlclose`.

use std::any::Any;
use std::cell::Cell;
use std::fmt::Write;
use std::panic::PanicHookInfo;
use std::sync::Once;

use crate::error::Error;

const LOCATION_BYTES: usize = 160;

#[derive(Clone, Copy)]
struct Location {
    bytes: [u8; LOCATION_BYTES],
    length: usize,
}

impl Location {
    const EMPTY: Self = Self { bytes: [0; LOCATION_BYTES], length: 0 };

    fn as_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.length]).into_owned()
    }
}

impl Write for Location {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let count = room.len().min(text.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

thread_local! {
    // No destructor: no thread-exit handler is registered.
    static LAST: Cell<Location> = const { Cell::new(Location::EMPTY) };
}

const _: () = assert!(!std::mem::needs_drop::<Cell<Location>>());

/// Installs the hook. Only for plugin libraries: it would silence a Rust program's panics.
pub(crate) fn install_silent_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(remember)));
}

fn remember(info: &PanicHookInfo<'_>) {
    let mut place = Location::EMPTY;
    if let Some(location) = info.location() {
        // `write_str` never fails.
        let _ = write!(place, "{location}");
    }
    // Fails in thread teardown; the panic's text is still caught.
    let _ = LAST.try_with(|last| last.set(place));
}

#[cold]
pub(crate) fn to_error(payload: Box<dyn Any + Send>) -> Error {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => (*text).to_owned(),
            Err(payload) => {
                // The payload's destructor may panic again.
                std::mem::forget(payload);
                "the panic value is not text".to_owned()
            }
        },
    };
    let place = LAST.try_with(|last| last.replace(Location::EMPTY).as_text()).unwrap_or_default();
    let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
    Error::internal(format!("internal error in the plugin library: panicked{place}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_too_long_is_cut() {
        let mut place = Location::EMPTY;
        write!(place, "{}", "x".repeat(500)).unwrap();
        assert_eq!(place.as_text(), "x".repeat(LOCATION_BYTES));
    }

    #[test]
    fn payloads_become_texts() {
        assert!(to_error(Box::new("static")).text().ends_with("panicked: static"));
        assert!(to_error(Box::new(String::from("owned"))).text().ends_with("panicked: owned"));
        assert!(to_error(Box::new(7)).text().ends_with("the panic value is not text"));
    }
}
