//! Numbers as text.

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Operations a second.
    Rate,
    /// Bytes, large.
    Bytes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// A plain number, such as bytes a record, or a ratio.
    Plain,
}

/// A figure with its unit.
pub fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Rate if value >= 1e6 => format!("{} M/s", digits(value / 1e6)),
        Unit::Rate if value >= 1e3 => format!("{} K/s", digits(value / 1e3)),
        Unit::Rate => format!("{} /s", digits(value)),
        Unit::Bytes if value >= 1_073_741_824.0 => {
            format!("{} GiB", digits(value / 1_073_741_824.0))
        }
        Unit::Bytes => format!("{} MiB", digits(value / 1_048_576.0)),
        Unit::Seconds => format!("{} s", digits(value)),
        Unit::Milliseconds => format!("{} ms", digits(value)),
        Unit::Microseconds => format!("{} µs", digits(value)),
        Unit::Plain => digits(value),
    }
}

/// Three digits that count, or all those before the point.
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(figure(4_512_345.0, Unit::Rate), "4.51 M/s");
        assert_eq!(figure(17_500.0, Unit::Rate), "17.5 K/s");
        assert_eq!(figure(123.4, Unit::Microseconds), "123 µs");
    }
}
