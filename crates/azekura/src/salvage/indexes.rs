//! Indexes are not copied: they are built anew, over the records that were found.

use super::entries::state_of;
use super::input::Input;
use super::plan::{Group, TablePlan, UNKNOWN_AGE};
use super::report::SalvageReport;
use crate::base::error::{Error, Result};
use crate::engine::Table;
use crate::format::block::Block;
use crate::format::feed::FEED_NAME;
use crate::format::hidden::{IndexState, parse_name};
use std::collections::BTreeMap;

/// Makes the index whose hidden table this was. `tables`: those of the new database, by their old ids.
pub(super) fn rebuild(
    input: &Input,
    hidden: &TablePlan,
    tables: &BTreeMap<u32, Table>,
    report: &mut SalvageReport,
) -> Result<()> {
    if hidden.name == FEED_NAME {
        report.notes.push("the feed of changes is left out: set_feed begins another".into());
        return Ok(());
    }
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
