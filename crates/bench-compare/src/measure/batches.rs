//! How long each batch of a load took, kept in little memory.

use super::{Measured, Point, count, latency, rounded};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Points of the series that are kept for plots.
const POINTS: u64 = 150;
/// The batches are divided into this many parts. `growth` compares the last part with the first, per record.
const GROWTH_PARTS: u64 = 20;

/// The times of batches, in the order in which they ran.
#[derive(Debug)]
pub struct Batches {
    total: u64,
    seen: u64,
    histogram: Histogram<u64>,
    first: Mean,
    last: Mean,
    points: Vec<PartialPoint>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Mean {
    batches: u64,
    records: u64,
    sum: Duration,
}

impl Mean {
    #[inline]
    fn add(&mut self, time: Duration, records: u64) {
        self.batches += 1;
        self.records += records;
        self.sum += time;
    }

    fn seconds_per_batch(self) -> f64 {
        self.sum.as_secs_f64() / count(self.batches.max(1))
    }

    fn seconds_per_record(self) -> f64 {
        self.sum.as_secs_f64() / count(self.records.max(1))
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct PartialPoint {
    mean: Mean,
    max: Duration,
}

impl Batches {
    /// For this many batches.
    pub fn new(total: u64) -> Self {
        Self {
            total: total.max(1),
            seen: 0,
            histogram: latency::histogram(),
            first: Mean::default(),
            last: Mean::default(),
            points: Vec::new(),
        }
    }

    /// Adds the next batch, which has this many records.
    #[inline]
    pub fn add(&mut self, time: Duration, records: u64) {
        latency::record(&mut self.histogram, time);
        let part = self.total.div_ceil(GROWTH_PARTS);
        if self.seen < part {
            self.first.add(time, records);
        }
        if self.seen + part >= self.total {
            self.last.add(time, records);
        }
        if self.seen * POINTS / self.total >= u64::try_from(self.points.len()).unwrap_or(u64::MAX) {
            self.points.push(PartialPoint::default());
        }
        if let Some(point) = self.points.last_mut() {
            point.mean.add(time, records);
            point.max = point.max.max(time);
        }
        self.seen += 1;
    }

    /// Puts the summary into a measurement.
    pub fn report(&self, into: &mut Measured) {
        let milliseconds = |nanoseconds: u64| count(nanoseconds) / 1e6;
        into.set("batches", count(self.seen));
        into.set("batch_mean_ms", self.histogram.mean() / 1e6);
        into.set("batch_p99_ms", milliseconds(self.histogram.value_at_quantile(0.99)));
        into.set("batch_max_ms", milliseconds(self.histogram.max()));
        let (first, last) = (self.first.seconds_per_record(), self.last.seconds_per_record());
        // A load that was stopped has no last part.
        if first > 0.0 && last > 0.0 {
            into.set("growth", last / first);
        }
        let mut done = 0;
        into.series = self
            .points
            .iter()
            .map(|point| {
                done += point.mean.records;
                Point {
                    records: done,
                    mean_ms: rounded(point.mean.seconds_per_batch() * 1e3),
                    max_ms: rounded(point.max.as_secs_f64() * 1e3),
                }
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_compares_the_last_twentieth_with_the_first() {
        let mut batches = Batches::new(100);
        for number in 0..100 {
            let milliseconds = if number >= 95 { 30 } else { 10 };
            batches.add(Duration::from_millis(milliseconds), 10);
        }
        let mut measured = Measured::default();
        batches.report(&mut measured);
        assert!((measured.get("growth").unwrap_or(0.0) - 3.0).abs() < 0.01);
        assert_eq!(measured.series.len(), 100);
        assert_eq!(measured.series.last().map(|point| point.records), Some(1000));
    }

    #[test]
    fn a_load_that_was_stopped_has_no_growth() {
        let mut batches = Batches::new(100);
        for _ in 0..50 {
            batches.add(Duration::from_millis(10), 10);
        }
        let mut measured = Measured::default();
        batches.report(&mut measured);
        assert_eq!(measured.get("growth"), None);
    }
}
