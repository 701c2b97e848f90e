//! Frames that vouch for others.
//!
//! A damaged frame looks like one whose write was never finished, unless a later frame says that it was
//! durable. Two kinds of frames have no such witness: the last group of a resting log, and the first frames
//! of a new segment. A reader reaches these only through the frames before them. So:
//!
//! - When nothing has followed for a while, the log writes one frame without records. The next frame replaces
//!   it.
//! - When the frames after a jump have become durable, the log writes the jump's second copy again, which
//!   says so. Who reads while the log is written may have passed the jump by then, so a frame says it too, as
//!   in the first case.
//!
//! Neither write is synced. If it is lost or torn, nothing has changed. If it is there, it claims no more
//! than a sync has made durable. A full disk is no failure of such a write. Any other error poisons the
//! handle, as for every write to the log.

use super::{Io, Log};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;

impl Log {
    /// Notes that all frames so far are durable.
    pub(super) fn group_is_durable(&self, io: &mut Io) {
        io.durable_below = io.next_frame;
        for jump in std::mem::take(&mut io.jumps) {
            self.note(self.vouch_in_jump(io, &jump));
        }
        self.unvouched.store(io.vouched_below < io.durable_below, Ordering::Release);
    }

    /// Vouches for the last frames if none came since the next frame had number `before`. Returns the next
    /// frame's number.
    pub(crate) fn vouch_at_rest(&self, before: u64) -> u64 {
        if !self.unvouched.load(Ordering::Acquire) {
            return before;
        }
        // Whoever has it may be writing frames.
        let Some(mut io) = self.io.try_lock() else { return before };
        if io.next_frame == before {
            self.vouch_for_last(&mut io);
        }
        io.next_frame
    }

    /// Vouches for the last frames, if no frame does.
    pub(crate) fn vouch(&self) {
        if self.unvouched.load(Ordering::Acquire) {
            self.vouch_for_last(&mut self.io.lock());
        }
    }

    fn vouch_for_last(&self, io: &mut Io) {
        self.unvouched.store(false, Ordering::Release);
        let due = io.vouched_below < io.durable_below && self.published.load(Ordering::Acquire);
        if due && self.poison.check().is_ok() {
            self.note(self.vouch_by_frame(io));
        }
    }

    fn note(&self, written: Result<()>) {
        if !matches!(written, Err(Error::NoSpace { .. })) {
            // The next commit gets the error.
            let _reported_by_poison = self.poison.guard(written);
        }
    }
}
