//! The value of a record whose newest part is an operand: that and the older records of the key, at which
//! other sources stand.

use super::Cursor;
use super::value::FoldedValue;
use crate::base::error::Result;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{Fold, FoldedBytes, value_of};

impl Cursor {
    /// Folds the record of the first source with those of the same key. An error of the value is kept for who
    /// asks for it.
    #[cold]
    #[inline(never)]
    pub(super) fn fold_front(&mut self) -> Result<()> {
        let key = self.sources[self.front].key();
        // The sources know what has expired.
        let mut fold = Fold::new(0);
        let (own, mut before) = (self.view.own.len(), None);
        for &i in &self.order {
            let source = &self.sources[i];
            if source.key() != key || !fold.goes_on() {
                break;
            }
            // The newest own write to a number says all that the transaction has written to it.
            if i < own && before.is_some() && !fold.takes_versions() {
                continue;
            }
            if self.any_ranges && self.sources[..i].iter().any(|newer| newer.ranges().covers(key)) {
                break;
            }
            fold.add(Content { tag: source.tag(), value: source.value(), expiry: source.expiry() })?;
            if fold.takes_versions() {
                source.fold_versions(&mut fold)?;
            }
            before = Some(i);
        }
        let folded = match fold.end() {
            Ok(Some((Tag::Operand, parts, expiry))) => self.read_parts(&parts).map(|value| (value, expiry)),
            Ok(Some((_, value, expiry))) => Ok((value, expiry)),
            Ok(None) => Ok((FoldedBytes::Number([0; 8]), Expiry::NEVER)),
            Err(clash) => Err(clash.clash_error(&self.view.table.name, self.kind, key)),
        };
        self.folded = FoldedValue::new(folded);
        Ok(())
    }

    /// The value of which some parts stand apart.
    fn read_parts(&self, parts: &[u8]) -> Result<FoldedBytes> {
        let values = &self.db.engine.behind(&self.view.state).values;
        value_of(parts, |reference| values.read(reference)).map(FoldedBytes::Long)
    }
}
