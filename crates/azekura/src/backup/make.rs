//! A backup into a repository.
//!
//! Parts that the newest point has are not read again. A run with the same id is the same run: ids of runs
//! are never used twice in one lineage. The id of a value segment is given again when nothing refers to the
//! segment any more. So a segment is the same only if a run that both points have refers to it. Its used
//! bytes never change. A log is made anew for each point; of one that has only grown the first pieces are the
//! same.

use super::aside::aside;
use super::chunks::Chunks;
use super::pace::{CopyOptions, Pace};
use super::pieces::read_pieces;
use super::repository::{Repository, time_of};
use crate::base::error::Result;
use crate::engine::{Capture, Engine, Progress};
use crate::format::manifest::{Manifest, RunInfo};
use crate::format::point::{Identity, PartId, Piece, Point};
use crate::storage::Storage;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What [`Db::backup`](crate::Db::backup) has done.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-backupreport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// t.put("ada", "1815")?;
/// let first = db.backup(&saved, |_| {})?;
/// let again = db.backup(&saved, |_| {})?;
/// // Nothing has changed, so nothing was copied but what differs between any two.
/// assert!(again.point > first.point && again.new_bytes <= first.new_bytes);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// The number of the point.
    pub point: u64,
    /// The newest commit in it.
    pub commit: u64,
    /// Chunks of the point, and their bytes.
    pub chunks: u64,
    /// See `chunks`.
    pub bytes: u64,
    /// Those that the repository did not have, and their bytes.
    pub new_chunks: u64,
    /// See `new_chunks`.
    pub new_bytes: u64,
}

/// What was captured, as a point.
pub(super) fn point_of(engine: &Engine, capture: &Capture, pieces: Vec<Piece>, time_ms: u64) -> Point {
    Point {
        identity: identity_of(engine),
        hash_seed: engine.store.hash_seed,
        number: 0,
        checkpoint: capture.checkpoint,
        commit: capture.commit,
        first_commit: capture.first_commit,
        time_ms,
        manifest: capture.manifest.clone(),
        pieces,
        tables: capture.tables.count(),
        marks: Vec::new(),
    }
}

/// Milliseconds since 1970, rounded up: all that was committed until now is as old as that.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Waits until the time of a point, a millisecond at most. So whoever asks for the database as it is after a
/// backup gets that backup.
fn wait_until(time_ms: u64) {
    let left = time_of(time_ms).duration_since(SystemTime::now()).unwrap_or_default();
    std::thread::sleep(left.min(Duration::from_millis(1)));
}

pub(super) fn identity_of(engine: &Engine) -> Identity {
    Identity { file_id: engine.store.file_id, lineage: engine.store.lineage }
}

/// Adds a point to the repository in `path`. Makes the repository if there is none.
pub(crate) fn backup(
    engine: &Engine,
    storage: &dyn Storage,
    path: &Path,
    options: CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<BackupReport> {
    let mut pace = Pace::beside(engine, options)?;
    let repository = Repository::of(storage, path, identity_of(engine))?;
    let _shared = repository.lock(false)?;
    let mut chunks = Chunks::of(&repository)?;
    let capture = engine.capture()?;
    let time_ms = now_ms();
    let pieces = copy_parts(engine, &repository, &mut chunks, &capture, &mut pace, progress)?;
    let mut point = point_of(engine, &capture, pieces, time_ms);
    repository.add_point(&mut point)?;
    wait_until(time_ms);
    Ok(BackupReport {
        point: point.number,
        commit: point.commit,
        chunks: point.pieces.len() as u64,
        bytes: point.bytes(),
        new_chunks: chunks.written,
        new_bytes: chunks.written_bytes,
    })
}

/// Copies what the newest point has not, and makes it durable. Gives all pieces of the capture.
pub(super) fn copy_parts(
    engine: &Engine,
    repository: &Repository<'_>,
    chunks: &mut Chunks<'_>,
    capture: &Capture,
    pace: &mut Pace<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Piece>> {
    // A damaged point is of no use here. The next older one is taken.
    let numbers = repository.numbers()?;
    let before = numbers.iter().rev().find_map(|&number| repository.read_point(number).ok());
    let known = Known::of(before.as_ref(), &capture.manifest, chunks, repository.identity);
    let digest = |part, index, bytes| known.digest(part, index, bytes);
    let copy = |progress: &mut dyn FnMut(Progress)| {
        let pieces = read_pieces(capture, digest, |piece, bytes| chunks.put(piece, bytes), pace, progress)?;
        chunks.finish()?;
        Ok(pieces)
    };
    aside(engine, copy, progress)
}

/// Pieces that the repository certainly has.
struct Known(HashMap<(PartId, u32), (u32, u128)>);

impl Known {
    /// Those of an earlier point that `now` has too.
    fn of(before: Option<&Point>, now: &Manifest, chunks: &Chunks<'_>, identity: Identity) -> Known {
        let Some(before) = before else { return Known(HashMap::new()) };
        let still: HashSet<u64> = runs(now).map(|r| r.id).collect();
        let common = runs(&before.manifest).filter(|r| still.contains(&r.id));
        let mut same: HashSet<PartId> = HashSet::new();
        for run in common {
            same.insert(PartId::Run(run.id));
            same.extend(run.large.iter().map(|l| PartId::Values(l.0)));
        }
        let is_there = |p: &&Piece| same.contains(&p.part) && chunks.has(&p.name(identity));
        let entry = |p: &Piece| ((p.part, p.index), (p.bytes, p.digest));
        Known(before.pieces.iter().filter(is_there).map(entry).collect())
    }

    fn digest(&self, part: PartId, index: u32, bytes: u32) -> Option<u128> {
        self.0.get(&(part, index)).filter(|known| known.0 == bytes).map(|known| known.1)
    }
}

fn runs(manifest: &Manifest) -> impl Iterator<Item = &RunInfo> {
    manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs))
}
