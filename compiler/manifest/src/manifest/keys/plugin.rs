//! The tables of a manifest that say which operator it is: the file itself, `[plugin]`, `[attributes]`.

use super::code::CODE;
use super::launches::{COMPILE, DATA_KINDS, LAUNCHES, SCRATCH};
use super::tensors::{INPUTS, OUTPUTS};
use super::variants::{COMBINATION, FUNCTION, VARIANT};
use super::{DOC, Form, Naming, Reserved, Table, optional, otherwise, required};

pub(super) const TYPE_NAMES: Naming = Naming {
    what: "a type parameter",
    reserved: Reserved::ElementTypes,
    example: ("T", "[\"f32\", \"f16\"]"),
};

pub(super) const FORMAT_NAMES: Naming = Naming {
    what: "a format parameter",
    reserved: Reserved::Formats,
    example: ("F", "[\"linear\", \"hwc8\"]"),
};

pub(super) const CONSTANT_NAMES: Naming =
    Naming { what: "a constant", reserved: Reserved::None, example: ("BLOCK", "256") };

/// The file.
pub static ROOT: Table = Table {
    path: "",
    title: "the file",
    doc: "One plugin.",
    keys: &[
        required(
            "schema",
            Form::Edition,
            "1",
            "The edition of this language. It stands before the first table.",
        ),
        required("plugin", Form::Table(&PLUGIN), "", "Which operator it is."),
        optional(
            "attributes",
            Form::Named(
                &ATTRIBUTE,
                Naming { what: "an attribute", reserved: Reserved::OnnxParser, example: ("pads", "") },
            ),
            "",
            "What a node can say.",
        ),
        optional("inputs", Form::Kinds(&INPUTS), "", "The input tensors, in the node's order."),
        optional("outputs", Form::Kinds(&OUTPUTS), "", "The output tensors, in the node's order."),
        optional(
            "types",
            Form::Lines(&Form::ElementTypes, TYPE_NAMES),
            "",
            "Type parameters and the element types that each can be; the plugin is compiled for every combination.",
        ),
        optional(
            "formats",
            Form::Lines(&Form::Formats, FORMAT_NAMES),
            "",
            "Format parameters and the memory layouts that each can be; they are combined as types are.",
        ),
        optional(
            "combinations",
            Form::Tables(&COMBINATION),
            "",
            "Which combinations of types and formats there are: those of any of these tables. Without any there are all.",
        ),
        optional(
            "constants",
            Form::Lines(&Form::Constant, CONSTANT_NAMES),
            "",
            "Names for numbers, the same in every variant.",
        ),
        optional(
            "functions",
            Form::Named(
                &FUNCTION,
                Naming { what: "a function", reserved: Reserved::None, example: ("before", "") },
            ),
            "",
            "Names for expressions with parameters.",
        ),
        optional(
            "variants",
            Form::Tables(&VARIANT),
            "",
            "Ways to compute the operator, the best one first. Without any there is one, with id 1.",
        ),
        optional(
            "tables",
            Form::NamedKinds(
                &DATA_KINDS,
                Naming { what: "a table", reserved: Reserved::None, example: ("window", "") },
            ),
            "",
            "Read-only data that is compiled beside the code.",
        ),
        optional(
            "scratch",
            Form::Named(
                &SCRATCH,
                Naming { what: "a scratch buffer", reserved: Reserved::None, example: ("partial", "") },
            ),
            "",
            "Memory that the steps of one run share and nobody else sees.",
        ),
        optional(
            "code",
            Form::Tables(&CODE),
            "",
            "Kernels that other compilers made, as machine code or PTX.",
        ),
        required(
            "launches",
            Form::Kinds(&LAUNCHES),
            "",
            "What to do, one step after the other: kernels to launch and memory to fill.",
        ),
        optional(
            "compile",
            Form::Table(&COMPILE),
            "",
            "How the kernels are compiled, where it is not as `cubinder.toml` or the command line says.",
        ),
    ],
};

/// `[plugin]`.
pub static PLUGIN: Table = Table {
    path: "plugin",
    title: "[plugin]",
    doc: "Which operator it is, and what must hold of its nodes.",
    keys: &[
        required(
            "name",
            Form::Identifier,
            "\"circ_pad\"",
            "The ONNX op type, which is TensorRT's plugin name. At most 1023 bytes, as the next two.",
        ),
        otherwise(
            "namespace",
            "\"\"",
            Form::Namespace,
            "\"com.example\"",
            "TensorRT's plugin namespace: the node's domain, or its attribute `plugin_namespace`.",
        ),
        otherwise(
            "version",
            "\"1\"",
            Form::Version,
            "\"1\"",
            "TensorRT's plugin version: the node's attribute `plugin_version`.",
        ),
        optional(
            "summary",
            Form::Text,
            "\"Pads the trailing dimensions by wrapping around.\"",
            "One sentence for people; `cubinder inspect` shows it.",
        ),
        optional("require", Form::Tables(&REQUIRE), "", "Rules that every node must meet."),
        optional(
            "timing",
            Form::AttributeNames,
            "[\"pads\"]",
            "The attributes on which the time of a node depends: nodes that differ in others alone share what TensorRT measured. Otherwise all.",
        ),
        optional(
            "tune",
            Form::Path,
            "\"../tests/circ_pad_sizes.toml\"",
            "The file of cases for whose shapes `cubinder tune` measures the variants, relative to the manifest's folder.",
        ),
    ],
};

/// One rule of `require`.
pub static REQUIRE: Table = Table {
    path: "plugin.require[]",
    title: "require",
    doc: "One rule. A node that breaks it is refused with the rule's message, when TensorRT builds the network.",
    keys: &[
        required(
            "expr",
            Form::ExpressionText,
            "\"len(pads) % 2 == 0\"",
            "What must hold: a boolean over attributes, and over ranks and shapes of inputs.",
        ),
        required(
            "message",
            Form::Message,
            "\"pads come in pairs\"",
            "What to tell the person whose node breaks the rule.",
        ),
    ],
};

/// `[attributes.NAME]`.
pub static ATTRIBUTE: Table = Table {
    path: "attributes.*",
    title: "[attributes.NAME]",
    doc: "An attribute of the ONNX node.",
    keys: &[
        required("type", Form::AttributeType, "\"i32[]\"", "What it holds."),
        optional(
            "default",
            Form::AttributeValue,
            "[1, 1]",
            "What it is where the node does not say. A node that lacks an attribute without a default is refused.",
        ),
        optional(
            "length",
            Form::Size,
            "\"..=16\"",
            "How many elements a list may have, or how many bytes a string (as UTF-8) or `bytes`.",
        ),
        optional(
            "range",
            Form::NumberRange,
            "\"0..=1024\"",
            "The least and the greatest number; of a list, for each element.",
        ),
        optional(
            "one_of",
            Form::AttributeValues,
            "[0, 1, 2, 4]",
            "The only values; of a list, for each element. Not for `bytes`.",
        ),
        optional(
            "specialize",
            Form::AttributeValues,
            "[3, 5, 7]",
            "The code is compiled for each of these integers or booleans, and others are refused; in guards and launches it is a constant. Not for lists.",
        ),
        DOC,
    ],
};
