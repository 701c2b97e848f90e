//! Ranges of a file.

use std::io;

/// The largest offset at which a range of a file may end, in bytes: file offsets are signed.
pub const OFFSET_MAX: u64 = i64::MAX.unsigned_abs();

/// What one huge entry of the processor's tables covers. A file system with large folios may have such a
/// block of a file in one piece of memory, so blocks are written, entered and forgotten whole.
pub(crate) const BLOCK_BYTES: u64 = 2 << 20;

/// The length of a buffer, in the type of file offsets.
pub(super) fn len_of(buf: &[u8]) -> u64 {
    const { assert!(usize::BITS <= u64::BITS) };
    buf.len() as u64
}

/// The end of a range, or `InvalidInput` if it is after [`OFFSET_MAX`]. Without this check an offset
/// of all ones would mean "the current position" to `pwritev2`.
pub(super) fn end_of(offset: u64, len: u64) -> io::Result<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= OFFSET_MAX => Ok(end),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("file range of {len} bytes at {offset} ends after {OFFSET_MAX}"),
        )),
    }
}
