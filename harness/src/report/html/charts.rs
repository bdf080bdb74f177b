//! The pictures of the page, as SVG that stands in the page itself.
//!
//! Engines have colours that can be told apart on white and on black, and marks of three shapes
//! besides. [`INK`] and [`GRID`] are replaced by the page's style sheet, which knows whether the
//! page is light or dark.

#![expect(
    clippy::cast_possible_truncation,
    reason = "pixels and counts of engines are far below the bounds"
)]

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::figures::grouped_decimal;
use crate::{Error, Result};

/// Text and axes: `#333333` in the picture.
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
/// Lines of the grid: `#CCCCCC` in the picture.
const GRID: RGBColor = RGBColor(0xCC, 0xCC, 0xCC);
const ALARM: RGBColor = RGBColor(0xD6, 0x27, 0x28);

const PALETTE: [RGBColor; 8] = [
    RGBColor(0x1F, 0x82, 0xC4),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xC2, 0x5F, 0x98),
    RGBColor(0xB8, 0x86, 0x0B),
    RGBColor(0x8A, 0x6C, 0xD6),
    RGBColor(0x7F, 0x7F, 0x7F),
    RGBColor(0x9C, 0x6B, 0x4E),
];

const WIDTH: u32 = 760;
const NAMES: u32 = 120;
const TEXT: i32 = 13;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Painted = std::result::Result<(), Box<dyn std::error::Error>>;

/// A picture, with what it says for those who do not see it.
pub(super) struct Picture {
    /// What it shows.
    pub title: String,
    /// What is to be seen in it.
    pub description: String,
    /// The elements inside `svg`.
    pub body: String,
    /// Width and height.
    pub size: (u32, u32),
}

impl Picture {
    fn draw(
        title: String,
        description: String,
        height: u32,
        paint: impl FnOnce(&Area<'_>) -> Painted,
    ) -> Result<Self> {
        let mut svg = String::new();
        let size = (WIDTH, height);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let painted = paint(&area).and_then(|()| Ok(area.present()?));
        drop(area);
        painted.map_err(|error| Error::Usage(format!("a picture cannot be drawn: {error}")))?;
        // The page writes the element itself, with its title.
        let inside = svg.split_once("<svg").and_then(|(_, svg)| svg.split_once('>'));
        let body = inside.and_then(|(_, rest)| rest.rsplit_once("</svg>"));
        Ok(Self { title, description, body: body.map_or("", |body| body.0).to_owned(), size })
    }
}

/// A bar: an engine's ratio to the best, and the bounds of its interval.
pub(super) struct Bar {
    pub name: String,
    pub ratio: f64,
    pub interval: Option<[f64; 2]>,
}

/// Bars from top to bottom, each with its interval as a whisker and its figure behind it.
pub(super) fn bars(title: String, bars: &[Bar]) -> Result<Picture> {
    let told: Vec<String> = bars.iter().map(told).collect();
    let count = bars.len() as u32;
    let widest = bars.iter().map(|bar| bar.interval.map_or(bar.ratio, |[_, high]| high));
    let widest = widest.fold(1.0, f64::max) * 1.02;
    Picture::draw(title, told.join("; "), 26 * count + 60, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(6)
            .margin_right(150)
            .margin_left(NAMES)
            .x_label_area_size(44)
            .build_cartesian_2d(0.0..widest, 0.0..f64::from(count))?;
        mesh(chart.configure_mesh().disable_y_mesh().disable_y_axis().x_desc("× the best"))?;
        for (at, (bar, told)) in bars.iter().zip(&told).enumerate() {
            let middle = f64::from(count) - at as f64 - 0.5;
            let colour = PALETTE[0].filled();
            chart.draw_series([Rectangle::new(
                [(0.0, middle - 0.3), (bar.ratio, middle + 0.3)],
                colour,
            )])?;
            if let Some([low, high]) = bar.interval {
                for line in [
                    [(low, middle), (high, middle)],
                    [(low, middle - 0.15), (low, middle + 0.15)],
                    [(high, middle - 0.15), (high, middle + 0.15)],
                ] {
                    chart.draw_series([PathElement::new(line, INK.stroke_width(2))])?;
                }
            }
            let (x, y) = chart.backend_coord(&(0.0, middle));
            area.draw(&Text::new(bar.name.clone(), (x - 8, y), text(HPos::Right)))?;
            let end = bar.interval.map_or(bar.ratio, |[_, high]| high.max(bar.ratio));
            let (x, y) = chart.backend_coord(&(end, middle));
            let figure = told.strip_prefix(&bar.name).unwrap_or(told).trim_start().to_owned();
            area.draw(&Text::new(figure, (x + 8, y), text(HPos::Left)))?;
        }
        Ok(())
    })
}

/// `lsm 1.60 (1.56..1.61)`
fn told(bar: &Bar) -> String {
    match bar.interval {
        Some([low, high]) => format!("{} {:.2} ({low:.2}..{high:.2})", bar.name, bar.ratio),
        None => format!("{} {:.2}", bar.name, bar.ratio),
    }
}

/// A line through figures at named places.
pub(super) struct Curve {
    pub name: String,
    /// As many as there are places; `None` where there is no figure.
    pub figures: Vec<Option<f64>>,
}

/// Lines of engines over `places`, with a scale by powers of ten if `log`.
pub(super) fn curves(
    title: String,
    places: &[String],
    unit: &str,
    log: bool,
    curves: &[Curve],
) -> Result<Picture> {
    let scale = |figure: f64| if log { figure.max(1e-3).log10() } else { figure };
    let all = || curves.iter().flat_map(|curve| curve.figures.iter().flatten());
    let top = all().copied().map(scale).fold(f64::NEG_INFINITY, f64::max);
    let low = all().copied().map(scale).fold(f64::INFINITY, f64::min);
    let (low, top) = match log {
        true => (low.floor(), top.ceil().max(low.floor() + 1.0)),
        false => (low.min(0.0), (top * 1.05).max(1e-6)),
    };
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    let description = format!(
        "Lines of {} over {}, in {unit}; the table has the figures.",
        names.join(", "),
        places.join(", ")
    );
    let height = (24 * curves.len() as u32 + 40).max(340);
    Picture::draw(title, description, height, |area| {
        let last = places.len().saturating_sub(1).max(1) as f64;
        let mut chart = ChartBuilder::on(area)
            .margin_top(12)
            .margin_right(150)
            .x_label_area_size(34)
            .y_label_area_size(84)
            .build_cartesian_2d(-0.15..last + 0.15, low..top)?;
        let place = |x: &f64| {
            let at = places.iter().enumerate().find(|(at, _)| (*at as f64 - x).abs() < 1e-6);
            at.map_or(String::new(), |(_, name)| name.clone())
        };
        let figure = |y: &f64| match (log, (y - y.round()).abs() < 1e-6) {
            (true, true) if *y < 0.0 => format!("{:.3}", 10f64.powf(*y)),
            (true, true) => grouped_decimal(10f64.powf(*y), 0),
            (true, false) => String::new(),
            (false, _) => grouped_decimal(*y, if top < 10.0 { 2 } else { 0 }),
        };
        mesh(
            chart
                .configure_mesh()
                .x_labels(places.len() + 1)
                .y_labels(if log { (top - low) as usize + 1 } else { 6 })
                .x_label_formatter(&place)
                .y_label_formatter(&figure)
                .y_desc(unit),
        )?;
        for (at, curve) in curves.iter().enumerate() {
            let points = curve.figures.iter().enumerate();
            let points = points.filter_map(|(x, y)| Some((x as f64, scale((*y)?))));
            let points: Vec<(f64, f64)> = points.collect();
            chart.draw_series([PathElement::new(points.clone(), colour(at).stroke_width(2))])?;
            for point in points {
                mark(area, at, chart.backend_coord(&point))?;
            }
        }
        legend(area, &names)
    })
}

/// A point for each engine: what it takes to read and what to update.
pub(super) fn points(
    title: String,
    axes: [&str; 2],
    points: &[(String, [f64; 2])],
) -> Result<Picture> {
    let told = points.iter().map(|(name, [x, y])| format!("{name} {x:.2}, {y:.2}"));
    let description = told.collect::<Vec<String>>().join("; ");
    let names: Vec<&str> = points.iter().map(|(name, _)| name.as_str()).collect();
    let most = |axis: usize| {
        let figures = points.iter().map(|(_, figures)| figures[axis]);
        (figures.fold(10.0, f64::max).log10() * 1.05).max(1.0)
    };
    Picture::draw(title, description, 340, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(12)
            .margin_right(150)
            .x_label_area_size(48)
            .y_label_area_size(84)
            .build_cartesian_2d(-0.05..most(0), -0.05..most(1))?;
        let figure = |power: &f64| format!("{:.1}", 10f64.powf(*power));
        mesh(
            chart
                .configure_mesh()
                .x_labels(6)
                .y_labels(6)
                .x_label_formatter(&figure)
                .y_label_formatter(&figure)
                .x_desc(axes[0])
                .y_desc(axes[1]),
        )?;
        for (at, (_, [x, y])) in points.iter().enumerate() {
            mark(area, at, chart.backend_coord(&(x.log10(), y.log10())))?;
        }
        legend(area, &names)
    })
}

/// A strip: a figure of an engine over the seconds, and its stalls from when to when.
pub(super) struct Strip {
    pub name: String,
    pub line: Vec<(f64, f64)>,
    pub stalls: Vec<[f64; 2]>,
}

/// Strips below each other, on one scale, each with a line at `limit`.
pub(super) fn strips(
    title: String,
    told: impl Fn(&Strip) -> String,
    strips: &[Strip],
    limit: Option<f64>,
) -> Result<Picture> {
    let described = strips.iter().map(|strip| format!("{}: {}", strip.name, told(strip)));
    let description = described.collect::<Vec<String>>().join("; ");
    let all = || strips.iter().flat_map(|strip| &strip.line);
    let longest = all().map(|point| point.0).fold(0.1, f64::max);
    // A little air above the highest point.
    let most = all().map(|point| point.1).chain(limit).fold(1.0, f64::max) * 1.1;
    Picture::draw(title, description, 62 * strips.len() as u32 + 44, |area| {
        let (rows, _) = area.split_vertically(62 * strips.len() as u32 + 44);
        for (at, strip) in strips.iter().enumerate() {
            let is_last = at + 1 == strips.len();
            let top = 62 * at as i32;
            let row = rows.margin(
                top,
                if is_last { 0 } else { 62 * (strips.len() - at - 1) as i32 + 44 },
                0,
                0,
            );
            let mut chart = ChartBuilder::on(&row)
                .margin_top(8)
                .margin_right(20)
                .margin_left(NAMES)
                .x_label_area_size(if is_last { 44 } else { 0 })
                .y_label_area_size(70)
                .build_cartesian_2d(0.0..longest, 0.0..most)?;
            let figure = |y: &f64| grouped_decimal(*y, 0);
            mesh(
                chart.configure_mesh().y_labels(2).y_label_formatter(&figure).x_desc(if is_last {
                    "seconds"
                } else {
                    ""
                }),
            )?;
            if let Some(limit) = limit {
                let line = [(0.0, limit), (longest, limit)];
                chart.draw_series([PathElement::new(line, INK.stroke_width(1))])?;
            }
            chart
                .draw_series([PathElement::new(strip.line.clone(), PALETTE[0].stroke_width(2))])?;
            let marks = strip.stalls.iter().map(|[from, to]| {
                Rectangle::new([(*from, 0.0), (*to, most * 0.25)], ALARM.filled())
            });
            chart.draw_series(marks)?;
            let (_, y) = chart.backend_coord(&(0.0, most / 2.0));
            area.draw(&Text::new(strip.name.clone(), (NAMES as i32 - 8, y), text(HPos::Right)))?;
        }
        Ok(())
    })
}

fn colour(at: usize) -> RGBColor {
    PALETTE[at % PALETTE.len()]
}

fn text(side: HPos) -> TextStyle<'static> {
    let style = ("sans-serif", TEXT).into_font().color(&INK);
    style.pos(Pos::new(side, VPos::Center))
}

/// Axes and grid in the page's colours.
fn mesh<'a, X, Y>(style: &mut plotters::chart::MeshStyle<'a, '_, X, Y, SVGBackend<'_>>) -> Painted
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    style
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(("sans-serif", TEXT).into_font().color(&INK))
        .axis_desc_style(("sans-serif", TEXT).into_font().color(&INK))
        .draw()?;
    Ok(())
}

/// Engine number `at`: its shape in its colour.
fn mark(area: &Area<'_>, at: usize, place: (i32, i32)) -> Painted {
    let fill = colour(at).filled();
    match at % 3 {
        0 => area.draw(&Circle::new(place, 5, fill))?,
        1 => area.draw(&TriangleMarker::new(place, 7, fill))?,
        _ => area.draw(&Cross::new(place, 5, colour(at).stroke_width(3)))?,
    }
    Ok(())
}

fn legend(area: &Area<'_>, names: &[&str]) -> Painted {
    for (at, name) in names.iter().enumerate() {
        let (x, y) = (WIDTH as i32 - 132, 24 + 24 * at as i32);
        mark(area, at, (x, y))?;
        area.draw(&Text::new((*name).to_owned(), (x + 14, y), text(HPos::Left)))?;
    }
    Ok(())
}

impl Curve {
    /// Whether there is any figure.
    pub(super) fn is_known(&self) -> bool {
        self.figures.iter().any(Option::is_some)
    }
}
