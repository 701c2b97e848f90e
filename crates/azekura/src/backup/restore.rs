//! A point of a repository, as a database again.

use super::files::{failed, inside};
use super::repository::{PointInfo, Repository, time_of};
use super::target::Target;
use crate::base::codec::usize_of;
use crate::base::error::{Error, Result};
use crate::engine::Progress;
use crate::format::point::{Piece, Point};
use crate::storage::OpenMode;
use std::path::Path;
use std::time::SystemTime;

/// What of a repository is restored.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-which-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// use azekura::{Repository, Which};
/// db.backup(&saved, |_| {})?;
/// let again = path.with_extension("again.azk");
/// Repository::open(&saved)?.restore(Which::Point(1), &again, |_| {})?;
/// # std::fs::remove_file(&again).unwrap();
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The newest point: that with the last commit.
    Newest,
    /// The point of this number.
    Point(u64),
    /// The database with exactly the commits up to this one: a point that has no other ones, or whose log
    /// tells them apart ([`PointInfo::first_commit`]).
    Commit(u64),
    /// The newest point that began at this time or before. Of one whose log was kept
    /// ([`Db::keep_log`](crate::Db::keep_log)), the last commit that was read from the log by then, to within
    /// a second.
    Time(SystemTime),
}

/// What [`Repository::restore`] and [`restore_stream`](super::restore_stream) have done.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-restorereport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// use azekura::{Repository, Which};
/// db.backup(&saved, |_| {})?;
/// let again = path.with_extension("again.azk");
/// let report = Repository::open(&saved)?.restore(Which::Newest, &again, |_| {})?;
/// assert_eq!((report.point.number, report.point.tables), (1, 1));
/// # std::fs::remove_file(&again).unwrap();
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// The point; in a stream its number is 0.
    pub point: PointInfo,
    /// Bytes that were read, and verified.
    pub bytes: u64,
}

/// The last commit that a point has of a time. None if it began later.
fn as_old_as(point: &Point, time: SystemTime) -> Option<u64> {
    if point.marks.is_empty() {
        return (time_of(point.time_ms) <= time).then_some(point.commit);
    }
    point.marks.iter().rev().find(|mark| time_of(mark.time_ms) <= time).map(|mark| mark.commit)
}

impl Repository<'_> {
    /// Makes the database `out`, which must not be there, of a point. It gets its name when it is whole and
    /// durable. Each byte is verified on the way. The new database has a lineage of its own: its backups go
    /// to another repository. `progress` is called now and then.
    ///
    /// # Errors
    /// `Invalid` if there is no such point, `Corrupt` if it, or a chunk of it, is damaged, `Open` if `out` is
    /// there or a chunk is not, `NoSpace`. Nothing is left of a copy that is not whole.
    pub fn restore(
        &self,
        which: Which,
        out: impl AsRef<Path>,
        mut progress: impl FnMut(Progress),
    ) -> Result<RestoreReport> {
        let _shared = self.lock(false)?;
        let (point, until) = self.find(which)?;
        let mut target = Target::create(self.storage, out.as_ref())?;
        target.reserve(point.end())?;
        let mut step = Progress { done: 0, total: point.bytes() };
        let mut buffer = Vec::new();
        for piece in &point.pieces {
            self.read_chunk(piece, &mut buffer)?;
            target.put(piece, &buffer)?;
            step.done += u64::from(piece.bytes);
            progress(step);
        }
        let point = target.finish(point, until)?;
        Ok(RestoreReport { point: PointInfo::of(&point), bytes: step.done })
    }

    /// Reads a chunk into `buffer`, and verifies it.
    pub(super) fn read_chunk(&self, piece: &Piece, buffer: &mut Vec<u8>) -> Result<()> {
        let path = self.chunk(piece);
        let during = "reading a chunk of the backup";
        let at = failed(&path, during);
        let file = self.storage.open(&path, OpenMode::ReadOnly).map_err(&at)?;
        let len = file.len().map_err(&at)?;
        if len != u64::from(piece.bytes) {
            let detail = format!("it has {len} bytes, expected {}", piece.bytes);
            return Err(inside(&path)(Error::corrupt("chunk", 0, detail)));
        }
        buffer.resize(usize_of(piece.bytes), 0);
        file.read_at(buffer, 0).map_err(&at)?;
        piece.verify(buffer).map_err(inside(&path))
    }

    /// The point that is meant, and the commit if it is an earlier one of its log. A damaged point with a
    /// larger number than the answer's is an error, for it might be the answer.
    fn find(&self, which: Which) -> Result<(Point, Option<u64>)> {
        let numbers = self.numbers()?;
        match which {
            Which::Point(number) => self.read_point(number).map(|point| (point, None)),
            Which::Newest => self.find_last(&numbers, "it has no point", |point| Some(point.commit)),
            Which::Commit(commit) => self.find_commit(&numbers, commit).map(|point| (point, Some(commit))),
            Which::Time(time) => {
                self.find_last(&numbers, "no point is as old as that", |point| as_old_as(point, time))
            }
        }
    }

    /// The point with the largest commit that `of` gives, and that commit. (A point whose log is kept may
    /// have later ones than points that were made since.)
    fn find_last(
        &self,
        numbers: &[u64],
        none: &str,
        of: impl Fn(&Point) -> Option<u64>,
    ) -> Result<(Point, Option<u64>)> {
        let mut last: Option<(Point, u64)> = None;
        let mut damage: Vec<(u64, Error)> = Vec::new();
        for &number in numbers.iter().rev() {
            match self.read_point(number) {
                Ok(point) => {
                    if let Some(commit) = of(&point)
                        && last.as_ref().is_none_or(|last| last.1 < commit)
                    {
                        last = Some((point, commit));
                    }
                }
                Err(e) => damage.push((number, e)),
            }
        }
        // The largest number comes first.
        let answer = last.as_ref().map_or(0, |last| last.0.number);
        match (damage.into_iter().find(|(number, _)| *number > answer), last) {
            (Some((_, e)), _) => Err(e),
            (None, Some((point, commit))) => Ok((point, Some(commit))),
            (None, None) => Err(Error::Invalid { detail: format!("{}: {none}", self.path.display()) }),
        }
    }

    /// The newest point with the database after a commit.
    fn find_commit(&self, numbers: &[u64], commit: u64) -> Result<Point> {
        let (mut damage, mut before, mut after) = (None, None, None);
        for &number in numbers.iter().rev() {
            match self.read_point(number) {
                Ok(point) if (point.first_commit..=point.commit).contains(&commit) => return Ok(point),
                Ok(point) if point.commit < commit => before = before.max(Some(point.commit)),
                Ok(point) => {
                    let first = point.first_commit;
                    after = Some(after.map_or(first, |after: u64| after.min(first)));
                }
                Err(e) => damage = damage.or(Some(e)),
            }
        }
        Err(damage.unwrap_or_else(|| {
            let near = |what: &str, found: Option<u64>| found.map(|n| format!("; {what} is {n}"));
            let near = [near("the last one before it", before), near("the first one after it", after)];
            let near: String = near.into_iter().flatten().collect();
            let detail = format!("no point has exactly the commits up to {commit}{near}");
            Error::Invalid { detail: format!("{}: {detail}", self.path.display()) }
        }))
    }
}
