//! Generates manifests and short kernels, which expose costs outside the compiler.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::files::write;

const SCALE: &str = include_str!("../../bench/scale.cu");

const TENSORS: &str = include_str!("../../bench/tensors.toml");

pub(super) fn variants(folder: &Path, count: usize) -> Result<PathBuf> {
    let mut text = format!("schema = 1\n\n[plugin]\nname = \"scale\"\nversion = \"1\"\n\n{TENSORS}\n");
    for id in 1..=count {
        let _ = writeln!(text, "[[variants]]\nid = {id}\nconstants = {{ K = {id} }}");
        if id < count {
            let _ = writeln!(text, "guard = \"numel(x) < {}\"", 1000 * id);
        }
    }
    text.push_str(&launch("scale.cu", "scale<K>", "x = \"x\"\ny = \"y\"\ncount = \"numel(y)\""));
    write(&folder.join("scale.cu"), SCALE)?;
    let manifest = folder.join(format!("scale-{count}.toml"));
    write(&manifest, &text)?;
    Ok(manifest)
}

/// The same for nvcc and NVRTC: source, one instantiation per kernel.
pub(super) fn instantiated(count: usize) -> (&'static str, String) {
    let line = |id| format!("template __global__ void scale<{id}>(const float*, float*, long long);\n");
    (SCALE, (1..=count).map(line).collect())
}

/// Element-wise; the kernel has its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Op {
    pub(super) name: String,
    /// 1 (the output), 3 or 16.
    pub(super) arguments: usize,
    pub(super) launches: usize,
    addend: usize,
}

pub(super) fn plugin_name(number: usize) -> String {
    format!("add_{number:04}")
}

pub(super) fn adding(count: usize) -> Vec<Op> {
    let op = |number| Op { name: plugin_name(number), arguments: 3, launches: 1, addend: number };
    (1..=count).map(op).collect()
}

pub(super) fn launching() -> Vec<Op> {
    let op = |(arguments, launches)| Op {
        name: format!("args_{arguments:02}_launches_{launches}"),
        arguments,
        launches,
        addend: 1,
    };
    [(1, 1), (1, 3), (16, 1), (16, 3)].map(op).to_vec()
}

impl Op {
    pub(super) fn for_scripts(&self) -> (&str, usize, usize) {
        (&self.name, self.arguments, self.launches)
    }

    pub(super) fn after(&self, value: f64) -> f64 {
        let own = self.addend as f64;
        if self.arguments == 1 { own } else { value + own + self.numbers().sum::<usize>() as f64 }
    }

    fn numbers(&self) -> std::ops::Range<usize> {
        0..self.arguments.saturating_sub(3)
    }

    /// With one argument, for a multiple of 256 elements.
    pub(super) fn kernel(&self) -> String {
        let index = "const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;";
        let Op { name, addend, .. } = self;
        if self.arguments == 1 {
            return format!(
                "extern \"C\" __global__ void {name}(float* y)\n{{\n    {index}\n    y[index] = {addend}.0f;\n}}\n"
            );
        }
        let parameters: String = self.numbers().map(|number| format!(", int n{number}")).collect();
        let sum: String = self.numbers().map(|number| format!(" + n{number}")).collect();
        format!(
            "extern \"C\" __global__ void {name}(const float* x, float* y, long long count{parameters})\n{{\n    {index}\n    \
             if (index < count)\n        y[index] = x[index] + {addend}.0f{sum};\n}}\n"
        )
    }

    fn manifest(&self) -> String {
        let Op { name, .. } = self;
        let mut args = vec!["y = \"y\"".to_owned()];
        if self.arguments > 1 {
            args.extend(["x = \"x\"", "count = \"numel(y)\""].map(str::to_owned));
        }
        args.extend(self.numbers().map(|number| format!("n{number} = \"{number}\"")));
        let mut text = format!(
            "schema = 1\n\n[plugin]\nname = \"{name}\"\nnamespace = \"bench\"\nversion = \"1\"\n\n{TENSORS}"
        );
        for _ in 0..self.launches {
            text.push_str(&launch(&format!("{name}.cu"), name, &args.join("\n")));
        }
        text
    }
}

pub(super) fn ops_for_cpp(ops: &[Op]) -> String {
    let line = |op: &Op| format!("{{\"{}\", {}, {}}},\n", op.name, op.arguments, op.launches);
    ops.iter().map(line).collect()
}

pub(super) fn plugins(folder: &Path, name: &str, ops: &[Op], targets: &[&str]) -> Result<PathBuf> {
    for op in ops {
        write(&folder.join(format!("manifests/{}.toml", op.name)), op.manifest())?;
        write(&folder.join(format!("manifests/{}.cu", op.name)), op.kernel())?;
    }
    project(folder, name, targets)
}

pub(super) fn checked(folder: &Path, count: usize, targets: &[&str]) -> Result<PathBuf> {
    for number in 1..=count {
        let plugin = plugin_name(number);
        write(&folder.join(format!("manifests/{plugin}.toml")), CHECKED.replace("PLUGIN", &plugin))?;
        write(&folder.join(format!("manifests/{plugin}.cu")), CHECKED_KERNEL.replace("PLUGIN", &plugin))?;
    }
    project(folder, "checked", targets)
}

const CHECKED: &str = include_str!("../../bench/checked.toml");

const CHECKED_KERNEL: &str = include_str!("../../bench/checked.cu");

fn launch(source: &str, kernel: &str, args: &str) -> String {
    format!(
        "\n[[launches]]\nsource = \"{source}\"\nkernel = \"{kernel}\"\ngrid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]\n\n\
         [launches.args]\n{args}\n"
    )
}

fn project(folder: &Path, name: &str, targets: &[&str]) -> Result<PathBuf> {
    let targets = targets.join("\", \"");
    let text = format!(
        "[library]\nname = \"{name}\"\nmanifests = [\"manifests/*.toml\"]\ntargets = [\"{targets}\"]\noutput = \".\"\n"
    );
    let file = folder.join("cubinder.toml");
    write(&file, &text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_plugins_differ() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = variants(folder.path(), 3).unwrap();
        let text = std::fs::read_to_string(manifest).unwrap();
        assert_eq!(text.matches("[[variants]]").count(), 3);
        assert_eq!(text.matches("guard = ").count(), 2, "the last one takes what is left");
        let (_, instances) = instantiated(3);
        let lines: Vec<&str> = instances.lines().collect();
        assert!(lines.len() == 3 && lines[0] != lines[1], "{lines:?}");
        let ops = adding(2);
        plugins(folder.path(), "many", &ops, &["sm_80", "sm_90"]).unwrap();
        let project = std::fs::read_to_string(folder.path().join("cubinder.toml")).unwrap();
        assert!(project.contains("targets = [\"sm_80\", \"sm_90\"]"), "{project}");
        assert!(folder.path().join("manifests/add_0002.cu").is_file());
        assert_ne!(ops[0].kernel(), ops[1].kernel());
    }

    #[test]
    fn all_plugins_launch_the_same() {
        let ops = launching();
        assert_eq!(ops_for_cpp(&ops[2..3]), "{\"args_16_launches_1\", 16, 1},\n");
        let [kernel, manifest] = [ops[2].kernel(), ops[2].manifest()];
        assert_eq!(kernel.matches(", int n").count() + 3, 16);
        assert!(manifest.contains("n12 = \"12\"") && !manifest.contains("n13"), "{manifest}");
        assert_eq!(ops[1].manifest().matches("[[launches]]").count(), 3);
        assert_eq!([ops[0].after(5.0), ops[2].after(5.0)], [1.0, 5.0 + 1.0 + 78.0]);
        assert!(ops[0].kernel().contains("args_01_launches_1(float* y)"));
    }
}
