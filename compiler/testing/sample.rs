//! A manifest for tests: one input `x`, one output `y` of its shape, one launch.

/// The parts that a test changes; [`Sample::PLAIN`] has the defaults.
#[derive(Clone, Copy)]
pub(crate) struct Sample<'a> {
    /// Type of `x` and `y`.
    pub(crate) element: &'a str,
    /// More tables: `[types]`, `[attributes.n]`, `[constants]`.
    pub(crate) tables: &'a str,
    pub(crate) source: &'a str,
    pub(crate) kernel: &'a str,
    /// Block and shared memory.
    pub(crate) launch: &'a str,
    /// Lines of `[launches.args]`.
    pub(crate) args: &'a str,
}

impl Sample<'_> {
    pub(crate) const PLAIN: Sample<'static> = Sample {
        element: "f32",
        tables: "",
        source: "k.cu",
        kernel: "k",
        launch: "block = [256]",
        args: "x = \"x\"\ny = \"y\"",
    };

    pub(crate) fn text(&self) -> String {
        let Sample { element, tables, source, kernel, launch, args } = self;
        format!(
            r#"schema = 1
[plugin]
name = "sample"
namespace = "test"
{tables}
[[inputs]]
name = "x"
type = "{element}"
rank = "1..=8"
[[outputs]]
name = "y"
type = "{element}"
shape = "x.shape"
[[launches]]
source = "{source}"
kernel = "{kernel}"
grid = ["ceil_div(numel(y), 256)"]
{launch}
[launches.args]
{args}
"#
        )
    }
}
