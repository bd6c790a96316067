//! Pictures of how things grow, as SVG: curves over axes whose steps are powers of ten.
//!
//! Owns how they look, and what the growth of a curve is. Knows nothing of what is shown.

use serde::{Deserialize, Serialize};

/// Points with a name, from the least `x` on; all above 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// How a curve grows over its last points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Growth {
    pub(super) from: [f64; 2],
    pub(super) to: [f64; 2],
    /// `y` grows as `x` to this power: the line through the points' logarithms that fits best. Of two points there is none, since one of them may be off.
    pub(super) exponent: Option<f64>,
    /// The same from each point to the next.
    pub(super) steps: Vec<f64>,
}

/// Over so many points: what is the same for any amount of work counts least in the last ones.
const FITTED: usize = 3;

impl Curve {
    pub(super) fn growth(&self) -> Option<Growth> {
        let all: Vec<[f64; 2]> = self.drawable().collect();
        let points = &all[all.len().saturating_sub(FITTED)..];
        let [from, .., to] = points else { return None };
        let steps: Vec<f64> = points.windows(2).map(slope).collect();
        let is_grown = steps.iter().all(|step| step.is_finite());
        let exponent = (points.len() == FITTED).then(|| slope(points));
        is_grown.then_some(Growth { from: *from, to: *to, exponent, steps })
    }

    fn drawable(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.points
            .iter()
            .copied()
            .filter(|point| point.iter().all(|value| value.is_finite() && *value > 0.0))
    }
}

/// Of the line through the points' logarithms that is nearest to them (least squares).
fn slope(points: &[[f64; 2]]) -> f64 {
    let mean = |axis: usize| points.iter().map(|point| point[axis].ln()).sum::<f64>() / count(points.len());
    let middle = [mean(0), mean(1)];
    let of = |axis: usize, point: &[f64; 2]| point[axis].ln() - middle[axis];
    let along: f64 = points.iter().map(|point| of(0, point) * of(1, point)).sum();
    along / points.iter().map(|point| of(0, point).powi(2)).sum::<f64>()
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const PLOT: [f64; 2] = [430.0, 280.0];
const LINE: f64 = 18.0;
const COLOURS: [&str; 8] =
    ["#1b7f5c", "#d9623b", "#5a7fb5", "#d9a441", "#8a5aa8", "#444444", "#4aa3a2", "#b5486b"];

/// An axis from a power of ten to another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Axis {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (least, most) = (least.min(value.log10()), most.max(value.log10()));
        }
        if least > most {
            return Axis { first: 0, last: 1 };
        }
        // A point just at the edge is not worth another power of ten.
        #[allow(clippy::cast_possible_truncation)] // logarithms of numbers
        let (first, last) = ((least + 1e-9).floor() as i32, (most - 1e-9).ceil() as i32);
        Axis { first, last: last.max(first + 1) }
    }

    /// How far along the axis a value lies, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn steps(self) -> impl Iterator<Item = (f64, String)> {
        (self.first..=self.last).map(|power| {
            let value = 10_f64.powi(power);
            let decimals = usize::try_from(-power).unwrap_or(0);
            (value, format!("{value:.decimals$}"))
        })
    }
}

/// The picture.
pub(super) fn picture(title: &str, x: &str, y: &str, curves: &[Curve]) -> String {
    let height = TOP + PLOT[1].max(LINE * count(curves.len())) + 50.0;
    let axes =
        [0, 1].map(|axis| Axis::of(curves.iter().flat_map(Curve::drawable).map(move |point| point[axis])));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    svg.push_str(&text([10.0, 22.0], "start", title));
    svg.push_str(&grid(axes, x, y));
    for (number, curve) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        svg.push_str(&drawn(curve, axes, colour));
        let line = TOP + 10.0 + LINE * count(number);
        let key = LEFT + PLOT[0] + 16.0;
        svg.push_str(&format!(
            "<rect x=\"{key}\" y=\"{:.1}\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n",
            line - 6.0
        ));
        svg.push_str(&text([key + 18.0, line], "start", &curve.name));
    }
    svg.push_str("</svg>\n");
    svg
}

fn at([horizontal, vertical]: [Axis; 2], [x, y]: [f64; 2]) -> [f64; 2] {
    [LEFT + PLOT[0] * horizontal.place(x), TOP + PLOT[1] * (1.0 - vertical.place(y))]
}

fn grid(axes: [Axis; 2], x: &str, y: &str) -> String {
    let mut svg = String::new();
    let (right, bottom) = (LEFT + PLOT[0], TOP + PLOT[1]);
    let rule = |from: [f64; 2], to: [f64; 2]| {
        format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>\n",
            from[0], from[1], to[0], to[1]
        )
    };
    for (value, label) in axes[0].steps() {
        let place = LEFT + PLOT[0] * axes[0].place(value);
        svg.push_str(&rule([place, TOP], [place, bottom]));
        svg.push_str(&text([place, bottom + 16.0], "middle", &label));
    }
    for (value, label) in axes[1].steps() {
        let place = TOP + PLOT[1] * (1.0 - axes[1].place(value));
        svg.push_str(&rule([LEFT, place], [right, place]));
        svg.push_str(&text([LEFT - 6.0, place + 4.0], "end", &label));
    }
    svg.push_str(&text([LEFT + PLOT[0] / 2.0, bottom + 36.0], "middle", x));
    svg.push_str(&text([10.0, TOP - 4.0], "start", y));
    svg
}

fn drawn(curve: &Curve, axes: [Axis; 2], colour: &str) -> String {
    let places: Vec<[f64; 2]> = curve.drawable().map(|point| at(axes, point)).collect();
    let line: Vec<String> = places.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let mut svg = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
        line.join(" ")
    );
    for [x, y] in places {
        svg.push_str(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n"));
    }
    svg
}

fn text([x, y]: [f64; 2], anchor: &str, what: &str) -> String {
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>\n")
}

#[allow(clippy::cast_precision_loss)] // a few
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[[f64; 2]]) -> Curve {
        Curve { name: "a < b".to_owned(), points: points.to_vec() }
    }

    #[test]
    fn growth_is_the_power_over_the_last_three_points() {
        let growth = |points: &[[f64; 2]]| curve(points).growth();
        let is_near = |found: f64, power: f64| (found - power).abs() < 1e-9;
        let square = growth(&[[1.0, 90.0], [10.0, 100.0], [100.0, 10_000.0], [1000.0, 1_000_000.0]]).unwrap();
        assert!(is_near(square.exponent.unwrap(), 2.0), "{square:?}");
        assert_eq!((square.from, square.to), ([10.0, 100.0], [1000.0, 1_000_000.0]));
        // A step that is off is seen beside the fit.
        let bent = growth(&[[1.0, 1.0], [10.0, 10.0], [100.0, 1000.0]]).unwrap();
        assert!(is_near(bent.exponent.unwrap(), 1.5), "{bent:?}");
        assert!(bent.steps.iter().zip([1.0, 2.0]).all(|(step, power)| is_near(*step, power)), "{bent:?}");
        // Two points tell no power.
        let two = growth(&[[1.0, 1.0], [100.0, 50.0]]).unwrap();
        assert_eq!((two.exponent, two.steps.len()), (None, 1));
        assert_eq!(growth(&[[1.0, 1.0]]), None);
        assert_eq!(growth(&[[10.0, 10.0], [10.0, 20.0]]), None, "as much work twice");
        assert_eq!(growth(&[[10.0, 0.0], [100.0, 20.0]]), None);
    }

    #[test]
    fn axes_end_at_powers_of_ten() {
        assert_eq!(Axis::of([1.0, 1000.0].into_iter()), Axis { first: 0, last: 3 });
        assert_eq!(Axis::of([0.02, 7.0].into_iter()), Axis { first: -2, last: 1 });
        assert_eq!(Axis::of([5.0].into_iter()), Axis { first: 0, last: 1 });
        assert_eq!(Axis::of([].into_iter()), Axis { first: 0, last: 1 });
        let labels: Vec<String> = Axis { first: -1, last: 1 }.steps().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.1", "1", "10"]);
    }

    #[test]
    fn a_picture_has_a_curve_and_its_name() {
        insta::assert_snapshot!(picture(
            "Time",
            "nodes",
            "ms",
            &[curve(&[[1.0, 2.0], [10.0, 20.0], [100.0, 0.0]])]
        ));
    }
}
