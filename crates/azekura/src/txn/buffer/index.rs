//! Where to find a key among the writes of a buffer.

use crate::base::codec::u32_of;
use crate::base::hash::hash_bytes;
use std::collections::HashMap;

/// The write before the first of a key.
pub(super) const NONE: u32 = u32::MAX;

/// The newest write of each key hash, and the one before it of each write.
#[derive(Default, Clone)]
pub(super) struct Index {
    pub(super) newest: HashMap<u64, u32>,
    pub(super) before: Vec<u32>,
}

impl Index {
    pub(super) fn add(&mut self, key: &[u8]) {
        let i = u32_of(self.before.len());
        let before = self.newest.insert(hash_bytes(key, 0), i);
        self.before.push(before.unwrap_or(NONE));
    }
}
