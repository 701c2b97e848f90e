//! One lookup: active buffer, chunks, runs, newest first.

use crate::base::error::Result;
use crate::base::key::{Kind, SortKey};
use crate::engine::state::{Mood, SortedRun, TableState, tag_of};
use crate::format::block::Tag;
use crate::memtable::chunk::Chunk;
use crate::run::{Hit, find_held};
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
fn in_runs<'a, R>(t: &'a TableState, key: SortKey<'_>, f: impl FnOnce(Tag, Slot<'a>) -> R) -> Result<Option<R>> {
    match t.levels.as_slice() {
        [level] => in_level(level, t.kind, key, f),
        _ => in_levels(t, key, f),
    }
}

/// As `in_runs`, of one sorted run. Where lookups nearly always find their keys, the filter is not
/// asked; where they mostly do, the lines of filter and page are sent for before any is looked at;
/// where they do not, the filter is asked before all else.
#[inline(always)]
fn in_level<'a, R>(
    level: &'a SortedRun,
    kind: Kind,
    key: SortKey<'_>,
    f: impl FnOnce(Tag, Slot<'a>) -> R,
) -> Result<Option<R>> {
    let Some(run) = level.run_for(key) else { return Ok(None) };
    let mood = level.mood();
    let mut early = None;
    if mood != Mood::Finds {
        let hash = kind.filter_hash(key);
        if mood == Mood::Mixed {
            run.prefetch_filter(hash);
            let hold = run.meta()?.page_of(key).and_then(|page| run.peek(page));
            early = hold.map(|hold| (hold.send_for(key), hold));
        }
        if !run.may_contain(hash)? {
            level.learn(hash, false);
            return Ok(None);
        }
    }
    let Some(page) = run.meta()?.page_of(key) else { return Ok(None) };
    let (guess, hold) = match early {
        Some(early) => early,
        None => {
            let hold = run.page(page)?;
            (hold.send_for(key), hold)
        }
    };
    let found = find_held(page, hold, guess, key, |hit| {
        level.learn_present(hit.place);
        give(hit, f)
    });
    if found.is_none() {
        level.learn_missed();
    }
    Ok(found.flatten())
}

#[inline(always)]
fn give<'a, R>(hit: Hit<'a>, f: impl FnOnce(Tag, Slot<'a>) -> R) -> Option<R> {
    if hit.tag == Tag::Delete { None } else { Some(f(hit.tag, Slot::Page(hit))) }
}

/// Of so few sorted runs the pages are sent for before the filters have answered.
const EAGER_LEVELS: usize = 4;

/// As `in_runs`, of several sorted runs, newest first, or of what a small table has instead. What lookups have met in the oldest one says
/// whether keys are mostly found: its filter is then not asked, and pages are sent for early.
fn in_levels<'a, R>(t: &'a TableState, key: SortKey<'_>, f: impl FnOnce(Tag, Slot<'a>) -> R) -> Result<Option<R>> {
    let Some((oldest, newer)) = t.levels.split_last() else {
        let found = t.few.as_ref().and_then(|few| few.find(key));
        return Ok(found.map(|value| f(Tag::Put, Slot::Memory(value))));
    };
    let hash = t.kind.filter_hash(key);
    let mood = oldest.mood();
    let mut early = [const { None }; EAGER_LEVELS];
    for (i, level) in t.levels.iter().enumerate() {
        let Some(run) = level.run_for(key) else { continue };
        if i < newer.len() || mood != Mood::Finds {
            run.prefetch_filter(hash);
        }
        if mood != Mood::Misses && t.levels.len() <= EAGER_LEVELS {
            let hold = run.meta()?.page_of(key).and_then(|page| run.peek(page));
            early[i] = hold.map(|hold| (hold.send_for(key), hold));
        }
    }
    let mut f = Some(f);
    for (i, level) in t.levels.iter().enumerate() {
        let asked = i < newer.len() || mood != Mood::Finds;
        if let Some(run) = level.run_for(key)
            && (!asked || run.may_contain(hash)?)
            && let Some(page) = run.meta()?.page_of(key)
        {
            let found = match early.get_mut(i).and_then(Option::take) {
                Some((guess, hold)) => find_held(page, hold, guess, key, |hit| f.take().and_then(|f| give(hit, f))),
                None => run.find_in(page, key, |hit| f.take().and_then(|f| give(hit, f)))?,
            };
            if let Some(record) = found {
                oldest.learn(hash, true);
                return Ok(record);
            }
        }
        if level.ranges.covers(key.bytes) {
            return Ok(None);
        }
    }
    oldest.learn(hash, false);
    Ok(None)
}
