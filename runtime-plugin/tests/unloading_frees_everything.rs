//! Closing must free the static code table, which Rust never drops. One test: it replaces the allocator.

#![allow(unsafe_code)] // an allocator, and unloading
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cubinder::code::{Candidate, CodeTable, Loading};
use cubinder_model::{CodeBytes, Digest};
use support::{Device, Mock, cubin};

struct Counting;

thread_local! {
    static BLOCKS: Cell<i64> = const { Cell::new(0) };
}

fn count(blocks: i64) {
    let _ = BLOCKS.try_with(|count| count.set(count.get() + blocks));
}

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-1);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn cycle(refused: &[&'static str]) {
    let mock = Mock::new(Device::default());
    let table = std::mem::ManuallyDrop::new(CodeTable::new());
    let bytes = cubin("sm_86");
    let (digest, bytes) = (Digest::compute(&bytes), CodeBytes::from(bytes));
    let candidate =
        Candidate { target: "sm_86".parse().unwrap(), digest, bytes: &bytes, symbol: "k", facts: None };
    let Ok(Loading::Loaded(kernel)) = table.load(&mock.driver, "k", &[candidate]) else { panic!() };
    drop(kernel);
    let refuses = refused.iter().map(|label| ("cuLibraryUnload", *label, 1)).collect();
    mock.change(|device| device.refuses = refuses);
    // SAFETY: no kernel is in use.
    unsafe { table.close(&mock.driver) };
}

#[test]
fn a_closed_table_holds_no_memory() {
    cycle(&["sm_86"]);
    let before = BLOCKS.get();
    for _ in 0..10 {
        cycle(&[]);
        cycle(&["sm_86"]);
    }
    assert_eq!(BLOCKS.get() - before, 0);
}
