//! Verifies a repository: every point, and every byte of every chunk that a point names.

use super::repository::Repository;
use crate::base::error::Result;
use crate::engine::Progress;
use crate::format::point::Piece;
use std::collections::BTreeMap;

/// What [`Repository::verify`] has found.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-verifyreport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// db.backup(&saved, |_| {})?;
/// let report = azekura::Repository::open(&saved)?.verify(|_| {})?;
/// assert_eq!((report.points, report.problems.len()), (1, 0));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Points that can be read.
    pub points: u64,
    /// Different chunks that they name, and their bytes.
    pub chunks: u64,
    /// See `chunks`.
    pub bytes: u64,
    /// Files that no point names, as backups that were cut off leave them. [`Repository::prune`] removes
    /// them.
    pub unused: u64,
    /// What is wrong, and which points it concerns. Empty if the repository is sound.
    pub problems: Vec<String>,
}

impl Repository<'_> {
    /// Reads and verifies all that its points name. No database is needed. `progress` is called now and then.
    ///
    /// # Errors
    /// `Open` if the directories cannot be read at all; `Locked`. Damage is no error: it is in the report.
    pub fn verify(&self, mut progress: impl FnMut(Progress)) -> Result<VerifyReport> {
        let _shared = self.lock(false)?;
        let mut report = VerifyReport::default();
        let mut named: BTreeMap<String, (Piece, Vec<u64>)> = BTreeMap::new();
        for number in self.numbers()? {
            match self.read_point(number) {
                Ok(point) => {
                    report.points += 1;
                    for piece in point.pieces {
                        let entry = named.entry(piece.name(self.identity));
                        entry.or_insert_with(|| (piece, Vec::new())).1.push(number);
                    }
                }
                Err(e) => report.problems.push(format!("point {number}: {e}")),
            }
        }
        report.chunks = named.len() as u64;
        report.bytes = named.values().map(|(piece, _)| u64::from(piece.bytes)).sum();
        let names = self.names_in(&self.chunks())?;
        report.unused = names.iter().filter(|name| !named.contains_key(*name)).count() as u64;
        let mut step = Progress { done: 0, total: report.bytes };
        let mut buffer = Vec::new();
        for (piece, points) in named.values() {
            if let Err(e) = self.read_chunk(piece, &mut buffer) {
                report.problems.push(format!("{}: {e}", whose(points)));
            }
            step.done += u64::from(piece.bytes);
            progress(step);
        }
        Ok(report)
    }
}

/// The points that a chunk belongs to, in words.
fn whose(points: &[u64]) -> String {
    match points {
        [one] => format!("point {one}"),
        [first, .., last] => format!("{} points from {first} to {last}", points.len()),
        [] => String::new(),
    }
}
