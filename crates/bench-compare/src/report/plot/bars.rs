//! A bar for each peer, with the best first.

use super::scale::{Axis, Fitted, Scale};
use super::svg::Svg;
use super::{WIDTH, begin, spread};
use crate::report::page::palette::Look;

/// The room for figures after the longest bar.
const RIGHT: f64 = 84.0;
/// The room for names before the bars: the least, the most, and that of a letter.
const NAME_MIN: f64 = 90.0;
const NAME_MAX: f64 = 190.0;
const LETTER: f64 = 7.6;
const STEP: f64 = 21.0;
const BAR: f64 = 14.0;
const BOTTOM: f64 = 24.0;
/// Bars begin here on a logarithmic axis, so that the smallest has one too.
const LOG_STUB: f64 = 0.03;

/// A peer's figure.
#[derive(Debug)]
pub struct Bar {
    /// How it looks.
    pub look: Look,
    /// Its name.
    pub title: String,
    /// The figure.
    pub value: f64,
    /// Its range over the repetitions.
    pub range: Option<(f64, f64)>,
    /// The figure as text.
    pub shown: String,
    /// The text shown when the pointer is on it.
    pub told: String,
    /// It is Azekura's.
    pub ours: bool,
}

/// The bars, in the order in which to draw them.
#[derive(Debug)]
pub struct Bars {
    /// What they show, for readers who cannot see it.
    pub label: String,
    /// The figure.
    pub axis: Axis,
    /// The peers.
    pub bars: Vec<Bar>,
}

impl Bars {
    /// The drawing. `None` if no figure has a place on the axis.
    pub fn draw(&self) -> Option<String> {
        let shown: Vec<&Bar> = self.bars.iter().filter(|bar| self.axis.has(bar.value)).collect();
        shown.first()?;
        let count = f64::from(u32::try_from(shown.len()).unwrap_or(u32::MAX));
        let height = count * STEP + BOTTOM;
        let fitted = self.axis.fit(shown.iter().map(|bar| bar.value));
        let letters = shown.iter().map(|bar| bar.title.chars().count()).max().unwrap_or(0);
        let left =
            (LETTER * f64::from(u32::try_from(letters).unwrap_or(u32::MAX)) + 8.0).clamp(NAME_MIN, NAME_MAX);
        let foot = height - BOTTOM + 2.0;
        let mut svg = begin(height, &self.label, (left, WIDTH - RIGHT), &self.axis, |svg| {
            svg.line("axis", (left, 2.0), (left, foot));
        });
        let mut middle = STEP / 2.0 + 1.0;
        for bar in shown {
            self.one(&mut svg, &fitted, bar, (left, middle));
            middle += STEP;
        }
        Some(svg.finish())
    }

    fn one(&self, svg: &mut Svg, fitted: &Fitted, bar: &Bar, (left, middle): (f64, f64)) {
        let along = |value: f64| {
            let stub = if self.axis.scale == Scale::Log { LOG_STUB } else { 0.0 };
            left + (stub + (1.0 - stub) * fitted.at(value)) * (WIDTH - left - RIGHT)
        };
        let ours = if bar.ours { " ours" } else { "" };
        svg.open_group(&format!("s {}", bar.look.class));
        svg.text(&format!("peer{ours}"), "end", (left - 6.0, middle + 4.0), &bar.title);
        let end = along(bar.value);
        let width = (end - left).max(1.0);
        svg.bar(&format!("bar{ours}"), (left, middle - BAR / 2.0), (width, BAR), &bar.told);
        let mut after = end;
        if let Some((low, high)) = spread(&self.axis, bar.range) {
            svg.line("whisker", (along(low), middle), (along(high), middle));
            after = after.max(along(high));
        }
        svg.text(&format!("figure{ours}"), "start", (after + 5.0, middle + 4.0), &bar.shown);
        svg.close_group();
    }
}
