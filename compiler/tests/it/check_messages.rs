use std::path::Path;

use cubinder_compiler::check_plugins::{self, CheckReport};
use cubinder_compiler::project::Project;
use cubinder_source::diagnostic::{Colour, Source, render};

fn checked(manifest: &str, kernels: &str) -> CheckReport {
    let open = |path: &Path| Ok(Source::new(path, kernels));
    let text = format!("schema = 1\n[plugin]\nname = \"p\"\n{manifest}");
    let sources = vec![Ok(Source::new("m.toml", text))];
    check_plugins::check_sources(&Project::default(), sources, &open)
}

fn said(manifest: &str, kernels: &str) -> String {
    render(&checked(manifest, kernels).diagnostics, Colour::Plain)
}

/// Expects each of `words`, or no message if empty.
#[track_caller]
fn assert_said(manifest: &str, kernels: &str, words: &[&str]) {
    let said = said(manifest, kernels);
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(said.is_empty(), words.is_empty(), "{said}");
}

const X_AND_Y: &str = r#"
[[inputs]]
name = "x"
type = "f32"
limits = { numel = "1..=1000" }
[[outputs]]
name = "y"
type = "f32"
shape = "[1]"
"#;

const X_Y_AND_Z: &str = r#"
[[inputs]]
name = "x"
type = "f32"
limits = { numel = "1..=1000" }
[[outputs]]
name = "y"
type = "f32"
shape = "[1]"
[[outputs]]
name = "z"
type = "f32"
shape = "[1]"
"#;

fn launch(kernel: &str, args: &str, when: Option<&str>) -> String {
    let when = when.map_or_else(String::new, |when| format!("when = \"{when}\"\n"));
    format!(
        "[[launches]]\nsource = \"k.cu\"\nkernel = \"{kernel}\"\ngrid = [1]\nblock = [1]\n{when}args = {{ {args} }}\n"
    )
}

const WRITE_AND_READ: &str = "__global__ void w(const float* x, float* y) { y[0] = x[0]; }\n\
                              __global__ void r(const float* y, float* z) { z[0] = y[0]; }\n";

#[test]
fn outputs_are_written_before_they_are_read() {
    let write = |when| launch("w", "x = \"x\", y = \"y\"", when);
    let read = |when| launch("r", "y = \"y\", z = \"z\"", when);
    let steps = |steps: &[String]| format!("{X_Y_AND_Z}{}", steps.concat());
    let fill = || "[[launches]]\nmemset = \"y\"\n".to_owned();
    let first = ["error[C0306]: the output `y` is read before it is written", "by a later step"];
    assert_said(&steps(&[read(None), write(None)]), WRITE_AND_READ, &first);
    assert_said(&steps(&[write(None), read(None)]), WRITE_AND_READ, &[]);
    assert_said(&steps(&[fill(), read(None), write(None)]), WRITE_AND_READ, &[]);
    let some = Some("numel(x) > 10");
    let sometimes = ["warning[C0306]: the output `y` may be read before it is written", "for x = ["];
    assert_said(&steps(&[write(some), read(None), write(None)]), WRITE_AND_READ, &sometimes);
    assert_said(&steps(&[write(some), read(some), write(None), read(None)]), WRITE_AND_READ, &[]);
}

#[test]
fn an_output_that_may_stay_unwritten_is_told_once() {
    let write = launch("w", "x = \"x\", y = \"y\"", Some("numel(x) > 10"));
    let read = launch("r", "y = \"y\", z = \"z\"", Some("numel(x) > 20"));
    let said = said(&format!("{X_Y_AND_Z}{write}{read}"), WRITE_AND_READ);
    assert_eq!(said.matches("the output `y` may stay unwritten").count(), 1, "{said}");
    let of_y = said.split("\n\n").find(|one| one.contains("the output `y` may stay")).unwrap();
    assert!(!of_y.contains("numel(x) > 20"), "{of_y}");
}

#[test]
fn a_grid_of_which_nothing_is_known_is_not_said_to_be_0() {
    let tensors = "[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 4\n\
                   [[inputs]]\nname = \"t\"\nshape_input = true\ntype = \"i64\"\nlimits = { dims = 2 }\nvalues = \"1..=4096\"\n\
                   [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"[x.shape[0], x.shape[1], t.values[0], t.values[1]]\"\n";
    let kernel = "__global__ void k(const float* x, float* y) {}";
    let of_grid = |z: &str| {
        let grid = format!("grid = [\"ceil_div(y.shape[3], 32)\", \"ceil_div(y.shape[2], 8)\", \"{z}\"]");
        let launch = launch("k", "x = \"x\", y = \"y\"", None).replace("grid = [1]", &grid);
        let said = said(&format!("{tensors}{launch}"), kernel);
        said.split("\n\n").find(|one| one.contains("C0306")).unwrap_or_default().to_owned()
    };
    let unknown = of_grid("min(y.shape[0] * y.shape[1], 65535)");
    assert!(unknown.contains("^ not proved to be above 0 whenever `y` has elements"), "{unknown}");
    assert!(unknown.contains(&format!("{} ^^", " ".repeat(60))), "the third axis is unknown: {unknown}");
    let wrong = of_grid("min(y.shape[0] // 2, 65535)");
    assert!(wrong.contains("^ for x = ") && wrong.contains("this is 0"), "{wrong}");
    assert!(wrong.contains(&format!("{} ^^", " ".repeat(60))), "the third axis is 0: {wrong}");
}

#[test]
fn one_step_may_read_and_write_the_same_memory() {
    let scratch = format!("{X_AND_Y}[scratch.p]\nbytes = 4\n");
    let one = "__global__ void k(const float* x, float* w, float* y) { w[0] = x[0]; y[0] = w[0]; }";
    assert_said(&format!("{scratch}{}", launch("k", "x = \"x\", w = \"p\", y = \"y\"", None)), one, &[]);
    let two =
        "__global__ void k(const float* x, const float* r, float* w, float* y) { w[0] = x[0]; y[0] = r[0]; }";
    let beside = [
        "warning[C0310]: the scratch buffer `p` may be read before it is written",
        "only this step writes it",
    ];
    for args in ["r = \"p\", w = \"p\"", "w = \"p\", r = \"p\""] {
        let step = launch("k", &format!("x = \"x\", {args}, y = \"y\""), None);
        assert_said(&format!("{scratch}{step}"), two, &beside);
        assert_said(&format!("{scratch}[[launches]]\nmemset = \"p\"\n{step}"), two, &[]);
        let twice = format!("{scratch}[[launches]]\nmemset = \"p\"\n{step}{step}");
        assert_said(&twice, two, &[]);
    }
    let step = launch("k", "x = \"x\", r = \"y\", w = \"y\"", None);
    let two = "__global__ void k(const float* x, const float* r, float* w) { w[0] = x[0] + r[0]; }";
    let beside = ["warning[C0306]: the output `y` may be read before it is written"];
    assert_said(&format!("{X_AND_Y}{step}"), two, &beside);
    let in_place = X_AND_Y.replace("type = \"f32\"\nshape = \"[1]\"", "alias = \"x\"");
    assert_said(&format!("{in_place}{step}"), two, &[]);
}

#[test]
fn an_output_in_place_may_be_written_by_either_name() {
    let tensors = "[[inputs]]\nname = \"x\"\ntype = \"f32\"\nlimits = { numel = \"1..\" }\n[[outputs]]\nname = \"y\"\nalias = \"x\"\n";
    let manifest = format!("{tensors}{}", launch("k", "x = \"x\", y = \"y\"", None));
    for parameters in ["float* x, const float* y", "const float* x, float* y"] {
        let kernel = format!("__global__ void k({parameters}) {{}}");
        assert_said(&manifest, &kernel, &[]);
    }
    let kernel = "__global__ void k(const float* x, const float* y) {}";
    assert_said(&manifest, kernel, &["error[C0306]: no step writes the output `y`"]);
}

#[test]
fn outputs_whose_shape_depends_on_data_are_asked_for_too() {
    let manifest = |upper: &str, when: &str| {
        let tensors = format!(
            "[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 1\n\
             [[outputs]]\nname = \"count\"\ntype = \"i64\"\nsize = {{ upper = \"{upper}\" }}\n\
             [[outputs]]\nname = \"found\"\ntype = \"i32\"\nshape = \"[count, x.rank]\"\n\
             [[launches]]\nmemset = \"count\"\n"
        );
        let args = "x = \"x\", count = \"count\", found = \"found\"";
        format!("{tensors}{}", launch("k", args, Some(when)))
    };
    let kernel = "__global__ void k(const float* x, long long* count, int* found) {}";
    let told = [
        "warning[C0306]: the output `found` may stay unwritten",
        "if the written size is not 0, the output contains",
    ];
    assert_said(&manifest("numel(x)", "numel(x) == 77"), kernel, &told);
    assert_said(&manifest("numel(x)", "numel(x) > 0"), kernel, &[]);
    assert_said(&manifest("numel(x) if numel(x) == 77 else 0", "numel(x) == 77"), kernel, &[]);
}

fn specialized(values: &str, variants: &str, launch: &str) -> String {
    format!(
        "{variants}\n[attributes.k]\ntype = \"i32\"\nspecialize = [{values}]\n\
         [[inputs]]\nname = \"x\"\ntype = \"T\"\nlimits = {{ numel = \"1..=1000\" }}\n\
         [[outputs]]\nname = \"y\"\ntype = \"T\"\nshape = \"x.shape\"\n[types]\nT = [\"f32\", \"f16\"]\n\
         [[launches]]\nsource = \"k.cu\"\nkernel = \"k<T, k>\"\n{launch}args = {{ x = \"x\", y = \"y\" }}\n"
    )
}

const SPECIALIZED: &str = "template <typename T, int K> __global__ void k(const T* x, T* y) { y[0] = x[0]; }";

#[test]
fn a_guard_that_says_for_which_values_a_variant_is_can_be_of_use() {
    let variants = "[[variants]]\nid = 1\nguard = \"k == 3\"\n[[variants]]\nid = 2\nguard = \"k == 5\"\n";
    let launch = "grid = [1]\nblock = [256]\n";
    assert_said(&specialized("3, 5", variants, launch), SPECIALIZED, &[]);
    let always = variants.replace("k == 5", "k > 2");
    assert_said(
        &specialized("3, 5", &always, launch),
        SPECIALIZED,
        &["warning[C0202]: this guard is always true", "\"k > 2\""],
    );
}

#[test]
fn values_that_no_variant_serves_are_told() {
    let variants = "[[variants]]\nid = 1\nguard = \"k == 3\"\n[[variants]]\nid = 2\nguard = \"k == 5\"\n";
    let launch = "grid = [1]\nblock = [256]\n";
    let told = ["warning[C0203]: no variant supports `k` = `7`", "[3, 5, 7]", "such nodes are rejected"];
    assert_said(&specialized("3, 5, 7", variants, launch), SPECIALIZED, &told);
    let some = format!("{variants}[[variants]]\nid = 3\ntypes = {{ T = [\"f32\"] }}\nguard = \"k == 7\"\n");
    let told = ["warning[C0203]: no variant supports nodes with T=f16 k=7"];
    assert_said(&specialized("3, 5, 7", &some, launch), SPECIALIZED, &told);
    let rest = format!("{variants}[[variants]]\nid = 3\n");
    assert_said(&specialized("3, 5, 7", &rest, launch), SPECIALIZED, &[]);
    let rule = format!("require = [{{ expr = \"k < 6\", message = \"m\" }}]\n{variants}");
    let said = said(&specialized("3, 5, 7", &rule, launch), SPECIALIZED);
    assert!(said.contains("warning[C0107]: no node can have `k` = `7`"), "{said}");
    assert_eq!(said.matches("warning").count(), 1, "{said}");
}

#[test]
fn nothing_is_wrong_in_rows_that_are_left_out() {
    let block = "grid = [1]\nblock = [\"THREADS * k\"]\n";
    let variants = "[[variants]]\nid = 1\nguard = \"k == 3\"\nconstants = { THREADS = 64 }\n\
                    [[variants]]\nid = 2\nconstants = { THREADS = 8 }\n";
    assert_said(&specialized("3, 32", variants, block), SPECIALIZED, &[]);
    let first = variants.split("[[variants]]\nid = 2").next().unwrap().replace("guard = \"k == 3\"\n", "");
    let rule = format!("require = [{{ expr = \"k <= 16\", message = \"m\" }}]\n{first}");
    let by_rule = said(&specialized("3, 32", &rule, block), SPECIALIZED);
    assert!(by_rule.contains("warning[C0107]: no node can have `k` = `32`"), "{by_rule}");
    assert!(!by_rule.contains("error"), "{by_rule}");
    assert_said(&specialized("3, 32", &first, block), SPECIALIZED, &["error[C0302]", "2048"]);
    let conditions = "grid = [1]\nblock = [256]\nwhen = \"k == K\"\n";
    let variants = "[[variants]]\nid = 1\nguard = \"k == K\"\nconstants = { K = 3 }\n\
                    [[variants]]\nid = 2\nguard = \"k == K\"\nconstants = { K = 5 }\n";
    assert_said(&specialized("3, 5", variants, conditions), SPECIALIZED, &[]);
    let never = conditions.replace("k == K", "k == K + 1");
    assert_said(&specialized("3, 5", variants, &never), SPECIALIZED, &["error[C0311]"]);
}

#[test]
fn too_many_values_are_told_however_many_attributes_have_them() {
    let values = |count: usize| (0..count).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let launch = "grid = [1]\nblock = [256]\n";
    let b = format!("[attributes.b]\ntype = \"i32\"\nspecialize = [{}]\n", values(25));
    let c = "[attributes.c]\ntype = \"i32\"\nspecialize = [1, 2, 3]\n";
    let told = ["error[C0206]: the manifest expands to 6000 variants, more than 1024"];
    assert_said(&specialized(&values(40), &format!("{b}{c}"), launch), SPECIALIZED, &told);
    let told = ["error[C0005]: the attribute has 2100 allowed values, more than 1024"];
    assert_said(&specialized(&values(2100), "", launch), SPECIALIZED, &told);
}

#[test]
fn nothing_is_proved_of_rows_that_no_node_can_have() {
    let manifest = |rank: u8, format: &str| {
        let formats = if format == "F" { "[formats]\nF = [\"linear\", \"hwc\"]\n" } else { "" };
        format!(
            "[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = {rank}\n\
             [[outputs]]\nname = \"y\"\ntype = \"f32\"\nformat = \"{format}\"\nshape = \"x.shape\"\n\
             {formats}[[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [\"numel(x)\"]\nblock = [\"numel(x)\"]\n\
             args = {{ x = \"x\", y = \"y\" }}\n"
        )
    };
    let kernel = "__global__ void k(const float* x, float* y) { y[0] = x[0]; }";
    let told = ["error[C0209]: the format `hwc` requires at least 3 dimensions", "the format of `y`"];
    for format in ["F", "hwc"] {
        assert_said(&manifest(2, format), kernel, &told);
        assert!(said(&manifest(3, format), kernel).contains("C0302"));
        assert!(!said(&manifest(3, format), kernel).contains("C0209"));
    }
    let of_blocks = |checked: &CheckReport| {
        checked.obligations.iter().filter(|obligation| obligation.statement.contains("block")).count()
    };
    assert_eq!(of_blocks(&checked(&manifest(2, "hwc"), kernel)), 0);
    assert!(of_blocks(&checked(&manifest(3, "hwc"), kernel)) > 0);
}

#[test]
fn values_that_no_node_can_have_are_told() {
    let rule = "require = [{ expr = \"k < x.rank\", message = \"m\" }]\n";
    let launch = "grid = [1]\nblock = [256]\n";
    let told = ["warning[C0107]: no node can have `k` = `8`", "[3, 8]"];
    assert_said(&specialized("3, 8", rule, launch), SPECIALIZED, &told);
}

#[test]
fn what_tells_rows_apart_is_named() {
    let manifest = |guard: &str, types: &str, format: &str| {
        format!(
            "{types}[attributes.k]\ntype = \"i32\"\nspecialize = [3, 5]\n\
             [[inputs]]\nname = \"x\"\ntype = \"T\"\n{format}rank = 4\nlimits = {{ numel = \"1..=1000\" }}\n\
             [[outputs]]\nname = \"y\"\ntype = \"T\"\n{format}shape = \"x.shape\"\n[types]\nT = [\"f32\", \"i32\"]\n\
             [[variants]]\nid = 1\nguard = \"{guard}\"\n[[variants]]\nid = 2\n\
             [[launches]]\nsource = \"k.cu\"\nkernel = \"k<T, k>\"\ngrid = [1]\nblock = [256]\n\
             args = {{ x = \"x\", y = \"y\" }}\n"
        )
    };
    let formats = "[formats]\nF = [\"linear\", \"hwc\"]\n[[combinations]]\ntypes = { T = [\"f32\"] }\n";
    let format = "format = \"F\"\n";
    let told = [
        "warning[C0201]: this guard is never true for some formats of the variant",
        "`formats = { F = [\"hwc\"] }`",
    ];
    assert_said(&manifest("x.format == 'hwc' and numel(x) > 10", formats, format), SPECIALIZED, &told);
    let told = ["is never true for some values of the variant", "`k == 3`"];
    assert_said(&manifest("numel(x) * k < 5", "", ""), SPECIALIZED, &told);
}

#[test]
fn a_guard_is_not_wrong_where_formats_are() {
    let manifest = |formats: &str, input: &str, guard: &str| {
        format!(
            "[formats]\nF = [{formats}]\n[functions]\nis_vector = {{ params = [], body = \"x.format == 'hwc8'\" }}\n\
             [[variants]]\nid = 1\nguard = \"{guard}\"\n[[variants]]\nid = 2\n\
             [[inputs]]\nname = \"x\"\ntype = \"f16\"\nrank = 4\n{input}\n\
             [[outputs]]\nname = \"y\"\ntype = \"f16\"\nformat = \"linear\"\nshape = \"x.shape\"\n{}",
            launch("k", "x = \"x\", y = \"y\"", None)
        )
    };
    let kernel = "#include <cuda_fp16.h>\n__global__ void k(const __half* x, __half* y) { y[0] = x[0]; }";
    let never = "this guard is never true";
    let format = "format = \"F\"";
    for guard in ["x.format == 'hwc8'", "is_vector()"] {
        for (formats, input, told) in [
            ("\"linear\", \"nhwc8\"", format, "unknown format `nhwc8`"),
            ("\"linear\", \"hwc8\"", "", "cannot determine `F`"),
            ("\"linear\", \"hwc8\"", "format = \"G\"", "unknown format `G`"),
        ] {
            let found = said(&manifest(formats, input, guard), kernel);
            assert!(found.contains(told) && !found.contains(never), "{found}");
            let found = said(&manifest(formats, input, "x.rank == 3"), kernel);
            assert!(found.contains(told) && found.contains(never), "{found}");
        }
        let found = said(&manifest("\"linear\", \"chw2\"", format, guard), kernel);
        assert!(found.contains(never), "{found}");
        let found = said(&manifest("\"linear\", \"hwc8\"", format, guard), kernel);
        assert!(!found.contains("error"), "{found}");
    }
}
