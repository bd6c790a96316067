//! Cancels operations when a signal is to end the process.

use std::sync::{Arc, Mutex, Once, PoisonError, Weak, mpsc};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::operations::{CANCELLATION, Operations};

static OPERATIONS: Mutex<Vec<Weak<Operations>>> = Mutex::new(Vec::new());

/// Cancels `operations` and those of earlier calls at SIGINT, SIGTERM or SIGHUP, then calls the first call's `end`.
pub(crate) fn listen(operations: &Arc<Operations>, end: fn(i32)) {
    static LISTENER: Once = Once::new();
    let mut all = OPERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if !all.iter().any(|known| Weak::as_ptr(known) == Arc::as_ptr(operations)) {
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(operations));
    }
    LISTENER.call_once(|| {
        // Without the thread, the signals keep their effect.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || wait(end));
    });
}

/// Never returns: the signals would have no effect after it.
fn wait(end: fn(i32)) {
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let Ok(mut signals) = Signals::new(signals) else { return };
    for signal in signals.forever() {
        cancel();
        end(signal);
    }
}

/// Shells let background processes ignore SIGINT, and `nohup` SIGHUP.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn cancel() {
    let (sender, done) = mpsc::channel();
    let all = OPERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(Weak::upgrade).for_each(|operations| operations.cancel_all(&sender));
    drop(sender);
    // Disconnected after the last cancellation.
    let _ = done.recv_timeout(CANCELLATION);
}
