//! Which indexes a table has.

use crate::index::IndexSpec;
use std::sync::{Arc, OnceLock};

/// An index of a table.
pub(crate) struct IndexSlot {
    /// The hidden table.
    pub(crate) id: u32,
    /// The name of the index.
    pub(crate) name: Arc<str>,
    /// What it is of, once somebody has read that.
    pub(crate) spec: OnceLock<IndexSpec>,
}

/// The indexes of a table, in the order of their ids. None if it has none.
pub(crate) type Indexes = Option<Arc<Vec<Arc<IndexSlot>>>>;

/// Whether both are the same indexes.
#[inline(always)]
pub(crate) fn are_same(a: &Indexes, b: &Indexes) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.iter().map(|s| s.id).eq(b.iter().map(|s| s.id)),
        _ => false,
    }
}
