//! Enqueues that are refused, without a driver: nothing here gets as far as a launch.

use std::ffi::c_void;

use cubinder_bundle::DataType::{F32, I64};
use trt_abi::Error;

use super::announced_tests::{OWN, desc, node};
use super::node::NodeData;
use super::run::{Built, Running};
use crate::launch::Addresses;

/// An address that nobody may read.
fn device() -> *const c_void {
    std::ptr::without_provenance(0x1000)
}

/// Announces so many inputs: `x`, `b` and the shape input `target`, then others; `y` has 7 elements.
fn announce(running: &mut Running, node: &NodeData, inputs: usize) -> Result<(), Error> {
    let inputs = [desc(F32, &[4]), desc(F32, &[5]), desc(I64, &[1]), desc(F32, &[1])][..inputs].to_vec();
    running.on_shape_change(node, 0, &Built::default, &inputs, &[desc(F32, &[7])])
}

/// What an enqueue with that value of `target` is refused for; none: a null pointer.
fn refused(running: &mut Running, node: &NodeData, tactic: i32, value: Option<i64>) -> Error {
    let host = value.as_ref().map_or(std::ptr::null(), |value| std::ptr::from_ref(value).cast::<c_void>());
    let inputs = [device(), device(), host, device()];
    let at = Addresses { inputs: &inputs, outputs: &[std::ptr::null_mut()], workspace: std::ptr::null_mut() };
    // SAFETY: there is no driver or no context, so no tensor is touched; the shape input's address is that of one integer, or null.
    unsafe { running.enqueue(node, tactic, &at, std::ptr::null_mut()) }.unwrap_err()
}

/// Without a context that is all that is in the way.
fn is_ready_but_for_a_context(error: &Error) -> bool {
    error.code() == Error::FAILED_INITIALIZATION
}

#[test]
fn a_refused_enqueue_is_no_refused_shape() {
    let (node, mut running) = (node(OWN), Running::default());
    announce(&mut running, &node, 3).unwrap();
    let error = refused(&mut running, &node, 0, Some(-1));
    assert!(error.text().contains("value 0 of the shape input `target` is -1"), "{error}");
    let again = refused(&mut running, &node, 0, Some(-1));
    assert_eq!(again.text(), error.text(), "the reason stays what it is");
    let error = refused(&mut running, &node, 0, Some(8));
    assert!(error.text().contains("found 7, expected 8"), "{error}");
    let error = refused(&mut running, &node, 0, Some(7));
    assert!(is_ready_but_for_a_context(&error), "{error}");
    let error = refused(&mut running, &node, 9, Some(7));
    assert!(error.text().contains("there is no variant 9"), "{error}");
    let error = refused(&mut running, &node, 1, Some(7));
    assert!(is_ready_but_for_a_context(&error), "{error}");
    let error = refused(&mut running, &node, 1, None);
    assert!(error.text().contains("without the values of a shape input"), "{error}");
    let error = refused(&mut running, &node, 1, Some(7));
    assert!(is_ready_but_for_a_context(&error), "{error}");
}

#[test]
fn after_refused_shapes_no_values_are_read() {
    let (node, mut running) = (node(OWN), Running::default());
    let without = "enqueue without shapes, or with shapes that were refused";
    assert!(refused(&mut running, &node, 0, None).text().contains(without), "nothing was announced");
    announce(&mut running, &node, 3).unwrap();
    // The place of the shape input is that of another tensor by now.
    for inputs in [4, 1] {
        announce(&mut running, &node, inputs).unwrap_err();
        let error = refused(&mut running, &node, 0, None);
        assert!(error.text().contains(without), "{error}");
    }
    announce(&mut running, &node, 3).unwrap();
    let error = refused(&mut running, &node, 0, Some(7));
    assert!(is_ready_but_for_a_context(&error), "{error}");
}
