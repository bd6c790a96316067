use super::{eval, transcript};
use crate::support::Project;

const MANIFEST: &str = r#"schema = 1

[plugin]
name = "lerp_"
namespace = "test"

[[inputs]]
name = "x"
type = "f32"

[[outputs]]
name = "y"
alias = "x"

[[variants]]
id = 1
constants = { VEC = 4 }
guard = "aligned(GUARDED, 16)"

[[variants]]
id = 2
constants = { VEC = 1 }

[[launches]]
source = "lerp.cu"
kernel = "lerp<VEC>"
grid = ["ceil_div(numel(x), 256)"]
block = [256]

[launches.args]
x = "GUARDED"
"#;

#[test]
fn an_alignment_may_be_given_by_either_name_of_a_memory() {
    let project = Project::without_tools();
    project.write("lerp.cu", "template <int VEC> __global__ void lerp(float* x) { x[0] = VEC; }\n");
    for guarded in ["x", "y"] {
        project.write("lerp.toml", MANIFEST.replace("GUARDED", guarded));
        for (aligned, chosen) in [("x=16", 1), ("y=16", 1), ("x=8", 2), ("y=8", 2)] {
            let run = eval(&project, &["lerp.toml", "--shape", "x=8", "--aligned", aligned, "--json"]);
            run.assert_ok();
            let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            let report = &report["evaluations"][0];
            let variants = report["variants"].as_array().unwrap();
            let found = variants.iter().find(|variant| variant["chosen"] == true).unwrap();
            assert_eq!(found["id"], chosen, "aligned({guarded}, 16) with --aligned {aligned}: {report}");
            let alignments: Vec<_> =
                report["tensors"].as_array().unwrap().iter().map(|tensor| &tensor["alignment"]).collect();
            assert_eq!(alignments[0], alignments[1], "{report}");
        }
    }
    let both = ["lerp.toml", "--shape", "x=8", "--aligned", "x=8", "--aligned", "y=8"];
    eval(&project, &both).assert_ok();
    let unlike = ["lerp.toml", "--shape", "x=8", "--aligned", "x=8", "--aligned", "y=16"];
    insta::assert_snapshot!(transcript(&project, &[&unlike]));
}
