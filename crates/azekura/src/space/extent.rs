//! A part of the file.

use crate::base::limits::ALIGN_BYTES;

/// The largest offset at which an extent of a valid file may end: file offsets are signed.
pub(super) const END_MAX: u64 = i64::MAX.unsigned_abs();

/// A part of the file: `len` bytes from `offset` on, both multiples of [`ALIGN_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// Its first byte, from the start of the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl Extent {
    /// The offset after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Whether it can be an extent of a file whose extents begin at `start`.
    pub(super) fn is_valid(&self, start: u64) -> bool {
        self.len > 0
            && self.len.is_multiple_of(ALIGN_BYTES)
            && self.offset.is_multiple_of(ALIGN_BYTES)
            && self.offset >= start
            && self.end() <= END_MAX
    }
}

/// The extent between two offsets.
pub(super) fn between(offset: u64, end: u64) -> Extent {
    debug_assert!(offset < end);
    Extent { offset, len: end - offset }
}
