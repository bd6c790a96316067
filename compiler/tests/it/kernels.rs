use std::path::Path;

use cubinder_compiler::compile::{CompiledBundle, Request, compile, compile_bundle};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_nvrtc::toolkit::Overrides;
use cubinder_source::diagnostic::{Colour, Diagnostic, Severity, render};
use indicatif::ProgressBar;

use crate::support;
use crate::support::manifest::Sample;

struct Case {
    element: &'static str,
    kernel: &'static str,
    args: &'static str,
    launch: &'static str,
    targets: &'static [&'static str],
}

const PLAIN: Case = Case {
    element: "f32",
    kernel: "",
    args: "n = \"numel(y)\"",
    launch: "block = [256]",
    targets: &["sm_89", "sm_90", "sm_120", "compute_80"],
};

fn manifest(case: &Case) -> String {
    let args = format!("x = \"x\"\ny = \"y\"\n{}", case.args);
    let kernel = if case.kernel.contains("template") { "k<>" } else { "k" };
    Sample { element: case.element, kernel, launch: case.launch, args: &args, ..Sample::PLAIN }.text()
}

/// Two parameters of one type, swapped from compute capability 9.0 on.
const ORDER_BY_ARCHITECTURE: &str =
    "#if __CUDA_ARCH__ >= 900\n#define ORDER int m, int n\n#else\n#define ORDER int n, int m\n#endif\n";

/// If the runtime library is missing, expects only this error.
fn compiled(case: &Case) -> Result<(), String> {
    const MISSING: &str = "no-such-runtime-library.so";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("m.toml"), manifest(case)).unwrap();
    std::fs::write(path("k.cu"), case.kernel).unwrap();
    std::fs::write(path("order.h"), ORDER_BY_ARCHITECTURE).unwrap();
    let asked = ProjectOptions {
        manifests: vec![path("m.toml")],
        targets: case.targets.iter().map(|target| target.parse().unwrap()).collect(),
        ..ProjectOptions::default()
    };
    let request = Request {
        project: Project::open(asked, folder.path()).unwrap(),
        library: path("build/libsample.so"),
        embed: false,
        depfile: None,
        runtime_library: Path::new(MISSING).to_owned(),
        overrides: Overrides::from_env(None),
        use_cache: false,
        deny_warnings: false,
    };
    let errors = match compile(&request, &ProgressBar::hidden()) {
        Ok(outcome) => panic!("made {:?} without a runtime library", outcome.libraries),
        Err(errors) => errors,
    };
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    match errors.iter().filter(is_error).collect::<Vec<_>>().as_slice() {
        [only] if only.message.contains(MISSING) => Ok(()),
        _ => Err(render(&errors, Colour::Plain).replace(&format!("{}/", folder.path().display()), "")),
    }
}

fn made(case: &Case, options: &[&str]) -> Result<CompiledBundle, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("m.toml"), manifest(case)).unwrap();
    std::fs::write(path("k.cu"), case.kernel).unwrap();
    let asked = ProjectOptions {
        manifests: vec![path("m.toml")],
        targets: case.targets.iter().map(|target| target.parse().unwrap()).collect(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        ..ProjectOptions::default()
    };
    let project = Project::open(asked, folder.path()).unwrap();
    compile_bundle(&project, &Overrides::from_env(None), false, &ProgressBar::hidden())
        .map_err(|errors| render(&errors, Colour::Plain))
}

#[track_caller]
fn assert_taken(case: &Case) {
    if let Err(errors) = compiled(case) {
        panic!("{}\n{errors}", case.kernel);
    }
}

#[test]
fn kernels_are_taken() {
    if support::toolkit().is_none() {
        return;
    }
    let long = "n = \"[get(x.shape, i, 1) for i in range(2000)]\"";
    let four = "n = \"1\"\na = \"[1.0, 2.0, 3.0, 4.0]\"";
    for case in [
        Case {
            kernel: "__global__ void k(const float* x, float* y, cubinder::array<int, 2000> n) { y[0] = n[1]; }",
            args: long,
            ..PLAIN
        },
        Case {
            kernel: "struct alignas(16) A { float d[4]; };\n\
                     __global__ void k(const float* x, float* y, int n, A a) { y[0] = a.d[n]; }",
            args: four,
            ..PLAIN
        },
        Case {
            kernel: "enum Mode { A, B };\n__global__ void k(const float* x, float* y, Mode n) { y[0] = n == B; }",
            args: "n = \"1\"",
            ..PLAIN
        },
        Case {
            element: "f16",
            kernel: "__global__ void k(const float4* x, float4* y, int n) { y[0] = x[n]; }",
            ..PLAIN
        },
        Case {
            element: "f16",
            kernel: "__global__ void k(const unsigned short* x, __half2* y, int n) { ((short*)y)[0] = x[n]; }",
            ..PLAIN
        },
        Case {
            element: "i8",
            kernel: "__global__ void k(const uint4* x, char4* y, int n) { ((int*)y)[0] = x[n].x; }",
            ..PLAIN
        },
    ] {
        assert_taken(&case);
    }
}

#[test]
fn kernels_are_refused() {
    if support::toolkit().is_none() {
        return;
    }
    let cases = [
        Case { kernel: "__global__ void k(const float** x, float* y, int n) { y[0] = x[0][n]; }", ..PLAIN },
        Case {
            kernel: "__global__ void __block_size__((128, 1, 1)) k(const float* x, float* y, int n) { y[0] = x[n]; }",
            targets: &["sm_90", "compute_90"],
            ..PLAIN
        },
        Case {
            kernel: "__global__ void __cluster_dims__() k(const float* x, float* y, int n) { y[0] = x[n]; }",
            targets: &["sm_90", "compute_90"],
            ..PLAIN
        },
        Case { kernel: "__global__ void k(const double* x, float* y, int n) { y[0] = x[n]; }", ..PLAIN },
        Case {
            element: "f16",
            kernel: "__global__ void k(const unsigned* x, __half* y, int n) { ((unsigned*)y)[0] = x[n]; }",
            ..PLAIN
        },
        Case {
            element: "i8",
            kernel: "__global__ void k(const signed char* x, int* y, int n) { y[0] = x[n]; }",
            ..PLAIN
        },
    ];
    let shown: Vec<String> = cases.iter().map(|case| compiled(case).unwrap_err()).collect();
    insta::assert_snapshot!("refused", shown.join("\n"));
}

#[test]
fn parameters_that_are_swapped_for_some_targets_are_refused() {
    if support::toolkit().is_none() {
        return;
    }
    const BODY: &str = "{ y[n] = x[m]; }";
    let cases = [
        format!("{ORDER_BY_ARCHITECTURE}__global__ void k(const float* x, float* y, ORDER) {BODY}"),
        format!(
            "#if __CUDA_ARCH__ == 800\n__global__ void k(float* y, float* x, int n, int m) {BODY}\n#else\n\
             __global__ void k(float* x, float* y, int n, int m) {BODY}\n#endif"
        ),
        format!("#include \"order.h\"\n__global__ void k(const float* x, float* y, ORDER) {BODY}"),
        format!(
            "#define PASTE(a, b) a##b\n#define ARCH PASTE(__CUDA_, ARCH__)\n\
             template <bool = (ARCH > 800)> __global__ void k(const float* x, float* y, int n, int m) {BODY}\n\
             template <> __global__ void k<true>(const float* x, float* y, int m, int n) {BODY}"
        ),
    ];
    for kernel in cases {
        let kernel: &'static str = kernel.leak();
        for targets in [&["sm_80", "sm_90"][..], &["sm_90", "sm_80"], &["sm_80", "compute_90"]] {
            let case = Case { kernel, targets, args: "n = \"numel(y)\"\nm = \"x.rank\"", ..PLAIN };
            let errors = compiled(&case).unwrap_err();
            assert!(errors.starts_with("error[C0501]"), "{kernel}\n{errors}");
            assert_eq!(errors.matches("error").count(), 1, "{kernel}\n{errors}");
            assert_taken(&Case { targets: &targets[..1], ..case });
        }
    }
}

#[test]
fn parameters_are_those_of_the_code() {
    if support::toolkit().is_none() {
        return;
    }
    const KERNEL: &str = "#ifdef __CUDACC_DEBUG__\n#define ORDER int m, int n\n#else\n#define ORDER int n, int m\n#endif\n\
                          __global__ void k(ORDER, const float* x, float* y) { y[n] = x[m]; }";
    let case = Case {
        kernel: KERNEL,
        args: "n = \"numel(y)\"\nm = \"x.rank\"",
        targets: &["sm_89", "sm_90"],
        ..PLAIN
    };
    let names = |options: &[&str]| -> Vec<String> {
        let bundle = made(&case, options).unwrap().bundle;
        let launch = bundle.plugins[0].variants[0].launch(0).unwrap();
        launch.args.iter().map(|arg| arg.name.clone()).collect()
    };
    assert_eq!(names(&[]), ["n", "m", "x", "y"]);
    assert_eq!(names(&["-D__CUDACC_DEBUG__"]), ["m", "n", "x", "y"]);
    assert_eq!(names(&["-D__CUDACC_DEBUG__", "-U__CUDACC_DEBUG__"]), ["n", "m", "x", "y"]);
}

/// An `extern __shared__` array has no bytes in these launches.
#[test]
fn dynamic_shared_memory_that_code_accesses_must_be_given() {
    if support::toolkit().is_none() {
        return;
    }
    const ARRAY: &str = "extern __shared__ float s[];";
    let told = |kernel: String, targets: &'static [&'static str]| -> String {
        let case = Case { kernel: kernel.leak(), targets, ..PLAIN };
        match made(&case, &[]) {
            Ok(made) => render(&made.warnings, Colour::Plain),
            Err(errors) => errors,
        }
    };
    let chosen = |value: &str| {
        format!(
            "template <bool B = {value}> __global__ void k(const float* x, float* y, int n)\n\
             {{ {ARRAY} if (B) {{ s[threadIdx.x] = x[n]; __syncthreads(); y[n] = s[0]; }} else y[n] = x[n]; }}"
        )
    };
    let plain =
        |body: &str| format!("__global__ void k(const float* x, float* y, int n) {{ {ARRAY} {body} }}");
    let access = "s[threadIdx.x] = x[n]; __syncthreads(); y[n] = s[0];";
    for targets in [&["sm_80", "sm_90"][..], &["compute_80"]] {
        for kernel in [
            chosen("false"),
            plain("y[n] = x[n] + sizeof(s[0]);"),
            plain("if (false) s[n] = 1; y[n] = x[n];"),
        ] {
            assert_eq!(told(kernel.clone(), targets), "", "{kernel}");
        }
        let sometimes = plain(&format!("if (n > 7) {{ {access} }} else y[n] = x[n];"));
        for kernel in [chosen("true"), sometimes, plain(access)] {
            let told = told(kernel.clone(), targets);
            assert!(
                told.starts_with("warning[C0410]") && told.matches("C0410").count() == 1,
                "{kernel}\n{told}"
            );
        }
    }
    let some = plain(&format!("\n#if __CUDA_ARCH__ >= 900\n{access}\n#endif\ny[n] = x[n];"));
    let told = told(some, &["sm_80", "sm_90"]);
    assert!(told.starts_with("warning[C0410]") && told.contains("only for `sm_90`"), "{told}");
}

#[test]
fn vectors_may_be_of_another_width_for_some_targets() {
    if support::toolkit().is_none() {
        return;
    }
    let kernel = "#if __CUDA_ARCH__ >= 900\nusing V = float4;\n#else\nusing V = float2;\n#endif\n\
                  __global__ void k(const V* x, V* y, int n) { y[n] = x[n]; }";
    assert_taken(&Case { kernel, ..PLAIN });
}

#[test]
fn what_several_targets_refuse_is_said_once() {
    if support::toolkit().is_none() {
        return;
    }
    let cases = [
        Case {
            kernel: "__global__ void k(const float* x, float* y, int n) { y[0] = x[n]; }",
            args: "n = \"1.5\"",
            ..PLAIN
        },
        Case {
            kernel: "extern __shared__ float s[];\n\
                     __global__ void k(const float* x, float* y, int n) { s[n] = x[n]; __syncthreads(); y[0] = s[0]; }",
            launch: "block = [256]\nshared_bytes = 102_400",
            ..PLAIN
        },
        Case {
            kernel: "__global__ void k(const float* x, float* y, int n)\n\
                     {\n#if __CUDA_ARCH__ == 900\n    y[0] = z;\n#endif\n}",
            ..PLAIN
        },
    ];
    let shown: Vec<String> = cases.iter().map(|case| compiled(case).unwrap_err()).collect();
    insta::assert_snapshot!("several_targets", shown.join("\n"));
}

/// No header states these limits of the compiler.
#[test]
fn stated_limits_are_those_of_the_compiler() {
    if support::toolkit().is_none() {
        return;
    }
    let targets = &["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];
    let shared = |bytes: u32| -> Result<(), String> {
        let kernel = format!(
            "__global__ void k(const float* x, float* y, int n) {{ __shared__ char s[{bytes}]; s[n] = x[n];\n\
             __syncthreads(); y[0] = s[n + 1]; }}"
        );
        compiled(&Case { kernel: kernel.leak(), targets, ..PLAIN })
    };
    assert_eq!(shared(49_152), Ok(()));
    assert!(shared(49_153).unwrap_err().contains("the limit is 49152"));
    let params = |count: u32| -> Result<(), String> {
        let kernel = format!(
            "__global__ void k(const float* x, float* y, cubinder::array<int, {count}> n) {{ y[0] = n[1]; }}"
        );
        let args = format!("n = \"[get(x.shape, i, 1) for i in range({count})]\"");
        compiled(&Case { kernel: kernel.leak(), args: args.leak(), targets, ..PLAIN })
    };
    // 16 bytes of pointers, and 4 per element. One more is untested: NVRTC 13.0 rejects it and may crash later.
    assert_eq!(params(8187), Ok(()));
}
