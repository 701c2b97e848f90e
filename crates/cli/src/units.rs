//! Sizes and counts, read from arguments and written for people.
//!
//! In arguments, bytes are `64`, `4KiB`, `512M`, `1.5GiB` (powers of 1024; `kB`, `MB`, `GB` are powers of
//! 1000), and counts are `1000000`, `1_000_000`, `250k`, `10M` (powers of 1000).

use std::time::Duration;

/// Parses a number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("{unit:?} is no unit of bytes (try 512MiB)")),
    };
    scale(number, factor)
}

/// Parses a count.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" | "b" | "B" => 1_000_000_000,
        _ => return Err(format!("{unit:?} is no unit of a count (try 10M)")),
    };
    scale(number, factor)
}

/// Parses a count of at least one.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Parses a positive number of seconds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let text = text.trim().trim_end_matches('s');
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(seconds)
    } else {
        Err("must be between 0 and 86400 seconds".to_owned())
    }
}

/// Parses a time to live: a number of seconds, at least a millisecond.
pub fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let text = text.trim().trim_end_matches('s');
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        Err(_) if seconds > 1.0 => Err("is too large".to_owned()),
        _ => Err("must be at least 0.001 seconds".to_owned()),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim_end(), &text[end..])
}

fn scale(number: &str, factor: u64) -> Result<u64, String> {
    let digits: String = number.chars().filter(|&c| c != '_' && c != ',').collect();
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| "too large".to_owned());
    }
    let fraction: f64 = digits.parse().map_err(|_| format!("{number:?} is no number"))?;
    let scaled = fraction * as_f64(factor);
    if !(0.0..9e18).contains(&scaled) {
        return Err("out of range".to_owned());
    }
    format!("{scaled:.0}").parse().map_err(|_| "out of range".to_owned())
}

/// The nearest floating-point number. Figures for people need no more.
pub fn as_f64(number: u64) -> f64 {
    number as f64
}

/// With separated thousands: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 commit`, `1,200 commits`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The contents of a log: `1 commit, 1,200 records`.
pub fn log(commits: u64, records: u64) -> String {
    format!("{}, {}", counted(commits, "commit"), counted(records, "record"))
}

/// Bytes in a fitting decimal unit, to three figures: `12.6 MB`.
pub fn bytes(number: u64) -> String {
    let (figure, prefix) = scaled(as_f64(number));
    if prefix.is_empty() { format!("{number} B") } else { format!("{figure} {prefix}B") }
}

/// A rate in a fitting unit, to three figures: `12.6M/s`.
pub fn rate(per_second: f64) -> String {
    let (figure, prefix) = scaled(per_second);
    format!("{figure}{prefix}/s")
}

fn scaled(number: f64) -> (String, &'static str) {
    const STEPS: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    // 999.5 and more would round to four figures, so they take the next unit.
    let (unit, prefix) = STEPS.into_iter().find(|(unit, _)| number >= unit * 0.9995).unwrap_or((1.0, ""));
    (figures(number / unit), prefix)
}

/// Three significant figures, without an exponent: `1.23`, `12.3`, `123`.
pub fn figures(number: f64) -> String {
    if number >= 99.95 {
        format!("{number:.0}")
    } else if number >= 9.995 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

/// A duration in a fitting unit: `1.20 s`, `5.31 ms`, `850 µs`.
pub fn seconds(duration_s: f64) -> String {
    if duration_s >= 0.9995 {
        format!("{} s", figures(duration_s))
    } else if duration_s >= 0.000_999_5 {
        format!("{} ms", figures(duration_s * 1e3))
    } else {
        format!("{} µs", figures(duration_s * 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_parsed_with_their_units() {
        assert_eq!(parse_bytes("0"), Ok(0));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("512m"), Ok(512 << 20));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("2MB"), Ok(2_000_000));
        assert!(parse_bytes("12 apples").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("-1").is_err());
        assert!(parse_bytes("99999999999T").is_err());
    }

    #[test]
    fn counts_are_parsed_with_their_units() {
        assert_eq!(parse_count("1_000,000"), Ok(1_000_000));
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_count("2.5k"), Ok(2_500));
        assert!(parse_positive("0").is_err());
        assert!(parse_count("many").is_err());
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(log(1, 1_200), "1 commit, 1,200 records");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(bytes(12_582_912), "12.6 MB");
        assert_eq!(rate(12_345_678.0), "12.3M/s");
        assert_eq!(seconds(0.00531), "5.31 ms");
    }
}
