//! Which tables take operands that know nothing of the values below them.
//!
//! The operands that wait in a table to be folded all have one operator: the first that came. So two of them
//! on one key always fold to one, and a key never has more than one record in a run. Another operator reads
//! the value and puts what it makes. So does every operator in a table with records that expire, for whether an
//! operand came before or after that time cannot be told later; in one with indexes, which need the old value;
//! and in one whose values are fed.
//!
//! All that is known is raised under the commit lock, before a commit that makes it so is visible. A commit with
//! an operand that came too late for it conflicts.

use super::Engine;
use super::batch::{Batch, BatchPart};
use super::history::conflict_error;
use super::state::State;
use crate::base::error::Result;
use crate::base::sync::ArcSwap;
use crate::format::feed::FeedContent;
use crate::format::manifest::TableInfo;
use crate::format::operand::Operator;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of a table with operands, or with records that expire.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Known {
    /// That of its operands.
    operator: Option<Operator>,
    /// Whether records of it expire, or have since the file was opened.
    expires: bool,
}

impl Known {
    fn and(self, other: Known) -> Known {
        Known { operator: self.operator.or(other.operator), expires: self.expires || other.expires }
    }

    fn takes(self, operator: Operator) -> bool {
        !self.expires && self.operator.is_none_or(|known| known == operator)
    }
}

/// By the ids of tables.
pub(super) struct Operators(ArcSwap<HashMap<u32, Known>>);

impl Operators {
    pub(super) fn new() -> Operators {
        Operators(ArcSwap::from_pointee(HashMap::new()))
    }

    fn of(&self, table: u32) -> Known {
        self.0.load().get(&table).copied().unwrap_or_default()
    }

    /// REQUIRES: the commit lock, or that nobody commits yet.
    fn raise(&self, table: u32, more: Known) {
        let before = self.of(table);
        let after = before.and(more);
        if after != before {
            let mut tables = HashMap::clone(&self.0.load());
            tables.insert(table, after);
            self.0.store(Arc::new(tables));
        }
    }

    /// Notes what a manifest says of a table.
    pub(super) fn found(&self, table: &TableInfo) {
        for run in table.levels.iter().flat_map(|level| &level.runs) {
            self.raise(
                table.id,
                Known { operator: run.operands.operator, expires: run.expiring.records > 0 },
            );
        }
    }

    /// Notes what a commit writes.
    pub(super) fn note(&self, part: &BatchPart) {
        if part.block.has_words() {
            let known = Known {
                operator: part.block.operands().operator,
                expires: part.block.expiring().records > 0,
            };
            self.raise(part.table, known);
        }
    }

    /// Notes what a commit writes, or refuses it. REQUIRES: the commit lock.
    pub(super) fn expect(&self, state: &State, batch: &Batch) -> Result<()> {
        let parts = || batch.parts.iter().filter(|part| part.block.has_words());
        for part in parts() {
            let operator = part.block.operands().operator;
            if operator.is_some_and(|operator| !self.of(part.table).takes(operator)) {
                return Err(conflict_error(state.name_in_conflict(part.table)));
            }
        }
        parts().for_each(|part| self.note(part));
        Ok(())
    }
}

impl Engine {
    /// Whether an operand may be added to a table without a look at the value. (Indexes and lifetimes are those
    /// who call know.)
    pub(crate) fn takes_blind(&self, table: u32, operator: Operator) -> bool {
        let is_fed = || self.feed.fed().content_of(table).is_some_and(|content| content != FeedContent::Keys);
        self.operators.of(table).takes(operator) && !(self.feed.is_on() && is_fed())
    }
}
