//! The next segment, made ready before the last one is full.
//!
//! A segment for small durable commits is filled with zeros first, which takes milliseconds. The commit that
//! comes to the end of a segment would wait for that, with all behind it. So whoever writes frames looks now
//! and then how fast the last segment fills. If it will soon be full, room is taken for the next one, and
//! the log's thread fills it. For that it never waits for `io`, which small commits hold nearly all the
//! time. (One thread, commits of 8 bytes: the slowest in a thousand took 0.3 ms, and 1.8 where commits made
//! the segments.)

use super::next::{Ahead, Mark};
use super::{Blank, Io, Log, NEW_SEGMENT};
use crate::base::error::Result;
use crate::base::sync::atomic::Ordering;
use crate::space::Extent;
use std::time::Duration;

/// A segment that is full within this time is soon full.
const SOON: Duration = Duration::from_millis(500);
/// That is looked at so often while a segment fills.
const LOOKS: u64 = 8;
/// A log of few records needs no second segment.
const FEW_BYTES: u64 = 32 << 10;
/// A commit that syncs meanwhile waits for no more than this.
const STEP_BYTES: u64 = 128 << 10;
/// Who waits for a segment looks so often whether the handle is poisoned.
const MAKING_LOOK: Duration = Duration::from_millis(100);

impl Log {
    /// The log's thread is there, and makes segments.
    pub(crate) fn make_ahead(&self) {
        self.has_maker.store(true, Ordering::Release);
    }

    /// Looks how fast the last segment fills. Called when a frame was written by a write of its own: of a
    /// bulk, which has several, the segments need no zeros.
    #[inline]
    pub(super) fn look_ahead(&self, io: &mut Io) {
        let Some(last) = io.segments.back().map(|s| s.extent) else { return };
        if io.at - io.mark.at < last.len / LOOKS {
            return;
        }
        let before = std::mem::replace(&mut io.mark, Mark::now(io.at));
        // At the speed since the last look.
        let time = io.mark.time.saturating_duration_since(before.time);
        let (filled, left) = (io.at - before.at, last.len - io.at);
        let is_soon_full = u128::from(filled) * SOON.as_nanos() >= u128::from(left) * time.as_nanos();
        if is_soon_full && io.at >= FEW_BYTES && io.spare.is_none() && self.has_maker.load(Ordering::Acquire)
        {
            self.want_segment(last);
        }
    }

    /// Takes room for a segment behind `last`, unless there is one. REQUIRES: `io`.
    #[cold]
    fn want_segment(&self, last: Extent) {
        if !matches!(*self.ahead.lock(), Ahead::Nothing) {
            return;
        }
        let len = self.segment_bytes_after(last.len);
        // What fails is left to the commit that needs the segment.
        if let Ok(extent) = self.room.take(len, len, NEW_SEGMENT) {
            let mut ahead = self.ahead.lock();
            *ahead = Ahead::Wanted(extent);
            self.wants_segment.store(true, Ordering::Release);
            self.untold.store(true, Ordering::Release);
        }
    }

    /// As if commits came fast.
    #[cfg(test)]
    pub(crate) fn want_now(&self) {
        let io = self.io.lock();
        self.want_segment(io.segments.back().unwrap().extent);
    }

    #[cfg(test)]
    pub(crate) fn has_given_up(&self) -> bool {
        matches!(*self.ahead.lock(), Ahead::GivenUp(_))
    }

    /// Whether the log's thread is to be woken, since a segment is wanted. True once for each.
    #[inline(always)]
    pub(crate) fn must_tell(&self) -> bool {
        self.untold.load(Ordering::Relaxed) && self.untold.swap(false, Ordering::AcqRel)
    }

    /// Whether `prepare_segment` is to be called.
    #[inline(always)]
    pub(crate) fn wants_segment(&self) -> bool {
        self.wants_segment.load(Ordering::Acquire)
    }

    /// Makes the next segment if one is wanted.
    pub(crate) fn prepare_segment(&self) {
        if !self.wants_segment.swap(false, Ordering::AcqRel) || self.poison.check().is_err() {
            return;
        }
        let extent = {
            let mut ahead = self.ahead.lock();
            let Ahead::Wanted(extent) = *ahead else { return };
            *ahead = Ahead::InMaking(extent);
            extent
        };
        let made = self.prepare_in_steps(extent);
        let mut ahead = self.ahead.lock();
        if made.is_ok() && matches!(*ahead, Ahead::InMaking(_)) {
            *ahead = Ahead::Made(extent);
            self.adjust_bytes_max(extent.len);
        } else {
            *ahead = Ahead::Freeing;
            drop(ahead);
            self.room.space.free(extent);
            *self.ahead.lock() = Ahead::Nothing;
        }
        self.made.notify_all();
    }

    /// Fills an extent with zeros, and has each step on the disk before the next one is written. Ends early
    /// if nobody wants it any more.
    fn prepare_in_steps(&self, extent: Extent) -> Result<()> {
        let mut at = 0;
        while at < extent.len && matches!(*self.ahead.lock(), Ahead::InMaking(_)) {
            let step = Extent { offset: extent.offset + at, len: STEP_BYTES.min(extent.len - at) };
            self.prepare(step, Blank::Written)?;
            self.file.write_back(step.offset, step.len);
            self.file.wait_written(step.offset, step.len);
            at += step.len;
        }
        Ok(())
    }

    /// Takes the segment that was made. One that is not made yet is given up. REQUIRES: `io`.
    pub(super) fn take_made(&self) -> Option<Extent> {
        let mut ahead = self.ahead.lock();
        let was = *ahead;
        self.wants_segment.store(false, Ordering::Release);
        *ahead = match was {
            Ahead::InMaking(extent) | Ahead::GivenUp(extent) => Ahead::GivenUp(extent),
            Ahead::Freeing => Ahead::Freeing,
            _ => Ahead::Nothing,
        };
        drop(ahead);
        match was {
            Ahead::Made(extent) => Some(extent),
            Ahead::Wanted(extent) => {
                self.room.space.free(extent);
                None
            }
            _ => None,
        }
    }

    /// Waits until no segment is in making, so that the file is no longer than it need be. A log that has
    /// gone on elsewhere makes one only if more commits come.
    pub(crate) fn wait_for_making(&self) -> Result<()> {
        loop {
            {
                let mut ahead = self.ahead.lock();
                if matches!(*ahead, Ahead::Nothing | Ahead::Wanted(_) | Ahead::Made(_)) {
                    return Ok(());
                }
                self.made.wait_for(&mut ahead, MAKING_LOOK);
            }
            self.poison.check()?;
        }
    }

    /// Lets go of the segment that would follow.
    pub(crate) fn give_up_ahead(&self) {
        let _io = self.io.lock();
        if let Some(made) = self.take_made() {
            self.room.space.free(made);
        }
    }
}
