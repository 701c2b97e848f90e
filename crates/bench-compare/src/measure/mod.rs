//! What one measurement yields, and the instruments for it.

pub mod batches;
pub mod counters;
pub mod latency;

pub use batches::count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A point of a load's course.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Records inserted by then.
    pub records: u64,
    /// Mean time of the batches since the point before, in milliseconds.
    pub mean_ms: f64,
    /// The longest of them, in milliseconds.
    pub max_ms: f64,
}

/// The figures of one measurement, by name; a name ends in its unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figures.
    pub numbers: BTreeMap<String, f64>,
    /// The times of batches over the course of a load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
}

impl Measured {
    /// Sets a figure.
    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.numbers.insert(name.to_owned(), value);
        }
    }

    /// Sets a time as `<name>_s`, and a rate of `operations` over it as `<name>_per_s`.
    pub fn set_timed(&mut self, name: &str, operations: u64, time: Duration) {
        self.set(&format!("{name}_s"), time.as_secs_f64());
        self.set(&format!("{name}_per_s"), count(operations) / time.as_secs_f64());
    }

    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}
