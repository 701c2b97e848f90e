//! A line for each peer over a parameter.

use super::scale::{Axis, Fitted};
use super::svg::Svg;
use super::{WIDTH, begin, spread};
use crate::report::page::palette::Look;

const HEIGHT: f64 = 320.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;
/// Names of ticks that are closer together than this are left out.
const TICK_APART: f64 = 26.0;

/// A point.
#[derive(Debug, Clone)]
pub struct Dot {
    /// The parameter.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Its range over the repetitions.
    pub range: Option<(f64, f64)>,
    /// The text shown when the pointer is on it.
    pub told: String,
}

/// A peer's points.
#[derive(Debug)]
pub struct Series {
    /// How it looks.
    pub look: Look,
    /// The points.
    pub dots: Vec<Dot>,
    /// Dots are drawn as marks. Otherwise there is only the line.
    pub marked: bool,
}

/// The plot.
#[derive(Debug)]
pub struct LinePlot {
    /// What it shows, for readers who cannot see it.
    pub label: String,
    /// The parameter.
    pub x: Axis,
    /// The figure.
    pub y: Axis,
    /// The peers. Later ones are drawn above earlier ones.
    pub series: Vec<Series>,
}

impl LinePlot {
    /// The drawing. `None` if no point has a place on both axes.
    pub fn draw(&self) -> Option<String> {
        let shown = |dot: &&Dot| self.x.has(dot.x) && self.y.has(dot.y);
        let dots = || self.series.iter().flat_map(|series| &series.dots).filter(shown);
        dots().next()?;
        let x = self.x.fit(dots().map(|dot| dot.x));
        let y = self.y.fit(dots().map(|dot| dot.y));
        let mut svg =
            begin(HEIGHT, &self.label, (LEFT, WIDTH - RIGHT), &self.x, |svg| self.axes(svg, &x, &y));
        let place = |dot: &Dot| (across(&x, dot.x), up(&y, dot.y));
        for series in &self.series {
            svg.open_group(&format!("s {}", series.look.class));
            let dots: Vec<&Dot> = series.dots.iter().filter(shown).collect();
            let points: Vec<(f64, f64)> = dots.iter().map(|dot| place(dot)).collect();
            if points.len() > 1 {
                svg.path(&format!("line {}", series.look.dash), &points);
            }
            for dot in dots.iter().filter(|_| series.marked) {
                if let Some((low, high)) = spread(&self.y, dot.range) {
                    let at = across(&x, dot.x);
                    svg.line("range", (at, up(&y, low)), (at, up(&y, high)));
                }
                svg.mark(series.look.mark, place(dot), &dot.told);
            }
            if !series.marked
                && let Some(last) = dots.last()
            {
                svg.mark(series.look.mark, place(last), &last.told);
            }
            svg.close_group();
        }
        Some(svg.finish())
    }

    fn axes(&self, svg: &mut Svg, x: &Fitted, y: &Fitted) {
        let mut free = f64::INFINITY;
        for (value, name) in &y.ticks {
            let at = up(y, *value);
            svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
            if free - at > 11.0 {
                svg.text("tick", "end", (LEFT - 6.0, at + 4.0), name);
                free = at;
            }
        }
        let (bottom, mut free) = (HEIGHT - BOTTOM, f64::NEG_INFINITY);
        for (value, name) in &x.ticks {
            let at = across(x, *value);
            svg.line("grid", (at, bottom), (at, bottom + 4.0));
            let half = text_width(name) / 2.0;
            if at - half > free {
                svg.text("tick", "middle", (at.min(WIDTH - half), bottom + 17.0), name);
                free = at + half.max(TICK_APART / 2.0 - 6.0) + 4.0;
            }
        }
        svg.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
        svg.text_upwards("name", (12.0, (TOP + bottom) / 2.0), &self.y.label);
    }
}

/// The approximate width of a tick's name.
fn text_width(text: &str) -> f64 {
    7.6 * f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

/// Keeps marks at the very ends inside.
const INSET: f64 = 10.0;

fn across(x: &Fitted, value: f64) -> f64 {
    LEFT + INSET + x.at(value) * (WIDTH - LEFT - RIGHT - 2.0 * INSET)
}

fn up(y: &Fitted, value: f64) -> f64 {
    HEIGHT - BOTTOM - y.at(value) * (HEIGHT - TOP - BOTTOM)
}

/// The shape of a look. Legends use it by its name.
pub fn swatch(look: &Look, id: &str) -> String {
    let mut svg = Svg::fragment();
    svg.open_named_group(id, &format!("s {}", look.class));
    svg.path(&format!("line {}", look.dash), &[(1.0, 6.0), (25.0, 6.0)]);
    svg.mark(look.mark, (13.0, 6.0), "");
    svg.close_group();
    svg.into_fragment()
}
