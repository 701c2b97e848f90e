//! A point whose log is kept: it grows by what is read from the file's log.

use super::chunks::Chunks;
use super::make::now_ms;
use super::pieces::cuts;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::Result;
use crate::base::limits::{SUPERBLOCKS_BYTES, align_up};
use crate::engine::{Capture, Engine, Increment, IncrementPlace, LogSince, Reading, SealedIncrement};
use crate::format::point::{Mark, PartId, Piece, Point, digest};
use crate::log::image::ImageId;
use std::collections::HashSet;

/// A log with fewer bytes is not worth another point.
const LOG_BYTES_SHORT: u64 = 16 << 20;
/// Who restores a point reads all of its log, and opening the database does so again.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// The most logs of a point.
const LOGS_MAX: usize = 1000;

/// A point, and what comes behind it.
pub(super) struct GrowingPoint {
    /// With what was written of the log.
    pub(super) point: Point,
    since: LogSince,
    /// What was read and not written.
    increment: Increment,
    /// Pieces that were written and are in no published point.
    written: Vec<Piece>,
    /// Bytes of all increments that were written.
    log_bytes: u64,
    /// Runs that the point has.
    runs: HashSet<u64>,
    is_broken: bool,
}

impl GrowingPoint {
    /// A point of a capture, whose pieces are not known yet.
    pub(super) fn of(point: Point, capture: &Capture) -> GrowingPoint {
        let runs = capture.parts.iter().filter_map(|part| match part.id {
            PartId::Run(id) => Some(id),
            PartId::Values(_) | PartId::Log(_) => None,
        });
        let runs = runs.collect();
        let end = capture.parts.last().map_or(SUPERBLOCKS_BYTES, |part| align_up(part.offset + part.bytes));
        GrowingPoint {
            since: LogSince::after(capture),
            increment: Increment::new(place(&point, end)),
            point,
            written: Vec::new(),
            log_bytes: 0,
            runs,
            is_broken: false,
        }
    }

    /// Whether the log has lost what comes next.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether there is something that no published point has.
    pub(super) fn has_news(&self) -> bool {
        self.increment.last().is_some() || self.has_chunks()
    }

    /// Whether another point would be cheaper from now on: its new runs are no more than this one's log. Or
    /// the log is too long.
    pub(super) fn is_long(&self) -> bool {
        let is_known = |run| self.runs.contains(&run);
        let is_newer = self.since.checkpoint() > self.point.checkpoint;
        let costs_more = || self.log_bytes >= self.since.new_run_bytes(is_known);
        let is_full = self.log_bytes >= LOG_BYTES_MAX || self.point.manifest.logs.len() >= LOGS_MAX;
        is_newer && (is_full || self.log_bytes >= LOG_BYTES_SHORT && costs_more())
    }

    /// Whether chunks were written for it that no published point names.
    pub(super) fn has_chunks(&self) -> bool {
        !self.written.is_empty()
    }

    /// Reads the log on. What is much is written at once, if it may be, to chunks of no point. REQUIRES: the
    /// repository's lock is held until a point names them.
    pub(super) fn read_on(&mut self, engine: &Engine, mut chunks: Option<&mut Chunks<'_>>) -> Result<()> {
        if self.is_broken {
            return Ok(());
        }
        let clock = self.since.clock();
        let GrowingPoint { point, since, increment, written, log_bytes, .. } = self;
        let mut to = Behind { point, written, log_bytes };
        let read = engine.read_since(since, &mut |seq, parts, value| {
            if let Some(chunks) = chunks.as_deref_mut().filter(|_| increment.is_full()) {
                to.seal(increment, clock, chunks)?;
            }
            increment.add(seq, parts, value)
        });
        self.is_broken = read? == Reading::Broken;
        Ok(())
    }

    /// Writes what was read, to chunks, and takes it into the point. What of the file only the system's
    /// memory has is made durable first, so that the database never has less than the point.
    pub(super) fn write(&mut self, engine: &Engine, chunks: &mut Chunks<'_>) -> Result<()> {
        let clock = self.since.clock();
        let GrowingPoint { point, increment, written, log_bytes, .. } = self;
        Behind { point, written, log_bytes }.seal(increment, clock, chunks)?;
        engine.sync_followed()?;
        chunks.finish()?;
        self.point.pieces.append(&mut self.written);
        self.point.tables = self.since.tables();
        Ok(())
    }
}

/// Where the next increment comes.
fn place(point: &Point, offset: u64) -> IncrementPlace {
    let values = point.manifest.values.iter().map(|values| values.id).max().map_or(1, |id| id + 1);
    let (file_id, chain) = (point.identity.file_id, point.manifest.next_id);
    let id = ImageId { file_id, chain, checkpoint: point.checkpoint };
    IncrementPlace { id, values, offset }
}

/// The end of a growing point.
struct Behind<'a> {
    point: &'a mut Point,
    written: &'a mut Vec<Piece>,
    log_bytes: &'a mut u64,
}

impl Behind<'_> {
    /// Ends an increment, and begins the next.
    fn seal(&mut self, increment: &mut Increment, clock: u32, chunks: &mut Chunks<'_>) -> Result<()> {
        let next = Increment::new(increment.place());
        let Some(sealed) = std::mem::replace(increment, next).seal(clock) else { return Ok(()) };
        if self.point.marks.is_empty() {
            let Point { commit, time_ms, .. } = *self.point;
            self.point.marks.push(Mark { commit, time_ms });
        }
        let SealedIncrement { last, values, log: (log, log_bytes) } = sealed;
        if let Some((info, bytes)) = values {
            self.put(PartId::Values(info.id), info.extents[0].offset, &bytes, chunks)?;
            self.point.manifest.values.push(info);
        }
        self.put(PartId::Log(log.chain), log.first.offset, &log_bytes, chunks)?;
        let (chain, end) = (log.chain, log.first.end());
        self.point.manifest.logs.push(log);
        self.point.manifest.next_id = chain + 1;
        self.point.commit = last;
        self.point.marks.push(Mark { commit: last, time_ms: now_ms() });
        *increment = Increment::new(place(self.point, end));
        Ok(())
    }

    fn put(&mut self, part: PartId, offset: u64, bytes: &[u8], chunks: &mut Chunks<'_>) -> Result<()> {
        for (index, start, len) in cuts(bytes.len() as u64) {
            let of_piece = &bytes[usize_of64(start)..usize_of64(start) + len];
            let (offset, bytes) = (offset + start, u32_of(len));
            let piece = Piece { part, index, offset, bytes, digest: digest(of_piece) };
            chunks.put(&piece, of_piece)?;
            *self.log_bytes += len as u64;
            self.written.push(piece);
        }
        Ok(())
    }
}
