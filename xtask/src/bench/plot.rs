//! Pictures of bars, as SVG.
//!
//! Owns how they look. Knows nothing of what is shown.

/// What stands together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) label: String,
    pub(super) bars: Vec<Bar>,
}

#[derive(Debug)]
pub(super) struct Bar {
    /// Its colour follows from that.
    pub(super) name: String,
    /// In units of the axis, which begins at 0.
    pub(super) length: f64,
    /// What is written behind it.
    pub(super) text: String,
}

const WIDTH: f64 = 760.0;
/// Of the axis, and how many units it has: a longer bar is cut, and what is written behind it says how long it is.
const AXIS: f64 = 520.0;
const UNITS: f64 = 4.0;
const LEFT: f64 = 110.0;
const BAR: f64 = 14.0;
const LINE: f64 = 18.0;
/// Those of bars by their names; any other is grey.
const COLOURS: [(&str, &str); 7] = [
    ("plugin", "#1b7f5c"),
    ("PyTorch", "#d9623b"),
    ("torch.compile", "#d9a441"),
    ("Triton", "#5a7fb5"),
    ("Cubinder", "#1b7f5c"),
    ("C++", "#5a7fb5"),
    ("Python class", "#d9623b"),
];

/// A picture of bars that lie one below the other, in groups.
pub(super) fn bars(title: &str, groups: &[Group]) -> String {
    let lines: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = 44.0 + count(lines) * LINE + count(groups.len()) * (LINE + 10.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    svg.push_str(&text(10.0, 22.0, "bold", "start", title));
    let mut y = 38.0;
    for group in groups {
        svg.push_str(&text(10.0, y + 13.0, "normal", "start", &group.label));
        y += LINE;
        for bar in &group.bars {
            svg.push_str(&drawn(bar, y));
            y += LINE;
        }
        y += 10.0;
    }
    // Where the first bar of each group ends.
    let one = LEFT + AXIS / UNITS;
    svg.push_str(&format!(
        "<line x1=\"{one}\" y1=\"34\" x2=\"{one}\" y2=\"{}\" stroke=\"#444444\" stroke-dasharray=\"2 3\"/>\n</svg>\n",
        height - 8.0
    ));
    svg
}

fn drawn(bar: &Bar, y: f64) -> String {
    let colour = COLOURS.iter().find(|(name, _)| *name == bar.name).map_or("#888888", |(_, colour)| *colour);
    let width = (bar.length.clamp(0.0, UNITS) * AXIS / UNITS).max(1.0);
    let end = if bar.length > UNITS { " (cut)" } else { "" };
    format!(
        "{}<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\n{}",
        text(LEFT - 6.0, y + 11.0, "normal", "end", &bar.name),
        text_at(LEFT + width + 5.0, y + 11.0, &format!("{}{end}", bar.text)),
    )
}

/// Behind a bar, on the bar where there is no place behind it.
fn text_at(x: f64, y: f64, what: &str) -> String {
    if x + 130.0 <= WIDTH {
        return text(x, y, "normal", "start", what);
    }
    text(x - 11.0, y, "normal", "end", what)
}

fn text(x: f64, y: f64, weight: &str, anchor: &str, what: &str) -> String {
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"{weight}\" text-anchor=\"{anchor}\">{what}</text>\n"
    )
}

#[allow(clippy::cast_precision_loss)] // a few
fn count(number: usize) -> f64 {
    number as f64
}
