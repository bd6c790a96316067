use cubinder_expr::Value;
use cubinder_manifest::resolve;
use cubinder_model::container::{write_bundle, write_node, write_node_reference};
use cubinder_model::{
    Arg, ArgValue, Bundle, CodeObject, CodeRef, Digest, KernelFacts, Node, NodeReference, Plugin,
};
use cubinder_source::diagnostic::Source;

use super::{FILE, MANIFEST, bare, eval, transcript, with};
use crate::support::Project;

fn code() -> CodeObject {
    let kernel = KernelFacts {
        symbol: "tile".to_owned(),
        registers: Some(40),
        shared_bytes: Some(1024),
        local_bytes: Some(0),
        max_threads: Some(256),
        params: vec![],
    };
    let bytes = b"no machine code".to_vec();
    CodeObject {
        target: "sm_80".parse().unwrap(),
        digest: Digest::compute(&bytes),
        kernels: vec![kernel],
        bytes: bytes.into(),
    }
}

fn plugin() -> Plugin {
    let resolved = resolve::compile(&Source::new("manifests/tile.toml", MANIFEST)).unwrap();
    let mut plugin = resolved.draft.plugin;
    for variant in &mut plugin.variants {
        let tensor =
            |(index, name): (u32, &str)| Arg { name: name.to_owned(), value: ArgValue::Tensor(index) };
        variant.launch_mut(0).unwrap().args = [(0, "x"), (1, "y")].map(tensor).into();
        let code = CodeRef { target: code().target, code: 0, symbol: "tile".to_owned() };
        variant.launch_mut(0).unwrap().code = vec![code];
    }
    plugin
}

#[test]
fn libraries_and_engines_are_evaluated_too() {
    let project = bare();
    let pads = |a, b| Value::Array(vec![Value::Int(a), Value::Int(b)]);
    let bundle = Bundle { producer: "test".to_owned(), plugins: vec![plugin()], code: vec![code()] };
    let bytes = write_bundle(&bundle);
    project.write("tile.bundle", &bytes);

    let mut half = plugin();
    half.variants.retain(|variant| variant.label.contains("f16"));
    let node = write_node(&Node {
        workspace_bytes: None,
        producer: "test".to_owned(),
        plugin: half,
        attributes: vec![pads(0, 4), Value::Float(1.0)],
        input_ranks: Some(vec![2]),
        code: vec![code()],
    });
    let digest = cubinder_model::container::read(&bytes).unwrap().digest;
    let reference = |bundle: Digest| {
        write_node_reference(&NodeReference {
            workspace_bytes: None,
            bundle: bundle.shortened(),
            plugin: 0,
            attributes: vec![pads(1, 1), Value::Float(1.0)],
            row: Some(0),
            input_ranks: None,
        })
    };
    let lost = Digest::compute(b"elsewhere");
    let engine = [b"engine".as_slice(), &node, &node, &bytes, &reference(digest), &reference(lost)].concat();
    project.write("model.plan", engine);
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &["tile.bundle", "--shape", "x=2x8", "--attr", "pads=0,0", "--type", "T=f16"],
            &["model.plan", "--shape", "x=2x8"],
            &["model.plan", "--shape", "x=2x8", "--node", "2"],
            &["model.plan", "--shape", "x=8", "--node", "1"],
            &["model.plan", "--shape", "x=2x8", "--attr", "pads=1,1", "--node", "1"],
            &["model.plan", "--shape", "x=2x8", "--node", "9"],
            &["model.plan", "--shape", "x=2x8", "--plugin", "tiel_plugin"],
        ]
    ));
}

#[test]
fn of_several_plugins_one_has_to_be_named() {
    let project = bare();
    let mut other = plugin();
    other.name = "other".to_owned();
    let bundle = Bundle { producer: "test".to_owned(), plugins: vec![plugin(), other], code: vec![code()] };
    project.write("two.bundle", write_bundle(&bundle));
    let run = eval(&project, &["two.bundle", "--shape", "x=8", "--attr", "pads=0,0"]);
    run.assert_refused("two plugins");
    assert!(run.stderr.contains("they are `test::tile_plugin`, `test::other`"), "{}", run.stderr);
    let run =
        eval(&project, &["two.bundle", "--plugin", "test::other", "--shape", "x=8", "--attr", "pads=0,0"]);
    assert!(run.stdout.contains("plugin test::other"), "{}{}", run.stdout, run.stderr);
}

/// `--on` replaces a missing manifest.
#[test]
fn cases_are_held_against_the_library_that_on_names() {
    let project = bare();
    let manifest = MANIFEST.replace("BLOCK = 128", "BLOCK = 64");
    let mut other =
        resolve::compile(&Source::new("manifests/tile.toml", manifest.as_str())).unwrap().draft.plugin;
    other.variants.iter_mut().zip(plugin().variants).for_each(|(variant, with_code)| {
        let with_code = with_code.launches().next().unwrap().clone();
        let launch = variant.launch_mut(0).unwrap();
        (launch.args, launch.code) = (with_code.args, with_code.code);
    });
    let bundle = |plugin| {
        write_bundle(&Bundle { producer: "test".to_owned(), plugins: vec![plugin], code: vec![code()] })
    };
    project.write("same.bundle", bundle(plugin()));
    project.write("other.bundle", bundle(other));
    project.write(
        "tests/tile.toml",
        "manifest = \"../manifests/tile.toml\"\n[[cases]]\nname = \"blocks of 128\"\nshapes = { x = [8] }\n\
         attributes = { pads = [0, 0] }\nexpect = { block = [128] }\n",
    );
    for (on, code, answer) in [("same.bundle", 0, "as_expected"), ("other.bundle", 1, "not_as_expected")] {
        let run = eval(&project, &["--cases", "tests/tile.toml", "--on", on, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((run.code, &report["result"]), (Some(code), &answer.into()), "{on}: {}", run.stdout);
    }
}

#[test]
fn a_compiled_library_says_what_its_manifest_says() {
    let Some(project) = Project::new() else { return };
    with(&project);
    let run = project.run(&["compile", "manifests/tile.toml", "--target", "sm_80,sm_86,compute_80"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let of = |file: &str| {
        let run = project.run(&["eval", file, "--shape", "x=4x30", "--attr", "pads=1,1", "--arch", "sm_86"]);
        run.assert_ok();
        run.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(of("libtile.so"), of(FILE));
    let run = project.run(&["eval", "libtile.so", "--shape", "x=8", "--attr", "pads=0,0", "--arch", "sm_89"]);
    assert!(run.stdout.contains("sm_89 (code for sm_86)"), "{}", run.stdout);
    let run = project.run(&["eval", "libtile.so", "--shape", "x=8", "--attr", "pads=0,0", "--arch", "sm_90"]);
    let note = "the occupancy on sm_90 is unknown: the driver compiles the code for compute_80 when the engine is loaded";
    assert!(run.stdout.contains(note), "{}", run.stdout);
    let run = project.run(&["eval", "libtile.so", "--shape", "x=8", "--attr", "pads=0,0"]);
    assert!(
        run.stdout.contains("\n      sm_80  16 blocks") && run.stdout.contains("\n      sm_86  12 blocks"),
        "{}",
        run.stdout
    );
}

#[test]
fn what_no_gpu_of_its_code_can_launch_is_refused() {
    let project = bare();
    let shape = ["--shape", "x=8", "--attr", "pads=0,0"];
    let library = |targets: &[&str], shared: &str| {
        let mut plugin = resolve::compile(&Source::new(
            "manifests/tile.toml",
            MANIFEST.replace("\"BLOCK * 4\"", &format!("\"{shared}\"")).as_str(),
        ))
        .unwrap()
        .draft
        .plugin;
        let tensor =
            |(index, name): (u32, &str)| Arg { name: name.to_owned(), value: ArgValue::Tensor(index) };
        let objects: Vec<CodeObject> = targets
            .iter()
            .map(|target| {
                let bytes = format!("code for {target}").into_bytes();
                CodeObject {
                    target: target.parse().unwrap(),
                    digest: Digest::compute(&bytes),
                    bytes: bytes.into(),
                    ..code()
                }
            })
            .collect();
        let of = |(index, object): (usize, &CodeObject)| CodeRef {
            target: object.target,
            code: u32::try_from(index).unwrap(),
            symbol: "tile".to_owned(),
        };
        for variant in &mut plugin.variants {
            variant.launch_mut(0).unwrap().args = [(0, "x"), (1, "y")].map(tensor).into();
            variant.launch_mut(0).unwrap().code = objects.iter().enumerate().map(of).collect();
        }
        write_bundle(&Bundle { producer: "test".to_owned(), plugins: vec![plugin], code: objects })
    };
    let run = |targets: &[&str], shared: &str, more: &[&str]| {
        project.write("tile.bundle", library(targets, shared));
        let run = eval(&project, &[&["tile.bundle"], &shape[..], more].concat());
        (run.code.unwrap(), run.stdout)
    };
    // 1 KiB is static.
    let (code, text) = run(&["sm_86"], "120 * 1024", &[]);
    assert!(
        code == 1 && text.contains("is 122880, the maximum for this kernel on this GPU is 100352"),
        "{text}"
    );
    assert!(text.contains("checked against the limits of sm_86"), "{text}");
    let (code, text) = run(&["sm_86", "sm_90"], "120 * 1024", &[]);
    assert!(code == 0 && text.contains("note: sm_86 cannot launch it"), "{text}");
    let (code, text) = run(&["sm_86", "compute_80"], "120 * 1024", &[]);
    assert!(code == 0 && text.contains("note: sm_86 cannot launch it"), "{text}");
    let (code, text) = run(&["sm_86", "compute_80"], "120 * 1024", &["--arch", "sm_86"]);
    assert!(code == 1 && text.contains("rejected: "), "{text}");
    let (code, text) = run(&["sm_89", "compute_80"], "1024", &["--arch", "sm_75"]);
    assert!(code == 1, "{text}");
    assert!(
        text.contains("no code of `tile<float, 4>` runs on sm_75; available: for sm_89, compute_80"),
        "{text}"
    );
    let (code, text) = run(&["sm_89", "compute_80"], "1024", &["--arch", "sm_90"]);
    let note = "the occupancy on sm_90 is unknown: the driver compiles the code for compute_80 when the engine is loaded";
    assert!(code == 0 && text.contains(note), "{text}");
    project.edit("manifests/tile.toml", "\"BLOCK * 4\"", "\"BLOCK * 1024\"");
    let run = eval(&project, &[&[FILE], &shape[..]].concat());
    assert!(
        run.code == Some(1) && run.stdout.contains("checked against the limits of sm_89"),
        "{}",
        run.stdout
    );
}
