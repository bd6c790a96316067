//! The tables of what is done and how it is compiled: constant tables, scratch memory, steps, `[compile]`.

use super::code::LAUNCH_OF_CODE;
use super::{Form, Key, Kinds, Naming, Reserved, Table, optional, otherwise, required};

/// The kinds of steps.
pub(super) static LAUNCHES: Kinds = Kinds {
    keys: &["memset", "code"],
    tables: &[&MEMSET, &LAUNCH_OF_CODE, &LAUNCH],
    but_for: Some("memset"),
};

/// The kinds of tables of data.
pub(super) static DATA_KINDS: Kinds = Kinds { keys: &["file"], tables: &[&DATA_FILE, &DATA], but_for: None };

/// `[tables.NAME]` with `file`.
pub static DATA_FILE: Table = Table {
    path: "tables.*(file)",
    title: "[tables.NAME] with file",
    doc: "A table whose elements are in a file.",
    keys: &[
        required("type", Form::TableType, "\"f32\"", "What its elements are."),
        required(
            "file",
            Form::Path,
            "\"window.bin\"",
            "The file, relative to the manifest's folder: the elements one after the other, little-endian, without anything else. At least one and at most 1 MiB.",
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

pub(super) const WHEN: Key = otherwise(
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

pub(super) const GRID: Key = required(
    "grid",
    Form::Expressions,
    "[\"ceil_div(numel(y), BLOCK * VEC)\"]",
    "Blocks in x, y and z; what is left out is 1. Where one comes to 0, nothing is launched: right for an empty output, refused otherwise.",
);

pub(super) const BLOCK: Key = required(
    "block",
    Form::Expressions,
    "[\"BLOCK\"]",
    "Threads of a block in x, y and z; what is left out is 1.",
);

pub(super) const SHARED_BYTES: Key = otherwise(
    "shared_bytes",
    "0",
    Form::Expression,
    "\"BLOCK * sizeof(T)\"",
    "Dynamic shared memory of a block, in bytes.",
);

pub(super) const CLUSTER: Key = optional(
    "cluster",
    Form::Expressions,
    "[2]",
    "Blocks of a cluster in x, y and z, at most 8 in all; what is left out is 1. The grid must be a multiple of it. Needs compute capability 9.0.",
);

pub(super) const COOPERATIVE: Key = otherwise(
    "cooperative",
    "false",
    Form::Switch,
    "false",
    "Whether all blocks run at once, so that the kernel can wait for the whole grid. A grid that does not fit on the device is refused.",
);

pub(super) const PROGRAMMATIC: Key = otherwise(
    "programmatic",
    "false",
    Form::Switch,
    "true",
    "Whether the kernel may begin before the step before it has ended. It must wait by itself. GPUs before compute capability 9.0 begin it in its turn.",
);

pub(super) const ARGS: Key = required(
    "args",
    Form::Lines(
        &Form::Expression,
        Naming { what: "an argument", reserved: Reserved::None, example: ("count", "\"numel(y)\"") },
    ),
    "",
    "What each of the kernel's parameters gets, by the parameter's name: a tensor, a scratch buffer or an expression.",
);

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
        GRID,
        BLOCK,
        SHARED_BYTES,
        CLUSTER,
        COOPERATIVE,
        PROGRAMMATIC,
        WHEN,
        ARGS,
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
            "Which kinds of the targets to embed. Otherwise all. What TensorRT launches itself is PTX, whatever this says.",
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
        optional(
            "route",
            Form::Route,
            "\"native\"",
            "Who launches the kernel: a plugin library (`plugin`, which is meant where nothing is said), or TensorRT itself (`native`, experimental, full TensorRT alone).",
        ),
    ],
};
