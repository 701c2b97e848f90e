//! Writing SVG and the text in it.

use std::fmt::Write as _;

/// Escapes text for use inside an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no other control characters.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate to a tenth, written as short as possible.
struct At(f64);

impl std::fmt::Display for At {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

/// A drawing in progress.
#[derive(Debug)]
pub struct Svg(String);

impl Svg {
    /// Begins a drawing of this size. The label says what it shows, for readers who cannot see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", escape(label)))
    }

    /// Begins a part of a drawing.
    pub fn fragment() -> Self {
        Self(String::new())
    }

    /// Ends a part of a drawing.
    pub fn into_fragment(self) -> String {
        self.0
    }

    /// Begins a group with a class. Other places use it by its name.
    pub fn open_named_group(&mut self, id: &str, class: &str) {
        self.add(format_args!("<g id=\"{id}\" class=\"{class}\">"));
    }

    /// Ends the drawing.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }

    fn add(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(arguments);
    }

    /// Begins a group with a class.
    pub fn open_group(&mut self, class: &str) {
        self.add(format_args!("<g class=\"{class}\">"));
    }

    /// Ends a group.
    pub fn close_group(&mut self) {
        self.0.push_str("</g>");
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (At(x1), At(y1), At(x2), At(y2));
        self.add(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    /// Text; `anchor` is start, middle or end.
    pub fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        self.add(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{}\" y=\"{}\">{}</text>",
            At(x),
            At(y),
            escape(text)
        ));
    }

    /// Text at the left edge, which runs upwards.
    pub fn text_upwards(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.add(format_args!(
            "<text class=\"{class}\" text-anchor=\"middle\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{}</text>",
            escape(text)
        ));
    }

    /// A line through points, in their order.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        self.add(format_args!("<path class=\"{class}\" d=\""));
        for (at, (x, y)) in points.iter().enumerate() {
            self.add(format_args!("{}{} {}", if at == 0 { "M" } else { "L" }, At(*x), At(*y)));
        }
        self.0.push_str("\"/>");
    }

    /// A rectangle, with the text shown when the pointer is on it.
    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), told: &str) {
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\">\
             <title>{}</title></rect>",
            At(x),
            At(y),
            At(width),
            At(height),
            escape(told)
        ));
    }

    /// A mark at a point, with the text shown when the pointer is on it. [`definitions`] has its shape.
    pub fn mark(&mut self, mark: Mark, (x, y): (f64, f64), told: &str) {
        self.add(format_args!("<use href=\"#{}\" x=\"{}\" y=\"{}\">", mark.id(), At(x), At(y)));
        if !told.is_empty() {
            self.add(format_args!("<title>{}</title>", escape(told)));
        }
        self.add(format_args!("</use>"));
    }
}

/// The shapes of all marks, and other shapes that use them. A page has these once. An invisible disc makes
/// each easy to hit.
pub fn definitions(others: &str) -> String {
    let shape = |mark: &Mark| {
        format!(
            "<g id=\"{}\"><circle class=\"hit\" r=\"9\"/><path class=\"mark\" d=\"{}\"/></g>",
            mark.id(),
            mark.path()
        )
    };
    let shapes: String = MARKS.iter().map(shape).collect();
    format!(
        "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"shapes\"><defs>{shapes}{others}</defs></svg>"
    )
}

/// The shape of a mark: besides colour, the second way to tell peers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle on its base.
    Up,
    /// A triangle on its point.
    Down,
    /// A square on its point.
    Diamond,
    /// An upright cross.
    Cross,
    /// A star of five points.
    Star,
}

/// All of them.
const MARKS: [Mark; 7] =
    [Mark::Disc, Mark::Square, Mark::Up, Mark::Down, Mark::Diamond, Mark::Cross, Mark::Star];

impl Mark {
    /// The name of its shape on the page.
    fn id(self) -> String {
        format!("mark-{self:?}").to_lowercase()
    }

    /// The outline around the origin.
    fn path(self) -> String {
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            format!("M{}Z", corners.join("L"))
        };
        match self {
            Self::Disc => {
                let r = 3.6;
                format!("M-{r} 0a{r} {r} 0 1 0 {0} 0a{r} {r} 0 1 0 -{0} 0Z", 2.0 * r)
            }
            Self::Square => polygon(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
            Self::Up => polygon(&[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)]),
            Self::Down => polygon(&[(0.0, 4.2), (4.0, -3.0), (-4.0, -3.0)]),
            Self::Diamond => polygon(&[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
            Self::Cross => {
                let (a, b) = (1.4, 4.2);
                polygon(&[
                    (-a, -b),
                    (a, -b),
                    (a, -a),
                    (b, -a),
                    (b, a),
                    (a, a),
                    (a, b),
                    (-a, b),
                    (-a, a),
                    (-b, a),
                    (-b, -a),
                    (-a, -a),
                ])
            }
            Self::Star => {
                let corners: Vec<(f64, f64)> = (0..10)
                    .map(|corner| {
                        let radius = if corner % 2 == 0 { 6.0 } else { 2.5 };
                        let angle = std::f64::consts::PI * (f64::from(corner) / 5.0 - 0.5);
                        (radius * angle.cos(), radius * angle.sin())
                    })
                    .collect();
                polygon(&corners)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<a b=\"c\">'&\u{1}"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;\u{fffd}");
    }

    #[test]
    fn marks_are_closed_outlines() {
        for mark in MARKS {
            let path = mark.path();
            assert!(path.starts_with('M') && path.ends_with('Z') && !path.contains("NaN"), "{path}");
        }
    }
}
