//! The results of one measurement, and the instruments for it.

pub mod batches;
mod count;
pub mod latency;

use crate::numbers::grouped;
use crate::peers::Store;
pub use count::count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The name of a load in notes that it was stopped.
pub const LOAD: &str = "load";

/// A point in the course of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Records inserted by then.
    pub records: u64,
    /// Mean time of the batches since the point before, in milliseconds.
    pub mean_ms: f64,
    /// The longest of these batches, in milliseconds.
    pub max_ms: f64,
}

/// The figures of one measurement, by name. A name ends in its unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figures.
    pub numbers: BTreeMap<String, f64>,
    /// The times of batches over the course of a load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
    /// The phases that were stopped because their time was over, and how much each had done. Rates refer to
    /// that part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
}

impl Measured {
    /// Sets a figure.
    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.numbers.insert(name.to_owned(), rounded(value));
        }
    }

    /// Sets a count.
    pub fn set_count(&mut self, name: &str, value: u64) {
        self.set(name, count(value));
    }

    /// Sets a time as `<name>_s`, and a rate of `operations` over it as `<name>_per_s`.
    pub fn set_timed(&mut self, name: &str, operations: u64, time: Duration) {
        self.set(&format!("{name}_s"), time.as_secs_f64());
        self.set(&format!("{name}_per_s"), count(operations) / time.as_secs_f64());
    }

    /// Notes that a phase was stopped, if it did less than everything.
    pub fn note_stopped(&mut self, phase: &str, done: u64, all: u64) {
        if done < all {
            self.stopped.push(format!("{phase} at {} of {}", grouped(done), grouped(all)));
        }
    }

    /// How many records the load put.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that was set as one"
    )]
    pub fn loaded(&self) -> u64 {
        self.get("records").unwrap_or(0.0) as u64
    }

    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

/// Whole numbers stay as they are, others are rounded to six digits. More digits are noise, and make the
/// files of results long.
pub fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 { value } else { format!("{value:.5e}").parse().unwrap_or(value) }
}

/// Measures the time of a peer's calls. These are made either here or in its helper process.
pub struct Watch<'a> {
    store: &'a dyn Store,
    began: Instant,
    began_there: Option<Duration>,
}

impl<'a> Watch<'a> {
    /// Starts.
    pub fn start(store: &'a dyn Store) -> Self {
        let began_there = store.clock();
        Self { store, began: Instant::now(), began_there }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        let here = self.began.elapsed();
        match (self.began_there, self.store.clock()) {
            (Some(began), Some(now)) => now.saturating_sub(began),
            _ => here,
        }
    }

    /// The time since the start, or since the last lap.
    pub fn lap(&mut self) -> Duration {
        if self.began_there.is_none() {
            let now = Instant::now();
            return now - std::mem::replace(&mut self.began, now);
        }
        let elapsed = self.elapsed();
        self.began_there = self.began_there.map(|began| began + elapsed);
        elapsed
    }
}

/// The end of the time that a phase may take, if there is a limit.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// This many seconds from now.
    pub fn after(seconds: Option<f64>) -> Self {
        Self(seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds)))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}
