//! What the hidden table of an index is known by where its name is lost: its state record and its entries.

use super::log::Commits;
use crate::base::key::TableKind;
use crate::format::block::{Block, Tag};
use crate::format::expiry::Content;
use crate::format::frame::RecordPart;
use crate::format::hidden::{IndexState, STATE_KEY};
use std::collections::HashSet;

/// The state record of an index, if the block begins with one.
pub(super) fn state_of(block: &Block) -> Option<IndexState> {
    let is_state = !block.is_empty() && block.tag(0) == Tag::Put && block.key(0, &mut [0; 8]) == STATE_KEY;
    if is_state { IndexState::decode(block.value(0)).ok() } else { None }
}

/// Whether a table whose name is lost seems to be that of an index: commits put state records there, or
/// entries, which are empty and end with the key of a record that the same commit puts.
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
                let Content { tag, value, .. } = block.content(i);
                tag == Tag::Put && value.is_empty() && is_entry(block.key(i, &mut tmp))
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
