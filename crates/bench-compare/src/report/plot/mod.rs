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
