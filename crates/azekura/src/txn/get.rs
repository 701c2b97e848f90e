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

/// Hands the newest record of a key at a snapshot to `f`, unless there is none or it is deleted.
#[inline]
pub(crate) fn lookup<'a, R>(
    t: &'a TableState,
    seq: u64,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, Slot<'a>) -> R,
) -> Result<Option<R>> {
    if t.active.is_some() || !t.chunks.is_empty() || !t.frozen.is_empty() {
        match in_memory(t, seq, key) {
            Found::Record(Tag::Delete, _) | Found::Hidden => return Ok(None),
            Found::Record(tag, value) => return Ok(Some(f(tag, Slot::Memory(value)))),
            Found::Nothing => {}
        }
    }
    in_runs(t, key, f)
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

#[inline(always)]
fn in_runs<'a, R>(t: &'a TableState, key: SortKey<'_>, f: impl FnOnce(Tag, Slot<'a>) -> R) -> Result<Option<R>> {
    let hash = t.kind.filter_hash(key);
    let [level] = t.levels.as_slice() else { return in_levels(t, key, hash, f) };
    // One sorted run. Where keys are mostly found, the lines of filter and page are all sent for
    // before any is looked at; where they are not, the filter alone is asked first.
    let Some(run) = level.run_for(key) else { return Ok(None) };
    let expected = level.expects_hits();
    let mut page = None;
    if expected {
        run.prefetch_filter(hash);
        page = run.meta()?.page_of(key);
        if let Some(page) = page {
            run.prefetch_page(page, key.head);
        }
    }
    if !run.may_contain(hash)? {
        level.learn(hash, false);
        return Ok(None);
    }
    if !expected {
        page = run.meta()?.page_of(key);
    }
    let Some(page) = page else { return Ok(None) };
    let found = run.find_in(page, key, |hit| give(hit, f))?;
    level.learn(hash, found.is_some());
    Ok(found.flatten())
}

#[inline(always)]
fn give<'a, R>(hit: Hit<'a>, f: impl FnOnce(Tag, Slot<'a>) -> R) -> Option<R> {
    if hit.tag == Tag::Delete { None } else { Some(f(hit.tag, Slot::Page(hit))) }
}

/// As `in_runs`, of several sorted runs, newest first.
fn in_levels<'a, R>(
    t: &'a TableState,
    key: SortKey<'_>,
    hash: u64,
    f: impl FnOnce(Tag, Slot<'a>) -> R,
) -> Result<Option<R>> {
    for level in t.levels.iter() {
        if let Some(run) = level.run_for(key) {
            run.prefetch_filter(hash);
        }
    }
    let mut f = Some(f);
    for level in t.levels.iter() {
        if let Some(run) = level.run_for(key)
            && run.may_contain(hash)?
            && let Some(page) = run.meta()?.page_of(key)
        {
            run.prefetch_page(page, key.head);
            let found = run.find_in(page, key, |hit| f.take().and_then(|f| give(hit, f)))?;
            if let Some(record) = found {
                return Ok(record);
            }
        }
        if level.ranges.covers(key.bytes) {
            return Ok(None);
        }
    }
    Ok(None)
}
