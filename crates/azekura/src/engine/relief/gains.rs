//! Which table is to be merged to make room: the one with the most garbage, or with the most levels.

use super::estimates::hidden_bytes;
use super::reserve::{Relief, Vain};
use crate::engine::state::{Level, State, TableState};
use crate::engine::waste::Survey;
use std::sync::Arc;

/// What a tombstone takes in a run, about.
const TOMBSTONE_BYTES: u64 = 8;
/// On a full disk merges leave a table no more levels than this, or than they left the last time.
const LEVELS_MANY: usize = 6;

/// The table with the most garbage, if that is much more than was left the last time. Else the one with the
/// most levels, if these are many: the more levels, the more room a merge needs before it frees anything.
pub(super) fn most_to_gain(
    survey: &Survey<'_>,
    relief: &Relief,
    vain: &Vain,
) -> Option<(u32, Vec<Arc<Level>>)> {
    let worth = vain.garbage.saturating_add(relief.gain_worth());
    let dirty = garbage(survey, relief, &vain.damaged).filter(|g| g.1 >= worth).map(|g| g.0);
    let many = vain.levels.saturating_add(LEVELS_MANY);
    let tall = || tallest(survey.state(), &vain.damaged).filter(|t| t.1 > many).map(|t| t.0);
    let id = dirty.or_else(tall)?;
    survey.state().table(id).ok().map(|t| (id, t.levels.to_vec()))
}

/// The table with the most levels, and how many, but for those that are damaged.
pub(super) fn tallest(state: &State, damaged: &[u32]) -> Option<(u32, usize)> {
    let whole = state.tables.with_runs().filter(|t| !damaged.contains(&t.id));
    whole.map(|t| (t.id, t.levels.len())).max_by_key(|t| t.1)
}

/// The table with the most garbage, and how much that is, if there is much, but for those that are damaged.
pub(super) fn garbage(survey: &Survey<'_>, relief: &Relief, damaged: &[u32]) -> Option<(u32, u64)> {
    let mut sparse = survey.sparse_segments();
    sparse.retain(|s| relief.is_sparse(s));
    let of = |t: &TableState| {
        let refers = |id| t.levels.iter().any(|l| l.refers_to(id));
        // Tombstones that have nothing to hide go too.
        let purged = t.levels.last().map_or(0, |l| l.deletes() * TOMBSTONE_BYTES);
        let dead: u64 = sparse.iter().filter(|s| refers(s.id)).map(|s| s.dead_bytes).sum();
        hidden_bytes(&t.levels).saturating_add(purged).saturating_add(dead)
    };
    let whole = survey.state().tables.with_runs().filter(|t| !damaged.contains(&t.id));
    let most = whole.map(|t| (t.id, of(t))).max_by_key(|&(_, bytes)| bytes);
    most.filter(|&(_, bytes)| bytes >= relief.gain_worth())
}
