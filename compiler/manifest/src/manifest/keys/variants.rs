//! The tables that say which ways there are to compute an operator: functions, combinations, variants.

use super::plugin::{CONSTANT_NAMES, FORMAT_NAMES, TYPE_NAMES};
use super::{Form, Naming, Table, optional, otherwise, required};

/// One line of `[functions]`.
pub static FUNCTION: Table = Table {
    path: "functions.*",
    title: "functions.NAME",
    doc: "A helper function for expressions.",
    keys: &[
        required(
            "params",
            Form::Identifiers,
            "[\"i\"]",
            "The names of its parameters: values, tensors or types.",
        ),
        required("body", Form::Expression, "\"get(pads, 2 * i, 0)\"", "The expression it stands for."),
    ],
};

/// `[[combinations]]`.
pub static COMBINATION: Table = Table {
    path: "combinations[]",
    title: "[[combinations]]",
    doc: "Types and formats that there are together.",
    keys: &[
        optional(
            "types",
            Form::Lines(&Form::ElementTypes, Naming { example: ("T", "[\"f16\"]"), ..TYPE_NAMES }),
            "",
            "Alternatives of type parameters; all of those that are not named here.",
        ),
        optional(
            "formats",
            Form::Lines(&Form::Formats, Naming { example: ("F", "[\"linear\", \"hwc8\"]"), ..FORMAT_NAMES }),
            "",
            "Alternatives of format parameters; all of those that are not named here.",
        ),
    ],
};

/// `[[variants]]`.
pub static VARIANT: Table = Table {
    path: "variants[]",
    title: "[[variants]]",
    doc: "One way to compute the operator.",
    keys: &[
        required("id", Form::VariantId, "1", "Its number, TensorRT's tactic id; each once."),
        otherwise(
            "guard",
            "true",
            Form::Expression,
            "\"numel(y) % 4 == 0 and aligned(x, 16)\"",
            "When it may run: a boolean over attributes, the shapes of all tensors and the alignment of their addresses.",
        ),
        optional(
            "types",
            Form::Lines(&Form::ElementTypes, Naming { example: ("T", "[\"f16\"]"), ..TYPE_NAMES }),
            "",
            "Which alternatives of the type parameters it serves; all of those that are not named here.",
        ),
        optional(
            "formats",
            Form::Lines(&Form::Formats, Naming { example: ("F", "[\"hwc8\"]"), ..FORMAT_NAMES }),
            "",
            "Which alternatives of the format parameters it serves; all of those that are not named here.",
        ),
        optional(
            "constants",
            Form::Lines(&Form::Constant, Naming { example: ("VEC", "4"), ..CONSTANT_NAMES }),
            "",
            "Constants of this variant.",
        ),
    ],
};
