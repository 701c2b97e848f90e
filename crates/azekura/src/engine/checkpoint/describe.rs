//! A state as the manifest describes it.

use super::ValueMove;
use crate::base::clock::Clock;
use crate::engine::state::{Level, State};
use crate::format::manifest::{LevelInfo, LogChain, Manifest, TableInfo, ValueInfo};
use crate::values::{Segment, ValueStore};
use std::sync::Arc;

/// The manifest of a state whose log is in `logs`. A value segment that has `moved` stands in its new place.
pub(super) fn describe(
    state: &State,
    values: &ValueStore,
    next_id: u64,
    logs: Vec<LogChain>,
    moved: Option<&ValueMove>,
    clock: &Clock,
) -> Manifest {
    let tables = state.tables.iter().map(|t| TableInfo {
        id: t.id,
        kind: t.kind,
        name: t.name.clone(),
        levels: t.levels.iter().map(level_info).collect(),
        ttl_ms: t.ttl_ms,
    });
    let value_info = |s: &Arc<Segment>| {
        let extents = match moved {
            Some(step) if Arc::ptr_eq(&step.segment, s) => step.extents.clone(),
            _ => s.place().extents().to_vec(),
        };
        let mut info = ValueInfo { id: s.id, extents, used: 0 };
        info.used = s.used().min(info.bytes());
        info
    };
    // Who opens a file without a log goes on from there.
    let tables_seq = if logs.is_empty() { state.flushed_seq } else { state.tables_seq };
    Manifest {
        next_id,
        next_table: state.next_table,
        flushed_seq: state.flushed_seq,
        logs,
        tables: tables.collect(),
        values: values.segments().iter().map(value_info).collect(),
        few: state.tables.iter().filter_map(|t| Some((t.id, t.few.clone()?))).collect(),
        tables_seq: Some(tables_seq),
        clock_ms: clock.is_used().then(|| clock.now()),
    }
}

fn level_info(level: &Arc<Level>) -> LevelInfo {
    LevelInfo { newest: level.newest, runs: level.runs.iter().map(|r| r.info.clone()).collect() }
}
