//! The next segment, made ready before the last one is full.
//!
//! A segment for small durable commits is filled with zeros first, which takes milliseconds. The commit that
//! comes to the end of a segment would wait for that, with all behind it. So the log's thread looks a few
//! times a second how fast the last segment fills. If it will soon be full, the thread makes the next one.

use super::{Blank, JUMP_BYTES, Log, NEW_SEGMENT};
use crate::base::error::Result;
use crate::base::limits::ALIGN_BYTES;
use crate::base::sync::atomic::Ordering;
use crate::space::Extent;

/// A segment that would be full within so many looks is soon full.
const LOOKS: u64 = 8;
/// A commit that syncs meanwhile waits for no more than this.
const STEP_BYTES: u64 = 128 << 10;

impl Log {
    /// Makes the next segment if the last one will soon be full. That is judged by how many frames came since
    /// the last look, when the next one had number `before`. What fails is left to the commit that needs the
    /// segment.
    pub(crate) fn prepare_segment(&self, before: u64) {
        let Some((last, extent)) = self.take_ahead(before) else { return };
        let made = self.prepare_in_steps(extent);
        let mut io = self.io.lock();
        io.in_making = None;
        // A commit may have been quicker, or the log may have ended, or gone on elsewhere.
        let is_wanted = io.spare.is_none()
            && io.segments.back().is_some_and(|s| s.extent == last)
            && self.published.load(Ordering::Acquire);
        if made.is_ok() && is_wanted {
            io.spare = Some(extent);
            self.adjust_bytes_max(extent.len);
        } else {
            self.room.space.free(extent);
        }
    }

    /// Fills an extent with zeros, and has each step on the disk before the next one is written.
    fn prepare_in_steps(&self, extent: Extent) -> Result<()> {
        let mut at = 0;
        while at < extent.len {
            let step = Extent { offset: extent.offset + at, len: STEP_BYTES.min(extent.len - at) };
            self.prepare(step, Blank::Written)?;
            self.file.write_back(step.offset, step.len);
            self.file.wait_written(step.offset, step.len);
            at += step.len;
        }
        Ok(())
    }

    /// Takes room for the segment that follows the last one, if it is wanted soon. Gives both. Each frame
    /// counts as one block, so a bulk does not count: its segments need no zeros.
    fn take_ahead(&self, before: u64) -> Option<(Extent, Extent)> {
        let mut io = self.io.lock();
        let last = io.segments.back()?.extent;
        let filled = io.next_frame.saturating_sub(before) * ALIGN_BYTES;
        // Where the log rests, the one frame is the jump there, and nobody is expected to write soon.
        let is_resting = last.len <= JUMP_BYTES;
        let is_soon_full = filled > 0 && filled * LOOKS >= last.len.saturating_sub(io.at);
        if is_resting || !is_soon_full || io.spare.is_some() || !self.published.load(Ordering::Acquire) {
            return None;
        }
        self.poison.check().ok()?;
        let len = self.next_segment_bytes(last.len);
        io.in_making = self.room.take(len, len, NEW_SEGMENT).ok();
        io.in_making.map(|extent| (last, extent))
    }
}
