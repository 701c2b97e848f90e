//! Counts in figures.

/// A count as a floating-point number. Exact up to 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "counts and times here stay far below 2^53")]
pub fn count(number: u64) -> f64 {
    number as f64
}
