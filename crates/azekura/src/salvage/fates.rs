//! What commits have done with tables: how these are called since then, and which are gone.

use crate::format::frame::{RecordPart, TableChange};
use std::collections::{HashMap, HashSet};

/// What became of tables, as far as there are commits that say so.
#[derive(Default)]
pub(super) struct Fates {
    /// The newest name that a commit gave the table, and the commit's number.
    renamed: HashMap<u32, (u64, String)>,
    dropped: HashSet<u32>,
    made: HashMap<u32, u64>,
}

impl Fates {
    /// What commits say, from the oldest to the newest.
    pub(super) fn of<'a>(parts: impl IntoIterator<Item = (u64, &'a RecordPart)>) -> Fates {
        let mut fates = Fates::default();
        for (seq, part) in parts {
            match &part.change {
                Some(TableChange::Renamed(id, name)) => {
                    fates.renamed.insert(*id, (seq, name.to_string()));
                }
                Some(TableChange::Dropped(id)) => {
                    fates.dropped.insert(*id);
                }
                Some(TableChange::Made(table)) => {
                    fates.made.insert(table.id, seq);
                }
                None => {}
            }
        }
        fates
    }

    /// Whether a commit after this one has made the table.
    pub(super) fn is_made_after(&self, id: u32, seq: u64) -> bool {
        self.made.get(&id).is_some_and(|&made| made > seq)
    }

    /// Whether the table was dropped.
    pub(super) fn is_dropped(&self, id: u32) -> bool {
        self.dropped.contains(&id)
    }

    /// The name that a commit after this one gave the table.
    pub(super) fn name_after(&self, id: u32, seq: u64) -> Option<&str> {
        self.renamed.get(&id).filter(|(at, _)| *at > seq).map(|(_, name)| name.as_str())
    }
}
