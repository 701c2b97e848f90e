//! Which tables take operands that know nothing of the values below them.
//!
//! The operands that wait in a table to be folded all have one operator: the first that came. So two of them
//! on one key always fold to one, and a key never has more than one record in a run. Another operator reads
//! the value and puts what it makes. So does every operator in a table with records that expire, for whether
//! an operand came before or after that time cannot be told later; in one with indexes, which need the old
//! value; and in one whose values are fed.
//!
//! All that is known is raised under the commit lock, before a commit that makes it so is visible. A commit
//! with an operand that came too late for it conflicts.

use super::batch::{Batch, BatchPart};
use super::history::conflict_error;
use super::state::State;
use crate::base::error::Result;
use crate::base::sync::RwLock;
use crate::format::manifest::TableInfo;
use crate::format::operand::Operator;
use std::collections::HashMap;

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

/// By the ids of tables, of those that have anything to say. An entry goes with its table.
#[derive(Default)]
pub(super) struct Operators(RwLock<HashMap<u32, Known>>);

impl Operators {
    fn of(&self, table: u32) -> Known {
        self.0.read().get(&table).copied().unwrap_or_default()
    }

    /// REQUIRES: the commit lock, or that nobody commits yet.
    fn raise(&self, table: u32, more: Known) {
        let before = self.of(table);
        let after = before.and(more);
        if after != before {
            self.0.write().insert(table, after);
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

    /// Notes what a commit writes. REQUIRES: the commit lock.
    pub(super) fn note(&self, part: &BatchPart) {
        if part.block.has_words() {
            let known = Known {
                operator: part.block.operands().operator,
                expires: part.block.expiring().records > 0,
            };
            self.raise(part.table, known);
        }
    }

    /// Forgets a table that is in no state any more. REQUIRES: the commit lock.
    pub(super) fn forget(&self, table: u32) {
        if self.0.read().contains_key(&table) {
            self.0.write().remove(&table);
        }
    }

    /// Forgets all tables that a state does not have. REQUIRES: nobody commits yet.
    pub(super) fn retain(&self, state: &State) {
        self.0.write().retain(|&table, _| state.tables.get(table).is_some());
    }

    /// Whether a table takes operands of an operator, as far as other operands and lifetimes go.
    pub(super) fn takes(&self, table: u32, operator: Operator) -> bool {
        self.of(table).takes(operator)
    }

    /// Notes what a commit writes, or refuses it. REQUIRES: the commit lock.
    pub(super) fn expect(&self, state: &State, batch: &Batch) -> Result<()> {
        let with_words = || batch.parts.iter().filter(|part| part.block.has_words());
        let is_late = |part: &&BatchPart| {
            let operator = part.block.operands().operator;
            operator.is_some_and(|operator| !self.takes(part.table, operator))
        };
        if let Some(part) = with_words().find(is_late) {
            return Err(conflict_error(state.name_in_conflict(part.table)));
        }
        with_words().for_each(|part| self.note(part));
        Ok(())
    }

    /// Of how many tables it knows anything.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn len(&self) -> usize {
        self.0.read().len()
    }
}
