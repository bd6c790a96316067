//! Without compiled kernels, number types are unknown.

use super::{eval, with};
use crate::support::{Project, Run};

fn evaluated(launches: &str, shape: &str) -> Run {
    let project = Project::without_tools();
    with(&project);
    let head = "schema = 1\n[plugin]\nname = \"p\"\nnamespace = \"test\"\n\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 1\n\n\
                [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"[4]\"\n\n[scratch.s]\nbytes = \"4 * numel(x)\"\n\n";
    project.write("manifests/p.toml", format!("{head}{launches}"));
    eval(&project, &["manifests/p.toml", "--shape", shape])
}

fn launch(keys: &str, args: &str) -> String {
    format!(
        "[[launches]]\nsource = \"../kernels/tile.cu\"\nkernel = \"tile<float, 1>\"\ngrid = [\"ceil_div(numel(x), 256)\"]\nblock = [256]\n\
         {keys}\n[launches.args]\n{args}\n\n"
    )
}

const FILL: &str = "[[launches]]\nmemset = \"y\"\n";

#[test]
fn an_empty_grid_is_right_where_an_argument_is_empty() {
    for args in ["x = \"x\"\ny = \"y\"", "y = \"y\"\ns = \"s\""] {
        let run = evaluated(&format!("{FILL}\n{}", launch("", args)), "x=0");
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    }
    let run = evaluated(&format!("{FILL}\n{}", launch("", "y = \"y\"\nn = \"numel(x)\"")), "x=0");
    assert_eq!(run.code, Some(1), "nothing that it gets is empty: {}", run.stdout);
    assert!(run.stdout.contains("the outputs would not be written"), "{}", run.stdout);
}

#[test]
fn an_output_is_written_where_a_launch_gets_it() {
    let filled = format!("{FILL}when = \"numel(x) > 100\"\n\n");
    let run = evaluated(&format!("{filled}{}", launch("", "x = \"x\"\ny = \"y\"")), "x=8");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    let conditional = launch("when = \"numel(x) > 100\"", "x = \"x\"\ny = \"y\"");
    let run = evaluated(&format!("{filled}{conditional}"), "x=8");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("`y`"), "{}", run.stdout);
}

#[test]
fn an_argument_without_a_value_is_an_error() {
    let args = "x = \"x\"\ny = \"y\"\nn = \"12 // (x.shape[0] - 3)\"\nm = \"[1, x.shape[x.shape[0] - 1]]\"";
    let run = evaluated(&launch("", args), "x=3");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("argument `n` has no value: division by zero"), "{}", run.stdout);
    let run = evaluated(&launch("", args), "x=2");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("argument `m` has no value: index 1 is out of range"), "{}", run.stdout);
    let run = evaluated(&launch("", args), "x=1");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("-6"), "{}", run.stdout);
    let run = evaluated(&format!("{FILL}\n{}", launch("", &args.replace("- 3", "* 1"))), "x=0");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

#[test]
fn an_argument_of_a_variant_for_other_addresses_needs_a_value_too() {
    let variants = "[[variants]]\nid = 1\nguard = \"aligned(x, 16)\"\nconstants = { D = 100 }\n\n\
                    [[variants]]\nid = 2\nconstants = { D = 3 }\n\n";
    let launch = launch("", "x = \"x\"\ny = \"y\"\nn = \"12 // (x.shape[0] - D)\"");
    let of = |shape: &str| evaluated(&format!("{variants}{launch}"), shape);
    let run = of("x=2");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let run = of("x=3");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("argument `n` has no value: division by zero"), "{}", run.stdout);
    assert!(run.stdout.contains("variant 2 is selected for other addresses"), "{}", run.stdout);
}
