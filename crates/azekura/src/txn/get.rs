//! One lookup: active buffer, chunks, levels, newest first. The first that has the key answers.

use crate::base::error::Result;
use crate::base::key::{SortKey, TableKind};
use crate::engine::state::{Level, TableState};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{Fold, FoldedBytes};
use crate::memtable::active::{Active, Entry};
use crate::memtable::chunk::Chunk;
use crate::run::{Hit, find_held};
use std::cell::Cell;
use std::sync::Arc;

/// Where a record was found.
pub(crate) enum FoundValue<'a> {
    /// In the memtable.
    Memory(&'a [u8]),
    /// In a page of a run.
    Page(Hit<'a>),
    /// Nowhere: it was folded of operands and what is below them.
    Folded(FoldedBytes),
}

impl FoundValue<'_> {
    /// The record's value, or the reference to it.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            FoundValue::Memory(b) => b,
            FoundValue::Page(hit) => &hit.page[hit.value.clone()],
            FoundValue::Folded(value) => value,
        }
    }
}

/// A key that is looked for.
struct Sought<'k> {
    key: SortKey<'k>,
    /// Later commits do not count.
    seq: u64,
    kind: TableKind,
    /// Computed when it is first asked for: not every lookup needs it.
    hash: Cell<Option<u64>>,
}

impl Sought<'_> {
    /// The hash by which filters know the key.
    #[inline(always)]
    fn hash(&self) -> u64 {
        match self.hash.get() {
            Some(hash) => hash,
            None => {
                let hash = self.kind.filter_hash(self.key);
                self.hash.set(Some(hash));
                hash
            }
        }
    }
}

/// Whether a record is gone. The time is asked for only where it matters.
#[inline(always)]
pub(crate) fn is_gone(expiry: Expiry, now: impl FnOnce() -> u64) -> bool {
    expiry != Expiry::NEVER && expiry.is_past(now())
}

/// What the newest record of a key says of it.
pub(super) enum Says {
    Absent,
    /// It is an operand, of which and of what is below the value is made.
    Folded,
    Value,
}

/// What a record says of its key at `now`, by its tag and when it expires.
#[inline(always)]
pub(super) fn says(tag: Tag, expiry: Expiry, now: impl FnOnce() -> u64) -> Says {
    match tag {
        Tag::Tombstone => Says::Absent,
        Tag::Operand => Says::Folded,
        _ if is_gone(expiry, now) => Says::Absent,
        _ => Says::Value,
    }
}

/// Hands the newest record of a key at a snapshot to `f`, with the time at which it expires, unless there is
/// none, or it is deleted, or has expired at `now`. Its tag is `Put` or `Large`, or `Operand` for a value
/// that was gathered of operands and parts that stand apart.
#[inline]
pub(crate) fn lookup<'a, R>(
    t: &'a TableState,
    seq: u64,
    key: SortKey<'_>,
    now: impl Fn() -> u64,
    f: impl FnOnce(Tag, FoundValue<'a>, Expiry) -> R,
) -> Result<Option<R>> {
    let sought = Sought { key, seq, kind: t.kind, hash: Cell::new(None) };
    if t.active.is_some() || !t.chunks.is_empty() || !t.frozen.is_empty() {
        match in_memtable(t, &sought) {
            Some(InMemory::Hidden | InMemory::Record(Tag::Tombstone, _)) => return Ok(None),
            Some(InMemory::Record(tag, stored)) => {
                let Content { tag, value, expiry } = Content::of(tag, stored);
                return match says(tag, expiry, &now) {
                    Says::Absent => Ok(None),
                    Says::Folded => give_folded(t, &sought, now, f),
                    Says::Value => Ok(Some(f(tag, FoundValue::Memory(value), expiry))),
                };
            }
            None => {}
        }
    }
    in_levels(t, &sought, |found| match found {
        Found::Few(value) => Ok(Some(f(Tag::Put, FoundValue::Memory(value), Expiry::NEVER))),
        Found::Hit(hit) => {
            let (tag, expiry) = hit.content();
            match says(tag, expiry, &now) {
                Says::Absent => Ok(None),
                Says::Folded => give_folded(t, &sought, now, f),
                Says::Value => Ok(Some(f(tag, FoundValue::Page(hit), expiry))),
            }
        }
    })
}

/// What the memtable says of a key.
pub(super) enum InMemory<'a> {
    Record(Tag, &'a [u8]),
    /// Deleted by a range.
    Hidden,
}

/// Has the processor fetch what `in_memory` will read first for a key of this hash.
#[inline(always)]
pub(super) fn prefetch_in_memory(t: &TableState, hash: u64) {
    t.chunks.iter().chain(t.frozen.iter()).for_each(|chunk| chunk.prefetch_filter(hash));
}

/// Looks a key up in the memtable only.
pub(super) fn in_memory<'a>(
    t: &'a TableState,
    seq: u64,
    key: SortKey<'_>,
    hash: u64,
) -> Option<InMemory<'a>> {
    in_memtable(t, &Sought { key, seq, kind: t.kind, hash: Cell::new(Some(hash)) })
}

#[inline(always)]
fn in_memtable<'a>(t: &'a TableState, sought: &Sought<'_>) -> Option<InMemory<'a>> {
    in_active(t, sought.seq, sought.key).or_else(|| in_chunks(t, sought))
}

fn in_active<'a>(t: &'a TableState, seq: u64, key: SortKey<'_>) -> Option<InMemory<'a>> {
    let entry = t.active.as_ref()?.list.get(key.bytes, seq)?;
    Some(InMemory::Record(entry.tag(), entry.value))
}

fn in_chunks<'a>(t: &'a TableState, sought: &Sought<'_>) -> Option<InMemory<'a>> {
    if t.chunks.is_empty() && t.frozen.is_empty() {
        return None;
    }
    if let Some(readers) = &t.readers {
        readers.note();
    }
    let hash = sought.hash();
    let chunks = || t.chunks.iter().chain(t.frozen.iter());
    chunks().for_each(|chunk| chunk.prefetch_filter(hash));
    chunks().find_map(|chunk| in_chunk(chunk, sought.key, hash))
}

#[inline(always)]
fn in_chunk<'a>(chunk: &'a Chunk, key: SortKey<'_>, hash: u64) -> Option<InMemory<'a>> {
    if let Some(i) = chunk.find(key, hash) {
        let (tag, value) = chunk.record(i);
        return Some(InMemory::Record(tag, value));
    }
    chunk.ranges.covers(key.bytes).then_some(InMemory::Hidden)
}

/// Looks a key up in the levels, or in the few records that a small table has instead.
///
/// Where nearly all lookups have found their keys lately, the filter of the oldest level is not asked.
#[inline(always)]
fn in_levels<'a, R>(
    t: &'a TableState,
    sought: &Sought<'_>,
    f: impl FnOnce(Found<'a>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let levels = t.levels.as_slice();
    let Some((oldest, newer)) = levels.split_last() else {
        let found = t.few.as_ref().and_then(|few| few.find(sought.key));
        return found.map_or(Ok(None), |value| f(Found::Few(value)));
    };
    let asked = if oldest.finds() { newer.len() } else { levels.len() };
    if newer.is_empty() { search(levels, asked, sought, f) } else { search_several(levels, asked, sought, f) }
}

/// As `search`, but prefetches the lines of all filters first. Out of line, so that the lookup in one level
/// is short.
#[inline(never)]
fn search_several<'a, R>(
    levels: &'a [Arc<Level>],
    asked: usize,
    sought: &Sought<'_>,
    f: impl FnOnce(Found<'a>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let runs = levels[..asked].iter().filter_map(|level| level.run_for(sought.key));
    runs.for_each(|run| run.prefetch_filter(sought.hash()));
    search(levels, asked, sought, f)
}

/// Looks a key up in one level after the other. The filters of the first `asked` of them are asked.
#[inline(always)]
fn search<'a, R>(
    levels: &'a [Arc<Level>],
    asked: usize,
    sought: &Sought<'_>,
    f: impl FnOnce(Found<'a>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let Some(oldest) = levels.last() else { return Ok(None) };
    let mut f = Some(f);
    for (i, level) in levels.iter().enumerate() {
        let found = in_level(level, i < asked, sought, |hit| {
            oldest.record_hit_at(hit.place);
            f.take().map_or(Ok(None), |f| f(Found::Hit(hit)))
        })?;
        match found {
            Some(record) => return record,
            None if level.ranges.covers(sought.key.bytes) => return Ok(None),
            None => {}
        }
    }
    if asked == 0 {
        oldest.record_vain_search();
    } else {
        oldest.record_miss(sought.hash());
    }
    Ok(None)
}

/// Looks a key up in one level.
#[inline(always)]
fn in_level<'a, R>(
    level: &'a Level,
    asks_filter: bool,
    sought: &Sought<'_>,
    f: impl FnOnce(Hit<'a>) -> R,
) -> Result<Option<R>> {
    let Some(run) = level.run_for(sought.key) else { return Ok(None) };
    let hash = if asks_filter { Some(sought.hash()) } else { None };
    let Some(page) = run.page_for(sought.key, hash)? else { return Ok(None) };
    let handle = run.page(page)?;
    let guess = handle.prefetch_key(sought.key, true);
    Ok(find_held(page, handle, guess, sought.key, f))
}

/// What was found outside of the memtable.
enum Found<'a> {
    /// The value of one of few records, which never expire.
    Few(&'a [u8]),
    Hit(Hit<'a>),
}

/// Hands what the operands of a key and what is below them make to `f`.
#[cold]
#[inline(never)]
fn give_folded<'a, R>(
    t: &'a TableState,
    sought: &Sought<'_>,
    now: impl FnOnce() -> u64,
    f: impl FnOnce(Tag, FoundValue<'a>, Expiry) -> R,
) -> Result<Option<R>> {
    let mut fold = Fold::new(now());
    fold_memory(t, sought, &mut fold)?;
    if t.levels.is_empty() && fold.goes_on() {
        let few = t.few.as_ref().and_then(|few| few.find(sought.key));
        few.map_or(Ok(()), |value| fold.add(Content { tag: Tag::Put, value, expiry: Expiry::NEVER }))?;
    }
    for level in t.levels.iter() {
        if !fold.goes_on() {
            break;
        }
        let found = in_level(level, true, sought, |hit| {
            let (tag, expiry) = hit.content();
            fold.add(Content { tag, value: &hit.page[hit.value.clone()], expiry })
        })?;
        found.transpose()?;
        if level.ranges.covers(sought.key.bytes) {
            fold.hide();
        }
    }
    match fold.end() {
        Ok(folded) => Ok(folded.map(|(tag, value, expiry)| f(tag, FoundValue::Folded(value), expiry))),
        Err(clash) => Err(clash.clash_error(&t.name, t.kind, sought.key.bytes)),
    }
}

/// Folds the versions of a key that are older than one.
fn fold_versions(list: &Active, newest: Entry<'_>, fold: &mut Fold) -> Result<()> {
    let mut cursor = list.cursor();
    cursor.seek_ge(newest.key);
    while fold.goes_on()
        && let Some(entry) = cursor.entry().filter(|entry| entry.key == newest.key)
    {
        if entry.seq < newest.seq {
            fold.add(Content::of(entry.tag(), entry.value))?;
        }
        cursor.next();
    }
    Ok(())
}

/// Folds what the memtable has of a key.
fn fold_memory(t: &TableState, sought: &Sought<'_>, fold: &mut Fold) -> Result<()> {
    if let Some(active) = t.active.as_ref()
        && let Some(newest) = active.list.get(sought.key.bytes, sought.seq)
    {
        fold.add(Content::of(newest.tag(), newest.value))?;
        if fold.takes_versions() {
            fold_versions(&active.list, newest, fold)?;
        }
    }
    let hash = sought.hash();
    for chunk in t.chunks.iter().chain(t.frozen.iter()) {
        if !fold.goes_on() {
            break;
        }
        if let Some(i) = chunk.find(sought.key, hash) {
            fold.add(chunk.block.content(i))?;
        }
        if chunk.ranges.covers(sought.key.bytes) {
            fold.hide();
        }
    }
    Ok(())
}
