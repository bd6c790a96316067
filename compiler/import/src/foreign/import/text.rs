use std::fmt::Write;
use std::path::{Component, Display, Path, PathBuf};

use super::{FoundCode, FoundParam, FoundPlugin, FoundVariant, Role};
use crate::diagnostic::Diagnostic;
use crate::manifest::CodeKind;
use crate::placeholder::{self, unknown_type};

/// Writes a manifest with file names relative to `folder`.
#[must_use]
pub fn write(found: &FoundPlugin, folder: &Path) -> String {
    let mut text = String::from(
        "# Written by `cubinder import`. Replace the placeholders in capitals; `cubinder check` lists them.\n",
    );
    for remark in &found.remarks {
        // Folder names may contain line breaks.
        let line: String = remark.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "# {}.", line.trim_end_matches('.'));
    }
    let _ = write!(text, "schema = 1\n\n[plugin]\nname = {}\nnamespace = \"\"\n", quoted(&found.name));
    tensors(&mut text, found);
    if !found.types.is_empty() {
        let _ = write!(text, "\n[types]\nT = [{}]\n", list(&found.types));
    }
    if !found.constants.is_empty() {
        text.push_str("\n[constants]\n");
        for (name, value) in &found.constants {
            let _ = writeln!(text, "{name} = {value}");
        }
    }
    let is_one = found.variants.len() == 1;
    for (index, variant) in found.variants.iter().enumerate().filter(|_| !is_one) {
        variant_table(&mut text, found, index, variant);
    }
    scratch(&mut text, found);
    for (index, variant) in found.variants.iter().enumerate() {
        for code in &variant.codes {
            let config = (!is_one).then_some(index + 1);
            code_table(&mut text, found, code, config, folder);
        }
    }
    let steps = steps(found);
    for step in &steps {
        launch(&mut text, found, step, steps.len() > 1);
    }
    text
}

fn variant_table(text: &mut String, found: &FoundPlugin, index: usize, variant: &FoundVariant) {
    let about = comment(&variant.about);
    let _ = write!(text, "\n[[variants]]\nid = {}{about}\n", index + 1);
    if let Some(guard) = &variant.guard {
        let _ = writeln!(text, "guard = {}", quoted(guard));
    }
    let types: Vec<&String> = variant.codes.iter().filter_map(|code| code.ty.as_ref()).collect();
    if types.len() < found.types.len() {
        let _ = writeln!(text, "types = {{ T = [{}] }}", list(types));
    }
    let mut constants = vec![format!("CONFIG = {}", index + 1)];
    if differs(found, |variant| variant.block)
        && let Some([threads, _, _]) = variant.block
    {
        constants.push(format!("THREADS = {threads}"));
    }
    if let Some(bytes) = own_bytes(found, variant) {
        constants.push(format!("SHARED_BYTES = {bytes}"));
    }
    constants.extend(variant.constants.iter().map(|(name, value)| format!("{name} = {value}")));
    let _ = writeln!(text, "constants = {{ {} }}", constants.join(", "));
}

/// If variants differ and each is constant on all GPUs.
fn own_bytes(found: &FoundPlugin, variant: &FoundVariant) -> Option<u64> {
    let number = |variant: &FoundVariant| variant.shared_bytes.as_ref()?.parse::<u64>().ok();
    let are_numbers = found.variants.iter().all(|variant| number(variant).is_some());
    (are_numbers && differs(found, |variant| variant.shared_bytes.clone())).then(|| number(variant)).flatten()
}

fn differs<T: PartialEq>(found: &FoundPlugin, of: impl Fn(&FoundVariant) -> T) -> bool {
    let mut all = found.variants.iter().map(of);
    let first = all.next();
    all.any(|other| Some(other) != first)
}

type Step<'f> = Vec<(usize, &'f FoundVariant)>;

fn steps(found: &FoundPlugin) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let alike = |one: &FoundVariant, other: &FoundVariant| {
        let of = |variant: &FoundVariant| (variant.cluster, variant.cooperative, variant.programmatic);
        of(one) == of(other) && scratch_of(one) == scratch_of(other)
    };
    for (index, variant) in found.variants.iter().enumerate() {
        match steps.iter_mut().find(|step| step.first().is_some_and(|(_, first)| alike(first, variant))) {
            Some(step) => step.push((index, variant)),
            None => steps.push(vec![(index, variant)]),
        }
    }
    steps
}

fn scratch_of(variant: &FoundVariant) -> Vec<(&str, u64)> {
    let params = variant.codes.iter().flat_map(|code| &code.params);
    let mut found: Vec<(&str, u64)> = params
        .filter_map(|param| match param.role {
            Role::Scratch(bytes) => Some((param.name.as_str(), bytes)),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn params<'f>(variants: impl Iterator<Item = &'f FoundVariant>) -> Vec<FoundParam> {
    let mut all: Vec<FoundParam> = Vec::new();
    for param in variants.flat_map(|variant| &variant.codes).flat_map(|code| &code.params) {
        match all.iter_mut().find(|known| known.name == param.name) {
            None => all.push(param.clone()),
            Some(known) if matches!((&known.role, &param.role), (Role::Is(_), Role::Unknown)) => {
                known.role = Role::Unknown;
            }
            Some(_) => {}
        }
    }
    all
}

fn tensors(text: &mut String, found: &FoundPlugin) {
    let params = params(found.variants.iter());
    // 8 bytes may be an address.
    let may_be = |param: &FoundParam| param.role == Role::Tensor || param.rest.ends_with(&unknown_type(8));
    let is_open = params.iter().any(may_be);
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for FoundParam { name, role, .. } in &params {
        match role {
            Role::Input(ty) => inputs.push((name.as_str(), ty.as_str())),
            Role::Output(ty) => outputs.push((name.as_str(), ty.as_str())),
            _ => {}
        }
    }
    for (list, name) in [(&mut inputs, "x"), (&mut outputs, "y")] {
        if is_open && list.is_empty() {
            list.push((name, placeholder::ELEMENT));
        }
    }
    for (name, ty) in inputs {
        let _ = write!(text, "\n[[inputs]]\nname = {}\ntype = {}\n", quoted(name), quoted(ty));
    }
    for (name, ty) in outputs {
        let (name, ty, shape) = (quoted(name), quoted(ty), quoted(&placeholder::shape_of(name)));
        let _ = write!(text, "\n[[outputs]]\nname = {name}\ntype = {ty}\nshape = {shape}");
        text.push_str("    # an expression over the inputs, such as \"x.shape\"\n");
    }
}

fn scratch(text: &mut String, found: &FoundPlugin) {
    let mut all: Vec<(&str, u64)> = found.variants.iter().flat_map(scratch_of).collect();
    all.sort_unstable_by_key(|(name, bytes)| (*name, std::cmp::Reverse(*bytes)));
    all.dedup_by_key(|(name, _)| *name);
    for (name, bytes) in all {
        let value = quoted(&format!("{bytes} * {}", placeholder::BLOCKS));
        let _ = write!(text, "\n[scratch.{name}]\nbytes = {value}    # {bytes} for each block of the grid\n");
    }
}

fn code_table(
    text: &mut String,
    found: &FoundPlugin,
    code: &FoundCode,
    config: Option<usize>,
    folder: &Path,
) {
    let _ = write!(text, "\n[[code]]\nname = {}\n", quoted(&found.name));
    let ty = code.ty.as_ref().map(|ty| format!("T = {}", quoted(ty)));
    let config = config.map(|config| format!("CONFIG = {config}"));
    let serves: Vec<String> = ty.into_iter().chain(config).collect();
    if !serves.is_empty() {
        let _ = writeln!(text, "for = {{ {} }}", serves.join(", "));
    }
    let _ = writeln!(text, "kernel = {}", quoted(&code.kernel));
    text.push_str("parameters = [\n");
    for param in &code.params {
        let about = comment(&param.about);
        let _ = writeln!(text, "    {},{about}", quoted(&format!("{}{}", param.name, param.rest)));
    }
    text.push_str("]\n");
    for kind in CodeKind::ALL {
        let of_kind = code.files.iter().filter(|(of, _)| *of == kind);
        let files = list(of_kind.map(|(_, path)| relative(path, folder).display().to_string()));
        if !files.is_empty() {
            let _ = writeln!(text, "{} = [{files}]", kind.name());
        }
    }
    if !found.made_by.is_empty() {
        let _ = writeln!(text, "made_by = {}", quoted(&found.made_by));
    }
}

cubinder_source::diagnostics! {
    struct UnnameablePath<'a> { path: Display<'a> }
    error "a manifest cannot name `{path}`" {
        note: "the path is not UTF-8, but TOML must be";
        help: "rename the file or its folder, or write the manifest into that folder with `--output`";
    }
}

/// Checks that a manifest in `folder` can name the files.
pub fn check_paths(found: &FoundPlugin, folder: &Path) -> Result<(), Diagnostic> {
    let codes = found.variants.iter().flat_map(|variant| &variant.codes);
    let mut paths = codes.flat_map(|code| &code.files).map(|(_, path)| relative(path, folder));
    match paths.find(|path| path.to_str().is_none()) {
        None => Ok(()),
        Some(path) => Err(UnnameablePath { path: path.display() }.into()),
    }
}

fn launch(text: &mut String, found: &FoundPlugin, step: &Step<'_>, is_one_of_several: bool) {
    let Some((_, first)) = step.first() else { return };
    let _ = write!(text, "\n[[launches]]\ncode = {}\n", quoted(&found.name));
    if is_one_of_several {
        let these: Vec<String> = step.iter().map(|(index, _)| format!("CONFIG == {}", index + 1)).collect();
        let _ = writeln!(text, "when = {}", quoted(&these.join(" or ")));
    }
    grid(text, found, first);
    let block = match first.block {
        _ if differs(found, |variant| variant.block) => "[\"THREADS\"]".to_owned(),
        Some(block) => format!("[{}]", axes(block)),
        None => format!("[{}]    # threads of a block", quoted(placeholder::THREADS)),
    };
    let _ = writeln!(text, "block = {block}");
    shared(text, found, step);
    if let Some(cluster) = first.cluster {
        let _ = writeln!(text, "cluster = [{}]", axes(cluster));
    }
    if first.cooperative {
        text.push_str("cooperative = true\n");
    }
    if first.programmatic {
        text.push_str("programmatic = true\n");
    }
    text.push_str("\n[launches.args]\n");
    for param in params(step.iter().map(|(_, variant)| *variant)) {
        let value = match &param.role {
            Role::Input(_) | Role::Output(_) | Role::Scratch(_) => quoted(&param.name),
            Role::Tensor => quoted(&placeholder::tensor(&param.name)),
            Role::Unknown => quoted(&placeholder::value_of(&param.name)),
            Role::Is(value) => value.clone(),
        };
        let _ = writeln!(text, "{} = {value}", param.name);
    }
}

fn axes(size: [u32; 3]) -> String {
    let used = size.iter().rposition(|axis| *axis != 1).map_or(1, |last| last + 1);
    size.iter().take(used).map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn grid(text: &mut String, found: &FoundPlugin, variant: &FoundVariant) {
    let constant =
        found.constants.iter().chain(&variant.constants).find(|(_, value)| value.parse::<u64>().is_ok());
    let unit = constant.map_or("1024", |(name, _)| name.as_str());
    let cluster = variant.cluster.map_or(1, |size| size.into_iter().fold(1, u32::saturating_mul));
    let (grid, about) = match (found.counts_programs, cluster) {
        (true, 1) => (
            placeholder::PROGRAMS.to_owned(),
            format!("Triton's grid, such as \"ceil_div(numel(y), {unit})\""),
        ),
        // Triton counts programs: its launcher multiplies x by num_ctas (triton/backends/nvidia/driver.c, 3.9).
        (true, cluster) => (
            format!("{cluster} * {}", placeholder::PROGRAMS),
            format!(
                "Triton's grid, such as \"{cluster} * ceil_div(numel(y), {unit})\": each program is {cluster} blocks in x (num_ctas)"
            ),
        ),
        (false, _) => {
            (placeholder::BLOCKS.to_owned(), "blocks, such as \"ceil_div(numel(y), 1024)\"".to_owned())
        }
    };
    let _ = writeln!(text, "grid = [{}]{}", quoted(&grid), comment(&about));
}

fn shared(text: &mut String, found: &FoundPlugin, step: &Step<'_>) {
    let bytes = |variant: &FoundVariant| variant.shared_bytes.clone();
    let Some((last, rest)) = step.split_last() else { return };
    let is_largest = step.iter().any(|(_, variant)| variant.shared_differs_by_type);
    let about = comment(if is_largest { "the maximum over the types" } else { "" });
    let differs_here = rest.iter().any(|(_, variant)| bytes(variant) != bytes(last.1));
    let value = match bytes(last.1) {
        None => {
            let word = quoted(placeholder::SHARED_BYTES);
            let _ = writeln!(text, "shared_bytes = {word}    # the kernel uses dynamic shared memory");
            return;
        }
        Some(_) if own_bytes(found, last.1).is_some() => quoted("SHARED_BYTES"),
        Some(of_last) if differs_here => {
            let all = rest.iter().rev().fold(of_last, |below, (index, variant)| {
                let bytes = bytes(variant).unwrap_or_default();
                format!("({bytes}) if CONFIG == {} else {below}", index + 1)
            });
            quoted(&all)
        }
        Some(bytes) if bytes == "0" => return,
        Some(bytes) if bytes.parse::<u64>().is_ok() => bytes,
        Some(bytes) => quoted(&bytes),
    };
    let _ = writeln!(text, "shared_bytes = {value}{about}");
}

fn comment(about: &str) -> String {
    if about.is_empty() { String::new() } else { format!("    # {about}") }
}

fn list<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    texts.into_iter().map(|text| quoted(text.as_ref())).collect::<Vec<_>>().join(", ")
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Both must be absolute, or relative to the current folder.
fn relative(file: &Path, folder: &Path) -> PathBuf {
    let (file, folder) = (resolved(file), resolved(folder));
    let shared = file.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

/// Resolves `..` and folders' links (`..` behind a link leads elsewhere), except the last component.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if path.is_dir() {
        return std::fs::canonicalize(&path).unwrap_or(path);
    }
    match (path.parent().map(std::fs::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_through_no_folder_twice() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["b/code", "m"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("b/code/k.ptx"), "").unwrap();
        std::os::unix::fs::symlink(at("b/code"), at("link")).unwrap();
        let k = Path::new("../b/code/k.ptx");
        assert_eq!(relative(&at("b/code/k.ptx"), &at("b/../m")), k);
        assert_eq!(relative(&at("m/../b/code/k.ptx"), &at("m")), k);
        assert_eq!(relative(&at("link/k.ptx"), &at("m")), k);
        assert_eq!(relative(&at("link/../k.ptx"), &at("b")), Path::new("k.ptx"));
    }
}
