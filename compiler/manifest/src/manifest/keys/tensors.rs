//! The tables of tensors: inputs, outputs and their kinds, `limits`.

use super::{DOC, Form, Kinds, Table, optional, otherwise, required};

/// The kinds of inputs.
pub(super) static INPUTS: Kinds =
    Kinds { keys: &["shape_input"], tables: &[&SHAPE_INPUT, &INPUT], but_for: None };

/// The kinds of outputs.
pub(super) static OUTPUTS: Kinds =
    Kinds { keys: &["alias", "size"], tables: &[&ALIAS, &SIZE_TENSOR, &OUTPUT], but_for: None };

/// `[[inputs]]` with `shape_input`.
pub static SHAPE_INPUT: Table = Table {
    path: "inputs[].shape_input",
    title: "[[inputs]] with shape_input",
    doc: "An input of a few integers that decide shapes. They are known when shapes are, as `NAME.values`.",
    keys: &[
        required("name", Form::Identifier, "\"target\"", "Its name in expressions."),
        required("shape_input", Form::True, "true", "What makes it one."),
        required("type", Form::Integers, "\"i64\"", "What its elements are."),
        otherwise("rank", "1", Form::ShapeInputRank, "1", "1 for several values, 0 for one."),
        optional(
            "limits",
            Form::Table(&LIMITS),
            "",
            "How many values it may have, 0 to 8 where nothing is said; any other number is refused.",
        ),
        optional(
            "values",
            Form::IntegerRange,
            "\"0..=65536\"",
            "What each value may be; any other one is refused. Proofs of launches rely on it.",
        ),
        DOC,
    ],
};

/// `[[inputs]]`.
pub static INPUT: Table = Table {
    path: "inputs[]",
    title: "[[inputs]]",
    doc: "An input tensor.",
    keys: &[
        required("name", Form::Identifier, "\"x\"", "Its name in expressions and arguments."),
        required("type", Form::TensorType, "\"T\"", "What its elements are."),
        otherwise("format", "\"linear\"", Form::TensorFormat, "\"F\"", "How it lies in memory."),
        otherwise("rank", "\"0..=8\"", Form::Rank, "\"1..=8\"", "How many dimensions it may have."),
        optional("limits", Form::Table(&LIMITS), "", "What its shape may be; any other one is refused."),
        DOC,
    ],
};

/// `[[outputs]]`.
pub static OUTPUT: Table = Table {
    path: "outputs[]",
    title: "[[outputs]]",
    doc: "An output tensor.",
    keys: &[
        required("name", Form::Identifier, "\"y\"", "Its name in the expressions and arguments of launches."),
        required("type", Form::TensorType, "\"T\"", "What its elements are."),
        otherwise("format", "\"linear\"", Form::TensorFormat, "\"F\"", "How it lies in memory."),
        required(
            "shape",
            Form::ExpressionText,
            "\"x.shape\"",
            "Its shape: an array of integers over attributes and the inputs' shapes.",
        ),
        optional("limits", Form::Table(&LIMITS), "", "What its shape may come to; any other one is refused."),
        DOC,
    ],
};

/// `[[outputs]]` with `alias`.
pub static ALIAS: Table = Table {
    path: "outputs[].alias",
    title: "[[outputs]] with alias",
    doc: "An output that shares the memory of an input: the kernels change it in place. Type, format and shape are the input's.",
    keys: &[
        required(
            "name",
            Form::Identifier,
            "\"in_place\"",
            "Its name in the expressions and arguments of launches.",
        ),
        required("alias", Form::Identifier, "\"x\"", "The input; no shape input, and of no other output."),
        DOC,
    ],
};

/// `[[outputs]]` with `size`.
pub static SIZE_TENSOR: Table = Table {
    path: "outputs[].size_tensor",
    title: "[[outputs]] with size",
    doc: "An output that holds a size which the kernels find out. Its name is a dimension in the shapes of other outputs.",
    keys: &[
        required(
            "name",
            Form::Identifier,
            "\"count\"",
            "Its name in shapes and in the arguments of launches.",
        ),
        required("type", Form::Integers, "\"i64\"", "What a kernel writes into it."),
        required("size", Form::Table(&SIZE_BOUND), "", "What is known of the size beforehand."),
        DOC,
    ],
};

/// `size` of an output.
pub static SIZE_BOUND: Table = Table {
    path: "outputs[].size",
    title: "size",
    doc: "What is known of a size before the kernels run, from attributes and the inputs' shapes.",
    keys: &[
        required(
            "upper",
            Form::Expression,
            "\"numel(x)\"",
            "The most that it can be: TensorRT reserves memory for it. A kernel that writes more is not noticed.",
        ),
        optional(
            "opt",
            Form::Expression,
            "\"numel(x) // 2\"",
            "What TensorRT optimizes for; `upper` where it is not said.",
        ),
    ],
};

/// `limits` of a tensor.
pub static LIMITS: Table = Table {
    path: "inputs[].limits",
    title: "limits",
    doc: "What a tensor's shape may be, beside its rank. Proofs of launches rely on it.",
    keys: &[
        otherwise(
            "dims",
            "\"0..\"",
            Form::Sizes,
            "\"1..=65535\"",
            "What every dimension may be; of an input of fixed rank also an array, one range for each dimension.",
        ),
        otherwise("numel", "\"0..\"", Form::Size, "\"..=2147483647\"", "How many elements it may have."),
    ],
};
