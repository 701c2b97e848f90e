//! The log of a restored file. It is read once before the file gets its name, and cut behind a commit if an
//! earlier one than the point's is wanted.
//!
//! A log is cut by writing it anew. Frames of later commits would do no harm to who opens the file, but
//! `salvage` would find them.

use super::files::{failed, inside};
use crate::base::error::{Error, Result};
use crate::format::manifest::LogChain;
use crate::format::point::{Point, TableCount};
use crate::log::image::{ImageId, LogImage};
use crate::log::recovery::replay;
use crate::storage::File;
use std::path::Path;

/// The point as it is after commit `until`, and where its last part ends. `number` is that of the file's
/// superblock. REQUIRES: the file has all pieces of the point, and the point has the commit.
///
/// # Errors
/// `Corrupt` if the log is not what the point says.
pub(super) fn settle(
    file: &dyn File,
    path: &Path,
    number: u64,
    point: Point,
    until: u64,
) -> Result<(Point, u64)> {
    let Some(log) = point.manifest.logs.first().cloned() else {
        let end = point.end();
        return Ok((point, end));
    };
    let id = ImageId { file_id: point.identity.file_id, chain: log.chain, checkpoint: number };
    let kept = read(file, id, &log, &point, until).map_err(inside(path))?;
    if until >= point.commit {
        let end = point.end();
        return Ok((point, end));
    }
    let at = failed(path, "writing the log");
    let start = log.first.offset;
    file.set_len(start).map_err(&at)?;
    let (mut point, mut end) = (point, start);
    (point.commit, point.first_commit, point.tables) = (kept.last, kept.last, kept.tables.get());
    point.manifest.logs.clear();
    match kept.image.finish(id, kept.clock, start) {
        Some((bytes, log)) => {
            file.write_at(&bytes, start).map_err(&at)?;
            end = log.first.end();
            point.manifest.logs.push(log);
        }
        // Who has no log goes on from there.
        None => point.manifest.tables_seq = Some(point.manifest.flushed_seq),
    }
    Ok((point, end))
}

/// What a log has up to some commit.
struct Kept {
    image: LogImage,
    /// The last commit, of the log or of the runs.
    last: u64,
    tables: TableCount,
    clock: u32,
}

/// Reads the log of a point. It has commits in order, and ends with the point's. What is behind `until` is
/// not kept, and nothing is if all is wanted.
fn read(file: &dyn File, id: ImageId, log: &LogChain, point: &Point, until: u64) -> Result<Kept> {
    let is_cut = until < point.commit;
    let (flushed, mut image, mut tables) =
        (point.manifest.flushed_seq, LogImage::default(), TableCount::of(&point.manifest));
    let (mut newest, mut last) = (flushed, flushed);
    let bad = |detail: String| Error::corrupt("log of a backup", log.first.offset, detail);
    let done = replay(file, id.file_id, id.checkpoint, log, |_, seq, parts| {
        if seq <= newest {
            return Err(bad(format!("commit {seq} follows commit {newest}")));
        }
        newest = seq;
        if is_cut && seq <= until {
            last = seq;
            tables.note(&parts);
            image.add(seq, &parts);
        }
        Ok(())
    })?;
    if newest != point.commit {
        return Err(bad(format!("it ends with commit {newest}, expected {}", point.commit)));
    }
    Ok(Kept { image, last, tables, clock: done.clock })
}
