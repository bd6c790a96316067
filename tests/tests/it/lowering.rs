//! Lowering in TensorRT-RTX's expression builder equals evaluation, for generated output shapes.
//!
//! An unused dynamic input keeps shapes symbolic. TensorRT-RTX 1.7 rejects negative dimensions (observed): each value
//! uses two, `max(v, 0)` and `max(-v, 0)`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::load;
use cubinder_expr::Value;
use cubinder_expr::{BindingTime, Environment, Kind, Scope, compile, evaluate};
use cubinder_skip::skip;
use cubinder_tests::application::{Answer, Application};
use serde_json::json;

const GENERATED: usize = 512;

const DIMENSIONS: usize = 8;

const OUTPUTS: usize = 64;

const N: i64 = -3;

const SHAPES: [(&[i64], &[i64]); 6] = [
    (&[2, 3, 4], &[5, 6]),
    (&[1, 1, 1], &[1, 1]),
    (&[7, 5, 16, 3], &[9, 2]),
    (&[33, 2, 12], &[4, 1, 8]),
    (&[4096, 17, 30], &[1_000_003, 7]),
    (&[3, 0, 2], &[2, 1]),
];

const WRITTEN: [&str; 40] = [
    "-x.shape[0] // 2",
    "x.shape[0] // -2",
    "-x.shape[0] // -2",
    "-x.shape[0] // y.shape[1]",
    "x.shape[0] // -y.shape[1]",
    "(1 - x.shape[0]) // (y.shape[1] - 100)",
    "-x.shape[0] % 3",
    "x.shape[0] % -3",
    "-x.shape[0] % -3",
    "(5 - x.shape[0]) % (y.shape[1] - 100)",
    "ceil_div(-x.shape[0], 2)",
    "ceil_div(x.shape[0], -2)",
    "ceil_div(-x.shape[0], -2)",
    "ceil_div(-x.shape[0], y.shape[0])",
    "ceil_div(5 - x.shape[0], y.shape[1] - 100)",
    "x.shape[0] // -1",
    "ceil_div(x.shape[0], -1) + x.shape[0] % -1",
    "(x.shape[0] - 9223372036854775807) // (y.shape[0] + 1)",
    "ceil_div(x.shape[0] - 9223372036854775807, y.shape[0] + 1)",
    "(9223372036854775807 - x.shape[0]) // -(y.shape[0] + 1)",
    "7 // (x.shape[0] - 2) if x.shape[0] != 2 else -5",
    "1 if x.shape[1] > 3 and 7 % (x.shape[1] - 3) > 0 else -2",
    "1 if x.shape[1] == 3 or ceil_div(7, x.shape[1] - 3) > 1 else -2",
    "(9 // (x.shape[0] - 7) if x.shape[0] > 7 else n) if y.shape[0] > 4 else x.shape[0] // n",
    "abs(n - x.shape[0]) + abs(x.shape[0] - 5)",
    "min(x.shape) - max(y.shape)",
    "min(x.shape[0], y.shape[0], n) + max(-x.shape[0], n)",
    "numel(x) - numel(y)",
    "prod(x.shape) * sum(y.shape)",
    "prod([9223372036854775807, y.shape[0] + 1, x.shape[0] - x.shape[0]])",
    "sum([9223372036854775807, x.shape[0], -x.shape[0]])",
    "sum([-9223372036854775807, -x.shape[0], x.shape[0], 5])",
    "sum([(d - 3) * n for d in x.shape])",
    "sum([x.shape[i] // n for i in range(x.rank) if i % 2 == 0])",
    "[d - 7 for d in y.shape][x.shape[0] % 2]",
    "get(x.shape, x.shape[0] - 3, -11)",
    "(x.shape if n > 0 else y.shape)[0] - 6",
    "1 if x.shape == y.shape else -1",
    "1 if [x.shape[0], 1] == [y.shape[0], y.shape[0] // y.shape[0]] else -1",
    "(-1 if x.shape[0] <= y.shape[0] else 1) * (2 if not x.shape[0] >= 5 else 3) + len(y.shape)",
];

type Wrapped = fn(i64, i64) -> i64;

/// Overflows that evaluation rejects and TensorRT wraps.
const WRAPPING: [(&str, Wrapped); 5] = [
    ("x.shape[0] * 4611686018427387905", |x, _| x.wrapping_mul(4_611_686_018_427_387_905)),
    ("-x.shape[0] * 4611686018427387905", |x, _| x.wrapping_neg().wrapping_mul(4_611_686_018_427_387_905)),
    ("9223372036854775807 + 3 * x.shape[0]", |x, _| i64::MAX.wrapping_add(3 * x)),
    ("-9223372036854775807 - x.shape[0] - y.shape[0]", |x, y| (-i64::MAX).wrapping_sub(x).wrapping_sub(y)),
    ("prod([y.shape[0] + 1, 9223372036854775807])", |_, y| (y + 1).wrapping_mul(i64::MAX)),
];

struct Generator(u64);

impl Generator {
    fn pick(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.pick(items.len() as u64) as usize]
    }

    fn literal(&mut self) -> String {
        let literals =
            ["0", "1", "2", "3", "-1", "-2", "5", "-7", "10", "64", "-100", "65536", "-4294967297"];
        self.of(&literals).to_owned()
    }

    fn leaf(&mut self, variables: &[String]) -> String {
        match self.pick(8) {
            0 | 1 => self.literal(),
            2 => self.of(&["n", "x.rank", "y.rank", "numel(x)", "numel(y)"]).to_owned(),
            3 if !variables.is_empty() => variables[self.pick(variables.len() as u64) as usize].clone(),
            _ => {
                let axis = self.of(&["0", "1", "-1", "-2"]);
                format!("{}.shape[{axis}]", self.of(&["x", "y"]))
            }
        }
    }

    fn int(&mut self, depth: usize, variables: &mut Vec<String>) -> String {
        if depth == 0 {
            return self.leaf(variables);
        }
        let depth = depth - 1;
        match self.pick(17) {
            0..=3 => {
                let (left, right) = (self.int(depth, variables), self.int(depth, variables));
                format!("({left} {} {right})", self.of(&["+", "-", "-", "*"]))
            }
            4..=6 => self.division(depth, variables),
            7 | 8 => self.protected(depth, variables),
            9 => format!("(-{})", self.int(depth, variables)),
            10 => {
                let (left, right) = (self.int(depth, variables), self.int(depth, variables));
                format!("{}({left}, {right})", self.of(&["min", "max"]))
            }
            11 => format!("abs({})", self.int(depth, variables)),
            12 | 13 => {
                let (then, otherwise) = (self.int(depth, variables), self.int(depth, variables));
                format!("({then} if {} else {otherwise})", self.bool(depth, variables))
            }
            14 => format!("{}({})", self.of(&["sum", "prod", "min", "max"]), self.ints(depth, variables)),
            15 => {
                let (array, index) = (self.ints(depth, variables), self.int(depth, variables));
                match self.pick(2) {
                    0 => format!("get({array}, {index}, {})", self.int(depth, variables)),
                    _ => format!("{array}[{index} % 2]"),
                }
            }
            _ => self.leaf(variables),
        }
    }

    fn divided(&mut self, left: &str, right: &str) -> String {
        match self.pick(3) {
            0 => format!("({left} // {right})"),
            1 => format!("({left} % {right})"),
            _ => format!("ceil_div({left}, {right})"),
        }
    }

    fn division(&mut self, depth: usize, variables: &mut Vec<String>) -> String {
        let left = self.int(depth, variables);
        let right = match self.pick(4) {
            0 => self.of(&["2", "-2", "3", "-3", "7", "-1", "-16", "n"]).to_owned(),
            1 => self.of(&["y.shape[0]", "(-y.shape[0])", "(y.shape[-1] - 100)"]).to_owned(),
            _ => self.int(depth, variables),
        };
        self.divided(&left, &right)
    }

    fn protected(&mut self, depth: usize, variables: &mut Vec<String>) -> String {
        let divisor = format!("({} - {})", self.leaf(variables), self.of(&["1", "2", "3", "4", "5"]));
        let left = self.int(depth, variables);
        let divided = self.divided(&left, &divisor);
        let other = self.int(depth, variables);
        match self.pick(4) {
            0 => format!("({divided} if {divisor} != 0 else {other})"),
            1 => format!("({other} if {divisor} == 0 else {divided})"),
            2 => format!("(-1 if {divisor} != 0 and {divided} < {other} else 4)"),
            _ => format!("(-1 if not {divisor} != 0 or {divided} < {other} else 4)"),
        }
    }

    fn bool(&mut self, depth: usize, variables: &mut Vec<String>) -> String {
        let depth = depth.saturating_sub(1);
        match self.pick(6) {
            0 => format!("not ({})", self.bool(depth, variables)),
            1 if depth > 0 => {
                let (left, right) = (self.bool(depth, variables), self.bool(depth, variables));
                format!("({left}) {} ({right})", self.of(&["and", "or"]))
            }
            _ => {
                let (left, right) = (self.int(depth, variables), self.int(depth, variables));
                format!("{left} {} {right}", self.of(&["==", "!=", "<", "<=", ">", ">="]))
            }
        }
    }

    fn ints(&mut self, depth: usize, variables: &mut Vec<String>) -> String {
        match self.pick(4) {
            0 => self.of(&["x.shape", "y.shape"]).to_owned(),
            1 => format!("[{}, {}]", self.int(depth, variables), self.int(depth, variables)),
            choice => {
                let variable = format!("v{}", variables.len());
                let over = if choice == 2 { self.of(&["x.shape", "y.shape"]) } else { "range(5)" };
                let condition = if choice == 3 { format!(" if {variable} % 2 == 0") } else { String::new() };
                variables.push(variable.clone());
                let body = self.int(depth.min(2), variables);
                variables.pop();
                format!("[{body} for {variable} in {over}{condition}]")
            }
        }
    }
}

struct Node([Vec<i64>; 2]);

impl Environment for Node {
    fn attribute(&self, _: u32) -> Option<&Value> {
        Some(&Value::Int(N))
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.get(tensor as usize).map(Vec::as_slice)
    }
}

fn scope() -> Scope {
    Scope::new().attribute("n", 0, Kind::Int).tensor("x", 0, 0, 8).tensor("y", 1, 0, 8)
}

fn values(text: &str) -> Option<Vec<i64>> {
    let typed = compile(text, &scope()).ok().filter(|typed| typed.time == BindingTime::Shape)?;
    let nodes = SHAPES.map(|(x, y)| Node([x.to_vec(), y.to_vec()]));
    let value = |node: &Node| evaluate(&typed.expr, node).ok()?.as_int().filter(|&value| value != i64::MIN);
    nodes.iter().map(value).collect()
}

fn generated() -> Vec<(String, Vec<i64>)> {
    let mut generator = Generator(0x00C0_B14D_E500_0001);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while found.len() < GENERATED {
        let depth = 1 + generator.pick(4) as usize;
        let text = generator.int(depth, &mut Vec::new());
        let Some(values) = values(&text) else { continue };
        if values.iter().any(|value| *value != values[0]) && text.len() < 600 && seen.insert(text.clone()) {
            found.push((text, values));
        }
    }
    found
}

fn manifest(name: &str, texts: &[String], kernel: &str) -> String {
    let mut text = format!(
        "schema = 1\n[plugin]\nname = \"{name}\"\nnamespace = \"sample\"\nversion = \"1\"\nsummary = \"Shapes.\"\n\
         [attributes.n]\ntype = \"i32\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n[[inputs]]\nname = \"y\"\ntype = \"f32\"\n[[inputs]]\nname = \"z\"\ntype = \"f32\"\n"
    );
    let outputs = texts.chunks(DIMENSIONS).flat_map(|part| {
        let all = part.join(", ");
        [format!("[max(v, 0) for v in [{all}]]"), format!("[max(-v, 0) for v in [{all}]]")]
    });
    let mut args = String::new();
    for (index, shape) in outputs.enumerate() {
        text += &format!("[[outputs]]\nname = \"o{index}\"\ntype = \"f32\"\nshape = \"{shape}\"\n");
        args += &format!("o{index} = \"o{index}\"\n");
    }
    text + &format!(
        "[[launches]]\nsource = \"{kernel}.cu\"\nkernel = \"{kernel}\"\ngrid = [\"1\"]\nblock = [\"1\"]\n\
         [launches.args]\nn = \"n\"\nx = \"x\"\ny = \"y\"\nz = \"z\"\n{args}"
    )
}

fn outputs_for(expressions: usize) -> usize {
    2 * expressions.div_ceil(DIMENSIONS)
}

fn kernel(name: &str, outputs: usize) -> String {
    let parameters: String = (0..outputs).map(|index| format!(", float* o{index}")).collect();
    format!(
        "extern \"C\" __global__ void {name}(int n, const float* x, const float* y, const float* z{parameters}) {{}}\n"
    )
}

fn library(compiler: &Path, folder: &Path, lists: &[Vec<String>]) -> PathBuf {
    let mut command = Command::new(compiler);
    command.current_dir(folder).args(["compile", "--name", "shapes", "--target", "sm_89", "--quiet"]);
    command.arg("--out-dir").arg(folder);
    for (index, texts) in lists.iter().enumerate() {
        let (name, kernel_name) = (format!("shapes{index}"), format!("kernel{index}"));
        let manifest = manifest(&name, texts, &kernel_name);
        std::fs::write(folder.join(format!("{name}.toml")), manifest).unwrap();
        let code = kernel(&kernel_name, outputs_for(texts.len()));
        std::fs::write(folder.join(format!("{kernel_name}.cu")), code).unwrap();
        command.arg(format!("{name}.toml"));
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    folder.join("libshapes.so")
}

fn ask(lists: &[Vec<String>]) -> Option<Vec<Vec<Answer>>> {
    let (Some(compiler), Some(application)) =
        (std::env::var_os("CUBINDER_BIN").map(PathBuf::from), Application::from_environment())
    else {
        skip("`CUBINDER_BIN` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut steps = vec![load(&library(&compiler, folder.path(), lists))];
    for (index, texts) in lists.iter().enumerate() {
        steps.extend(SHAPES.map(|(x, y)| {
            json!({"do": "shapes", "op": format!("shapes{index}"), "attributes": {"n": N, "aot": 1},
                   "inputs": [["x", x], ["y", y], ["z", ["unknown"]]], "outputs": outputs_for(texts.len())})
        }));
    }
    let answers = application.run(&steps).unwrap();
    assert!(answers[0].is_ok(), "{:?}", answers[0].log);
    Some(answers[1..].chunks(SHAPES.len()).map(<[Answer]>::to_vec).collect())
}

fn carried(answer: &Answer, expression: usize) -> i64 {
    let shapes = &answer.members["shapes"];
    let (output, axis) = (2 * (expression / DIMENSIONS), expression % DIMENSIONS);
    let [up, down] = [output, output + 1].map(|output| shapes[output][axis].as_i64().unwrap());
    assert!(up == 0 || down == 0, "{up} and {down}");
    up - down
}

#[test]
fn tensorrt_computes_what_evaluation_does() {
    let written = WRITTEN.map(|text| (text.to_owned(), values(text).unwrap_or_else(|| panic!("{text}"))));
    let all: Vec<(String, Vec<i64>)> = written.into_iter().chain(generated()).collect();
    let results: Vec<i64> = all.iter().flat_map(|(_, values)| values.iter().copied()).collect();
    let negative = results.iter().filter(|&&value| value < 0).count();
    assert!(negative * 4 > results.len(), "only {negative} of {} values are negative", results.len());

    let parts: Vec<&[(String, Vec<i64>)]> = all.chunks(OUTPUTS / 2 * DIMENSIONS).collect();
    let texts = |part: &&[(String, Vec<i64>)]| part.iter().map(|(text, _)| text.clone()).collect();
    let lists: Vec<Vec<String>> = parts.iter().map(texts).collect();
    let Some(answers) = ask(&lists) else { return };
    let mut compared = 0;
    for (part, answers) in parts.iter().zip(&answers) {
        for (shape, answer) in answers.iter().enumerate() {
            assert!(answer.is_ok(), "{:?}: {:?}", SHAPES[shape], answer.log);
            for (index, (text, values)) in part.iter().enumerate() {
                assert_eq!(carried(answer, index), values[shape], "{text} with {:?}", SHAPES[shape]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, all.len() * SHAPES.len());
}

/// The builder throws on division by zero, which plugins report. Evaluation would reject these expressions.
#[test]
fn tensorrt_wraps_silently_and_is_never_asked_to_divide_by_zero() {
    for (text, _) in WRAPPING {
        assert_eq!(values(text), None, "{text} overflows");
    }
    // Zero only for these shapes; the compiler rejects constant zeros.
    let zero = "7 // (x.shape[0] - max(x.shape[0], 1))";
    let lists = [WRAPPING.map(|(text, _)| text.to_owned()).to_vec(), vec![zero.to_owned()]];
    let Some(answers) = ask(&lists) else { return };
    for ((x, y), answer) in SHAPES.iter().zip(&answers[0]) {
        assert!(answer.is_ok() && answer.said("overflow").is_empty(), "{:?}", answer.log);
        for (index, (text, wrapped)) in WRAPPING.iter().enumerate() {
            assert_eq!(carried(answer, index), wrapped(x[0], y[0]), "{text} with {x:?}, {y:?}");
        }
    }
    for answer in &answers[1] {
        assert!(!answer.is_ok());
        assert_ne!(answer.said("the shape of an output divides by zero"), [""; 0], "{:?}", answer.log);
    }
}
