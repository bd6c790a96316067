//! The tables of kernels that other compilers made: `[[code]]`, and the launches of them.

use super::launches::{ARGS, BLOCK, CLUSTER, COOPERATIVE, GRID, PROGRAMMATIC, SHARED_BYTES, WHEN};
use super::{Form, Naming, Reserved, Table, optional, required};

/// `[[code]]`.
pub static CODE: Table = Table {
    path: "code[]",
    title: "[[code]]",
    doc: "A kernel that another compiler made.",
    keys: &[
        required("name", Form::Identifier, "\"pad\"", "What launches call it: `code = \"pad\"`."),
        optional(
            "for",
            Form::Lines(
                &Form::Choice,
                Naming {
                    what: "a choice of the variant",
                    reserved: Reserved::None,
                    example: ("T", "\"f16\""),
                },
            ),
            "",
            "The types, formats, constants and values of `specialize` that it is made for; of what is not named here, all. Several tables of one name serve each variant exactly once.",
        ),
        optional(
            "kernel",
            Form::Symbol,
            "\"circ_pad_kernel\"",
            "The kernel's symbol in the files; of C++ also the name that it stands for, `perm<float, 1>`, where it is the only one of that name. It can be left out where they have one kernel only.",
        ),
        required(
            "parameters",
            Form::Parameters,
            "[\"x: const f16* aligned(16)\", \"y: f16*\", \"count: i32 multiple_of(16)\", \"pads: i64[4]\", \"BLOCK == 1024\"]",
            "The kernel's parameters in its own order, each with a name for `args` and its type; and what the code was made for.",
        ),
        optional(
            "cubin",
            Form::Files,
            "[\"pad.sm_80.cubin\", \"pad.sm_90.cubin\"]",
            "Files of machine code, relative to the manifest's folder, one for each architecture, which is read from them.",
        ),
        optional(
            "ptx",
            Form::Files,
            "[\"pad.ptx\"]",
            "Files of PTX, relative to the manifest's folder; what they are for is read from them.",
        ),
        optional("made_by", Form::Text, "\"triton 3.9.0\"", "What made them; `cubinder inspect` shows it."),
    ],
};

/// `[[launches]]` with `code`.
pub static LAUNCH_OF_CODE: Table = Table {
    path: "launches[].code",
    title: "[[launches]] with code",
    doc: "One launch of a kernel that another compiler made.",
    keys: &[
        required("code", Form::Identifier, "\"pad\"", "The name of a `[[code]]`."),
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
