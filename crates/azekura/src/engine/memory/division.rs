//! The division that holds now, and what it says of the engine's memtables.

use super::{Division, Load, divide};
use crate::engine::Engine;

impl Engine {
    /// How memory is divided now, by what the options, the disk and (if they count) readers say.
    #[inline]
    pub(in crate::engine) fn division(&self, is_read: bool) -> Division {
        let tight_room_bytes = self.room.is_tight().then(|| self.room.bytes());
        divide(Load { tight_room_bytes, is_read, ..Load::of(&self.config) })
    }

    /// See `Division::flush_bytes`.
    pub(in crate::engine) fn flush_bytes(&self) -> u64 {
        self.division(false).flush_bytes
    }
}
