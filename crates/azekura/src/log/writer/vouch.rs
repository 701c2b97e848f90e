//! Frames that vouch for others.
//!
//! A frame that is damaged looks like one that was never finished, unless a later one says that it was
//! durable. The last group of a log that rests has none behind it, and the first ones of a new segment stand
//! where a reader comes only by what is before them. So
//!
//! - when nothing has followed for a while, a frame without records is written, once, which the next one
//!   replaces;
//! - when what follows a jump has become durable, the jump's second copy is written again and says so.
//!
//! Neither is synced. One that is lost or torn leaves things as they were; one that is there claims no more
//! than what a sync had made durable before it was written. What such a write meets is nobody's loss: a full
//! disk is passed over, any other error poisons the handle like that of every write to the log.

use super::{Io, Log};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;

impl Log {
    /// All frames so far are durable.
    pub(super) fn group_is_durable(&self, io: &mut Io) {
        io.durable_below = io.next_frame;
        for jump in std::mem::take(&mut io.jumps) {
            self.note(self.vouch_in_jump(io, &jump));
        }
        self.unvouched.store(io.vouched_below < io.durable_below, Ordering::Release);
    }

    /// Vouches for the last frames if none came since the next one was number `before`; gives the next one's
    /// number.
    pub(crate) fn vouch_at_rest(&self, before: u64) -> u64 {
        if !self.unvouched.load(Ordering::Acquire) {
            return before;
        }
        let mut io = self.io.lock();
        if io.next_frame == before {
            self.vouch_for_last(&mut io);
        }
        io.next_frame
    }

    /// Vouches for the last frames, if nothing does.
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
            // Whoever commits next is told.
            let _reported_by_poison = self.poison.guard(written);
        }
    }
}
