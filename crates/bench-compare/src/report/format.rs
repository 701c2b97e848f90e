//! Numbers as text.

use crate::numbers::grouped;

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Operations a second.
    Rate,
    /// Many bytes.
    Bytes,
    /// A whole number.
    Count,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// A plain number, such as bytes per record, or a ratio.
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
        Unit::Count => format!("{value:.0}").parse().map_or_else(|_| digits(value), grouped),
        Unit::Plain => digits(value),
    }
}

/// A number in the least room: `33.1M`.
pub fn compact(value: f64) -> String {
    match value {
        large if large >= 1e6 => format!("{}M", digits(large / 1e6)),
        middle if middle >= 1e3 => format!("{}K", digits(middle / 1e3)),
        small => digits(small),
    }
}

/// Three significant digits, or all digits before the point if there are more.
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A round number beside an axis, as short as possible.
pub fn tick(value: f64, unit: Unit) -> String {
    const STEPS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "K")];
    let short = |value: f64| {
        let text = format!("{value:.3}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        if text == "0" && value != 0.0 { format!("{value:.0e}") } else { text.to_owned() }
    };
    let scaled = |value: f64| match STEPS.iter().find(|(step, _)| value.abs() >= *step) {
        Some((step, letter)) => format!("{}{letter}", short(value / step)),
        None => short(value),
    };
    let scaled_times = |value: f64, units: [&str; 3]| match value {
        large if large >= 1e6 => format!("{} {}", short(large / 1e6), units[2]),
        middle if middle >= 1e3 => format!("{} {}", short(middle / 1e3), units[1]),
        small => format!("{} {}", short(small), units[0]),
    };
    match unit {
        _ if value == 0.0 => "0".to_owned(),
        Unit::Rate => scaled(value),
        Unit::Bytes if value >= 1_073_741_824.0 => format!("{} GiB", short(value / 1_073_741_824.0)),
        Unit::Bytes => format!("{} MiB", short(value / 1_048_576.0)),
        Unit::Seconds => format!("{} s", short(value)),
        Unit::Milliseconds => scaled_times(value, ["ms", "s", "ks"]),
        Unit::Microseconds => scaled_times(value, ["µs", "ms", "s"]),
        Unit::Count | Unit::Plain => scaled(value),
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
        assert_eq!(figure(8192.0, Unit::Count), "8,192");
    }

    #[test]
    fn compact_numbers_have_no_unit() {
        assert_eq!([4_782_345.0, 999_400.0, 4.102].map(compact), ["4.78M", "999K", "4.10"]);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick(2e6, Unit::Rate), "2M");
        assert_eq!(tick(2500.0, Unit::Rate), "2.5K");
        assert_eq!(tick(0.5, Unit::Milliseconds), "0.5 ms");
        assert_eq!(tick(100_000.0, Unit::Microseconds), "100 ms");
        assert_eq!(tick(-10.0, Unit::Plain), "-10");
        assert_eq!(tick(100.0, Unit::Plain), "100");
    }
}
