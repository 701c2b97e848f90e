//! What commits have done with tables: how these are called since then, and which are gone.

use crate::format::frame::{RecordPart, TableChange};
use std::collections::HashMap;

/// What became of tables, as far as there are commits that say so: for each the number of the newest one.
#[derive(Default)]
pub(super) struct Fates {
    renamed: HashMap<u32, (u64, String)>,
    dropped: HashMap<u32, u64>,
    made: HashMap<u32, u64>,
    /// Commits that a dropped table cannot get any more.
    used: HashMap<u32, u64>,
}

impl Fates {
    /// What commits say, from the oldest to the newest.
    pub(super) fn of<'a>(parts: impl IntoIterator<Item = (u64, &'a RecordPart)>) -> Fates {
        let mut fates = Fates::default();
        for (seq, part) in parts {
            if !matches!(part.change, Some(TableChange::Dropped(_))) {
                fates.used.insert(part.table, seq);
            }
            match &part.change {
                Some(TableChange::Renamed(id, name)) => {
                    fates.renamed.insert(*id, (seq, name.to_string()));
                }
                Some(TableChange::Dropped(id)) => {
                    fates.dropped.insert(*id, seq);
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

    /// The commit after this one that has dropped the table. A commit in the log need not have been acknowledged:
    /// what a crash has left behind a missing frame never happened. So if there is anything newer of the table,
    /// nobody has dropped it.
    pub(super) fn dropped_after(&self, id: u32, seq: u64) -> Option<u64> {
        let is_used_after = |dropped: u64| self.used.get(&id).is_some_and(|&used| used > dropped);
        self.dropped.get(&id).copied().filter(|&dropped| dropped > seq && !is_used_after(dropped))
    }

    /// The name that a commit after this one gave the table.
    pub(super) fn name_after(&self, id: u32, seq: u64) -> Option<&str> {
        self.renamed.get(&id).filter(|(at, _)| *at > seq).map(|(_, name)| name.as_str())
    }
}
