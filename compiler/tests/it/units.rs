use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cubinder_analysis::verify::{CodeCheck, bind_args, check_code};
use cubinder_manifest::resolve;
use cubinder_model::{Arg, CodeObject, Target};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::codegen::{display_name, translation_unit};
use cubinder_nvrtc::nvrtc::{Session, Settings, Statistics, diagnostics};
use cubinder_nvrtc::toolkit::Toolkit;
use cubinder_source::diagnostic::{Colour, Diagnostic, Source, render};

use crate::support::toolkit;

const KERNEL: &str = "\
template <typename T, int N>
__global__ void __launch_bounds__(256) roll(const T* __restrict__ x, T* __restrict__ y, long long count,
                                            cubinder::array<int, N> shape, float scale) {
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count) y[i] = x[(i + shape[0]) % count] * T(scale);
}
";

const MANIFEST: &str = r#"schema = 1
[plugin]
name = "roll"
namespace = "test"
summary = "Rolls the elements."
[[inputs]]
name = "x"
type = "T"
rank = "1..=8"
[[outputs]]
name = "y"
type = "T"
shape = "x.shape"
[types]
T = ["f32", "f16"]
[[variants]]
id = 1
[[launches]]
source = "../kernels/roll.cu"
kernel = "roll<T, 8>"
grid = ["ceil_div(numel(y), 256)"]
block = [256]
[launches.args]
scale = "x.rank"
count = "numel(y)"
shape = "[get(x.shape, i, 1) for i in range(8)]"
x = "x"
y = "y"
"#;

const TARGETS: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120", "compute_80"];

struct Built {
    args: Vec<Vec<Arg>>,
    code: Vec<Arc<CodeObject>>,
    statistics: Statistics,
    time: Duration,
}

fn shown<T>(result: Result<T, Vec<Diagnostic>>) -> T {
    result.unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)))
}

fn build(toolkit: &Toolkit, project: &Path, cache: &Path) -> Built {
    let manifest = project.join("manifests/roll.toml");
    let source = Source::new(&manifest, std::fs::read_to_string(&manifest).unwrap());
    let draft = shown(resolve::compile(&source)).draft;
    let start = Instant::now();
    let session = shown(Session::new(toolkit.clone(), Settings::default(), Cache::open(cache)));
    let (mut args, mut code) = (Vec::new(), Vec::new());
    for unit in &draft.units {
        let text = Source::new(&unit.source, std::fs::read_to_string(&unit.source).unwrap());
        let prepared =
            session.prepare(translation_unit(unit, text, &display_name(&unit.source, project), None));
        let targets: Vec<Target> = TARGETS.iter().map(|name| name.parse().unwrap()).collect();
        let signature = shown(session.signature(&prepared, targets[0]).map_err(diagnostics));
        let bound = shown(bind_args(&draft.plugin, unit, &signature));
        for target in targets {
            let compiled = shown(session.compile(&prepared, target).map_err(diagnostics));
            assert!(compiled.warnings.is_empty(), "{}", render(&compiled.warnings, Colour::Plain));
            let kernel =
                compiled.object.kernels.iter().find(|kernel| kernel.symbol == compiled.symbol).unwrap();
            let launch = draft.plugin.variants[unit.variant].launch(unit.step).unwrap();
            let (signature, rules) = (&signature, compiled.rules);
            let check = CodeCheck { unit, launch, args: &bound, signature, target, kernel, rules };
            shown(check_code(&check));
            code.push(compiled.object);
        }
        args.push(bound);
    }
    assert_eq!(session.take_cache_warning(), None);
    Built { args, code, statistics: session.statistics(), time: start.elapsed() }
}

fn project(folder: &Path, kernel: &str) {
    for (name, text) in [("manifests/roll.toml", MANIFEST), ("kernels/roll.cu", kernel)] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn a_second_build_is_answered_from_the_cache() {
    let Some(toolkit) = toolkit() else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    project(folder.path(), KERNEL);
    let cold = build(&toolkit, folder.path(), cache.path());
    assert_eq!((cold.statistics.nvrtc_calls, cold.statistics.cache_hits), (14, 0));
    let names: Vec<&str> = cold.args[0].iter().map(|arg| arg.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "count", "shape", "scale"]);
    let warm = build(&toolkit, folder.path(), cache.path());
    assert_eq!((warm.statistics.nvrtc_calls, warm.statistics.cache_hits), (0, 14));
    assert!(cold.statistics.nvrtc_loaded && !warm.statistics.nvrtc_loaded);
    assert_eq!((cold.args, cold.code), (warm.args, warm.code));
    println!("cold {:?} ({:?} in NVRTC), warm {:?}", cold.time, cold.statistics.nvrtc_time, warm.time);
}

#[test]
fn the_code_does_not_depend_on_the_folder_or_the_cache() {
    let Some(toolkit) = toolkit() else { return };
    let build_somewhere = || {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        project(folder.path(), KERNEL);
        build(&toolkit, folder.path(), cache.path())
    };
    assert_eq!(build_somewhere().code, build_somewhere().code);
}

#[test]
fn two_builds_at_once_share_a_cache() {
    let Some(toolkit) = toolkit() else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    project(folder.path(), KERNEL);
    let (one, two) = std::thread::scope(|scope| {
        let build = || build(&toolkit, folder.path(), cache.path());
        let other = scope.spawn(build);
        (build(), other.join().unwrap())
    });
    assert_eq!(one.code, two.code);
    assert_eq!(build(&toolkit, folder.path(), cache.path()).statistics.nvrtc_calls, 0);
}

#[test]
fn a_damaged_cache_is_mended() {
    let Some(toolkit) = toolkit() else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    project(folder.path(), KERNEL);
    let first = build(&toolkit, folder.path(), cache.path());
    for shard in std::fs::read_dir(cache.path().join("code")).unwrap() {
        for entry in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let second = build(&toolkit, folder.path(), cache.path());
    assert_eq!((second.statistics.nvrtc_calls, second.code), (14, first.code));
    assert_eq!(build(&toolkit, folder.path(), cache.path()).statistics.nvrtc_calls, 0);
}
