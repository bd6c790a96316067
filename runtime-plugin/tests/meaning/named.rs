//! Manifests that each use an alias in one way.

use crate::manifest::{Action, Array, Condition, Manifest, Row, Task, Tensor};

const X: Array = Array::Tensor(Tensor::Input(0));
const Z: Array = Array::Tensor(Tensor::Input(1));
const Y: Array = Array::Tensor(Tensor::Output(0));
const OTHER: Array = Array::Tensor(Tensor::Output(1));

fn blend(arrays: &[(Array, bool)]) -> Task {
    Task { above: None, action: Action::Blend { arrays: arrays.to_vec(), salt: 7 } }
}

fn row(guard: Option<Condition>, steps: Vec<Task>) -> Row {
    Row { guard, scratch: 0, steps }
}

/// `y0` shares the memory of `x0`.
fn in_place(steps: Vec<Task>) -> Manifest {
    Manifest { inputs: vec![true, false], outputs: 0, variants: vec![row(None, steps)] }
}

pub(crate) fn manifests() -> Vec<(&'static str, Manifest)> {
    let aligned = |tensor| Some(Condition::Aligned(tensor, 16));
    let guarded = |tensor| Manifest {
        variants: vec![
            row(aligned(tensor), vec![blend(&[(X, true), (Z, false)])]),
            row(None, vec![blend(&[(Y, true)])]),
        ],
        ..in_place(Vec::new())
    };
    let fill = Task { above: None, action: Action::Fill { array: Y, byte: 3 } };
    vec![
        ("an argument by the input's name", in_place(vec![blend(&[(X, true), (Z, false)])])),
        ("an argument by the output's name", in_place(vec![blend(&[(Y, true), (Z, false)])])),
        ("one kernel gets both names and writes the output", in_place(vec![blend(&[(X, false), (Y, true)])])),
        ("one kernel gets both names and writes the input", in_place(vec![blend(&[(Y, false), (X, true)])])),
        (
            "a later step reads the input through a pointer to const",
            Manifest {
                outputs: 1,
                ..in_place(vec![blend(&[(Y, true), (Z, false)]), blend(&[(X, false), (OTHER, true)])])
            },
        ),
        (
            "a later step reads the output through a pointer to const",
            Manifest {
                outputs: 1,
                ..in_place(vec![blend(&[(X, true), (Z, false)]), blend(&[(Y, false), (OTHER, true)])])
            },
        ),
        ("a guard uses the input's alignment", guarded(Tensor::Input(0))),
        ("a guard uses the output's alignment", guarded(Tensor::Output(0))),
        (
            "no guard is true by either name",
            Manifest {
                variants: vec![row(
                    Some(Condition::And(
                        Box::new(Condition::Aligned(Tensor::Input(0), 32)),
                        Box::new(Condition::Not(Box::new(Condition::Aligned(Tensor::Output(0), 32)))),
                    )),
                    vec![blend(&[(X, true)])],
                )],
                ..in_place(Vec::new())
            },
        ),
        (
            "two outputs in place, each by another name",
            Manifest {
                inputs: vec![true, true],
                ..in_place(vec![blend(&[(X, true), (OTHER, true)]), blend(&[(Y, true), (Z, true)])])
            },
        ),
        (
            "memset of the output, then a reader of the input",
            in_place(vec![fill, blend(&[(X, true), (Z, false)])]),
        ),
    ]
}
