//! A mock driver: records calls, fails as requested. Its state is process-wide: tests take turns ([`Mock::new`]).

#![allow(dead_code)] // each test file uses a part

mod calls;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use cubinder::driver::Driver;
use cubinder::driver::sys::{CUlaunchAttribute, CUresult};

pub(crate) use calls::lookup;

#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub(crate) capability: (c_int, c_int),
    pub(crate) clusters: Clusters,
    /// Others' capabilities; then machine code loads only where it fits.
    pub(crate) others: Vec<(c_int, c_int)>,
    /// Whether one is current, or the error of `cuCtxGetCurrent`.
    pub(crate) context: Result<bool, CUresult>,
    /// `(call, code object's text, error)`: always fails.
    pub(crate) refuses: Vec<(&'static str, &'static str, CUresult)>,
    /// `(number, error)`: this call fails, from 1.
    pub(crate) fail_at: Option<(usize, CUresult)>,
    pub(crate) params: Vec<usize>,
    /// `(slow, quick)`: the first waits for the second, up to [`PATIENCE`].
    pub(crate) slow: Option<(&'static str, &'static str)>,
    /// Another thread captures: no unloading outside relaxed mode.
    pub(crate) other_captures: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clusters {
    AsCapability,
    Not,
    Fails(CUresult),
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

impl Default for Device {
    fn default() -> Device {
        Device {
            capability: (8, 6),
            clusters: Clusters::AsCapability,
            others: Vec::new(),
            context: Ok(true),
            refuses: Vec::new(),
            fail_at: None,
            params: vec![8, 8, 4],
            slow: None,
            other_captures: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Launched {
    pub(crate) kernel: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) stream: usize,
    pub(crate) args: Vec<Vec<u8>>,
}

#[derive(Default)]
struct State {
    device: Device,
    calls: Vec<String>,
    /// All loaded libraries' labels; handles are 1-based indices.
    loaded: Vec<String>,
    unloaded: Vec<usize>,
    modes: BTreeMap<u64, c_int>,
    threads: Vec<ThreadId>,
    launched: Vec<Launched>,
    shared: Vec<c_int>,
    attributes: Vec<Vec<CUlaunchAttribute>>,
}

thread_local! {
    static CURRENT: Cell<(c_int, usize)> = const { Cell::new((0, 0)) };
}

pub(crate) fn set_current(device: c_int, context: usize) {
    CURRENT.set((device, context));
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

pub(crate) struct Mock {
    pub(crate) driver: Driver,
    _turn: MutexGuard<'static, ()>,
}

impl Mock {
    pub(crate) fn new(device: Device) -> Mock {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State { device, ..State::default() });
        // SAFETY: the functions have the signatures of `cuda.h`.
        let driver = unsafe { Driver::from_lookup(lookup) }.unwrap();
        Mock { driver, _turn: turn }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Device)) {
        with(|state| {
            state.calls.clear();
            change(&mut state.device);
        });
    }

    pub(crate) fn work(&self) -> Vec<String> {
        with(|state| state.calls.iter().filter(|call| !is_question(call)).cloned().collect())
    }

    pub(crate) fn call_count(&self) -> usize {
        with(|state| state.calls.len())
    }

    pub(crate) fn count(&self, function: &str) -> usize {
        with(|state| state.calls.iter().filter(|call| call.split(' ').next() == Some(function)).count())
    }

    pub(crate) fn last_call(&self) -> String {
        with(|state| state.calls.last().cloned().unwrap_or_default())
    }

    pub(crate) fn living(&self) -> Vec<String> {
        with(|state| {
            let living = |id: &usize| !state.unloaded.contains(id);
            (1..=state.loaded.len()).filter(living).map(|id| state.loaded[id - 1].clone()).collect()
        })
    }

    pub(crate) fn ever_loaded(&self) -> Vec<String> {
        with(|state| state.loaded.clone())
    }

    pub(crate) fn unloaded_twice(&self) -> bool {
        with(|state| {
            let mut ids = state.unloaded.clone();
            ids.sort_unstable();
            ids.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    pub(crate) fn capture_mode(&self) -> c_int {
        with(State::mode)
    }

    pub(crate) fn launched(&self) -> Vec<Launched> {
        with(|state| state.launched.clone())
    }

    pub(crate) fn attributes(&self) -> Vec<Vec<CUlaunchAttribute>> {
        with(|state| state.attributes.clone())
    }

    pub(crate) fn shared(&self) -> Vec<c_int> {
        with(|state| state.shared.clone())
    }
}

fn is_question(call: &str) -> bool {
    ["cuCtxGet", "cuDeviceGet", "cuKernelGetAttribute", "cuKernelGetParamInfo", "cuDriverGetVersion"]
        .iter()
        .any(|start| call.starts_with(start))
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut().unwrap())
}

impl State {
    fn thread(&mut self) -> u64 {
        let this = std::thread::current().id();
        let known = self.threads.iter().position(|id| *id == this);
        known.unwrap_or_else(|| {
            self.threads.push(this);
            self.threads.len() - 1
        }) as u64
    }

    fn mode(&mut self) -> c_int {
        let id = self.thread();
        self.modes.get(&id).copied().unwrap_or(0)
    }

    fn enter(&mut self, function: &str, label: &str) -> Option<CUresult> {
        let call = if label.is_empty() { function.to_owned() } else { format!("{function} {label}") };
        self.calls.push(call);
        if let Some((at, code)) = self.device.fail_at
            && self.calls.len() == at
        {
            return Some(code);
        }
        let told =
            |(call, of, _): &&(&str, &str, CUresult)| *call == function && (*of == label || *of == "*");
        self.device.refuses.iter().find(told).map(|(_, _, code)| *code)
    }

    fn capability(&self, device: c_int) -> (c_int, c_int) {
        match device {
            0 => self.device.capability,
            other => self.device.others[other as usize - 1],
        }
    }

    fn runs_here(&self, label: &str) -> bool {
        let (major, minor) = self.capability(CURRENT.get().0);
        let number = label.strip_prefix("sm_").and_then(|number| number.parse::<c_int>().ok());
        self.device.others.is_empty()
            || number.is_none_or(|number| number / 10 == major && number % 10 <= minor)
    }

    fn label(&self, library: usize) -> String {
        self.loaded.get(library - 1).cloned().unwrap_or_default()
    }
}

pub(crate) fn wait_for(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

pub(crate) fn cubin(label: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
    bytes.extend_from_slice(label.as_bytes());
    bytes
}
