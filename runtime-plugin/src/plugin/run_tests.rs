use std::process::Command;
use std::sync::Arc;

use cubinder_expr::DataType::F32;
use cubinder_expr::{Format, ScalarType};
use cubinder_model::{
    Arg, ArgValue, CodeObject, CodeRef, Digest, Guard, KernelFacts, Launch, Node, Scratch, Step, Variant,
};
use cubinder_skip::skip;
use cubinder_tests::handmade::Draft;
use cubinder_tests::{cxx, fake_driver};
use trt_abi::Error;

use super::node::{EngineFacts, NamedNode, NodeData};
use super::run::{RunState, check_workspace};
use super::tensor_descs_tests::{OWN, desc, node};
use crate::definition::Definition;
use crate::identity;
use crate::launch::Addresses;
use crate::plugin::Form;

fn announce(running: &mut RunState, node: &NamedNode, inputs: usize, extent: i64) -> Result<(), Error> {
    let inputs = [desc(F32, &[4]), desc(F32, &[5]), desc(F32, &[1])][..inputs].to_vec();
    running.on_shape_change(node, 0, &EngineFacts::default, &inputs, &[desc(F32, &[extent])])
}

fn refused(running: &mut RunState, node: &NamedNode, tactic: i32) -> Error {
    let address = std::ptr::without_provenance(0x1000);
    let addresses = Addresses {
        inputs: &[address, address],
        outputs: &[std::ptr::null_mut()],
        workspace: std::ptr::null_mut(),
    };
    // SAFETY: without a driver or a context, no tensor is accessed.
    unsafe { running.enqueue(node, tactic, &addresses, std::ptr::null_mut()) }.unwrap_err()
}

fn is_ready_but_for_a_context(error: &Error) -> bool {
    error.code() == Error::FAILED_INITIALIZATION
}

#[test]
fn a_refused_enqueue_is_no_refused_shape() {
    let (node, mut running) = (node(OWN), RunState::default());
    announce(&mut running, &node, 2, 7).unwrap();
    let error = refused(&mut running, &node, 0);
    assert!(is_ready_but_for_a_context(&error), "{error}");
    for _ in 0..2 {
        let error = refused(&mut running, &node, 9);
        assert!(error.text().contains("no variant 9 exists"), "the reason is unchanged: {error}");
    }
    let error = refused(&mut running, &node, 1);
    assert!(is_ready_but_for_a_context(&error), "{error}");
}

#[test]
fn after_refused_shapes_nothing_is_queued() {
    let (node, mut running) = (node(OWN), RunState::default());
    let without = "enqueue without shapes, or with rejected shapes";
    assert!(refused(&mut running, &node, 0).text().contains(without), "nothing was announced");
    for (inputs, extent) in [(3, 7), (1, 7), (2, 101)] {
        announce(&mut running, &node, 2, 7).unwrap();
        for _ in 0..2 {
            announce(&mut running, &node, inputs, extent).unwrap_err();
        }
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
    assert!(error.contains("need 9 bytes of workspace, but 8 bytes are reserved"), "{error}");
    let error = check(1, None).unwrap_err();
    assert!(error.contains("need 1 bytes of workspace, but no reserved size is known"), "{error}");
}

fn has_driver(test: &str) -> bool {
    const CHILD: &str = "CUBINDER_TEST_HAS_DRIVER";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    if cxx::compiler_version().is_none() {
        skip("no C++ compiler; install g++, or set `CXX`");
        return false;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("plugin::run_tests::{test}")]);
    child.env(CHILD, "1").env("LD_LIBRARY_PATH", fake_driver::driver_folder(fake_driver::Age::New).unwrap());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(" 1 passed"), "{text}");
    false
}

fn played(variants: &[(Option<&str>, &str)], cooperative: bool) -> NamedNode {
    played_with(variants, cooperative, None)
}

fn played_with(
    variants: &[(Option<&str>, &str)],
    cooperative: bool,
    scratch_bytes: Option<&str>,
) -> NamedNode {
    played_from(variants, cooperative, scratch_bytes, &["compute_80"], "")
}

/// `comment` makes each target's code unique.
fn played_from(
    variants: &[(Option<&str>, &str)],
    cooperative: bool,
    scratch_bytes: Option<&str>,
    targets: &[&str],
    comment: &str,
) -> NamedNode {
    let code_ref = |(code, target): (u32, &&str)| CodeRef {
        target: target.parse().unwrap(),
        code,
        symbol: "blend1".to_owned(),
    };
    let draft = Draft::new("played", &[]).input("x", (1, 1)).output("y", "x.shape").unwrap();
    let expr = |text: &str| draft.expr(text).unwrap();
    let scalar = |name: &str, ty, text| Arg {
        name: name.to_owned(),
        value: ArgValue::Scalar { ty, expr: expr(text) },
    };
    let word = ScalarType::UInt { bytes: 4 };
    let launch = |blocks: &str| Launch {
        cluster: None,
        cooperative,
        programmatic: false,
        kernel: "blend1".to_owned(),
        grid: [expr(blocks), expr("1"), expr("1")],
        block: [expr("32"), expr("1"), expr("1")],
        shared_bytes: expr("0"),
        args: vec![
            Arg { name: "y".to_owned(), value: ArgValue::Tensor(1) },
            scalar("count", ScalarType::Int { bytes: 8 }, "numel(x)"),
            scalar("salt", word, "0"),
            scalar("written", word, "1"),
        ],
        code: (0..).zip(targets).map(code_ref).collect(),
    };
    let variant = |(id, (guard, blocks)): (i32, &(Option<&str>, &str))| Variant {
        id,
        label: String::new(),
        types: vec![F32; 2],
        formats: vec![Format::Linear; 2],
        specialized: Vec::new(),
        guard: guard.map(|text| Guard { expr: expr(text), text: text.to_owned() }),
        scratch: scratch_bytes
            .map(|bytes| Scratch { name: "partial".to_owned(), bytes: expr(bytes) })
            .into_iter()
            .collect(),
        steps: vec![Step::launch(launch(blocks))],
    };
    let variants = (1..).zip(variants).map(variant).collect();
    let kernel = KernelFacts {
        symbol: "blend1".to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let code_object = |target: &&str| {
        let text = format!(".version 7.0\n.target sm_80\n.address_size 64\n// {target} {comment}\n");
        CodeObject {
            target: target.parse().unwrap(),
            digest: Digest::compute(text.as_bytes()),
            kernels: vec![kernel.clone()],
            bytes: text.into_bytes().into(),
        }
    };
    let definition = Definition::bare(Arc::new(Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin: cubinder_model::Plugin { variants, ..draft.plugin() },
        attributes: Vec::new(),
        input_ranks: None,
        code: targets.iter().map(code_object).collect(),
    }));
    let data = NodeData::new(definition, Vec::new(), Form::Fields, identity::generic());
    NamedNode::new(Arc::new(data), "n")
}

fn announce_played(running: &mut RunState, node: &NamedNode, tactic: i32, extent: i64) -> Result<(), String> {
    announce_built(running, node, &EngineFacts::default(), (tactic, extent))
}

fn announce_built(
    running: &mut RunState,
    node: &NamedNode,
    built: &EngineFacts,
    (tactic, extent): (i32, i64),
) -> Result<(), String> {
    let tensor = [desc(F32, &[extent])];
    let changed = running.on_shape_change(node, tactic, &|| built.clone(), &tensor, &tensor);
    changed.map_err(|error| error.text().to_owned())
}

fn enqueue_played(running: &mut RunState, node: &NamedNode, x: Option<usize>) -> Result<(), String> {
    let x: Vec<_> = x.into_iter().map(std::ptr::without_provenance).collect();
    let outputs = [std::ptr::without_provenance_mut(0x2000)];
    let addresses = Addresses { inputs: &x, outputs: &outputs, workspace: std::ptr::null_mut() };
    // SAFETY: the stand-in accesses only its own memory.
    let queued = unsafe { running.enqueue(node, 0, &addresses, std::ptr::null_mut()) };
    queued.map_err(|error| error.text().to_owned())
}

#[test]
fn guards_decide_at_each_enqueue() {
    if !has_driver("guards_decide_at_each_enqueue") {
        return;
    }
    let second = "device.capability >= 80 and aligned(x, 8)";
    let node = played(&[(Some("aligned(x, 16)"), "numel(x)"), (Some(second), "2 * numel(x)")], false);
    let mut running = RunState::default();
    assert_eq!(running.step_descriptions(), []);
    announce_played(&mut running, &node, 0, 4).unwrap();
    let launches = running.step_descriptions();
    assert_eq!(
        launches.iter().map(|(index, steps)| (*index, steps.len())).collect::<Vec<_>>(),
        [(0, 1), (1, 1)]
    );
    assert!(
        launches[0].1[0].contains("grid [4, 1, 1]") && launches[1].1[0].contains("grid [8, 1, 1]"),
        "{launches:?}"
    );
    for x in [0x1010, 0x1008] {
        enqueue_played(&mut running, &node, Some(x)).unwrap();
    }
    assert_eq!(
        enqueue_played(&mut running, &node, Some(0x1004)).unwrap_err(),
        format!(
            "sample::played `n`: no variant can run: variant 1: guard `aligned(x, 16)` is false; variant 2: guard `{second}` is \
             false; x is 4, y is 4, x is aligned to 4, y is aligned to 4096"
        )
    );
}

#[test]
fn errors_of_an_enqueue_describe_the_node() {
    if !has_driver("errors_of_an_enqueue_describe_the_node") {
        return;
    }
    let (node, mut running) = (played(&[(None, "1")], false), RunState::default());
    announce_played(&mut running, &node, 0, 4).unwrap();
    let error = enqueue_played(&mut running, &node, None).unwrap_err();
    assert!(error.contains("\n  node: x is 4, y is 4\n  GPU: "), "{error}");
}

#[test]
fn what_is_ready_is_for_one_tactic_and_its_shapes() {
    if !has_driver("what_is_ready_is_for_one_tactic_and_its_shapes") {
        return;
    }
    let (node, mut running) = (played(&[(None, "numel(x)"), (None, "2")], false), RunState::default());
    for (tactic, extent, grid) in
        [(1, 4, "[4, 1, 1]"), (1, 5, "[5, 1, 1]"), (2, 5, "[2, 1, 1]"), (1, 5, "[5, 1, 1]")]
    {
        announce_played(&mut running, &node, tactic, extent).unwrap();
        let launches = running.step_descriptions();
        assert!(launches[0].1[0].contains(grid), "{launches:?}");
    }
    let error = announce_played(&mut running, &node, 9, 5).unwrap_err();
    assert!(error.contains("no variant 9"), "{error}");
}

/// 128 multiprocessors run 6 blocks each.
#[test]
fn a_cooperative_launch_has_as_many_blocks_as_run_at_once() {
    if !has_driver("a_cooperative_launch_has_as_many_blocks_as_run_at_once") {
        return;
    }
    let check = |cooperative, extent| {
        announce_played(&mut RunState::default(), &played(&[(None, "numel(x)")], cooperative), 0, extent)
    };
    check(true, 768).unwrap();
    let error = check(true, 769).unwrap_err();
    assert!(error.contains("is 769, the maximum of blocks that run at once on this GPU is 768"), "{error}");
    check(false, 769).unwrap();
}

fn alike(node: &NamedNode, name: &str) -> NamedNode {
    NamedNode::new(Arc::clone(&node.data), name)
}

#[test]
fn equal_nodes_share_what_one_has_prepared() {
    if !has_driver("equal_nodes_share_what_one_has_prepared") {
        return;
    }
    let node = played(&[(None, "numel(x)"), (None, "2")], false);
    let prepared = |name: &str, tactic, extent| {
        let mut running = RunState::default();
        announce_played(&mut running, &alike(&node, name), tactic, extent).unwrap();
        running
    };
    let first = prepared("first", 0, 4);
    assert!(first.shares_launch(&prepared("second", 0, 4)));
    assert!(!first.shares_launch(&prepared("second", 2, 4)), "another tactic");
    let mut second = prepared("second", 0, 5);
    assert!(!first.shares_launch(&second), "other shapes");
    assert!(second.step_descriptions()[0].1[0].contains("grid [5, 1, 1]"));
    assert!(first.step_descriptions()[0].1[0].contains("grid [4, 1, 1]"));
    announce_played(&mut second, &alike(&node, "second"), 0, 4).unwrap();
    assert!(first.shares_launch(&second), "also after other shapes");
    let ranks = EngineFacts { input_ranks: Some([1].into()), ..EngineFacts::default() };
    let mut third = RunState::default();
    announce_built(&mut third, &node, &ranks, (0, 4)).unwrap();
    assert!(!first.shares_launch(&third), "other ranks in the build");
}

#[test]
fn errors_of_equal_nodes_have_their_names() {
    if !has_driver("errors_of_equal_nodes_have_their_names") {
        return;
    }
    let node = played_with(&[(None, "1")], false, Some("4 * numel(x)"));
    let built = |bytes| EngineFacts { workspace_bytes: Some(bytes), ..EngineFacts::default() };
    let names = ["first", "second", "third"].map(|name| alike(&node, name));
    let mut states = [(); 3].map(|()| RunState::default());
    for ((name, running), bytes) in names.iter().zip(&mut states).zip([1024, 1024, 8]) {
        let announced = announce_built(running, name, &built(bytes), (0, 4));
        if bytes == 1024 {
            announced.unwrap();
            let error = enqueue_played(running, name, Some(0x1000)).unwrap_err();
            assert!(error.contains("enqueue without a workspace"), "{error}");
            assert!(error.contains(&name.title()), "{error}");
        } else {
            let error = announced.unwrap_err();
            assert!(error.starts_with("sample::played `third`: these shapes need"), "{error}");
            assert!(error.contains("but 8 bytes are reserved"), "{error}");
        }
    }
    assert!(states[0].shares_launch(&states[1]));
}

#[test]
fn the_last_of_equal_nodes_frees_what_they_share() {
    if !has_driver("the_last_of_equal_nodes_frees_what_they_share") {
        return;
    }
    let node = played(&[(None, "numel(x)")], false);
    let mut states: Vec<RunState> = (0..4).map(|_| RunState::default()).collect();
    let mut launches = Vec::new();
    for extent in 1..=100 {
        let running = &mut states[extent % 4];
        announce_played(running, &node, 0, i64::try_from(extent).unwrap()).unwrap();
        launches.push(running.launch_in_use());
    }
    let launch = states[0].launch_in_use();
    let data = Arc::downgrade(&node.data);
    assert_eq!(launch.strong_count(), 2, "the object's and the shared one");
    let kept = launches.iter().filter(|launch| launch.strong_count() > 0).count();
    assert!(kept <= 8, "{kept} launches are kept");
    drop(states);
    assert_eq!((launch.strong_count(), data.strong_count()), (1, 1));
    drop(node);
    assert_eq!((launch.strong_count(), data.strong_count()), (0, 0));
}

#[test]
fn threads_prepare_equal_nodes_at_once() {
    const THREADS: usize = 8;
    if !has_driver("threads_prepare_equal_nodes_at_once") {
        return;
    }
    let node = played(&[(None, "numel(x)")], false);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let node = alike(&node, &format!("{thread}"));
            scope.spawn(move || {
                let mut running = RunState::default();
                for turn in 0..500 {
                    let extent = i64::try_from(1 + (turn * (thread + 1)) % 12).unwrap();
                    announce_played(&mut running, &node, 0, extent).unwrap();
                    let launches = running.step_descriptions();
                    assert!(launches[0].1[0].contains(&format!("grid [{extent}, 1, 1]")), "{launches:?}");
                    enqueue_played(&mut running, &node, Some(0x1000)).unwrap();
                }
            });
        }
    });
}

/// The first fields of the structure in `tests/fake-driver/fake.h`.
#[repr(C)]
struct FakeDriver {
    context: i32,
    device: i32,
    fail_in: i32,
    fail_with: i32,
}

fn control(change: impl FnOnce(&mut FakeDriver)) {
    // SAFETY: the names are C strings; `has_driver` chose the stand-in, whose function returns its only structure. No
    // other thread calls it.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let function = libc::dlsym(library, c"fakeDriver".as_ptr());
        assert!(!function.is_null());
        let driver: extern "C" fn() -> *mut FakeDriver = std::mem::transmute(function);
        change(&mut *driver());
    }
}

fn prepared_with_replacement() -> (NamedNode, RunState) {
    for call in 1..100 {
        let targets = ["compute_89", "compute_80"];
        let comment = format!("call {call}");
        let node = played_from(&[(None, "numel(x)")], false, None, &targets, &comment);
        let mut running = RunState::default();
        control(|driver| (driver.fail_in, driver.fail_with) = (call, 999));
        let announced = announce_played(&mut running, &node, 0, 4);
        control(|driver| driver.fail_in = 0);
        if announced.is_ok() && running.has_own_kernels() {
            return (node, running);
        }
    }
    panic!("no call of the driver leads to a replacement")
}

fn prepared(node: &NamedNode, extent: i64) -> RunState {
    let mut running = RunState::default();
    announce_played(&mut running, node, 0, extent).unwrap();
    running
}

#[test]
fn replacements_after_an_unclear_error_are_not_shared() {
    if !has_driver("replacements_after_an_unclear_error_are_not_shared") {
        return;
    }
    let (node, mut first) = prepared_with_replacement();
    announce_played(&mut first, &node, 0, 5).unwrap();
    let second = prepared(&node, 5);
    assert!(!second.has_own_kernels() && !second.shares_launch(&first), "it loads the refused code");
    assert!(prepared(&node, 5).shares_launch(&second));
    // As if loaded while the first was prepared.
    first.share_again();
    assert!(prepared(&node, 5).shares_launch(&second));
}

#[test]
fn a_node_keeps_replacements_until_a_failure_or_another_context() {
    if !has_driver("a_node_keeps_replacements_until_a_failure_or_another_context") {
        return;
    }
    let (node, mut running) = prepared_with_replacement();
    for extent in 5..8 {
        announce_played(&mut running, &node, 0, extent).unwrap();
        let launch = running.launch_in_use();
        assert!(
            running.has_own_kernels() && launch.strong_count() == 1,
            "extent {extent}: no other code is loaded"
        );
    }
    announce_played(&mut running, &node, 0, 1 << 40).unwrap_err();
    announce_played(&mut running, &node, 0, 4).unwrap();
    assert!(!running.has_own_kernels() && running.shares_launch(&prepared(&node, 4)));
    let (node, mut running) = prepared_with_replacement();
    control(|driver| driver.context = 2);
    announce_played(&mut running, &node, 0, 5).unwrap();
    assert!(!running.has_own_kernels() && running.shares_launch(&prepared(&node, 5)));
}

#[test]
fn the_least_recently_used_contexts_are_forgotten() {
    if !has_driver("the_least_recently_used_contexts_are_forgotten") {
        return;
    }
    let node = played(&[(None, "numel(x)")], false);
    let mut used = prepared(&node, 1);
    let launch = used.launch_in_use();
    let mut others = Vec::new();
    for number in 2..=40 {
        control(|driver| driver.context = number);
        others.push(prepared(&node, 1).launch_in_use());
        control(|driver| driver.context = 1);
        for extent in [2, 1] {
            announce_played(&mut used, &node, 0, extent).unwrap();
        }
        assert!(used.launch_in_use().ptr_eq(&launch), "context {number}");
    }
    assert!(used.shares_launch(&prepared(&node, 1)));
    let kept: Vec<bool> = others.iter().map(|launch| launch.strong_count() > 0).collect();
    assert_eq!(kept.iter().filter(|is_kept| **is_kept).count(), 15);
    assert!(kept.ends_with(&[true; 15]));
}

#[test]
fn the_least_recently_used_launches_are_forgotten() {
    if !has_driver("the_least_recently_used_launches_are_forgotten") {
        return;
    }
    let node = played(&[(None, "numel(x)")], false);
    let used = prepared(&node, 1);
    for extent in 2..20 {
        let other = prepared(&node, extent);
        assert!(other.shares_launch(&prepared(&node, extent)));
        assert!(used.shares_launch(&prepared(&node, 1)), "extent {extent}");
    }
}

#[test]
fn each_of_equal_nodes_warns_about_a_guard_without_a_value() {
    if !has_driver("each_of_equal_nodes_warns_about_a_guard_without_a_value") {
        return;
    }
    let node = played(&[(Some("8 % (numel(x) - 4) == 0"), "1"), (None, "2")], false);
    let other = prepared(&node, 5);
    let mut first = prepared(&node, 4);
    for _ in 0..8 {
        assert!(!first.shares_launch(&prepared(&node, 4)), "it prepares its own to warn");
    }
    assert!(other.shares_launch(&prepared(&node, 5)), "equal launches count once");
    let last = prepared(&node, 4);
    for extent in [5, 4] {
        announce_played(&mut first, &node, 0, extent).unwrap();
    }
    assert!(first.shares_launch(&last), "it warned before");
}
