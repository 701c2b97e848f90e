//! Histograms of times.

use super::{Measured, count};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longer times are counted as this one.
const NANOSECONDS_MAX: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, NANOSECONDS_MAX, DIGITS)
        .expect("constant bounds that the histogram accepts")
}

/// Adds a time.
#[inline]
pub fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(NANOSECONDS_MAX).max(1));
}

/// The percentiles that are reported, with their names in figures.
pub const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// Puts the percentiles and the longest into a measurement, as `<prefix>_p50_us` and so on.
pub fn report(histogram: &Histogram<u64>, prefix: &str, into: &mut Measured) {
    if histogram.is_empty() {
        return;
    }
    for (name, quantile) in PERCENTILES {
        let value = count(histogram.value_at_quantile(quantile)) / 1e3;
        into.set(&format!("{prefix}_{name}_us"), value);
    }
    into.set(&format!("{prefix}_max_us"), count(histogram.max()) / 1e3);
}
