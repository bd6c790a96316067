//! The key table: every table and key of the newest schema edition, what its value is, and what it is for.
//!
//! The JSON Schema ([`super::json_schema`]) and the tables of the reference (`docs/manifest.md`) are made from it. Tests hold
//! it against the reader: both know the same keys, the same keys are required, and every example is read without a word.
//! Never reads anything itself.

/// A table of a manifest.
#[derive(Debug)]
pub struct Table {
    /// Its place in the manifest: `attributes.*`, `inputs[]`; empty for the file itself.
    pub path: &'static str,
    /// How errors call it; `NAME` stands for the author's name.
    pub title: &'static str,
    /// What it declares, in one sentence.
    pub doc: &'static str,
    /// Its keys, in the order in which the reference lists them.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What its value is.
    pub form: Form,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it is for, in one or two sentences.
    pub doc: &'static str,
    /// A value, as TOML; empty where the value is a table, whose keys have examples. All examples together are one manifest.
    pub example: &'static str,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// Nothing is meant where it is not there.
    Optional,
    /// This is meant where it is not there.
    Default(&'static str),
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// The schema edition.
    Edition,
    /// Any text.
    Text,
    /// A text that is not empty.
    Message,
    /// A name for expressions and C++.
    Identifier,
    /// Several of them.
    Identifiers,
    /// Identifiers with dots between them, or nothing.
    Namespace,
    /// Letters, digits, `.`, `_`, `+`, `-`.
    Version,
    /// An expression: text, or a number or boolean that stands for itself.
    Expression,
    /// An expression that can only be text.
    ExpressionText,
    /// One to three expressions: x, y and z.
    Expressions,
    /// An element type or a type parameter.
    TensorType,
    /// Element types, each once.
    ElementTypes,
    /// A memory layout or a format parameter.
    TensorFormat,
    /// Memory layouts, each once.
    Formats,
    /// Names of attributes, each once.
    AttributeNames,
    /// The type of an attribute.
    AttributeType,
    /// A value of the attribute's type.
    AttributeValue,
    /// Values of the attribute's type; of a list, of its elements.
    AttributeValues,
    /// A rank or a range of ranks.
    Rank,
    /// A size or a range of sizes.
    Size,
    /// A size, a range of sizes, or one for each dimension.
    Sizes,
    /// A number or a range of numbers of the attribute's type.
    NumberRange,
    /// A number or a boolean.
    Constant,
    /// An element type of tables.
    TableType,
    /// The elements of a table.
    TableValues,
    /// The number of a variant.
    VariantId,
    /// The name of an output or a scratch buffer.
    Memory,
    /// `i32` or `i64`.
    Integers,
    /// The rank of a shape input.
    ShapeInputRank,
    /// An integer or a range of integers.
    IntegerRange,
    /// Nothing but true.
    True,
    /// A byte.
    Byte,
    /// True or false.
    Switch,
    /// A file, relative to the manifest's folder.
    Path,
    /// Folders, relative to the manifest's folder.
    Paths,
    /// A kernel as C++ names it.
    Kernel,
    /// Options of NVRTC.
    Options,
    /// Targets, each once.
    Targets,
    /// Kinds of code, each once.
    CodeKinds,
    /// What is there for debuggers and profilers.
    Debug,
    /// A release of NVIDIA's driver.
    Driver,
    /// A table.
    Table(&'static Table),
    /// An array of tables.
    Tables(&'static Table),
    /// An array of tables of several kinds.
    Kinds(&'static Kinds),
    /// A table of tables, each under a name of the author's.
    Named(&'static Table, Naming),
    /// A table whose keys are names of the author's.
    Lines(&'static Form, Naming),
}

/// The kinds of the tables of an array.
#[derive(Debug)]
pub struct Kinds {
    /// The keys that decide: a table that has one of them is of the kind at the same place; any other is of the last kind.
    pub keys: &'static [&'static str],
    /// The kinds; one more than there are keys.
    pub tables: &'static [&'static Table],
    /// Whether there must be a table of the last kind.
    pub needs_last: bool,
}

impl Kinds {
    /// The place of the kind of a table that has the keys for which `has` says so.
    pub fn of(&self, has: impl Fn(&str) -> bool) -> usize {
        self.keys.iter().position(|key| has(key)).unwrap_or(self.keys.len())
    }
}

/// The names that an author gives in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// What is named: `an attribute`.
    pub what: &'static str,
    /// Identifiers that cannot be names here.
    pub reserved: Reserved,
    /// A name with the value that it has in the example; no value where that is a table.
    pub example: (&'static str, &'static str),
}

/// Which identifiers cannot be names in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// None that the form knows of.
    None,
    /// Those of TensorRT's ONNX parser.
    OnnxParser,
    /// Those of the element types.
    ElementTypes,
    /// Those of the memory layouts.
    Formats,
}

impl Form {
    /// What the value is, for the reference.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Form::Edition => "the integer 1",
            Form::Text => "string",
            Form::Message => "string, not empty",
            Form::Identifier => "identifier",
            Form::Identifiers => "array of identifiers",
            Form::Namespace => "identifiers with dots between them, or empty",
            Form::Version => "string of letters, digits, `.`, `_`, `+`, `-`",
            Form::Expression => "expression",
            Form::ExpressionText => "expression (a string)",
            Form::Expressions => "array of one to three expressions",
            Form::TensorType => "element type or type parameter",
            Form::ElementTypes => "array of element types",
            Form::TensorFormat => "format or format parameter",
            Form::Formats => "array of formats",
            Form::AttributeNames => "array of names of attributes",
            Form::AttributeType => "attribute type",
            Form::AttributeValue => "value of the attribute's type",
            Form::AttributeValues => "array of values",
            Form::Rank => "integer or range from 0 to 8",
            Form::Size => "integer or range",
            Form::Sizes => "integer, range, or array of them",
            Form::NumberRange => "number or range",
            Form::Constant => "integer, float or boolean",
            Form::TableType => "table type",
            Form::TableValues => "array of numbers or booleans, or an expression",
            Form::VariantId => "integer from 1 to 1000000",
            Form::Memory => "name of an output or a scratch buffer",
            Form::Integers => "`\"i32\"` or `\"i64\"`",
            Form::ShapeInputRank => "0 or 1",
            Form::IntegerRange => "integer or range",
            Form::True => "`true`",
            Form::Byte => "integer from 0 to 255",
            Form::Switch => "boolean",
            Form::Path => "path",
            Form::Paths => "array of paths",
            Form::Kernel => "string, C++",
            Form::Options => "array of strings",
            Form::Targets => "array of targets",
            Form::CodeKinds => "array of `\"cubin\"` and `\"ptx\"`",
            Form::Debug => "`\"line\"`",
            Form::Driver => "string, a driver's release",
            Form::Table(_) => "table",
            Form::Tables(_) | Form::Kinds(..) => "array of tables",
            Form::Named(..) => "table of tables",
            Form::Lines(of, _) => match of {
                Form::ElementTypes => "table: name to array of element types",
                Form::Formats => "table: name to array of formats",
                Form::Constant => "table: name to constant",
                _ => "table: name to expression",
            },
        }
    }
}

const fn required(name: &'static str, form: Form, example: &'static str, doc: &'static str) -> Key {
    Key { name, form, presence: Presence::Required, doc, example }
}

const fn optional(name: &'static str, form: Form, example: &'static str, doc: &'static str) -> Key {
    Key { name, form, presence: Presence::Optional, doc, example }
}

const fn otherwise(
    name: &'static str,
    default: &'static str,
    form: Form,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, form, presence: Presence::Default(default), doc, example }
}

const DOC: Key =
    optional("doc", Form::Text, "\"what it is\"", "One sentence for people; `cubinder inspect` shows it.");

const TYPE_NAMES: Naming = Naming {
    what: "a type parameter",
    reserved: Reserved::ElementTypes,
    example: ("T", "[\"f32\", \"f16\"]"),
};

const FORMAT_NAMES: Naming = Naming {
    what: "a format parameter",
    reserved: Reserved::Formats,
    example: ("F", "[\"linear\", \"hwc8\"]"),
};

const CONSTANT_NAMES: Naming =
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
            Form::Named(&DATA, Naming { what: "a table", reserved: Reserved::None, example: ("window", "") }),
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

/// The kinds of inputs.
static INPUTS: Kinds = Kinds { keys: &["shape_input"], tables: &[&SHAPE_INPUT, &INPUT], needs_last: false };

/// The kinds of outputs.
static OUTPUTS: Kinds =
    Kinds { keys: &["alias", "size"], tables: &[&ALIAS, &SIZE_TENSOR, &OUTPUT], needs_last: false };

/// The kinds of steps.
static LAUNCHES: Kinds = Kinds { keys: &["memset"], tables: &[&MEMSET, &LAUNCH], needs_last: true };

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

/// `[tables.NAME]`.
pub static DATA: Table = Table {
    path: "tables.*",
    title: "[tables.NAME]",
    doc: "A table: read-only data that kernels see as `manifest::NAME`.",
    keys: &[
        required("type", Form::TableType, "\"f32\"", "What its elements are."),
        required(
            "values",
            Form::TableValues,
            "\"[exp(-0.5 * float(i)) for i in range(256)]\"",
            "Its elements, at least one and at most 1 MiB. An expression can use constants and functions.",
        ),
    ],
};

/// `[scratch.NAME]`.
pub static SCRATCH: Table = Table {
    path: "scratch.*",
    title: "[scratch.NAME]",
    doc: "A scratch buffer: memory of the node's workspace. What it holds when the first step begins is not known.",
    keys: &[required(
        "bytes",
        Form::Expression,
        "\"ceil_div(numel(x), BLOCK) * 4\"",
        "How large it is, in bytes. It sees what launches see. TensorRT reserves the most that this comes to over the profile.",
    )],
};

const WHEN: Key = otherwise(
    "when",
    "true",
    Form::Expression,
    "\"numel(x) > 0\"",
    "Whether the step is done: a boolean over what launches see. Where the variant decides that it is not, its code is left out.",
);

/// `[[launches]]` with `memset`.
pub static MEMSET: Table = Table {
    path: "launches[].memset",
    title: "[[launches]] with memset",
    doc: "Memory that is filled with one byte.",
    keys: &[
        required("memset", Form::Memory, "\"y\"", "What is filled, all of it."),
        otherwise("byte", "0", Form::Byte, "255", "What every byte becomes."),
        WHEN,
    ],
};

/// `[[launches]]`.
pub static LAUNCH: Table = Table {
    path: "launches[]",
    title: "[[launches]]",
    doc: "One launch of a kernel.",
    keys: &[
        required(
            "source",
            Form::Path,
            "\"../kernels/circ_pad.cu\"",
            "The CUDA C++ file, relative to the manifest's folder.",
        ),
        required(
            "kernel",
            Form::Kernel,
            "\"circ_pad<T, VEC>\"",
            "The kernel as C++ names it, with type parameters and constants as template arguments.",
        ),
        required(
            "grid",
            Form::Expressions,
            "[\"ceil_div(numel(y), BLOCK * VEC)\"]",
            "Blocks in x, y and z; what is left out is 1. Where one comes to 0, nothing is launched: right for an empty output, refused otherwise.",
        ),
        required(
            "block",
            Form::Expressions,
            "[\"BLOCK\"]",
            "Threads of a block in x, y and z; what is left out is 1.",
        ),
        otherwise(
            "shared_bytes",
            "0",
            Form::Expression,
            "\"BLOCK * sizeof(T)\"",
            "Dynamic shared memory of a block, in bytes.",
        ),
        optional(
            "cluster",
            Form::Expressions,
            "[2]",
            "Blocks of a cluster in x, y and z, at most 8 in all; what is left out is 1. The grid must be a multiple of it. Needs compute capability 9.0.",
        ),
        otherwise(
            "cooperative",
            "false",
            Form::Switch,
            "false",
            "Whether all blocks run at once, so that the kernel can wait for the whole grid. A grid that does not fit on the device is refused.",
        ),
        otherwise(
            "programmatic",
            "false",
            Form::Switch,
            "true",
            "Whether the kernel may begin before the step before it has ended. It must wait by itself. Needs compute capability 9.0.",
        ),
        WHEN,
        required(
            "args",
            Form::Lines(
                &Form::Expression,
                Naming { what: "an argument", reserved: Reserved::None, example: ("count", "\"numel(y)\"") },
            ),
            "",
            "What each of the kernel's parameters gets, by the parameter's name: a tensor, a scratch buffer or an expression.",
        ),
    ],
};

/// `[compile]`.
pub static COMPILE: Table = Table {
    path: "compile",
    title: "[compile]",
    doc: "How the kernels of this plugin are compiled.",
    keys: &[
        optional(
            "targets",
            Form::Targets,
            "[\"sm_89\", \"compute_80\"]",
            "What to compile for: `sm_*` is machine code, `compute_*` PTX. Otherwise what the library is compiled for.",
        ),
        optional(
            "include",
            Form::Paths,
            "[\"../include\"]",
            "Folders for `#include`, relative to the manifest's folder, before those of the library.",
        ),
        optional(
            "options",
            Form::Options,
            "[\"--use_fast_math\"]",
            "Options of NVRTC, after those of the library.",
        ),
        optional(
            "code",
            Form::CodeKinds,
            "[\"cubin\", \"ptx\"]",
            "Which kinds of the targets to embed. Otherwise all.",
        ),
        optional(
            "debug",
            Form::Debug,
            "\"line\"",
            "Line information in the code, for profilers. Otherwise what the library says, which is none if it says nothing.",
        ),
        optional(
            "min_driver",
            Form::Driver,
            "\"580.65.06\"",
            "The oldest driver that must be able to load the code; checked against what NVRTC makes.",
        ),
    ],
};

/// Every table once, in the order of the reference.
#[must_use]
pub fn tables() -> [&'static Table; 19] {
    [
        &ROOT,
        &PLUGIN,
        &REQUIRE,
        &ATTRIBUTE,
        &INPUT,
        &SHAPE_INPUT,
        &OUTPUT,
        &ALIAS,
        &SIZE_TENSOR,
        &SIZE_BOUND,
        &LIMITS,
        &FUNCTION,
        &COMBINATION,
        &VARIANT,
        &DATA,
        &SCRATCH,
        &MEMSET,
        &LAUNCH,
        &COMPILE,
    ]
}

impl Form {
    /// The tables of the keys that a value of this form has, directly or in arrays and tables of the author's names.
    #[must_use]
    pub fn tables(&self) -> &[&'static Table] {
        match self {
            Form::Table(inner) | Form::Tables(inner) | Form::Named(inner, _) => std::slice::from_ref(inner),
            Form::Kinds(kinds) => kinds.tables,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
