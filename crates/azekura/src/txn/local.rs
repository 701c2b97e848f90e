//! What a write transaction sees of itself: its own writes over its snapshot.

use super::buffer::TableBuffer;
use crate::format::block::Tag;

/// What a transaction's own writes say of a key.
pub(crate) enum LocalWrite<'a> {
    /// The key was written.
    Written(Tag, &'a [u8]),
    /// The key lies in a range that was deleted.
    Removed,
    /// The snapshot decides.
    Untouched,
}

/// Looks a sort key up among a transaction's writes to a table.
pub(crate) fn lookup_local<'a>(buffer: Option<&'a TableBuffer>, key: &[u8]) -> LocalWrite<'a> {
    let Some(buffer) = buffer else { return LocalWrite::Untouched };
    let removed = buffer.ranges.covers(key);
    match buffer.find(key) {
        Some((tag, value)) => LocalWrite::Written(tag, value),
        None if removed => LocalWrite::Removed,
        None => LocalWrite::Untouched,
    }
}
