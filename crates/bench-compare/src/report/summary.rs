//! The median of repetitions, and their range.

use crate::runner::{CaseResult, Row};

/// A figure over repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates.
    Higher,
    /// Times and sizes.
    Lower,
    /// Neither.
    Neither,
}

impl Figure {
    /// Of some values; none of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median =
            if values.len().is_multiple_of(2) { f64::midpoint(*values.get(middle - 1)?, upper) } else { upper };
        Some(Self { median, min, max })
    }

    /// Of a row.
    pub fn in_row(row: &Row, name: &str) -> Option<Self> {
        Self::of(row.outcomes.iter().filter_map(|outcome| outcome.measured.get(name)).collect())
    }
}

impl CaseResult {
    /// A figure of the entrant of this name.
    pub fn figure(&self, entrant: &str, name: &str) -> Option<Figure> {
        let row = self.rows.iter().find(|row| row.entrant.name == entrant)?;
        Figure::in_row(row, name)
    }

    /// The best of the peers in a figure, Azekura and references aside.
    pub fn best_peer(&self, name: &str, better: Better) -> Option<(&'static str, f64)> {
        let peers = self.rows.iter().filter(|row| !row.entrant.ours && !row.entrant.reference);
        let figures = peers.filter_map(|row| Some((row.entrant.name, Figure::in_row(row, name)?.median)));
        let by_figure = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
        match better {
            Better::Higher => figures.max_by(by_figure),
            Better::Lower => figures.min_by(by_figure),
            Better::Neither => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let figure = |values: &[f64]| Figure::of(values.to_vec()).map(|figure| figure.median);
        assert_eq!(figure(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(figure(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(figure(&[]), None);
    }
}
