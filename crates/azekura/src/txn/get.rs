//! One lookup: active buffer, chunks, runs, newest first.

use crate::base::error::Result;
use crate::base::key::{SortKey, TableKind};
use crate::engine::state::{HitRate, Level, TableState, tag_of};
use crate::format::block::Tag;
use crate::memtable::chunk::Chunk;
use crate::run::{Hit, find_held};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a record was found.
pub(crate) enum FoundValue<'a> {
    /// In the memtable.
    Memory(&'a [u8]),
    /// In a page of a run.
    Page(Hit<'a>),
}

impl FoundValue<'_> {
    /// The record's value, or the reference to it.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            FoundValue::Memory(b) => b,
            FoundValue::Page(hit) => &hit.page[hit.value.clone()],
        }
    }
}

/// Hands the newest record of a key at a snapshot to `f`, unless there is none or it is deleted.
#[inline]
pub(crate) fn lookup<'a, R>(
    t: &'a TableState,
    seq: u64,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, FoundValue<'a>) -> R,
) -> Result<Option<R>> {
    if t.active.is_some() || !t.chunks.is_empty() || !t.frozen.is_empty() {
        match in_memory(t, seq, key) {
            Found::Record(Tag::Tombstone, _) | Found::Hidden => return Ok(None),
            Found::Record(tag, value) => return Ok(Some(f(tag, FoundValue::Memory(value)))),
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
    if let Some(read) = &t.read
        && !read.load(Ordering::Relaxed)
    {
        read.store(true, Ordering::Relaxed);
    }
    let hash = t.kind.filter_hash(key);
    for chunk in t.chunks.iter().chain(t.frozen.iter()) {
        chunk.prefetch_filter(hash);
    }
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
fn in_runs<'a, R>(
    t: &'a TableState,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, FoundValue<'a>) -> R,
) -> Result<Option<R>> {
    match t.levels.as_slice() {
        [level] => in_level(level, t.kind, key, f),
        _ => in_levels(t, key, f),
    }
}

/// As `in_runs`, of one level. Where lookups nearly always find their keys, the filter is not
/// asked; where they mostly do, the lines of filter and page are sent for before any is looked at;
/// where they do not, the filter is asked before all else.
#[inline(always)]
fn in_level<'a, R>(
    level: &'a Level,
    kind: TableKind,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, FoundValue<'a>) -> R,
) -> Result<Option<R>> {
    let Some(run) = level.run_for(key) else { return Ok(None) };
    let hit_rate = level.hit_rate();
    let mut early = None;
    if hit_rate != HitRate::Finds {
        let hash = kind.filter_hash(key);
        if hit_rate == HitRate::Mixed {
            run.prefetch_filter(hash);
            let handle = run.meta()?.page_of(key).and_then(|page| run.get_cached(page));
            early = handle.map(|handle| (handle.prefetch_key(key), handle));
        }
        if !run.may_contain(hash)? {
            level.record_outcome(hash, false);
            return Ok(None);
        }
    }
    let Some(page) = run.meta()?.page_of(key) else { return Ok(None) };
    let (guess, handle) = match early {
        Some(early) => early,
        None => {
            let handle = run.page(page)?;
            (handle.prefetch_key(key), handle)
        }
    };
    let found = find_held(page, handle, guess, key, |hit| {
        level.record_hit_at(hit.place);
        give(hit, f)
    });
    if found.is_none() {
        level.record_miss();
    }
    Ok(found.flatten())
}

#[inline(always)]
fn give<'a, R>(hit: Hit<'a>, f: impl FnOnce(Tag, FoundValue<'a>) -> R) -> Option<R> {
    if hit.tag == Tag::Tombstone { None } else { Some(f(hit.tag, FoundValue::Page(hit))) }
}

/// Of so few levels the pages are sent for before the filters have answered.
const EAGER_LEVELS: usize = 4;

/// As `in_runs`, of several levels, newest first, or of what a small table has instead. What lookups have met
/// in the oldest one says whether keys are mostly found: its filter is then not asked, and pages are sent for
/// early.
fn in_levels<'a, R>(
    t: &'a TableState,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, FoundValue<'a>) -> R,
) -> Result<Option<R>> {
    let Some((oldest, newer)) = t.levels.split_last() else {
        let found = t.few.as_ref().and_then(|few| few.find(key));
        return Ok(found.map(|value| f(Tag::Put, FoundValue::Memory(value))));
    };
    let hash = t.kind.filter_hash(key);
    let hit_rate = oldest.hit_rate();
    let mut early = [const { None }; EAGER_LEVELS];
    for (i, level) in t.levels.iter().enumerate() {
        let Some(run) = level.run_for(key) else { continue };
        if i < newer.len() || hit_rate != HitRate::Finds {
            run.prefetch_filter(hash);
        }
        if hit_rate != HitRate::Misses && t.levels.len() <= EAGER_LEVELS {
            let handle = run.meta()?.page_of(key).and_then(|page| run.get_cached(page));
            early[i] = handle.map(|handle| (handle.prefetch_key(key), handle));
        }
    }
    let mut f = Some(f);
    for (i, level) in t.levels.iter().enumerate() {
        let asked = i < newer.len() || hit_rate != HitRate::Finds;
        if let Some(run) = level.run_for(key)
            && (!asked || run.may_contain(hash)?)
            && let Some(page) = run.meta()?.page_of(key)
        {
            let found = match early.get_mut(i).and_then(Option::take) {
                Some((guess, handle)) => {
                    find_held(page, handle, guess, key, |hit| f.take().and_then(|f| give(hit, f)))
                }
                None => run.find_in(page, key, |hit| f.take().and_then(|f| give(hit, f)))?,
            };
            if let Some(record) = found {
                oldest.record_outcome(hash, true);
                return Ok(record);
            }
        }
        if level.ranges.covers(key.bytes) {
            return Ok(None);
        }
    }
    oldest.record_outcome(hash, false);
    Ok(None)
}
