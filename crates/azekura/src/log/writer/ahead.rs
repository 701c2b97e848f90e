//! The next segment, made ready before the last one is full.
//!
//! A segment for small durable commits is filled with zeros first, which takes milliseconds. The commit that
//! comes to the end of a segment would wait for that, with all behind it. So the log's thread looks a few
//! times a second how fast the last segment fills. If it will soon be full, the thread makes the next one.

use super::{Blank, Io, Log, NEW_SEGMENT};
use crate::base::error::Result;
use crate::base::limits::ALIGN_BYTES;
use crate::base::sync::atomic::Ordering;
use crate::space::Extent;
use std::time::Duration;

/// A segment that would be full within so many looks is soon full.
const LOOKS: u64 = 8;
/// A commit that syncs meanwhile waits for no more than this.
const STEP_BYTES: u64 = 128 << 10;
/// Who waits for a segment looks so often whether the handle is poisoned.
const MAKING_LOOK: Duration = Duration::from_millis(100);

impl Log {
    /// Makes the next segment if the last one will soon be full. That is judged by how many frames came since
    /// the last look, when the next one had number `before`. What fails is left to the commit that needs the
    /// segment.
    pub(crate) fn prepare_segment(&self, before: u64) {
        let Some((last, extent)) = self.take_ahead(before) else { return };
        let made = self.prepare_in_steps(extent, last);
        let mut io = self.io.lock();
        io.in_making = None;
        if made.is_ok() && self.is_followed(&io, last) {
            io.spare = Some(extent);
            self.adjust_bytes_max(extent.len);
        } else {
            self.room.space.free(extent);
        }
        drop(io);
        self.made.notify_all();
    }

    /// Waits until no segment is in making, so that the file is as long as its extents say. A log that has
    /// gone on elsewhere makes one only if more commits come.
    pub(crate) fn wait_for_making(&self) -> Result<()> {
        let mut io = self.io.lock();
        while io.in_making.is_some() {
            self.poison.check()?;
            self.made.wait_for(&mut io, MAKING_LOOK);
        }
        Ok(())
    }

    /// Whether a segment is still wanted that shall follow `last`. A commit may have been quicker, or the log
    /// may have ended, or gone on elsewhere.
    fn is_followed(&self, io: &Io, last: Extent) -> bool {
        io.spare.is_none()
            && io.segments.back().is_some_and(|s| s.extent == last)
            && self.published.load(Ordering::Acquire)
    }

    /// Fills an extent with zeros, and has each step on the disk before the next one is written. Ends early
    /// if the extent is not wanted any more.
    fn prepare_in_steps(&self, extent: Extent, last: Extent) -> Result<()> {
        let mut at = 0;
        while at < extent.len && self.is_followed(&self.io.lock(), last) {
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
        // Where the log has gone on elsewhere, what came before does not fill its segment.
        let filled = io.next_frame.saturating_sub(before.max(io.moved_at)) * ALIGN_BYTES;
        let is_soon_full = filled > 0 && filled * LOOKS >= last.len.saturating_sub(io.at);
        if !is_soon_full || !self.is_followed(&io, last) {
            return None;
        }
        self.poison.check().ok()?;
        let len = self.next_segment_bytes(last.len);
        io.in_making = self.room.take(len, len, NEW_SEGMENT).ok();
        io.in_making.map(|extent| (last, extent))
    }
}
