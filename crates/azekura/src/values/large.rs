//! A large value, as its readers hold it.

use super::place::SegmentPlace;
use crate::storage::FileMapping;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// A large value that was read and verified. It dereferences to its bytes.
pub(crate) struct LargeValue(pub(super) Inner);

pub(super) enum Inner {
    /// In the mapping. The place keeps the extents from being given to others.
    Standing {
        bytes: NonNull<[u8]>,
        _place: Arc<SegmentPlace>,
        _mapping: Arc<FileMapping>,
    },
    Copied(Arc<Vec<u8>>, Range<usize>),
}

// SAFETY: the bytes never change while the place is held, and their address does not depend on the thread.
unsafe impl Send for LargeValue {}
// SAFETY: as above. They are only read.
unsafe impl Sync for LargeValue {}

impl LargeValue {
    /// A part of a buffer.
    pub(super) fn copied(bytes: Arc<Vec<u8>>, range: Range<usize>) -> LargeValue {
        LargeValue(Inner::Copied(bytes, range))
    }
}

impl Deref for LargeValue {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            // SAFETY: the mapping is kept, and its bytes do not change while the place is held.
            Inner::Standing { bytes, .. } => unsafe { bytes.as_ref() },
            Inner::Copied(bytes, range) => &bytes[range.clone()],
        }
    }
}
