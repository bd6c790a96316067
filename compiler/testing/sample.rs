//! The manifest that tests of the crates use: one input `x`, one output `y` of its shape, one launch.

/// The parts of the manifest that a test changes; [`Sample::PLAIN`] has the defaults.
#[derive(Clone, Copy)]
pub(crate) struct Sample<'a> {
    /// The type of `x` and `y`.
    pub(crate) element: &'a str,
    /// More tables before the launch: `[types]`, `[attributes.n]`, `[constants]`.
    pub(crate) tables: &'a str,
    /// The kernel's file.
    pub(crate) source: &'a str,
    /// The kernel's name.
    pub(crate) kernel: &'a str,
    /// The launch's block and shared memory.
    pub(crate) launch: &'a str,
    /// The lines of `[launches.args]`.
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

    /// Returns the manifest's text.
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
