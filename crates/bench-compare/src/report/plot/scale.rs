//! From numbers to positions along an axis, and the ticks that have names.

use crate::report::format::{Unit, tick};

/// How numbers are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly from zero, or from less if there is less.
    Linear,
    /// Evenly by factor. Values that are not above zero are left out.
    Log,
    /// Evenly by factor on both sides of zero, and linear around it.
    SymLog,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with the unit and which direction is better.
    pub label: String,
    /// The unit in the names of ticks.
    pub unit: Unit,
    /// How it is laid out.
    pub scale: Scale,
    /// The named places, if they are not chosen by the range.
    pub ticks: Option<Vec<(f64, String)>>,
}

impl Axis {
    /// An axis whose ticks are chosen by the range.
    pub fn new(label: impl Into<String>, unit: Unit, scale: Scale) -> Self {
        Self { label: label.into(), unit, scale, ticks: None }
    }

    /// An axis with given ticks.
    pub fn with_ticks(label: impl Into<String>, scale: Scale, ticks: Vec<(f64, String)>) -> Self {
        Self { label: label.into(), unit: Unit::Plain, scale, ticks: Some(ticks) }
    }

    /// Whether the axis has a place for a number.
    pub fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Log || value > 0.0)
    }

    /// Lays out the axis for those numbers that have a place on it.
    pub fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| self.has(*value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        let ticks = match &self.ticks {
            Some(ticks) => ticks.clone(),
            None => {
                let values = match self.scale {
                    Scale::Linear => {
                        low = low.min(0.0);
                        linear_ticks(low, high)
                    }
                    Scale::Log => {
                        // A little room, so that nothing lies on the frame.
                        let room = (high / low).powf(LOG_ROOM).max(1.15);
                        (low, high) = (low / room, high * room);
                        log_ticks(low, high)
                    }
                    Scale::SymLog => symlog_ticks(low, high),
                };
                values.into_iter().map(|value| (value, tick(value, self.unit))).collect()
            }
        };
        let extended = |from: f64, with: Option<&(f64, String)>, least: bool| match with {
            Some((value, _)) if least => from.min(*value),
            Some((value, _)) => from.max(*value),
            None => from,
        };
        let (low, high) = (extended(low, ticks.first(), true), extended(high, ticks.last(), false));
        Fitted { low: self.warp(low), high: self.warp(high), scale: self.scale, ticks }
    }

    fn warp(&self, value: f64) -> f64 {
        warp(self.scale, value)
    }
}

/// An axis that is laid out.
#[derive(Debug)]
pub struct Fitted {
    low: f64,
    high: f64,
    scale: Scale,
    /// Places with their names, in ascending order.
    pub ticks: Vec<(f64, String)>,
}

impl Fitted {
    /// The position of a number, from 0 at the start to 1 at the end.
    pub fn at(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        if span > 0.0 { ((warp(self.scale, value) - self.low) / span).clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// Room at both ends of a logarithmic axis, as a share of the range.
const LOG_ROOM: f64 = 0.06;
/// Where the linear part of [`Scale::SymLog`] ends.
const SYMLOG_LINEAR: f64 = 10.0;

fn warp(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
        Scale::SymLog => value.signum() * (1.0 + value.abs() / SYMLOG_LINEAR).log10(),
    }
}

/// Round numbers, four to seven of them. They reach from at most the low end to at least the high end.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let span = (high - low).max(1e-9);
    let power = 10f64.powf((span / 5.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| span / step <= 5.5);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    whole_numbers(first, last).map(|number| number * step).collect()
}

/// Powers of ten within the range. If there are few, there are more ticks between them. If there are many,
/// some are left out.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let every = ((last - first) / 7.0).ceil().max(1.0);
    let sets: [&[f64]; 3] = [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]];
    let ticks = |factors: &[f64]| -> Vec<f64> {
        let steps = whole_numbers(0.0, (last - first) / every);
        let all = steps
            .flat_map(|step| factors.iter().map(move |factor| factor * 10f64.powf(first + step * every)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    sets.iter()
        .map(|factors| ticks(factors))
        .find(|ticks| ticks.len() >= 3)
        .unwrap_or_else(|| vec![low, high])
}

fn symlog_ticks(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [f64; 7] = [10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0];
    let mut ticks: Vec<f64> =
        STEPS.iter().rev().map(|step| -step).filter(|tick| *tick >= low * 2.0).collect();
    ticks.push(0.0);
    ticks.extend(STEPS.iter().filter(|tick| **tick <= high * 1.01));
    ticks
}

/// From the first to the last, both included, at most 64.
fn whole_numbers(first: f64, last: f64) -> impl Iterator<Item = f64> {
    (0..64u32).map(move |step| first + f64::from(step)).take_while(move |number| *number <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: Scale, low: f64, high: f64) -> Vec<f64> {
        let fitted = Axis::new("", Unit::Plain, scale).fit([low, high].into_iter());
        assert!(fitted.at(low) >= 0.0 && fitted.at(high) <= 1.0 && fitted.at(low) < fitted.at(high));
        fitted.ticks.iter().map(|(value, _)| *value).collect()
    }

    #[test]
    fn ticks_are_round_and_span_the_numbers() {
        assert_eq!(ticks(Scale::Linear, 3.0, 47.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(Scale::Log, 1200.0, 3e7), [1e3, 1e4, 1e5, 1e6, 1e7]);
        assert_eq!(ticks(Scale::Log, 30.0, 400.0), [50.0, 100.0, 200.0]);
        assert_eq!(ticks(Scale::SymLog, -8.0, 60.0), [-10.0, 0.0, 10.0, 30.0]);
    }

    #[test]
    fn a_single_number_and_none_have_places_too() {
        for scale in [Scale::Linear, Scale::Log, Scale::SymLog] {
            let axis = Axis::new("", Unit::Plain, scale);
            for values in [vec![], vec![5.0], vec![f64::NAN, 5.0, f64::INFINITY]] {
                let at = axis.fit(values.into_iter()).at(5.0);
                assert!((0.0..=1.0).contains(&at), "{scale:?} {at}");
            }
        }
        assert!(!Axis::new("", Unit::Plain, Scale::Log).has(0.0));
    }
}
