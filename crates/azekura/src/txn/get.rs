//! One lookup: active buffer, chunks, runs, newest first.

use crate::base::error::Result;
use crate::base::key::SortKey;
use crate::engine::state::{TableState, tag_of};
use crate::format::block::Tag;
use crate::memtable::chunk::Chunk;
use crate::run::Hit;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a record was found.
pub(crate) enum Slot<'a> {
    /// In the memtable.
    Memory(&'a [u8]),
    /// In a page of a run.
    Page(Hit<'a>),
}

impl Slot<'_> {
    /// The record's value, or the reference to it.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Slot::Memory(b) => b,
            Slot::Page(hit) => &hit.page[hit.value.clone()],
        }
    }
}

/// The newest record of a key at a snapshot, unless it is deleted.
#[inline]
pub(crate) fn lookup<'a>(t: &'a TableState, seq: u64, key: SortKey<'_>) -> Result<Option<(Tag, Slot<'a>)>> {
    if t.active.is_some() || !t.chunks.is_empty() || !t.frozen.is_empty() {
        match in_memory(t, seq, key) {
            Found::Record(Tag::Delete, _) | Found::Hidden => return Ok(None),
            Found::Record(tag, value) => return Ok(Some((tag, Slot::Memory(value)))),
            Found::Nothing => {}
        }
    }
    in_runs(t, key)
}

/// What the memtable says of a key.
enum Found<'a> {
    Record(Tag, &'a [u8]),
    /// Deleted by a range.
    Hidden,
    Nothing,
}

fn in_memory<'a>(t: &'a TableState, seq: u64, key: SortKey<'_>) -> Found<'a> {
    if let Some(active) = &t.active
        && let Some(entry) = active.list.get(key.bytes, seq)
    {
        return Found::Record(tag_of(entry.kind), entry.value);
    }
    if t.chunks.is_empty() && t.frozen.is_empty() {
        return Found::Nothing;
    }
    if !t.read.load(Ordering::Relaxed) {
        t.read.store(true, Ordering::Relaxed);
    }
    let hash = t.kind.filter_hash(key);
    in_chunks(&t.chunks, key, hash).or_else(|| in_chunks(&t.frozen, key, hash)).unwrap_or(Found::Nothing)
}

fn in_chunks<'a>(chunks: &'a [Arc<Chunk>], key: SortKey<'_>, hash: u64) -> Option<Found<'a>> {
    for chunk in chunks {
        if let Some(i) = chunk.find(key, hash) {
            let (tag, value) = chunk.record(i);
            return Some(Found::Record(tag, value));
        }
        if chunk.ranges.covers(key.bytes) {
            return Some(Found::Hidden);
        }
    }
    None
}

/// The record of a key in the runs, newest first.
#[inline]
pub(crate) fn in_runs<'a>(t: &'a TableState, key: SortKey<'_>) -> Result<Option<(Tag, Slot<'a>)>> {
    let levels = &t.levels;
    let hash = t.kind.filter_hash(key);
    if levels.len() > 1 {
        for level in levels.iter() {
            if let Some(run) = level.run_for(key.bytes) {
                run.prefetch_filter(hash);
            }
        }
    }
    for level in levels.iter() {
        if let Some(run) = level.run_for(key.bytes)
            && run.may_contain(hash)?
            && let Some(hit) = run.find(key)?
        {
            return Ok((hit.tag != Tag::Delete).then_some((hit.tag, Slot::Page(hit))));
        }
        if level.ranges.covers(key.bytes) {
            return Ok(None);
        }
    }
    Ok(None)
}
