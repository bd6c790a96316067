//! `[[launches]]` and `[scratch]`.

use std::ops::Range;

use toml::de::DeValue;

use super::*;

table! {
    /// A scratch buffer: memory of the node's workspace, uninitialized before the first step.
    struct Scratch = SCRATCH: "scratch.*" as "[scratch.NAME]" {
        /// Size in bytes. TensorRT reserves the maximum over the optimization profile.
        bytes: Expression = Required, "\"ceil_div(numel(x), BLOCK) * 4\"" or "\"numel(x) * 4\"";
    }

    /// Memory that is filled with one byte.
    struct Memset = MEMSET: "launches[].memset" as "[[launches]] with memset" {
        /// The memory to fill.
        memset: Memory = Required, "\"y\"";
        /// The value of each byte.
        byte: Byte = Default("0"), "255";
        /// Runs the step only if this boolean is true.
        when: Expression = Default("true"), "\"numel(x) > 0\"";
    }
}

/// Declares tables that differ in the keys for code.
macro_rules! launches {
    ($(
        #[doc = $doc:literal]
        $row:ident = $table_vis:vis $table:ident: $path:literal as $title:literal { $($code:tt)* }
        => $launch:ident { $($field:ident: $value:expr),* };
    )+) => {$(
        table! {
            #[doc = $doc]
            struct $row = $table_vis $table: $path as $title {
                $($code)*
                /// Blocks in x, y and z, by default 1. If one is 0, nothing is launched.
                grid: Extents = Required, "[\"ceil_div(numel(y), BLOCK * VEC)\"]" or "[\"ceil_div(numel(y), 256)\"]";
                /// Threads of a block in x, y and z, by default 1.
                block: Extents = Required, "[\"BLOCK\"]" or "[256]";
                /// Dynamic shared memory of a block, in bytes.
                shared_bytes: Expression = Default("0"), "\"BLOCK * sizeof(T)\"";
                /// Blocks of a cluster in x, y and z, at most 8 in total. The grid must be a multiple. Needs
                /// compute capability 9.0.
                cluster: Extents = Optional, "[2]";
                /// Runs all blocks at the same time, so that the grid can synchronize. Grids that do not fit on the
                /// device are rejected.
                cooperative: Switch = Default("false"), "false";
                /// Starts the kernel before the previous step has ended (compute capability 9.0); it must wait for
                /// that step.
                programmatic: Switch = Default("false"), "true";
                /// Runs the step only if this boolean is true.
                when: Expression = Default("true"), "\"numel(x) > 0\"";
                /// The argument of each kernel parameter: a tensor, a scratch buffer or an expression.
                args: Lines<ArgDecl> = Required, "count = \"numel(y)\"";
            }
        }

        impl $row<'_> {
            fn into_step(self, range: Range<usize>, args_range: Range<usize>) -> StepDecl {
                let $launch = self;
                let launch = LaunchDecl {
                    $($field: $value,)*
                    grid: $launch.grid.unwrap_or_default(),
                    block: $launch.block.unwrap_or_default(),
                    shared_bytes: $launch.shared_bytes,
                    cluster: $launch.cluster,
                    cooperative: $launch.cooperative,
                    programmatic: $launch.programmatic,
                    args: $launch.args,
                    args_range,
                };
                StepDecl { range, when: $launch.when, work: WorkDecl::Launch(Box::new(launch)) }
            }
        }
    )+};
}

launches! {
    /// One launch of a kernel.
    Launch = pub LAUNCH: "launches[]" as "[[launches]]" {
        /// The CUDA C++ file.
        source: FilePath = Required, "\"../kernels/circ_pad.cu\"";
        /// The kernel's C++ name, with type parameters and constants as template arguments.
        kernel: Kernel = Required, "\"circ_pad<T, VEC>\"";
    } => row { source: row.source, kernel: row.kernel, code: None, is_of_code: false };
    /// One launch of a precompiled kernel.
    LaunchOfCode = LAUNCH_OF_CODE: "launches[].code" as "[[launches]] with code" {
        /// The name of a `[[code]]`.
        code: Identifier = Required, "\"pad\"";
    } => row { source: None, kernel: None, code: row.code, is_of_code: true };
}

value_types! {
    /// Name.
    Memory -> Text: "name of an output or a scratch buffer", json!({ "type": "string" }), TomlReader::text;
    /// Byte.
    Byte -> u8: "integer from 0 to 255", json!({ "type": "integer", "minimum": 0, "maximum": 255 }), byte;
    /// C++ name.
    Kernel -> Text: "string, C++", json!({ "type": "string" }), TomlReader::text;
    /// In x, y and z.
    Extents -> Vec<Text>: "array of one to three expressions",
        json!({ "type": "array", "items": json::expression(), "minItems": 1, "maxItems": 3 }), extents;
}

impl Line for ArgDecl {
    type Value = ArgDecl;
    const NAME: &'static str = "table: name to expression";
    const STRINGS: bool = true;
    const ESSENTIAL: bool = false;

    fn help(entry: &Entry<'_>) -> Option<String> {
        let is_list = entry.items().is_some_and(|items| items.iter().all(|item| item.value.is_str()));
        let help = "name the kernel's parameters: `args = { x = \"x\" }`";
        is_list.then(|| help.to_owned())
    }

    fn schema() -> serde_json::Value {
        json::expression()
    }

    fn read(toml: &mut TomlReader, line: &Entry<'_>) -> Option<ArgDecl> {
        toml.identifier(&line.name(), "an argument");
        Some(ArgDecl { name: line.name(), value: toml.expression(line) })
    }
}

impl NamedDeclaration for ScratchDecl {
    const NAMED: &'static str = "a scratch buffer";
}

impl Declaration for ScratchDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&SCRATCH], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<ScratchDecl> {
        let Scratch { bytes } = Row::read_all(toml, section);
        Some(ScratchDecl { name, bytes })
    }
}

impl Declaration for StepDecl {
    const KINDS: &'static Kinds = &Kinds {
        keys: &["memset", "code"],
        tables: &[&MEMSET, &LAUNCH_OF_CODE, &LAUNCH],
        but_for: Some("memset"),
    };

    fn read(toml: &mut TomlReader, _: Located<String>, mut section: Section<'_>) -> Option<StepDecl> {
        let range = section.range.clone();
        let is_of_code = section.has("code");
        if let Some(memset) = section.entry("memset") {
            if !is_of_code && !section.has("source") && !section.has("kernel") {
                let Memset { memset: memory, byte, when } = Row::read_all(toml, section);
                let fill = FillDecl { memory, byte: byte.unwrap_or(0) };
                return Some(StepDecl { range, when, work: WorkDecl::Fill(fill) });
            }
            section = toml.reopen(section, if is_of_code { &LAUNCH_OF_CODE } else { &LAUNCH });
            section.set_reported("memset");
            section.set_reported("byte");
            toml.report(MemsetAndLaunch { place: toml.span(memset.key_range.start..memset.range.end) });
        }
        let args_range = section.entry("args").map_or(0..0, |args| args.key_range);
        if !is_of_code {
            let launch: Launch<'_> = Row::read_all(toml, section);
            return Some(launch.into_step(range, args_range));
        }
        report_source(toml, &mut section);
        let launch: LaunchOfCode<'_> = Row::read_all(toml, section);
        Some(launch.into_step(range, args_range))
    }
}

pub(super) fn check_launches(toml: &mut TomlReader, steps: &[StepDecl]) {
    let (place, label) = match steps.first() {
        None => (0..0, "expected a `[[launches]]` table"),
        Some(_) if steps.iter().any(|step| step.launch().is_some()) => return,
        Some(first) => (first.range.clone(), "a memset, but no kernel launch"),
    };
    toml.report(NothingLaunched { place: toml.span(place), label });
}

fn byte(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<u8> {
    let number = toml.integer(entry)?;
    let byte = u8::try_from(number).ok();
    if byte.is_none() {
        toml.report(NotByte { found: number, place: toml.span(entry) });
    }
    byte
}

fn report_source(toml: &mut TomlReader, section: &mut Section<'_>) {
    let entries: Vec<Entry<'_>> = ["source", "kernel"].iter().filter_map(|key| section.entry(key)).collect();
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
    entries.iter().for_each(|entry| section.set_reported(&entry.key));
    let help = match first.key.as_str() {
        "kernel" => "set `kernel` in the `[[code]]` that `code` names, or remove it",
        _ => "remove it; or remove `code` to compile the source",
    };
    toml.report(SourceAndCode { place: toml.span(first.key_range.start..last.range.end), help });
}

fn extents(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let Some(items) = entry.items() else {
        let help = in_brackets(toml, entry).map(|value| format!("write `{} = {value}`", entry.key));
        let expected = "an array of one to three expressions: x, y and z";
        toml.report(WrongType { help, ..toml.wrong_type(entry, expected) });
        return None;
    };
    if items.is_empty() || items.len() > 3 {
        toml.report(BadExtents { key: entry.key.clone(), found: items.len(), place: toml.span(entry) });
    }
    Some(items.iter().filter_map(|item| toml.expression(item)).collect())
}

fn in_brackets(toml: &TomlReader, entry: &Entry<'_>) -> Option<String> {
    match entry.value {
        DeValue::String(text) if text.contains(',') && !text.contains(['"', '\\', '\n']) => {
            let parts = top_level_parts(text);
            let parts = match text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
                Some(inner) if parts.len() == 1 => top_level_parts(inner),
                _ => parts,
            };
            let parts: Vec<String> = parts.iter().map(|part| format!("\"{}\"", part.trim())).collect();
            (parts.len() <= 3).then(|| format!("[{}]", parts.join(", ")))
        }
        DeValue::String(_) | DeValue::Integer(_) => {
            toml.written(&entry.range).map(|written| format!("[{written}]"))
        }
        _ => None,
    }
}

fn top_level_parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}
