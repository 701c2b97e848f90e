//! What keys and values are.

use crate::script::{Stamp, bytes_of};

/// A table's number, and a key.
pub(super) type Id = (usize, Vec<u8>);

/// The bytes of a value.
pub(super) fn value_of(stamp: Stamp) -> Vec<u8> {
    // No value begins like a page, a frame or a meta block.
    let mut bytes = bytes_of(stamp);
    bytes.iter_mut().for_each(|b| *b |= 2);
    bytes
}
