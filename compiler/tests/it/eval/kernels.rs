use std::fs;

use super::{FILE, bare, eval, with};
use crate::support::{self, Project};

#[test]
fn types_and_occupancy_come_from_the_compiled_kernel() {
    let Some(project) = Project::new() else { return };
    with(&project);
    let run = project.run(&[
        "eval",
        FILE,
        "--shape",
        "x=10x3x32x32",
        "--attr",
        "pads=2,2",
        "--arch",
        "sm_90",
        "--json",
    ]);
    run.assert_ok();
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let launch = &report["evaluations"][0]["launches"][0];
    let types: Vec<_> =
        launch["args"].as_array().unwrap().iter().map(|arg| arg["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["tensor", "tensor", "i32", "i32[2]", "f32", "i64[4]"]);
    let occupancy = &launch["occupancy"][0];
    assert_eq!((&occupancy["arch"], &occupancy["code"]), (&"sm_90".into(), &"sm_90".into()));
    // 16 blocks of four warps fill the 64 warps, but not the shared memory.
    assert_eq!((&occupancy["blocks"], &occupancy["warps"]), (&16.into(), &64.into()), "{occupancy}");
    assert_eq!(occupancy["limited_by"], serde_json::json!(["threads"]));

    let run =
        project.run(&["eval", FILE, "--shape", "x=65536x65536", "--attr", "pads=0,0", "--arch", "sm_90"]);
    assert_eq!(run.code, Some(1));
    let expected =
        "argument `count` is 4294967296, which does not fit its type i32: -2147483648 to 2147483647";
    assert!(run.stdout.contains(expected), "{}", run.stdout);

    let run = project.run(&["eval", FILE, "--shape", "x=8", "--attr", "pads=0,0"]);
    assert!(
        run.stdout.contains("\n      sm_89  12 blocks per multiprocessor  48 of 48 warps"),
        "{}",
        run.stdout
    );

    project.edit("manifests/tile.toml", "\"BLOCK * 4\"", "\"BLOCK * 1024\"");
    let run = project.run(&["eval", FILE, "--shape", "x=8", "--attr", "pads=0,0", "--arch", "sm_86"]);
    let expected =
        "dynamic shared memory in bytes is 131072, the maximum for this kernel on this GPU is 101376";
    assert!(run.stdout.contains(expected), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(1));
}

#[test]
fn mistakes_in_the_kernel_are_shown_beside_the_numbers() {
    let Some(project) = Project::new() else { return };
    with(&project);
    project.edit("kernels/tile.cu", "count / VEC", "cuont / VEC");
    let run = project.run(&["eval", FILE, "--shape", "x=8", "--attr", "pads=0,0"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("cuont") && run.stderr.contains("kernels/tile.cu:5"), "{}", run.stderr);
    assert!(run.stdout.contains("grid    1 x 1 x 1"), "{}", run.stdout);
}

fn compile_with(project: &Project, table: &str) {
    project.edit("manifests/tile.toml", "[constants]\n", &format!("[compile]\n{table}\n\n[constants]\n"));
}

#[test]
fn the_manifest_says_how_its_kernels_are_compiled() {
    let project = bare();
    std::fs::remove_file(project.path("cubinder.toml")).unwrap();
    let shape = [FILE, "--shape", "x=8", "--attr", "pads=0,0"];
    let run = eval(&project, &shape);
    assert!(run.stdout.contains("no target is specified"), "{}", run.stdout);
    compile_with(&project, "targets = [\"sm_90\"]");
    let run = eval(&project, &shape);
    assert!(run.stdout.contains("`/srv/none`") && run.code == Some(0), "NVRTC is looked for: {}", run.stdout);
    project.edit(
        FILE,
        "targets = [\"sm_90\"]",
        "targets = [\"sm_90\"]\ncode = [\"ptx\"]\ninclude = [\"nowhere\"]",
    );
    let run = eval(&project, &shape);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    for expected in ["no target produces PTX", "the include folder `manifests/nowhere` does not exist"] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn kernels_are_compiled_as_the_manifest_says() {
    let Some(project) = Project::new() else { return };
    with(&project);
    project.write("manifests/include/count.cuh", "using Count = COUNT;\n");
    project.edit("kernels/tile.cu", "template", "#include \"count.cuh\"\ntemplate");
    project.edit("kernels/tile.cu", "int count", "Count count");
    compile_with(
        &project,
        "targets = [\"sm_80\"]\ninclude = [\"include\"]\noptions = [\"-DCOUNT=long long\"]",
    );
    let report = |arguments: &[&str]| -> serde_json::Value {
        let shape = ["eval", FILE, "--shape", "x=8", "--attr", "pads=0,0", "--json"];
        let run = project.run(&[&shape, arguments].concat());
        run.assert_ok();
        serde_json::from_str(&run.stdout).unwrap()
    };
    for (arguments, arch) in [(&[][..], "sm_80"), (&["--arch", "sm_90"], "sm_90")] {
        let launch = &report(arguments)["evaluations"][0]["launches"][0];
        assert_eq!(launch["args"][2]["type"], "i64", "{launch}");
        assert_eq!(launch["occupancy"][0]["code"], arch, "{launch}");
    }
}

#[test]
fn a_cooperative_launch_must_fit_on_the_device() {
    let Some(project) = Project::new() else { return };
    project.write(
        "all.cu",
        "__global__ void __launch_bounds__(1024) whole(const float* x, float* y) { y[blockIdx.x] = x[threadIdx.x]; }",
    );
    project.write(
        "all.toml",
        "schema = 1\n[plugin]\nname = \"all\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\
         [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
         [[launches]]\nsource = \"all.cu\"\nkernel = \"whole\"\ngrid = [200]\nblock = [1024]\ncooperative = true\n\
         args = { x = \"x\", y = \"y\" }\n",
    );
    let run = |device: &[&str]| {
        project.run(&[&["eval", "all.toml", "--shape", "x=4096", "--arch", "sm_90"], device].concat())
    };
    // Two blocks per multiprocessor.
    assert_eq!(run(&["--device", "sms=100"]).code, Some(0));
    let refused = run(&["--device", "sms=99"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("200") && refused.stdout.contains("198"), "{}", refused.stdout);
    assert_eq!(run(&[]).code, Some(0));
}

#[test]
fn what_eval_compiles_is_what_compile_compiles() {
    let Some(project) = Project::new() else { return };
    let declared = "[constants]\nBLOCK = 256\n[tables.window]\ntype = \"f32\"\nfile = \"window.bin\"\n\
                    [tables.sines]\ntype = \"f64\"\nvalues = \"[float(i) for i in range(4)]\"\n\
                    [compile]\ninclude = [\"include\"]\noptions = [\"-DOWN=1\"]\ndebug = \"line\"\n[types]";
    project.edit("manifests/scale.toml", "[types]", declared);
    let power = "[attributes.power]\ntype = \"i32\"\nspecialize = [1, 2]\n\n[[inputs]]";
    project.edit("manifests/scale.toml", "[[inputs]]", power);
    project.edit("kernels/scale.cu", "template", "#include \"own.h\"\ntemplate");
    let used =
        "static_cast<float>(manifest::window[0] * manifest::sines[1]) + manifest::BLOCK + manifest::power";
    project.edit("kernels/scale.cu", "* factor", &format!("* factor + OWN * ({used})"));
    project.write("manifests/include/own.h", "#pragma once\n");
    project.write("manifests/window.bin", [1_u8; 8]);
    project.write("cubinder.toml", format!("{}options = [\"--use_fast_math\"]\n", support::CONFIG));
    for ty in ["T=f32", "T=f16"] {
        for power in ["power=1", "power=2"] {
            let node =
                ["--shape", "x=8", "--attr", "factor=1", "--attr", power, "--type", ty, "--arch", "sm_90"];
            let run = project.run(&[&["eval", "manifests/scale.toml"][..], &node].concat());
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
        }
    }
    let run = project.compile(&["--target", "sm_90"]);
    assert!(run.stdout.contains("no NVRTC calls"), "{}", run.stdout);
}

#[test]
fn tables_in_files_are_read() {
    let Some(project) = Project::new() else { return };
    let table = "[tables.window]\ntype = \"f32\"\nfile = \"window.bin\"\n\n[types]";
    project.edit("manifests/scale.toml", "[types]", table);
    project.edit(
        "kernels/scale.cu",
        "template",
        "static_assert(manifest::window.size() == 2, \"\");\ntemplate",
    );
    let evaluate = || {
        let arguments =
            ["eval", "manifests/scale.toml", "--shape", "x=8", "--attr", "factor=1", "--arch", "sm_90"];
        project.run(&arguments)
    };
    project.write("manifests/window.bin", [0_u8; 8]);
    let run = evaluate();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    fs::remove_file(project.path("manifests/window.bin")).unwrap();
    let run = evaluate();
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("C0413"), "{}", run.stderr);
}
