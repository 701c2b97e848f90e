//! The chain of segments in which the log is written: how it begins, grows, moves and ends, and what a
//! checkpoint says of it.

use super::frames::FrameWriter;
use super::next::Mark;
use super::{
    Blank, JUMP_BYTES, LOG_BYTES_LONG, LOG_ROOM_PART, Log, LogSegment, NEW_SEGMENT, SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN, SEGMENT_ROOM_PART, SHORT_SEGMENT_BYTES,
};
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::base::sync::atomic::Ordering;
use crate::format::manifest::LogChain;
use crate::space::Extent;

impl Log {
    /// Gives the chain its first segment. The caller writes the checkpoint that names it next. REQUIRES: the
    /// checkpoint lock.
    pub(crate) fn begin_chain(&self, chain: u64) -> Result<()> {
        let mut io = self.io.lock();
        if io.segments.is_empty() {
            let extent = self.new_extent(SEGMENT_BYTES_MIN, Blank::Written)?;
            io.chain = chain;
            io.at = 0;
            io.mark = Mark::now(0);
            io.vouched_below = io.durable_below;
            let first_frame = io.next_frame;
            io.segments.push_back(LogSegment { extent, first_frame, last_seq: 0 });
        }
        Ok(())
    }

    /// The checkpoint that names the chain is durable.
    pub(crate) fn published(&self) {
        let io = self.io.lock();
        self.published.store(!io.segments.is_empty(), Ordering::Release);
    }

    /// The chain as a manifest names it, if every commit up to `seq` is in runs. REQUIRES: the checkpoint
    /// lock.
    pub(crate) fn chain_after(&self, seq: u64) -> Option<LogChain> {
        let io = self.io.lock();
        let needless = io.segments.iter().take_while(|s| s.last_seq <= seq).count();
        io.segments.get(needless.min(io.segments.len().saturating_sub(1))).map(|s| LogChain {
            chain: io.chain,
            first: s.extent,
            first_frame: s.first_frame,
            end_frame: u64::MAX,
            durable_below: io.durable_below,
        })
    }

    /// The chain up to its last durable frame, for `check`. REQUIRES: as `chain_after`.
    pub(crate) fn written_chain(&self) -> Option<LogChain> {
        let io = self.io.lock();
        let first = io.segments.front().filter(|s| s.first_frame < io.durable_below)?;
        let (chain, end_frame, durable_below) = (io.chain, io.durable_below, io.durable_below);
        Some(LogChain {
            chain,
            first: first.extent,
            first_frame: first.first_frame,
            end_frame,
            durable_below,
        })
    }

    /// The newest checkpoint's number.
    pub(crate) fn checkpoint(&self) -> u64 {
        self.checkpoint.load(Ordering::Acquire)
    }

    pub(crate) fn set_checkpoint(&self, number: u64) {
        self.checkpoint.store(number, Ordering::Release);
    }

    /// The extents of all segments, for `check`.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        let io = self.io.lock();
        let ahead = self.ahead.lock().extent();
        io.segments.iter().map(|s| s.extent).chain(io.spare).chain(ahead).collect()
    }

    /// The offset of the segment to which frames are written, or of the next one if that is higher. None
    /// while no checkpoint names the chain.
    pub(crate) fn tail(&self) -> Option<u64> {
        let io = self.io.lock();
        let last = io.segments.back().filter(|_| self.published.load(Ordering::Acquire))?;
        let next = self.ahead.lock().extent().into_iter().chain(io.spare);
        Some(next.map(|s| s.offset).fold(last.extent.offset, u64::max))
    }

    /// Whether a segment that is not written to any more ends a file of `end` bytes. It stays there until its
    /// commits are in runs.
    pub(crate) fn keeps_end(&self, end: u64) -> bool {
        let io = self.io.lock();
        io.segments.iter().rev().skip(1).any(|segment| segment.extent.end() == end)
    }

    /// Goes on in a short segment in a lower hole, no longer than the last segment, and frees the spare one.
    /// The segments before it are freed like all others, once a checkpoint has made them needless. False if
    /// nothing has changed.
    pub(crate) fn move_down(&self) -> Result<bool> {
        self.go_on_elsewhere(|last| {
            self.room.space.alloc_below(last.len.min(SHORT_SEGMENT_BYTES), last.offset)
        })
    }

    /// Goes on in a short segment, and frees the spare one. If nobody is expected to write soon (`idle`), the
    /// segment has room only for the jump to the next. False if nothing has changed.
    pub(crate) fn rest(&self, idle: bool) -> Result<bool> {
        let bytes = if idle { JUMP_BYTES } else { SHORT_SEGMENT_BYTES };
        let place = || self.room.take(bytes, bytes, NEW_SEGMENT).ok();
        self.go_on_elsewhere(|last| if last.len > bytes { place() } else { None })
    }

    fn go_on_elsewhere(&self, place: impl FnOnce(Extent) -> Option<Extent>) -> Result<bool> {
        let mut io = self.io.lock();
        self.poison.check()?;
        if !self.published.load(Ordering::Acquire) {
            return Ok(false);
        }
        let was_ahead = self.ahead.lock().extent().is_some();
        let made = self.take_made();
        let spare = io.spare.take();
        made.into_iter().chain(spare).for_each(|extent| self.room.space.free(extent));
        let Some(extent) = io.segments.back().and_then(|last| place(last.extent)) else {
            return Ok(was_ahead || spare.is_some());
        };
        self.write_zeroes(extent).map_err(|e| {
            self.room.space.free(extent);
            Error::io(NEW_SEGMENT, e)
        })?;
        let armed = self.poison.armed("moving the log");
        let mut out = FrameWriter::new(self, &mut io);
        let done = out.jump_to(extent).and_then(|()| out.finish());
        armed.disarm();
        self.poison.guard(done)?;
        self.group_is_durable(&mut io);
        self.note_length(&io);
        Ok(true)
    }

    /// Takes the segments before frame `first` out of the chain. The caller frees them once the checkpoint
    /// without them is durable. REQUIRES: the checkpoint lock.
    pub(crate) fn release(&self, first: u64) -> Vec<Extent> {
        let mut io = self.io.lock();
        let mut released = Vec::new();
        while io.segments.len() > 1 && io.segments.front().is_some_and(|s| s.first_frame < first) {
            released.extend(io.segments.pop_front().map(|s| s.extent));
        }
        self.note_length(&io);
        released
    }

    /// Ends the chain for a clean close, if it has no commit after `seq`. REQUIRES: as `release`.
    pub(crate) fn end_chain(&self, seq: u64) -> Vec<Extent> {
        let mut io = self.io.lock();
        if io.segments.iter().any(|s| s.last_seq > seq) {
            return Vec::new();
        }
        self.published.store(false, Ordering::Release);
        let spare = io.spare.take().into_iter().chain(self.take_made());
        io.segments.drain(..).map(|s| s.extent).chain(spare).collect()
    }

    /// An extent for a segment. A reserved one may still hold old bytes.
    pub(super) fn new_extent(&self, len: u64, blank: Blank) -> Result<Extent> {
        let extent = self.room.take(len, len, NEW_SEGMENT)?;
        match self.prepare(extent, blank) {
            Ok(()) => {
                self.adjust_bytes_max(len);
                Ok(extent)
            }
            Err(e) => {
                self.room.space.free(extent);
                Err(e)
            }
        }
    }

    /// Prepares an extent, or a part of it, for frames.
    pub(super) fn prepare(&self, extent: Extent, blank: Blank) -> Result<()> {
        let made = match blank {
            Blank::Written => self.write_zeroes(extent),
            // An extent without blocks would not do: a write to it may find the disk full after earlier
            // frames were written.
            Blank::Reserved => match self.file.allocate(extent.offset, extent.len) {
                Ok(false) => self.write_zeroes(extent),
                done => done.map(drop),
            },
        };
        made.map_err(|e| Error::io(NEW_SEGMENT, e))
    }

    /// A segment of `len` bytes was made: the log may take as much as there is room for now.
    pub(super) fn adjust_bytes_max(&self, len: u64) {
        let part = self.room.bytes() / LOG_ROOM_PART;
        self.bytes_max.store(part.max(LOG_BYTES_LONG).max(4 * len), Ordering::Relaxed);
    }

    fn write_zeroes(&self, extent: Extent) -> std::io::Result<()> {
        let zeroes = vec![0; usize_of64(extent.len.min(SEGMENT_BYTES_MAX))];
        let mut at = 0;
        while at < extent.len {
            let n = (extent.len - at).min(SEGMENT_BYTES_MAX);
            self.bulk.write_at(&zeroes[..usize_of64(n)], extent.offset + at)?;
            at += n;
        }
        Ok(())
    }

    /// Stops flushes for the log's sake until the log has another segment.
    pub(crate) fn let_be(&self) {
        self.bytes_max.store(u64::MAX, Ordering::Relaxed);
    }

    /// The length of the segment that follows one of `last` bytes. It keeps the log a part of the room that
    /// is left, though every small durable commit takes a block.
    pub(super) fn next_segment_bytes(&self, last: u64) -> u64 {
        self.room.look();
        self.segment_bytes_after(last)
    }

    /// As `next_segment_bytes`, by what is known of the room that is left.
    pub(super) fn segment_bytes_after(&self, last: u64) -> u64 {
        let most = self.room.bytes() / SEGMENT_ROOM_PART / ALIGN_BYTES * ALIGN_BYTES;
        (last * 4).clamp(SEGMENT_BYTES_MIN, most.clamp(SEGMENT_BYTES_MIN, self.segment_bytes_max))
    }
}
