//! Enqueues that are refused, without a driver: nothing here gets as far as a launch.

use cubinder_expr::DataType::F32;
use trt_abi::Error;

use super::announced_tests::{OWN, desc, node};
use super::node::NodeData;
use super::run::{Built, Running, check_workspace};
use crate::launch::Addresses;

/// Announces so many inputs: `x` and `b`, then others; `y` has `extent` elements.
fn announce(running: &mut Running, node: &NodeData, inputs: usize, extent: i64) -> Result<(), Error> {
    let inputs = [desc(F32, &[4]), desc(F32, &[5]), desc(F32, &[1])][..inputs].to_vec();
    running.on_shape_change(node, 0, &Built::default, &inputs, &[desc(F32, &[extent])])
}

/// What an enqueue is refused for.
fn refused(running: &mut Running, node: &NodeData, tactic: i32) -> Error {
    let address = std::ptr::without_provenance(0x1000);
    let at = Addresses {
        inputs: &[address, address],
        outputs: &[std::ptr::null_mut()],
        workspace: std::ptr::null_mut(),
    };
    // SAFETY: there is no driver or no context, so no tensor is touched.
    unsafe { running.enqueue(node, tactic, &at, std::ptr::null_mut()) }.unwrap_err()
}

/// Without a context that is all that is in the way.
fn is_ready_but_for_a_context(error: &Error) -> bool {
    error.code() == Error::FAILED_INITIALIZATION
}

#[test]
fn a_refused_enqueue_is_no_refused_shape() {
    let (node, mut running) = (node(OWN), Running::default());
    announce(&mut running, &node, 2, 7).unwrap();
    let error = refused(&mut running, &node, 0);
    assert!(is_ready_but_for_a_context(&error), "{error}");
    for _ in 0..2 {
        let error = refused(&mut running, &node, 9);
        assert!(error.text().contains("there is no variant 9"), "the reason stays what it is: {error}");
    }
    let error = refused(&mut running, &node, 1);
    assert!(is_ready_but_for_a_context(&error), "{error}");
}

#[test]
fn after_refused_shapes_nothing_is_queued() {
    let (node, mut running) = (node(OWN), Running::default());
    let without = "enqueue without shapes, or with shapes that were refused";
    assert!(refused(&mut running, &node, 0).text().contains(without), "nothing was announced");
    for (inputs, extent) in [(3, 7), (1, 7), (2, 101)] {
        announce(&mut running, &node, 2, 7).unwrap();
        announce(&mut running, &node, inputs, extent).unwrap_err();
        let error = refused(&mut running, &node, 0);
        assert!(error.text().contains(without), "{error}");
    }
    announce(&mut running, &node, 2, 7).unwrap();
    let error = refused(&mut running, &node, 0);
    assert!(is_ready_but_for_a_context(&error), "{error}");
}

#[test]
fn a_launch_fits_the_workspace_of_the_engine() {
    let node = node(OWN);
    let check = |needed, reserved| {
        check_workspace(&node, needed, reserved, &node.facts()).map_err(|error| error.text().to_owned())
    };
    for (needed, reserved) in [(0, None), (0, Some(0)), (8, Some(8)), (7, Some(8))] {
        assert_eq!(check(needed, reserved), Ok(()), "{needed} of {reserved:?}");
    }
    let error = check(9, Some(8)).unwrap_err();
    assert!(error.contains("need 9 bytes of workspace, and 8 bytes are reserved"), "{error}");
    let error = check(1, None).unwrap_err();
    assert!(error.contains("need 1 bytes of workspace, and nothing says that any is reserved"), "{error}");
}
