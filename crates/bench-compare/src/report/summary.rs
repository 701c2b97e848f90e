//! The median of repetitions, their range, and Azekura's compared with the best peer's.

pub use super::better::Better;

use super::columns::{self, Column};
use crate::measure::LOAD;
use crate::results::{CaseResult, Entrant, Row};

/// A figure over several repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Figure {
    /// From some values. `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(*values.get(middle - 1)?, upper)
        } else {
            upper
        };
        Some(Self { median, min, max })
    }

    /// From a row.
    pub fn in_row(row: &Row, name: &str) -> Option<Self> {
        Self::of(row.outcomes.iter().filter_map(|outcome| outcome.measured.get(name)).collect())
    }

    /// The range, if there were several repetitions.
    pub fn range(self) -> Option<(f64, f64)> {
        (self.max > self.min).then_some((self.min, self.max))
    }
}

impl Row {
    /// The phases stopped in the first repetition because their time was over. They are mostly the same in
    /// all.
    pub fn stopped(&self) -> &[String] {
        self.outcomes.first().map_or(&[], |outcome| &outcome.measured.stopped)
    }

    /// Whether fewer records were put than were asked for.
    pub fn load_stopped(&self) -> bool {
        self.stopped().iter().any(|note| note.starts_with(LOAD))
    }
}

impl CaseResult {
    /// The row of the entrant of this name.
    pub fn row(&self, entrant: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.entrant.name == entrant)
    }

    /// A figure of the entrant of this name.
    pub fn figure(&self, entrant: &str, name: &str) -> Option<Figure> {
        Figure::in_row(self.row(entrant)?, name)
    }

    /// The best of the peers in a figure, Azekura and references aside.
    pub fn best_peer(&self, name: &str, better: Better) -> Option<(&Entrant, f64)> {
        self.best(name, better, |entrant| !entrant.ours && !entrant.reference)
    }

    /// The better of Azekura's kinds in a figure.
    pub fn best_of_ours(&self, name: &str, better: Better) -> Option<(&Entrant, f64)> {
        self.best(name, better, |entrant| entrant.ours)
    }

    /// The best in a figure among the chosen entrants.
    fn best(&self, name: &str, better: Better, chosen: impl Fn(&Entrant) -> bool) -> Option<(&Entrant, f64)> {
        let rows = self.rows.iter().filter(|row| chosen(&row.entrant));
        let figures = rows.filter_map(|row| Some((&row.entrant, Figure::in_row(row, name)?.median)));
        let by_figure = |a: &(&Entrant, f64), b: &(&Entrant, f64)| a.1.total_cmp(&b.1);
        match better {
            Better::Higher => figures.max_by(by_figure),
            Better::Lower => figures.min_by(by_figure),
            Better::Neither => None,
        }
    }

    /// The workload's headline figures that both Azekura and a peer have.
    pub fn duels(&self) -> Vec<Duel<'_>> {
        columns::headlines(&self.case).filter_map(|column| self.duel(column)).collect()
    }

    fn duel(&self, column: &'static Column) -> Option<Duel<'_>> {
        let (ours, our_figure) = self.best_of_ours(column.name, column.better)?;
        let (peer, peer_figure) = self.best_peer(column.name, column.better)?;
        let factor = match column.better {
            Better::Lower => peer_figure / our_figure,
            _ => our_figure / peer_figure,
        };
        let peer_stopped = self.row(&peer.name).is_some_and(Row::load_stopped);
        let sound = factor.is_finite() && factor > 0.0;
        sound.then_some(Duel { column, ours, our_figure, peer, peer_stopped, peer_figure, factor })
    }
}

/// The better of Azekura's kinds against the best peer in one figure.
#[derive(Debug)]
pub struct Duel<'a> {
    /// The figure.
    pub column: &'static Column,
    /// The better kind.
    pub ours: &'a Entrant,
    /// Its figure.
    pub our_figure: f64,
    /// The best peer.
    pub peer: &'a Entrant,
    /// Its load was stopped, so its figure is for fewer records.
    pub peer_stopped: bool,
    /// Its figure.
    pub peer_figure: f64,
    /// How many times better Azekura is. Below 1 it is worse.
    pub factor: f64,
}

/// How a duel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Azekura is better.
    Won,
    /// They differ by at most three per cent, which is less than runs differ from each other.
    Even,
    /// The peer is better.
    Lost,
}

impl Duel<'_> {
    /// The best peer's title. It is marked if the figure is for fewer records.
    pub fn peer_title(&self) -> String {
        format!("{}{}", self.peer.title, if self.peer_stopped { " †" } else { "" })
    }

    /// How it ended.
    pub fn end(&self) -> End {
        match self.factor {
            factor if factor > 1.03 => End::Won,
            factor if factor < 1.0 / 1.03 => End::Lost,
            _ => End::Even,
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
