//! Keys of which a page was lost: what was merged into them since then lacks what the page had.
//!
//! A lost value does not matter where the key was put later. What was merged later is only a part of a value,
//! and is salvaged as if there had been nothing before. So the report names such keys, one line each, unless
//! something newer puts or removes them.

use crate::format::ranges::{Range, Ranges};
use std::collections::{BTreeMap, BTreeSet};

/// Beyond so many stretches of keys that were lost, all keys of the table count as lost.
const STRETCHES_MAX: usize = 4096;
/// Beyond so many bytes of keys it is not noted any more what was written since. So more keys are named.
const NOTED_BYTES_MAX: usize = 4 << 20;

/// What is in doubt in one table.
#[derive(Default)]
pub(super) struct Doubt {
    /// Sort keys that lost pages may have had.
    lost: Ranges,
    /// Those of them that were put or removed since.
    settled: BTreeSet<Vec<u8>>,
    /// Those into which something was merged since, and how they are shown.
    merged: BTreeMap<Vec<u8>, String>,
    /// Of all keys that are noted.
    noted_bytes: usize,
}

impl Doubt {
    /// Pages were lost that may have had these keys. All that was written before is older.
    pub(super) fn lose(&mut self, keys: &Ranges) {
        if keys.is_empty() {
            return;
        }
        self.lost.add_all(keys);
        if self.lost.len() > STRETCHES_MAX {
            self.lost.add(Range { start: Vec::new(), end: None });
        }
        self.settled.retain(|key| !keys.covers(key));
        self.noted_bytes = self.settled.iter().chain(self.merged.keys()).map(Vec::len).sum();
    }

    /// A key was put or removed: what it had before does not matter.
    pub(super) fn settle(&mut self, key: &[u8]) {
        if !self.lost.covers(key) {
            return;
        }
        if self.merged.remove(key).is_some() {
            self.noted_bytes -= key.len();
        }
        if self.has_room(key) && self.settled.insert(key.to_vec()) {
            self.noted_bytes += key.len();
        }
    }

    /// All keys were removed.
    pub(super) fn settle_all(&mut self) {
        *self = Doubt::default();
    }

    /// Something was merged into a key. Returns how it is shown if it has to be named now, as there is no
    /// room to note it.
    pub(super) fn merge(&mut self, key: &[u8], shown: impl Fn() -> String) -> Option<String> {
        if !self.lost.covers(key) || self.settled.contains(key) || self.merged.contains_key(key) {
            return None;
        }
        if !self.has_room(key) {
            return Some(shown());
        }
        self.noted_bytes += key.len();
        self.merged.insert(key.to_vec(), shown());
        None
    }

    /// The keys that are to be named, as they are shown.
    pub(super) fn named(&self) -> impl Iterator<Item = &String> {
        self.merged.values()
    }

    fn has_room(&self, key: &[u8]) -> bool {
        self.noted_bytes + key.len() <= NOTED_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_to(start: &str, end: &str) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.add(Range { start: start.into(), end: Some(end.into()) });
        ranges
    }

    #[test]
    fn a_key_is_named_unless_something_newer_puts_it() {
        let mut doubt = Doubt::default();
        let merge =
            |doubt: &mut Doubt, key: &str| assert_eq!(doubt.merge(key.as_bytes(), || key.into()), None);
        let all = |doubt: &mut Doubt| ["a", "b", "c", "d", "e"].iter().for_each(|key| merge(doubt, key));
        let named = |doubt: &Doubt| doubt.named().cloned().collect::<String>();
        all(&mut doubt);
        assert_eq!(named(&doubt), "", "nothing is lost");
        doubt.lose(&from_to("b", "e"));
        doubt.settle(b"d");
        all(&mut doubt);
        all(&mut doubt);
        assert_eq!(named(&doubt), "bc", "once, and not what was put since");
        doubt.settle(b"c");
        all(&mut doubt);
        assert_eq!(named(&doubt), "b");
        doubt.lose(&from_to("d", "f"));
        all(&mut doubt);
        assert_eq!(named(&doubt), "bde", "more is lost, that is newer than what was put");
        doubt.settle_all();
        all(&mut doubt);
        assert_eq!((named(&doubt), doubt.noted_bytes), (String::new(), 0));
    }

    #[test]
    fn what_is_noted_is_bounded() {
        let mut doubt = Doubt::default();
        for i in 0..STRETCHES_MAX as u32 + 1 {
            doubt.lose(&from_to(&format!("{i:08}a"), &format!("{i:08}b")));
        }
        assert_eq!(doubt.lost.len(), 1);
        let long = |i: u8| [vec![b'k'; 1 << 20], vec![i]].concat();
        (0..9).for_each(|i| doubt.settle(&long(i)));
        assert!(doubt.noted_bytes <= NOTED_BYTES_MAX && (2..5).contains(&doubt.settled.len()));
        // Rather too many are named than too few.
        assert_eq!(doubt.merge(&long(8), || "k".into()), Some("k".into()));
        assert_eq!(doubt.merge(&long(0), || "k".into()), None);
        doubt.settle(&long(8));
        assert_eq!(doubt.named().count(), 0);
    }
}
