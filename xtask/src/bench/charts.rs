//! The SVG figures of `docs/contributing/performance`: growth curves on logarithmic axes, and groups of bars.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::curves::Curve;

#[derive(Debug)]
pub(super) struct Group {
    pub(super) label: String,
    pub(super) bars: Vec<Bar>,
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    /// A multiple of the first bar of the group.
    pub(super) length: f64,
    pub(super) text: String,
}

const WIDTH: u32 = 760;
const LINE_HEIGHT: u32 = 18;
/// plotters writes a size divided by 1.24 into an SVG.
const FONT: (&str, u32) = ("sans-serif", 15);
const TITLE: (&str, u32) = ("sans-serif", 17);
const FIRST_BAR: RGBColor = RGBColor(27, 127, 92);
const OTHER_BAR: RGBColor = RGBColor(150, 150, 150);
const LONGEST_BAR: f64 = 4.0;

pub(super) fn growth(title: &str, x: &str, y: &str, curves: &[Curve]) -> Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, 380)).into_drawing_area();
    root.fill(&WHITE)?;
    let axis = |axis: usize| decades(curves.iter().flat_map(Curve::drawable).map(|point| point[axis]));
    let (plot, legend) = root.split_horizontally(540);
    let mut chart = ChartBuilder::on(&plot)
        .caption(title, TITLE)
        .margin(10)
        .margin_right(20)
        .x_label_area_size(40)
        .y_label_area_size(95)
        .build_cartesian_2d(axis(0).log_scale(), axis(1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&f64::to_string)
        .y_label_formatter(&f64::to_string)
        .label_style(FONT)
        .bold_line_style(BLACK.mix(0.1))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (number, curve) in (0..).zip(curves) {
        let style = Palette99::pick(number).filled().stroke_width(2);
        let points = curve.drawable().map(|[x, y]| (x, y));
        chart.draw_series(LineSeries::new(points, style).point_size(3))?;
        let y = 40 + 18 * i32::try_from(number)?;
        legend.draw(&Rectangle::new([(0, y + 4), (12, y + 8)], style))?;
        legend.draw(&Text::new(curve.name.clone(), (18, y), FONT))?;
    }
    root.present()?;
    drop((chart, plot, legend, root));
    Ok(svg)
}

fn decades(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values
        .map(f64::log10)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    // A point at the edge adds no power of ten.
    let (first, last) = ((least + 1e-9).floor(), (most - 1e-9).ceil());
    // Otherwise plotters omits the label of the lower end.
    if least > most { 1.0..10.0 } else { 0.999 * 10_f64.powf(first)..10_f64.powf(last.max(first + 1.0)) }
}

pub(super) fn bars(title: &str, groups: &[Group]) -> Result<String> {
    let lines = groups.iter().map(|group| group.bars.len() + 2).sum::<usize>();
    let lines = u32::try_from(lines)?;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, 40 + lines * LINE_HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, TITLE)
        .margin_left(110)
        .margin_right(180)
        .build_cartesian_2d(0.0..LONGEST_BAR, f64::from(lines)..0.0)?;
    let mut texts = Vec::new();
    let mut line = 0.5;
    for group in groups {
        texts.push((0.0, line, -100, HPos::Left, group.label.clone()));
        for (number, bar) in group.bars.iter().enumerate() {
            line += 1.0;
            let colour = if number == 0 { FIRST_BAR } else { OTHER_BAR };
            let length = bar.length.clamp(0.0, LONGEST_BAR);
            let cut = if bar.length > LONGEST_BAR { " (cut)" } else { "" };
            chart
                .draw_series([Rectangle::new([(0.0, line - 0.4), (length, line + 0.4)], colour.filled())])?;
            texts.push((0.0, line, -6, HPos::Right, bar.name.clone()));
            texts.push((length, line, 5, HPos::Left, format!("{}{cut}", bar.text)));
        }
        line += 2.0;
    }
    chart.draw_series(texts.into_iter().map(|(x, y, offset, side, text)| {
        let style = FONT.into_text_style(&root).pos(Pos::new(side, VPos::Center));
        EmptyElement::at((x, y)) + Text::new(text, (offset, 0), style)
    }))?;
    chart.draw_series([PathElement::new([(1.0, 0.0), (1.0, f64::from(lines))], BLACK.mix(0.5))])?;
    root.present()?;
    drop((chart, root));
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_powers_of_ten() {
        let axis = |values: &[f64]| decades(values.iter().copied());
        assert_eq!(axis(&[1.0, 1000.0]), 0.999..1000.0);
        assert_eq!(axis(&[0.02, 7.0]), 0.00999..10.0);
        assert_eq!(axis(&[5.0]), 0.999..10.0);
        assert_eq!(axis(&[]), 1.0..10.0);
    }

    #[test]
    fn a_figure_has_its_curves_and_their_names() {
        let curve = Curve { name: "a < b".to_owned(), points: vec![[1.0, 2.0], [10.0, 20.0], [100.0, 0.0]] };
        insta::assert_snapshot!(growth("Time", "nodes", "ms", &[curve]).unwrap());
    }
}
