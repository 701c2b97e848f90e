//! Indexes are not copied: they are built anew, over the records that were found.

use super::input::Input;
use super::log::Commits;
use super::plan::{Group, TablePlan, UNKNOWN_AGE};
use super::report::SalvageReport;
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::engine::Table;
use crate::format::block::{Block, Tag};
use crate::format::frame::RecordPart;
use crate::format::hidden::{IndexState, STATE_KEY, parse_name};
use std::collections::{BTreeMap, HashSet};

/// Makes the index whose hidden table this was. `tables`: those of the new database, by their old ids.
pub(super) fn rebuild(
    input: &Input,
    hidden: &TablePlan,
    tables: &BTreeMap<u32, Table>,
    report: &mut SalvageReport,
) -> Result<()> {
    let Some((id, name)) = parse_name(&hidden.name) else {
        report.lose(format!("the hidden table {:?}, which is the index of no table", hidden.name));
        return Ok(());
    };
    let Some(table) = tables.get(&id) else {
        report.lose(format!("index {name:?} of table {id}, of which nothing was found"));
        return Ok(());
    };
    let of = format!("index {name:?} of table {:?}", table.name());
    match find_state(input, hidden) {
        None => report.lose(format!("{of}: what it was of; it is to be made again")),
        Some(state) => match table.create_index(name, &state.spec) {
            Ok(_) => report.notes.push(format!("{of} was built anew")),
            Err(
                e @ (Error::NotUnique { .. }
                | Error::TooLarge { .. }
                | Error::Invalid { .. }
                | Error::WrongType { .. }),
            ) => report.lose(format!("{of}: {e}")),
            Err(e) => return Err(e),
        },
    }
    Ok(())
}

/// The newest state record that was found.
fn find_state(input: &Input, hidden: &TablePlan) -> Option<IndexState> {
    let known = hidden.ages.iter().filter(|(age, _)| **age != UNKNOWN_AGE).map(|(_, group)| group).rev();
    known.chain(hidden.ages.get(&UNKNOWN_AGE)).find_map(|group| state_in(input, group))
}

fn state_in(input: &Input, group: &Group) -> Option<IndexState> {
    let mut found = None;
    let mut look = |block: &Block| found = state_of(block).or(found.take());
    group.parts.iter().for_each(|part| look(&part.block));
    // Its key is the first of all, so only a run's first page may have it.
    group.runs.iter().filter_map(|run| run.first_page(input)).for_each(|block| look(&block));
    found
}

fn state_of(block: &Block) -> Option<IndexState> {
    let is_state = !block.is_empty() && block.tag(0) == Tag::Put && block.key(0, &mut [0; 8]) == STATE_KEY;
    if is_state { IndexState::decode(block.value(0)).ok() } else { None }
}

/// Whether a table whose name is lost seems to be that of an index: commits put state records there, or entries,
/// which are empty and end with the key of a record that the same commit puts.
pub(super) fn is_index(id: u32, commits: &Commits, hash_seed: Option<u64>) -> bool {
    commits.values().all(|commit| {
        let parts = commit.parts.iter().filter(|part| part.change.is_none());
        let (own, others): (Vec<_>, Vec<_>) = parts.partition(|part| part.table == id);
        let mut keys = HashSet::new();
        if !own.is_empty() {
            others.iter().for_each(|part| add_keys(&mut keys, &part.block, hash_seed));
        }
        let is_entry = |key: &[u8]| (0..key.len()).any(|at| keys.contains(&key[at..]));
        own.iter().all(|RecordPart { block, .. }| {
            let mut records = (0..block.len()).filter(|&i| block.tag(i) != Tag::Tombstone);
            let mut tmp = [0; 8];
            let all = records.all(|i| {
                block.tag(i) == Tag::Put && block.value(i).is_empty() && is_entry(block.key(i, &mut tmp))
            });
            all || state_of(block).is_some()
        })
    })
}

/// Adds the keys of a block, as they stand there and as the user knows them if the table is a hash table.
fn add_keys(keys: &mut HashSet<Vec<u8>>, block: &Block, hash_seed: Option<u64>) {
    let mut tmp = [0; 8];
    for i in 0..block.len() {
        let (key, mut user) = (block.key(i, &mut tmp), Vec::new());
        keys.insert(key.to_vec());
        if hash_seed.is_some_and(|seed| TableKind::Hash.user_key(key, seed, &mut user).is_ok()) {
            keys.insert(user);
        }
    }
}
