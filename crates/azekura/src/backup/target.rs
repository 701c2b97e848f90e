//! The file that a copy becomes. It has another name until it is whole and durable.

use super::aside::aside;
use super::files::failed;
use super::log::settle;
use super::make::{now_ms, point_of};
use super::pace::{CopyOptions, Pace};
use super::pieces::read_pieces;
use crate::base::checksum::crc;
use crate::base::codec::u32_of;
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, WRITEBACK_WINDOW_BYTES, align_up};
use crate::engine::{Engine, Progress};
use crate::format::point::{Piece, Point};
use crate::format::superblock::{INLINE_BYTES_MAX, ManifestAt, PinRules, Role, Superblock};
use crate::storage::{File, OpenMode, Storage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WRITING: &str = "writing the copy";
/// The least number of its superblock. A new file's is 1.
const NUMBER_MIN: u64 = 2;

/// A copy that is being written. Dropping it removes it.
pub(super) struct Target<'s> {
    storage: &'s dyn Storage,
    path: &'s Path,
    fresh: PathBuf,
    file: Arc<dyn File>,
    /// Up to where writeback has begun, and up to where it was waited for.
    written: u64,
    waited: u64,
    is_named: bool,
}

impl<'s> Target<'s> {
    /// Begins a copy that becomes `path`. Nothing may be there yet.
    pub(super) fn create(storage: &'s dyn Storage, path: &'s Path) -> Result<Target<'s>> {
        let at = failed(path, WRITING);
        if storage.exists(path).map_err(&at)? {
            return Err(exists(path));
        }
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".new-{}-{:016x}", std::process::id(), storage.random().map_err(&at)?));
        let fresh = path.with_file_name(name);
        let file = storage.open(&fresh, OpenMode::CreateNew).map_err(&at)?;
        Ok(Target { storage, path, fresh, file, written: 0, waited: 0, is_named: false })
    }

    /// Reserves its whole length, so that a full disk is noticed at once.
    pub(super) fn reserve(&self, bytes: u64) -> Result<()> {
        self.file.allocate(0, bytes).map(drop).map_err(failed(self.path, WRITING))
    }

    /// Writes a piece. They come by their offsets.
    pub(super) fn put(&mut self, piece: &Piece, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, piece.offset).map_err(failed(self.path, WRITING))?;
        self.file.write_back(piece.offset, bytes.len() as u64);
        self.written = piece.end();
        if self.written - self.waited > 2 * WRITEBACK_WINDOW_BYTES {
            self.file.wait_written(self.waited, WRITEBACK_WINDOW_BYTES);
            self.waited += WRITEBACK_WINDOW_BYTES;
        }
        Ok(())
    }

    /// Ends the file, as that of a database with a new lineage, and gives it its name. If the point has a
    /// log, it is read once, and ends with commit `until`, if that is given. Gives the point that the file
    /// is. REQUIRES: the pieces of the point were put, and it has the commit.
    pub(super) fn finish(mut self, point: Point, until: Option<u64>) -> Result<Point> {
        let at = failed(self.path, WRITING);
        let number = point.checkpoint.max(NUMBER_MIN);
        let until = until.unwrap_or(point.commit);
        let (point, end) = settle(self.file.as_ref(), self.path, number, point, until)?;
        let block = Superblock {
            file_id: point.identity.file_id,
            lineage: self.storage.random().map_err(&at)?.max(1),
            number,
            hash_seed: point.hash_seed,
            manifest: self.put_manifest(&point, end)?,
            pins: PinRules::default(),
            version: point.manifest.version(),
            role: Role::Database,
        };
        let block = block.encode();
        let end = align_up(self.file.len().map_err(&at)?).max(end);
        self.file.write_at(&[&*block, &*block].concat(), 0).map_err(&at)?;
        self.file.set_len(end).map_err(&at)?;
        self.file.sync_all().map_err(&at)?;
        let named = self.storage.rename(&self.fresh, self.path, false);
        if named.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::AlreadyExists) {
            return Err(exists(self.path));
        }
        named.map_err(&at)?;
        self.is_named = true;
        self.storage.sync_dir_of(self.path).map_err(at)?;
        Ok(point)
    }

    /// The manifest of a point whose parts end at `offset`.
    fn put_manifest(&self, point: &Point, offset: u64) -> Result<ManifestAt> {
        let bytes = point.manifest.encode();
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(ManifestAt::Inline(bytes));
        }
        debug_assert!(offset.is_multiple_of(ALIGN_BYTES), "a manifest stands in whole blocks");
        self.file.write_at(&bytes, offset).map_err(failed(self.path, WRITING))?;
        Ok(ManifestAt::Extent { offset, len: u32_of(bytes.len()), crc: crc(0, &bytes) })
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if !self.is_named {
            // What was wrong is reported already.
            let _left_behind = self.storage.remove(&self.fresh);
        }
    }
}

fn exists(path: &Path) -> Error {
    Error::open(path, io::ErrorKind::AlreadyExists, "the file exists already")
}

/// Copies the database to a new file.
pub(crate) fn copy(
    engine: &Engine,
    storage: &dyn Storage,
    path: &Path,
    options: CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut pace = Pace::beside(engine, options)?;
    let mut target = Target::create(storage, path)?;
    let capture = engine.capture()?;
    target.reserve(capture.parts.last().map_or(0, |part| part.offset + part.bytes))?;
    let copy = |progress: &mut dyn FnMut(Progress)| {
        let put = |piece: &_, bytes: &_| target.put(piece, bytes);
        read_pieces(&capture, |_, _, _| None, put, &mut pace, progress)
    };
    let pieces = aside(engine, copy, progress)?;
    target.finish(point_of(engine, &capture, pieces, now_ms()), None).map(drop)
}
