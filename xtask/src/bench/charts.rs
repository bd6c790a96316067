//! The SVG figures of `docs/contributing/performance`: growth and ratios of times, on logarithmic axes.

use anyhow::{Result, ensure};
use plotters::coord::Shift;
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
    pub(super) length: f64,
    pub(super) text: String,
}

const WIDTH: u32 = 760;
const PANEL_HEIGHT: u32 = 340;
const LINE_HEIGHT: u32 = 18;
const LABEL_HEIGHT: i32 = 15;
/// plotters divides sizes by 1.24 in an SVG.
const FONT: (&str, u32) = ("sans-serif", 15);
const TITLE: (&str, u32) = ("sans-serif", 17);
const CUBINDER: RGBColor = RGBColor(27, 127, 92);
/// All other names are results of Cubinder.
const RIVALS: [(&str, RGBColor); 7] = [
    ("C++", RGBColor(0, 90, 181)),
    ("Python class", RGBColor(213, 94, 0)),
    ("PyTorch", RGBColor(180, 60, 130)),
    ("torch.compile", RGBColor(214, 150, 0)),
    ("Triton", RGBColor(70, 165, 225)),
    ("bare NVRTC", RGBColor(95, 60, 160)),
    ("nvcc", RGBColor(125, 125, 125)),
];
/// Dashes of the first, second, ... curve of a contender; the first line is solid.
const DASHES: [i32; 4] = [10_000, 14, 7, 3];

fn colour(name: &str) -> RGBColor {
    RIVALS.iter().find(|(rival, _)| name.starts_with(rival)).map_or(CUBINDER, |(_, colour)| *colour)
}

/// Draws a panel per unit in `y`, such as "ms, MB". With several, curves' names end with their unit.
pub(super) fn growth(title: &str, x: &str, y: &str, curves: &[Curve]) -> Result<String> {
    let units: Vec<&str> = y.split(", ").collect();
    let height = 30 + PANEL_HEIGHT * u32::try_from(units.len())?;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let panels = root.titled(title, TITLE)?.split_evenly((units.len(), 1));
    let mut shown = 0;
    for (area, unit) in panels.iter().zip(&units) {
        let end = if units.len() > 1 { format!(", {unit}") } else { String::new() };
        let named = curves.iter().filter_map(|curve| Some((curve.name.strip_suffix(&end)?, curve)));
        let named: Vec<(&str, &Curve)> = named.collect();
        shown += named.len();
        panel(&root, area, [x, unit], &named)?;
    }
    ensure!(shown == curves.len(), "`{title}`: the name of each curve must end with one of the units {y}");
    root.present()?;
    drop((panels, root));
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn panel(root: &Area<'_>, area: &Area<'_>, [x, y]: [&str; 2], curves: &[(&str, &Curve)]) -> Result<()> {
    let points = || curves.iter().flat_map(|(_, curve)| curve.drawable());
    let axis = |axis: usize| decades(points().map(|point| point[axis]));
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(220)
        .x_label_area_size(40)
        .y_label_area_size(95)
        .build_cartesian_2d(axis(0).log_scale(), axis(1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        // With 10 or more, plotters also labels values between powers of ten.
        .x_labels(9)
        .y_labels(9)
        .x_label_formatter(&f64::to_string)
        .y_label_formatter(&f64::to_string)
        .label_style(FONT)
        .bold_line_style(BLACK.mix(0.1))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let mut ends = Vec::new();
    for (name, curve) in curves {
        let points: Vec<(f64, f64)> = curve.drawable().map(|[x, y]| (x, y)).collect();
        let Some(last) = points.last() else { continue };
        let colour = colour(name);
        let earlier = ends.iter().filter(|(_, other, _)| *other == colour).count();
        let dash = DASHES[earlier.min(DASHES.len() - 1)];
        ends.push((chart.backend_coord(last), colour, *name));
        chart.draw_series(DashedLineSeries::new(points.clone(), dash, 4, colour.stroke_width(2)))?;
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    ends.sort_by_key(|((_, y), ..)| *y);
    let right = ends.iter().map(|((x, _), ..)| *x).max().unwrap_or_default();
    let heights = spread(ends.iter().map(|((_, y), ..)| *y).collect());
    for (((x, y), colour, name), height) in ends.into_iter().zip(heights) {
        root.draw(&PathElement::new([(x + 5, y), (right + 8, y), (right + 28, height)], colour))?;
        let style = FONT.into_text_style(root).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(name, (right + 32, height), style))?;
    }
    Ok(())
}

/// Prevents overlapping labels; `heights` are sorted.
fn spread(mut heights: Vec<i32>) -> Vec<i32> {
    for label in 1..heights.len() {
        heights[label] = heights[label].max(heights[label - 1] + LABEL_HEIGHT);
    }
    heights
}

fn decades(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values
        .map(f64::log10)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    // A point at the edge adds no power of ten.
    let (first, last) = ((least + 1e-9).floor(), (most - 1e-9).ceil());
    // With a narrower range, plotters omits the lower end's label.
    if least > most { 1.0..10.0 } else { 0.999 * 10_f64.powf(first)..10_f64.powf(last.max(first + 1.0)) }
}

pub(super) fn bars(title: &str, groups: &[Group]) -> Result<String> {
    let lines = groups.iter().map(|group| group.bars.len() + 2).sum::<usize>() + 2;
    let lines = u32::try_from(lines)?;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, 40 + lines * LINE_HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut ratios = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.length);
    ensure!(
        ratios.all(|ratio| ratio.is_normal() && ratio > 0.0),
        "{title}: a ratio is not a positive number"
    );
    let powers = powers_of_two(groups.iter().flat_map(|group| &group.bars).map(|bar| bar.length));
    let (least, most) = (2_f64.powi(*powers.start()), 2_f64.powi(*powers.end()));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, TITLE)
        .margin_left(110)
        .margin_right(180)
        .build_cartesian_2d((least..most).log_scale(), f64::from(lines)..0.0)?;
    let mut texts = Vec::new();
    let mut line = 0.5;
    for group in groups {
        texts.push((least, line, -100, HPos::Left, group.label.clone()));
        let rows = [line + 0.5, line + 0.5 + group.bars.len() as f64];
        chart.draw_series(powers.clone().map(|power| {
            let strength = if power == 0 { 0.6 } else { 0.12 };
            PathElement::new(rows.map(|row| (2_f64.powi(power), row)), BLACK.mix(strength))
        }))?;
        for bar in &group.bars {
            line += 1.0;
            let style = colour(&bar.name).filled();
            chart.draw_series([Rectangle::new([(1.0, line - 0.15), (bar.length, line + 0.15)], style)])?;
            chart.draw_series([Circle::new((bar.length, line), 5, style)])?;
            texts.push((least, line, -12, HPos::Right, bar.name.clone()));
            texts.push((most, line, 12, HPos::Left, bar.text.clone()));
        }
        line += 2.0;
    }
    texts.extend(
        powers.map(|power| (2_f64.powi(power), line, 0, HPos::Center, format!("{}x", 2_f64.powi(power)))),
    );
    if let Some(first) = groups.first().and_then(|group| group.bars.first()) {
        let text = format!("time relative to {}, logarithmic", first.name);
        texts.push(((least * most).sqrt(), line + 1.0, 0, HPos::Center, text));
    }
    chart.draw_series(texts.into_iter().map(|(x, y, offset, side, text)| {
        let style = FONT.into_text_style(&root).pos(Pos::new(side, VPos::Center));
        EmptyElement::at((x, y)) + Text::new(text, (offset, 0), style)
    }))?;
    root.present()?;
    drop((chart, root));
    Ok(svg)
}

#[allow(clippy::cast_possible_truncation)] // ratios of times
fn powers_of_two(values: impl Iterator<Item = f64>) -> std::ops::RangeInclusive<i32> {
    let (least, most) = values
        .map(f64::log2)
        .fold((0.0_f64, 1.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    least.floor() as i32..=most.ceil() as i32
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

    #[test]
    fn each_unit_has_its_own_panel() {
        let curve = |name: &str| Curve { name: name.to_owned(), points: vec![[1.0, 2.0], [10.0, 20.0]] };
        let figure = |curves: &[Curve]| growth("Costs", "nodes", "ms, MB", curves);
        let svg = figure(&[curve("wall, ms"), curve("C++: size, MB")]).unwrap();
        assert!(!svg.contains("wall, ms") && !svg.contains("size, MB"), "{svg}");
        assert!(figure(&[curve("wall")]).is_err());
    }

    #[test]
    fn labels_do_not_overlap() {
        assert_eq!(spread(vec![10, 12, 100]), [10, 25, 100]);
    }

    #[test]
    fn the_axis_of_ratios_has_one_and_all_values() {
        assert_eq!(powers_of_two([1.0, 1.1].into_iter()), 0..=1);
        assert_eq!(powers_of_two([0.97, 101.0].into_iter()), -1..=7);
    }
}
