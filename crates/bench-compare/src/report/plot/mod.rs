//! Plots as inline SVG: lines over a parameter, and bars. Each peer has a class, and the page's style sheet
//! has the colours. So one drawing serves light and dark.

mod bars;
mod lines;
mod scale;
mod svg;

pub use bars::{Bar, Bars};
pub use lines::{Dot, LinePlot, Series, swatch};
pub use scale::{Axis, Scale};
pub use svg::{Mark, definitions, escape};

/// The width in which plots are drawn. The page makes them as wide as there is room.
const WIDTH: f64 = 460.0;

/// Begins a plot. `axes` draws into a group of its own. The name of the foot's axis stands between `left` and
/// `right`.
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
