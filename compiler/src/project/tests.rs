use super::*;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_source::diagnostic::{Colour, Sink, Source, render};

const MANIFEST: &str = r#"schema = 1
[plugin]
name = "copy"
namespace = "sample"
summary = "Copies."
[[inputs]]
name = "x"
type = "f32"
[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"
[compile]
COMPILE
[[launches]]
source = "copy.cu"
kernel = "copy"
grid = [1]
block = [32]
[launches.args]
x = "x"
y = "y"
"#;

fn resolved(folder: &Path, compile: &str) -> Resolved {
    let source = Source::new(folder.join("m.toml"), MANIFEST.replace("COMPILE", compile));
    resolve::compile(&source).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)))
}

fn project(asked: ProjectOptions) -> Project {
    let text = "[library]\nname = \"sample\"\ntargets = [\"sm_80\", \"compute_80\"]\noptions = [\"-w\"]\ninclude = [\"inc\"]\n";
    let config = config::read(&Source::new("/srv/p/cubinder.toml", text)).unwrap();
    Project {
        root: config.folder.clone(),
        config: Some(config),
        manifests: Vec::new(),
        tuning: Vec::new(),
        options: asked,
    }
}

fn targets(plan: &Plan) -> Vec<String> {
    plan.targets.iter().map(|planned| planned.target.to_string()).collect()
}

fn plan(asked: ProjectOptions, compile: &str) -> Result<Plan, Vec<Diagnostic>> {
    plan_of(&project(asked), &resolved(Path::new("/srv/p"), compile))
}

fn plan_of(project: &Project, plugin: &Resolved) -> Result<Plan, Vec<Diagnostic>> {
    let errors = Sink::default();
    let plan = project.plan(plugin, true, &errors);
    errors.into_result().map(|()| plan)
}

fn plain(errors: &[Diagnostic]) -> String {
    render(errors, Colour::Plain)
}

#[test]
fn the_manifest_goes_before_the_library() {
    let of_library = plan(ProjectOptions::default(), "").unwrap();
    assert_eq!(targets(&of_library), ["sm_80", "compute_80"]);
    assert_eq!(of_library.targets[0].span.as_ref().unwrap().source.path, Path::new("/srv/p/cubinder.toml"));
    let of_manifest = plan(ProjectOptions::default(), "targets = [\"sm_90\"]").unwrap();
    assert_eq!(targets(&of_manifest), ["sm_90"]);
    let span = of_manifest.targets[0].span.as_ref().unwrap();
    assert_eq!(&span.source.text[span.range.clone()], "\"sm_90\"");
    let kinds = plan(ProjectOptions::default(), "code = [\"ptx\"]").unwrap();
    assert_eq!(targets(&kinds), ["compute_80"]);
}

#[test]
fn the_command_line_goes_before_all() {
    let asked = ProjectOptions {
        targets: ["sm_75", "sm_89", "sm_75"].iter().map(|target| target.parse().unwrap()).collect(),
        include: vec!["mine".into()],
        options: vec!["-lineinfo".to_owned()],
        ..ProjectOptions::default()
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("own")).unwrap();
    let text =
        "targets = [\"sm_90\"]\ncode = [\"ptx\"]\ninclude = [\"own\"]\noptions = [\"--use_fast_math\"]";
    // Overrides even `code = ["ptx"]` without a PTX target.
    let plan = plan_of(&project(asked), &resolved(folder.path(), text)).unwrap();
    assert_eq!(targets(&plan), ["sm_75", "sm_89"]);
    assert!(plan.targets.iter().all(|planned| planned.span.is_none()));
    let own = folder.path().join("own");
    assert_eq!(plan.settings.include, [Path::new("mine"), &own, Path::new("/srv/p/inc")]);
    assert_eq!(plan.settings.options, ["-w", "--use_fast_math", "-lineinfo"]);
}

#[test]
fn mistakes_are_told_at_their_places() {
    let text = "targets = [\"sm_90\"]\ncode = [\"cubin\", \"ptx\"]\ninclude = [\"none\"]\noptions = [\"-arch=sm_80\"]";
    insta::assert_snapshot!(plain(&plan(ProjectOptions::default(), text).unwrap_err()));
}

#[test]
fn without_any_target_nothing_can_be_compiled() {
    let project = Project { root: PathBuf::new(), ..Project::default() };
    let errors = plan_of(&project, &resolved(Path::new("/srv/p"), "")).unwrap_err();
    assert_eq!(errors[0].message, "missing target");
    assert!(plan_of(&project, &resolved(Path::new("/srv/p"), "targets = [\"sm_90\"]")).is_ok());
}

#[test]
fn drivers_are_held_against_the_release() {
    let check = |text: &str, release| plan(ProjectOptions::default(), text).unwrap().check_driver(release);
    for (text, release) in [
        ("", (99, 0)),
        ("min_driver = \"580\"", (13, 0)),
        ("min_driver = \"580.65\"", (13, 0)),
        ("min_driver = \"525.60.13\"\ncode = [\"cubin\"]", (12, 9)),
        ("min_driver = \"600\"\ncode = [\"cubin\"]", (13, 99)),
    ] {
        assert_eq!(check(text, release), Ok(()), "{text} {release:?}");
    }
    let mut said = Vec::new();
    for (text, release) in [
        ("min_driver = \"570\"", (13, 0)),
        ("min_driver = \"525.60.13\"", (12, 9)),
        ("min_driver = \"525.60.13\"\ncode = [\"ptx\"]", (12, 9)),
        ("min_driver = \"440\"", (13, 0)),
        ("min_driver = \"600\"", (13, 99)),
        ("min_driver = \"600\"", (14, 0)),
    ] {
        said.push(check(text, release).unwrap_err());
    }
    insta::assert_snapshot!(plain(&said));
}

#[test]
fn a_version_of_cuda_is_no_driver() {
    let said: Vec<Diagnostic> = ["12.0", "13", "12.7"]
        .into_iter()
        .flat_map(|version| {
            plan(ProjectOptions::default(), &format!("min_driver = \"{version}\"")).unwrap_err()
        })
        .collect();
    insta::assert_snapshot!("a_version_of_cuda", plain(&said));
}

#[test]
fn line_information_is_asked_for_once() {
    let asks = |asked: ProjectOptions, text: &str| -> Vec<String> {
        let options = plan(asked, text).unwrap().settings.options.clone();
        options.into_iter().filter(|option| option.contains("line")).collect()
    };
    assert_eq!(asks(ProjectOptions::default(), "debug = \"line\""), ["-lineinfo"]);
    let both = "debug = \"line\"\noptions = [\"--generate-line-info\"]";
    assert_eq!(asks(ProjectOptions::default(), both), ["--generate-line-info"]);
    let asked = ProjectOptions { line_information: true, ..ProjectOptions::default() };
    assert_eq!(asks(asked, "debug = \"line\""), ["-lineinfo"]);
    assert_eq!(asks(ProjectOptions::default(), ""), [""; 0]);
}

#[test]
fn options_do_not_define_names_of_the_header() {
    let text = "options = [\"-DT=int\", \"--std=c++11\", \"-Dmanifest\", \"-DMINE=1\"]";
    let asked = ProjectOptions { options: vec!["-Ddata=1".to_owned()], ..ProjectOptions::default() };
    insta::assert_snapshot!("options_that_define", plain(&plan(asked, text).unwrap_err()));
}

#[test]
fn options_of_the_command_line_are_checked_as_those_of_a_manifest() {
    for option in [
        "-arch=sm_90",
        "--gpu-architecture=sm_90",
        "-I.",
        "--pre-include=v.h",
        " --pre-include=v.h",
        "-Xptxas=-optf=F",
        " -Xptxas=-optf=F",
        "\t--ptxas-options=--options-file=F",
        "-G",
        "--device-debug",
        "-rdc=true",
        "-dlto",
        "-time=x",
        "--fdevice-time-trace=x",
        "--create-pch=x.pch",
    ] {
        let asked =
            ProjectOptions { options: vec!["-w".to_owned(), option.to_owned()], ..ProjectOptions::default() };
        let told = plain(&plan(asked, "").expect_err(option));
        assert!(told.contains("error[C0604]") && told.contains("--option"), "{option}: {told}");
    }
    let asked = ProjectOptions { options: vec!["-optf=F".to_owned()], ..ProjectOptions::default() };
    let told = plain(&plan(asked, "options = [\"-Xptxas\"]").expect_err("a file of options"));
    assert!(told.contains("error[C0604]"), "{told}");
    let asked = ProjectOptions {
        options: vec!["-w".to_owned(), "-Xptxas".to_owned(), "-O1".to_owned()],
        ..ProjectOptions::default()
    };
    assert!(plan(asked, "").is_ok());
}

#[test]
fn files_above_are_named_as_a_person_would() {
    let here = Path::new("/a/b/c");
    assert_eq!(relative_to(here, Path::new("/a/b/c/cubinder.toml")), Path::new("cubinder.toml"));
    assert_eq!(relative_to(here, Path::new("/a/cubinder.toml")), Path::new("../../cubinder.toml"));
    assert_eq!(relative_to(here, Path::new("/x/cubinder.toml")), Path::new("/x/cubinder.toml"));
}
