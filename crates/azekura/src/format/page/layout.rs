//! The measures of a page, for its builder, its reader and its guide.

/// Where the columns begin.
pub(crate) const HEADER_BYTES: usize = 64;
/// Bytes at the end of a page that are never used, so that wide reads stay inside.
pub(crate) const TAIL_BYTES: usize = 16;
/// The most records of a page, even if they cost no bytes.
pub(in crate::format) const RECORDS_MAX: usize = 32_768;
/// The most bytes that the keys and values of a page of several records have, written whole. A prefix stands
/// once in the page, so few bytes could otherwise become gigabytes in memory.
pub(in crate::format) const UNPACKED_BYTES_MAX: usize = 1 << 20;
/// A reader refuses a page whose records would have more. Not all that `UNPACKED_BYTES_MAX` leaves out is
/// counted exactly.
pub(in crate::format) const REFUSED_BYTES_MIN: usize = 4 << 20;
/// `tag` of a page whose records have different tags.
pub(in crate::format) const TAGS_DIFFER: u8 = 255;

/// The bits of `shape`.
pub(in crate::format) const SHAPE_GENERAL: u8 = 1;
pub(in crate::format) const SHAPE_EXPIRING: u8 = 2;
/// The largest `shape`.
pub(crate) const SHAPE_MAX: u8 = SHAPE_GENERAL | SHAPE_EXPIRING;
/// Before the residuals of the column of expiries: its width and its base.
pub(in crate::format) const EXPIRIES_HEADER_BYTES: usize = 1 + 8;

/// What a page of one unit has room for.
#[inline(always)]
pub(in crate::format) const fn room_bytes(unit_bytes: usize) -> usize {
    unit_bytes - HEADER_BYTES - TAIL_BYTES
}
