//! Plots as inline SVG: lines over a parameter, and bars. They take their colours from the page's
//! style sheet, by a class a peer, so that one drawing serves light and dark.

mod bars;
mod lines;
mod scale;
mod svg;

pub use bars::{Bar, Bars};
pub use lines::{Dot, LinePlot, Series, swatch};
pub use scale::{Axis, Scale};
pub use svg::{Mark, definitions, escape};

/// How wide plots are drawn; the page makes them as wide as there is room.
const WIDTH: f64 = 460.0;

/// Begins a plot: what `axes` draws in a group of its own, and the name of the axis at the foot, between
/// `left` and `right`.
fn begin(
    height: f64,
    label: &str,
    (left, right): (f64, f64),
    foot: &Axis,
    axes: impl FnOnce(&mut svg::Svg),
) -> svg::Svg {
    let mut svg = svg::Svg::new(WIDTH, height, label);
    svg.open_group("axes");
    axes(&mut svg);
    svg.text("name", "middle", ((left + right) / 2.0, height - 6.0), &foot.label);
    svg.close_group();
    svg
}

/// A range over the repetitions, if there is one to draw.
fn spread(axis: &Axis, range: Option<(f64, f64)>) -> Option<(f64, f64)> {
    range.filter(|(low, high)| axis.has(*low) && high > low)
}
