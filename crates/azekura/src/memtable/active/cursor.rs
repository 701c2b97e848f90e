//! A walk over the list.

use super::layout::{HEAD, NIL};
use super::{Active, Entry, SearchKey};
use crate::base::sync::atomic::Ordering;

impl Active {
    /// A cursor at no entry.
    pub(crate) fn cursor(&self) -> ActiveCursor<'_> {
        ActiveCursor { list: self, node: NIL }
    }
}

/// A position in the list's order. It meets each entry that was there before exactly once. It may or may not
/// meet entries that are inserted meanwhile. It holds no lock.
#[derive(Clone)]
pub(crate) struct ActiveCursor<'a> {
    pub(super) list: &'a Active,
    pub(super) node: u32,
}

impl<'a> ActiveCursor<'a> {
    /// The current entry. None before the first seek and beyond either end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'a>> {
        self.list.entry(self.node)
    }

    /// Goes to the newest version of the first key at or above `key`.
    pub(crate) fn seek_ge(&mut self, key: &[u8]) {
        self.node = self.list.search(&SearchKey::new(key, u64::MAX)).1;
    }

    /// Goes to the oldest version of the last key below `key`.
    pub(crate) fn seek_lt(&mut self, key: &[u8]) {
        self.stand_on(self.list.search(&SearchKey::new(key, u64::MAX)).0);
    }

    /// Goes to the first entry.
    pub(crate) fn seek_first(&mut self) {
        self.node = self.list.link(HEAD, 0).load(Ordering::Acquire);
    }

    /// Goes to the last entry.
    pub(crate) fn seek_last(&mut self) {
        self.stand_on(self.list.last());
    }

    /// Goes to the next entry. Without a current entry it stays.
    #[inline]
    pub(crate) fn next(&mut self) {
        if self.node != NIL {
            self.node = self.list.link(self.node, 0).load(Ordering::Acquire);
        }
    }

    /// Goes to the previous entry, by a search. Without a current entry it stays.
    pub(crate) fn prev(&mut self) {
        if let Some(entry) = self.entry() {
            let here = SearchKey { offset: self.node, ..SearchKey::new(entry.key, entry.seq) };
            self.stand_on(self.list.search(&here).0);
        }
    }

    /// Takes the result of a backward search. `HEAD` means that nothing comes before.
    fn stand_on(&mut self, node: u32) {
        self.node = if node == HEAD { NIL } else { node };
    }
}
