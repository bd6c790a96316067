//! `enqueue` does not allocate. The only test: it replaces the allocator.

#![allow(unsafe_code)] // an allocator, and addresses for a driver
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/plugin.rs"]
#[allow(dead_code)]
mod the_plugin;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use cubinder::code::{Candidate, CodeTable, Loading};
use cubinder::driver::Driver;
use cubinder::driver::sys::{CUfunction, CUstream};
use cubinder::launch::{Addresses, StepRecord, takes};
use cubinder_expr::{BinaryOp, Expr, Node};
use cubinder_expr::{DataType, Format};
use cubinder_launch as launch;
use cubinder_launch::{Facts, GuardDecision, Signature, Steps, nearest_point, sequence};
use cubinder_model::{CodeBytes, Digest, Plugin, TunedDevice, TunedPoint};
use support::{Device, Mock, cubin};
use the_plugin::{Shapes, all_given, plugin};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: forwards everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller upholds `dealloc`'s contract.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds `realloc`'s contract.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LAUNCHES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn launch_kernel(
    _: CUfunction,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: CUstream,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> i32 {
    // SAFETY: the first parameter is the address of `x`.
    let x = unsafe { **params.cast::<*mut usize>() };
    LAUNCHES.fetch_add(usize::from(x & !0xff == 0x1000), Ordering::Relaxed);
    0
}

#[test]
fn enqueue_allocates_nothing() {
    let mock = Mock::new(Device::default());
    // SAFETY: the mock's functions, and one of the same signature.
    let driver = unsafe {
        Driver::from_lookup(|name| match name.to_bytes() {
            b"cuLaunchKernel" => launch_kernel as *mut c_void,
            _ => support::lookup(name),
        })
    }
    .unwrap();
    let bytes = cubin("sm_86");
    let target = "sm_86".parse().unwrap();
    let (digest, bytes) = (Digest::compute(&bytes), CodeBytes::from(bytes));
    let candidate = Candidate { target, digest, bytes: &bytes, symbol: "k", facts: None };
    let Ok(Loading::Loaded(kernel)) = CodeTable::new().load(&mock.driver, "k", &[candidate]) else {
        panic!()
    };
    let shapes = Shapes(vec![vec![10, 3, 32, 32], vec![10, 3, 34, 34]]);
    let before = ALLOCATIONS.get();
    let plugin = plugin();
    let variant = &plugin.variants[0];
    let found = sequence(&plugin, variant, |_| takes(&kernel), &shapes, &mut Steps::default()).unwrap();
    let records = StepRecord::all(&plugin, variant, &[Some(kernel.clone())], &found, &all_given(1)).unwrap();
    let record = records.into_iter().next().unwrap();
    assert!(ALLOCATIONS.get() > before, "the counter counts");

    let inputs = [without_provenance_mut::<c_void>(0x1000).cast_const()];
    let outputs = [without_provenance_mut::<c_void>(0x2000)];
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
        // SAFETY: this driver accesses no tensor.
        let launched = unsafe { record.enqueue(&driver, &at, CUstream::NULL) };
        assert!(launched.is_ok());
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(LAUNCHES.load(Ordering::Relaxed), 1000);

    // Guards: `aligned(x, 16) and aligned(y, 16)`, `aligned(x, 4)`, none.
    let aligned = |tensor, bytes| Node::Aligned { tensor, bytes };
    let both = Expr { nodes: vec![aligned(0, 16), aligned(1, 16), Node::Binary(BinaryOp::And, 0, 1)] };
    let four = Expr { nodes: vec![aligned(0, 4)] };
    let decided = GuardDecision::from_guards(
        [(0, Some(&both)), (1, Some(&four)), (2, None)],
        &shapes,
        &mut Steps::default(),
    )
    .unwrap();
    let choice = decided.choice.unwrap();
    let records = [record.clone(), record.clone(), record];
    let mut taken = [0; 3];
    let before = ALLOCATIONS.get();
    for round in 0..1000 {
        let inputs = [without_provenance_mut::<c_void>(0x1000 + round % 32).cast_const()];
        let addresses = [inputs[0].addr() as u64, outputs[0].addr() as u64];
        let place = choice.pick(|tensor| addresses.get(tensor).copied()).unwrap();
        taken[place] += 1;
        let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
        // SAFETY: as above.
        let launched = unsafe { records[place].enqueue(&driver, &at, CUstream::NULL) };
        assert!(launched.is_ok());
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(LAUNCHES.load(Ordering::Relaxed), 2000);
    assert_eq!(taken, [63, 250 - 63, 750]);

    let point = |extent| TunedPoint {
        attributes: Vec::new(),
        shapes: vec![vec![1, 3, extent, extent]; 2],
        ranking: vec![0],
    };
    let points = (1..=256).map(point).collect();
    let measured = TunedDevice { name: String::new(), capability: 86, sms: 84, points };
    let plugin = Plugin { tuning: vec![measured], ..plugin };
    let node = Signature { attributes: &[], types: &[DataType::F32; 2], formats: &[Format::Linear; 2] };
    let here = launch::Device { sms: 84, shared_bytes: 49_152, capability: 86 };
    let extents: &[i64] = &[1, 3, 70, 70];
    let facts = Facts { shapes: &[extents; 2], device: Some(here), ..Facts::default() };
    let serving = launch::serving(&plugin, &node);
    let before = ALLOCATIONS.get();
    let nearest = nearest_point(&plugin, &node, &serving, &facts);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(nearest, plugin.tuning[0].points.get(69));
}
