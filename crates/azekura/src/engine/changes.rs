//! What a commit changes among the tables.

use crate::format::frame::TableChange;
use std::sync::Arc;

/// What a commit changes among the tables, and what it believes of them.
#[derive(Default, Clone)]
pub(crate) struct TableChanges {
    /// Dropped ones come first, then renamed ones, those whose records live otherwise, and made ones by their
    /// ids. Each table is there once, but that one may be renamed and its records live otherwise.
    pub(crate) list: Vec<TableChange>,
    /// Names that were looked up, and the tables that had them. They still do, or the commit conflicts.
    pub(crate) seen: Vec<(Arc<str>, Option<u32>)>,
}

impl TableChanges {
    /// Some changes, after nothing was looked up.
    pub(crate) fn of(list: Vec<TableChange>) -> Option<Box<TableChanges>> {
        (!list.is_empty()).then(|| Box::new(TableChanges { list, seen: Vec::new() }))
    }

    /// Whether it makes a table.
    pub(crate) fn makes(&self, id: u32) -> bool {
        let made = &self.list[self.list.partition_point(|change| !matches!(change, TableChange::Made(_)))..];
        made.binary_search_by_key(&id, TableChange::id).is_ok()
    }
}

/// The tables that are dropped.
pub(super) fn dropped(changes: &[TableChange]) -> impl Iterator<Item = u32> {
    changes.iter().filter_map(|c| if let TableChange::Dropped(id) = c { Some(*id) } else { None })
}
