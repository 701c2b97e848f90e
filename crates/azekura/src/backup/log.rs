//! The logs of a restored file. They are read once before the file gets its name, and cut behind a commit if
//! an earlier one than the point's is wanted.
//!
//! A log is cut by writing it anew. Frames of later commits would do no harm to who opens the file, but
//! `salvage` would find them.

use super::files::{failed, inside};
use crate::base::error::{Error, Result};
use crate::format::manifest::LogChain;
use crate::format::point::{Point, Tables};
use crate::log::image::{ImageId, LogImage};
use crate::log::recovery::replay;
use crate::storage::File;
use std::path::Path;

/// The point as it is after commit `until`, and where its last part ends. `number` is that of the file's
/// superblock. REQUIRES: the file has all pieces of the point, and the point has the commit.
///
/// # Errors
/// `Corrupt` if the logs are not what the point says.
pub(super) fn settle(
    file: &dyn File,
    path: &Path,
    number: u64,
    point: Point,
    until: u64,
) -> Result<(Point, u64)> {
    let flushed = point.manifest.flushed_seq;
    let mut reading =
        Reading { file, number, until, last: flushed, newest: flushed, tables: Tables::of(&point.manifest) };
    for n in 0..point.manifest.logs.len() {
        let (image, clock) = reading.read(&point, n).map_err(inside(path))?;
        if reading.newest > until && until < point.commit {
            return reading.cut(point, n, image, clock).map_err(failed(path, "writing the log"));
        }
    }
    if reading.newest != point.commit {
        let at = point.manifest.logs.last().map_or(0, |log| log.first.offset);
        let detail = format!("it ends with commit {}, expected {}", reading.newest, point.commit);
        return Err(inside(path)(Error::corrupt("log of a backup", at, detail)));
    }
    let end = point.end();
    Ok((point, end))
}

/// What was read of the logs.
struct Reading<'a> {
    file: &'a dyn File,
    number: u64,
    until: u64,
    /// The last commit that is wanted, of the logs or of the runs.
    last: u64,
    newest: u64,
    /// Those after `last`.
    tables: Tables,
}

impl Reading<'_> {
    fn id(&self, point: &Point, log: &LogChain) -> ImageId {
        ImageId { file_id: point.identity.file_id, chain: log.chain, checkpoint: self.number }
    }

    /// Reads the `n`th log of a point. It has commits in order. Gives what of it is wanted, unless that is
    /// all, and the latest time that it says.
    fn read(&mut self, point: &Point, n: usize) -> Result<(LogImage, u32)> {
        let log = &point.manifest.logs[n];
        let (id, mut image) = (self.id(point, log), LogImage::default());
        let is_cut = self.until < point.commit;
        let Reading { file, until, last, newest, tables, .. } = self;
        let done = replay(*file, id.file_id, id.checkpoint, log, |_, seq, parts| {
            if seq <= *newest {
                let detail = format!("commit {seq} follows commit {newest}");
                return Err(Error::corrupt("log of a backup", log.first.offset, detail));
            }
            *newest = seq;
            if is_cut && seq <= *until {
                *last = seq;
                tables.note(&parts);
                image.add(seq, &parts);
            }
            Ok(())
        })?;
        Ok((image, done.clock))
    }

    /// Ends the file with what is wanted of its `n`th log.
    fn cut(self, mut point: Point, n: usize, image: LogImage, clock: u32) -> std::io::Result<(Point, u64)> {
        let log = &point.manifest.logs[n];
        let (id, start) = (self.id(&point, log), log.first.offset);
        self.file.set_len(start)?;
        let mut end = start;
        let manifest = &mut point.manifest;
        manifest.logs.truncate(n);
        manifest.values.retain(|values| values.extents.iter().all(|extent| extent.offset < start));
        if let Some((bytes, log)) = image.finish(id, clock, start) {
            self.file.write_at(&bytes, start)?;
            end = log.first.end();
            manifest.logs.push(log);
        }
        if manifest.logs.is_empty() {
            // Who has no log goes on from there.
            manifest.tables_seq = Some(manifest.flushed_seq);
        }
        (point.commit, point.first_commit, point.tables) = (self.last, self.last, self.tables.count());
        point.marks.clear();
        Ok((point, end))
    }
}
