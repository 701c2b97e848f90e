//! A point whose log is kept: it grows by what is read from the file's log.

use super::chunks::Chunks;
use super::limits::LogLimits;
use super::make::now_ms;
use super::pieces::cuts;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::Result;
use crate::base::limits::{SUPERBLOCKS_BYTES, align_up};
use crate::engine::{Capture, Engine, Increment, IncrementPlace, LogSince, Reading, SealedIncrement};
use crate::format::point::{Mark, PartId, Piece, Point, digest};
use crate::log::image::ImageId;
use std::collections::HashSet;

/// Of several readings within so many milliseconds the last has a mark.
const MARK_MS: u64 = 1000;

/// A point, and what comes behind it.
pub(super) struct GrowingPoint {
    /// With what was written of the log.
    pub(super) point: Point,
    limits: LogLimits,
    since: LogSince,
    /// What was read and not written.
    increment: Increment,
    /// Pieces that were written and are in no published point.
    written: Vec<Piece>,
    /// Bytes of all increments that were written.
    log_bytes: u64,
    /// Runs that the point has.
    runs: HashSet<u64>,
    /// When commits were read that are not written.
    marks: Vec<Mark>,
    is_broken: bool,
}

impl GrowingPoint {
    /// A point of a capture, whose pieces are not known yet.
    pub(super) fn of(point: Point, capture: &Capture, limits: LogLimits) -> GrowingPoint {
        let runs = capture.parts.iter().filter_map(|part| match part.id {
            PartId::Run(id) => Some(id),
            PartId::Values(_) | PartId::Log(_) => None,
        });
        let runs = runs.collect();
        // An older file does not say from which commit on its log can be cut.
        let is_broken = capture.manifest.tables_seq.is_none();
        let end = capture.parts.last().map_or(SUPERBLOCKS_BYTES, |part| align_up(part.offset + part.bytes));
        GrowingPoint {
            since: LogSince::after(capture),
            increment: Increment::new(place(&point, end), limits.increment_bytes),
            point,
            limits,
            written: Vec::new(),
            log_bytes: 0,
            runs,
            marks: Vec::new(),
            is_broken,
        }
    }

    /// Whether it is the point of a checkpoint and a commit.
    pub(super) fn is_of(&self, checkpoint: u64, commit: u64) -> bool {
        self.point.checkpoint == checkpoint && self.point.commit == commit
    }

    /// Whether another point is to take over: the log has lost what comes next, or that is cheaper.
    pub(super) fn is_over(&self) -> bool {
        self.is_broken || self.is_too_long() || self.is_dear()
    }

    /// Whether there is something that no published point has.
    pub(super) fn has_news(&self) -> bool {
        self.increment.last().is_some() || self.has_chunks()
    }

    /// Whether another point would be cheaper from now on: its new runs are no more than this one's log.
    fn is_dear(&self) -> bool {
        let is_known = |run| self.runs.contains(&run);
        let costs_more = || self.log_bytes >= self.since.new_run_bytes(is_known);
        self.is_outdated() && self.log_bytes >= self.limits.short_bytes && costs_more()
    }

    /// Whether the log is as long as that of one point should be. It is read on for some time, until another
    /// point has taken over.
    pub(super) fn is_too_long(&self) -> bool {
        self.has_log_of(self.limits.long_bytes, self.limits.long_logs)
    }

    fn has_log_of(&self, bytes: u64, logs: usize) -> bool {
        self.is_outdated() && (self.log_bytes >= bytes || self.point.manifest.logs.len() >= logs)
    }

    /// Whether a newer checkpoint was seen than that of the point. Else the log of another point would be as
    /// long.
    fn is_outdated(&self) -> bool {
        self.since.checkpoint() > self.point.checkpoint
    }

    /// Whether chunks were written for it that no published point names.
    fn has_chunks(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether what was read is much, and nothing is read before it was written.
    pub(super) fn is_full(&self) -> bool {
        self.increment.is_full()
    }

    /// Reads the log on, to its end or until it is much.
    pub(super) fn read_on(&mut self, engine: &Engine) -> Result<()> {
        self.is_broken |= self.has_log_of(self.limits.end_bytes, self.limits.end_logs);
        if !self.is_broken && !self.is_full() {
            let GrowingPoint { since, increment, .. } = self;
            let read = engine.read_since(since, &mut |seq, parts, value| increment.add(seq, parts, value))?;
            self.is_broken = read == Reading::Broken;
            self.mark();
        }
        if self.is_broken {
            self.since.let_go();
        }
        Ok(())
    }

    /// Notes when the last commit was read.
    fn mark(&mut self) {
        let Point { commit, time_ms, .. } = self.point;
        let written = self.point.marks.last().copied().unwrap_or(Mark { commit, time_ms });
        note_reading(&mut self.marks, written, Mark { commit: self.since.last(), time_ms: now_ms() });
    }

    /// Reads the log to its end. What is much goes to chunks of no point. REQUIRES: the repository's lock is
    /// held until a point names them.
    pub(super) fn read_all(&mut self, engine: &Engine, chunks: &mut Chunks<'_>) -> Result<()> {
        loop {
            self.read_on(engine)?;
            if !self.is_full() {
                return Ok(());
            }
            self.seal(chunks)?;
        }
    }

    /// Writes what was read, to chunks of no point.
    fn seal(&mut self, chunks: &mut Chunks<'_>) -> Result<()> {
        let clock = self.since.clock();
        let GrowingPoint { point, increment, written, log_bytes, marks, .. } = self;
        Behind { point, written, log_bytes, marks }.seal(increment, clock, chunks)
    }

    /// Writes what was read, to chunks, and takes it into the point. What of the file only the system's
    /// memory has is made durable first, so that the database never has less than the point.
    pub(super) fn write(&mut self, engine: &Engine, chunks: &mut Chunks<'_>) -> Result<()> {
        self.seal(chunks)?;
        engine.sync_followed()?;
        chunks.finish()?;
        self.point.pieces.append(&mut self.written);
        self.point.tables = self.since.tables();
        Ok(())
    }
}

/// Adds a mark behind others, of which `written` is the last that was written. Of several within `MARK_MS`
/// the last one stays. So a time that is looked for finds what was read until then, but for that time.
fn note_reading(marks: &mut Vec<Mark>, written: Mark, reading: Mark) {
    let last = marks.last().copied().unwrap_or(written);
    if reading.commit <= last.commit {
        return;
    }
    // The clock may have been set back.
    let reading = Mark { time_ms: reading.time_ms.max(last.time_ms), ..reading };
    let before = marks.len().checked_sub(2).map_or(written, |n| marks[n]);
    if !marks.is_empty() && reading.time_ms < before.time_ms.saturating_add(MARK_MS) {
        marks.pop();
    }
    marks.push(reading);
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
    marks: &'a mut Vec<Mark>,
}

impl Behind<'_> {
    /// Ends an increment, and begins the next.
    fn seal(&mut self, increment: &mut Increment, clock: u32, chunks: &mut Chunks<'_>) -> Result<()> {
        let Some(sealed) = increment.take().seal(clock) else { return Ok(()) };
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
        self.point.marks.append(self.marks);
        increment.go_on(place(self.point, end));
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A commit at each reading, twenty a second, for a minute, and then one after an hour.
    #[test]
    fn a_time_finds_what_was_read_until_then_to_within_a_second() {
        let written = Mark { commit: 1000, time_ms: 5_000_000 };
        let reading = |n: u64| Mark { commit: 1000 + n, time_ms: written.time_ms + 50 * n };
        let mut readings: Vec<Mark> = (1..1200).map(reading).collect();
        readings.push(Mark { commit: 9000, time_ms: written.time_ms + 3_600_000 });
        // The clock is set back.
        readings.push(Mark { commit: 9001, time_ms: written.time_ms });
        let mut marks = Vec::new();
        readings.iter().for_each(|&reading| note_reading(&mut marks, written, reading));
        assert!(marks.len() < 150, "{}", marks.len());
        assert!(marks.is_sorted_by_key(|mark| (mark.time_ms, mark.commit)));
        let found = |marks: &[Mark], time: u64| {
            let found = marks.iter().rev().find(|mark| mark.time_ms <= time);
            found.map_or(written.commit, |mark| mark.commit)
        };
        for time in (written.time_ms..written.time_ms + 3_700_000).step_by(37) {
            let (least, most) =
                (found(&readings[..1200], time.saturating_sub(MARK_MS)), found(&readings, time));
            let found = found(&marks, time);
            assert!(found >= least, "{time}: {found}, at least {least}");
            assert!(found <= most || time >= written.time_ms + 3_600_000, "{time}: {found} of {most}");
        }
    }
}
