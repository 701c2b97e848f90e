//! Removing points, and the chunks that no other point names.
//!
//! Points are removed first, durably, and then chunks. A pruning that is cut off in between leaves chunks
//! that no point names.

use super::files::failed;
use super::keep::Keep;
use super::repository::{HEAD, PointInfo, Repository};
use crate::base::error::Result;
use crate::engine::Progress;
use crate::storage::OpenMode;
use std::collections::BTreeSet;
use std::path::Path;

const REMOVING: &str = "removing what is not kept";

/// What [`Repository::prune`] has done.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-prunereport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// db.backup(&saved, |_| {})?;
/// let keep = "7d,4w".parse()?;
/// let report = azekura::Repository::open(&saved)?.prune(&keep, |_| {})?;
/// assert_eq!((report.kept, report.removed), (vec![1], vec![]));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The points that are left.
    pub kept: Vec<u64>,
    /// The points that are gone.
    pub removed: Vec<u64>,
    /// Files that were removed, and their bytes. Backups that were cut off have left some of them.
    pub files: u64,
    /// See `files`.
    pub bytes: u64,
}

impl Repository<'_> {
    /// Removes the points that are not to be kept, and the chunks that no point names any more. `progress` is
    /// called now and then, with numbers of files.
    ///
    /// # Errors
    /// `Corrupt` if a point is damaged: it is not known then which chunks it names, and nothing is removed.
    /// `Locked` while a backup or a restore is at work; the errors of removing files.
    pub fn prune(&self, keep: &Keep, mut progress: impl FnMut(Progress)) -> Result<PruneReport> {
        let _alone = self.lock(true)?;
        let mut points = Vec::new();
        for number in self.numbers()? {
            points.push(self.read_point(number)?);
        }
        let times: Vec<_> = points.iter().map(|p| (p.number, PointInfo::of(p).last_time)).collect();
        let kept = keep.of(&times);
        let mut report = PruneReport::default();
        for point in &points {
            if kept.contains(&point.number) {
                report.kept.push(point.number);
            } else {
                self.remove(&self.point(point.number), &mut report)?;
                report.removed.push(point.number);
            }
        }
        let left: Vec<_> = points.iter().filter(|p| kept.contains(&p.number)).collect();
        drop_unfinished(self, &mut report)?;
        let named: BTreeSet<String> =
            left.iter().flat_map(|p| p.pieces.iter().map(|piece| piece.name(self.identity))).collect();
        let names = self.names_in(&self.chunks())?;
        let mut step = Progress { done: 0, total: names.len() as u64 };
        for name in names {
            if is_chunk(&name) && !named.contains(&name) {
                self.remove(&self.chunks().join(name), &mut report)?;
            }
            step.done += 1;
            progress(step);
        }
        let dir = self.chunks();
        self.storage.sync_dir_of(&dir.join("any")).map_err(failed(&dir, REMOVING))?;
        Ok(report)
    }

    fn remove(&self, path: &Path, report: &mut PruneReport) -> Result<()> {
        let at = failed(path, REMOVING);
        let file = self.storage.open(path, OpenMode::ReadOnly).map_err(&at)?;
        report.bytes += file.len().map_err(&at)?;
        report.files += 1;
        self.storage.remove(path).map_err(at)
    }
}

/// Whether a chunk may have this name, whole or not.
fn is_chunk(name: &str) -> bool {
    let lineage = name.split_once('-').map(|(lineage, _)| lineage);
    lineage.is_some_and(|l| l.len() == 16 && l.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether this is the temporary name of a point or of the head.
fn unfinished(name: &str) -> bool {
    let ours = |name: &str| name == HEAD || name.bytes().all(|b| b.is_ascii_digit());
    name.split_once(".new-").is_some_and(|(name, _)| ours(name))
}

/// Removes points and heads that were never completed. Makes durable that points are gone.
fn drop_unfinished(repository: &Repository<'_>, report: &mut PruneReport) -> Result<()> {
    let any = repository.point(0);
    for dir in any.ancestors().skip(1).take(2) {
        for name in repository.names_in(dir)? {
            if unfinished(&name) {
                repository.remove(&dir.join(name), report)?;
            }
        }
    }
    repository.storage.sync_dir_of(&any).map_err(failed(&any, REMOVING))
}
