//! Many lookups at once. Each step is done for a group of keys before the next step begins. So the cache
//! misses of one key overlap those of the others. That is why they do not go through `lookup` one by one,
//! where the memtable is empty. The steps are the same: `Level::run_for`, `Run::page_for`, `find_held` and
//! `says`.
//!
//! Where pages and values come from the disk, the system is asked for those of the keys ahead. So the disk
//! has many reads to do at once. That makes reads in memory slower. So it is done only once a wave of keys
//! has taken so long that it must have waited for the disk.

use super::get::{Says, lookup, says};
use super::value::resolve;
use crate::base::codec::u32_of;
use crate::base::error::Result;
use crate::base::key::{KeyBuf, SortKey};
use crate::engine::Engine;
use crate::engine::state::{Level, State, TableState};
use crate::format::block::Tag;
use crate::run::{Run, find_held};
use crate::values::{VALUE_POINTER_BYTES, ValuePointer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Keys in flight: more than the processor's line buffers, few enough for the first-level cache.
const GROUP: usize = 32;
/// Keys for whose pages, and then values, the system is asked together.
const WAVE: usize = 4 * GROUP;
/// A key that takes longer has waited for the disk. One in memory takes less than a tenth of it, and a read
/// of the fastest disks takes more.
const WAITED: Duration = Duration::from_micros(10);

/// Calls `f` with the place and value of each key.
pub(crate) fn get_many<K: AsRef<[u8]>>(
    engine: &Engine,
    state: &State,
    t: &TableState,
    seq: u64,
    keys: &[K],
    now: impl Fn() -> u64 + Copy,
    mut f: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    for (w, wave) in keys.chunks(WAVE).enumerate() {
        let began = Instant::now();
        let waits = engine.reads_wait.load(Ordering::Relaxed);
        if waits {
            ask_for_pages(engine, t, wave);
        }
        let mut apart = Apart::default();
        for (g, group) in wave.chunks(GROUP).enumerate() {
            let base = w * WAVE + g * GROUP;
            get_group(engine, t, seq, group, now, |i, found| {
                match found {
                    None => f(base + i, None),
                    Some((Tag::Large, reference)) if waits => apart.push(base + i, reference)?,
                    Some((tag, stored)) => {
                        let large = |reference: &[u8]| engine.read_large(state, reference);
                        resolve(tag, stored, large, |value| f(base + i, Some(value)))?;
                    }
                }
                Ok(())
            })?;
        }
        apart.give(engine, state, &mut f)?;
        let waited = began.elapsed() > WAITED * u32_of(wave.len());
        if waited != waits {
            engine.reads_wait.store(waited, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn get_group<K: AsRef<[u8]>>(
    engine: &Engine,
    t: &TableState,
    seq: u64,
    group: &[K],
    now: impl Fn() -> u64 + Copy,
    mut give: impl FnMut(usize, Option<(Tag, &[u8])>) -> Result<()>,
) -> Result<()> {
    let mut bufs: [KeyBuf; GROUP] = std::array::from_fn(|_| KeyBuf::new());
    let mut sorts: [SortKey<'_>; GROUP] = [SortKey { head: 0, bytes: &[] }; GROUP];
    for ((key, buf), sort) in group.iter().zip(&mut bufs).zip(&mut sorts) {
        *sort = t.kind.sort_key(key.as_ref(), engine.store.hash_seed, buf);
    }
    let sorts = &sorts[..group.len()];
    if t.memtable_is_empty() && t.few.is_none() && t.levels.iter().all(|l| l.ranges.is_empty()) {
        return group_in_runs(t, seq, sorts, now, &mut give);
    }
    for (i, &sort) in sorts.iter().enumerate() {
        let found = lookup(t, seq, sort, now, |tag, slot, _| give(i, Some((tag, slot.bytes()))))?;
        if found.transpose()?.is_none() {
            give(i, None)?;
        }
    }
    Ok(())
}

/// Large values of a wave, to be read together: the places of their keys, and their references.
#[derive(Default)]
struct Apart(Vec<(usize, [u8; VALUE_POINTER_BYTES])>);

impl Apart {
    fn push(&mut self, i: usize, reference: &[u8]) -> Result<()> {
        self.0.push((i, ValuePointer::decode(reference)?.encode()));
        Ok(())
    }

    /// Asks for all, then reads them one by one.
    fn give(&self, engine: &Engine, state: &State, f: &mut impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        engine.behind(state).values.will_read(self.0.iter().map(|(_, reference)| reference.as_slice()));
        for (i, reference) in &self.0 {
            f(*i, Some(&engine.read_large(state, reference)?));
        }
        Ok(())
    }
}

/// Has the system begin to read the pages in which keys may be. An error here is told by the lookup that
/// meets it.
#[cold]
fn ask_for_pages<K: AsRef<[u8]>>(engine: &Engine, t: &TableState, keys: &[K]) {
    for key in keys {
        let mut buf = KeyBuf::new();
        let sort = t.kind.sort_key(key.as_ref(), engine.store.hash_seed, &mut buf);
        let hash = t.kind.filter_hash(sort);
        for run in t.levels.iter().filter_map(|level| level.run_for(sort)) {
            if let Ok(Some(page)) = run.page_for(sort, Some(hash)) {
                run.will_read(page..page + 1);
            }
        }
    }
}

/// A key on its way through a level.
#[derive(Clone, Copy, Default)]
struct Step<'a> {
    run: Option<&'a Arc<Run>>,
    page: usize,
}

fn group_in_runs(
    t: &TableState,
    seq: u64,
    sorts: &[SortKey<'_>],
    now: impl Fn() -> u64 + Copy,
    give: &mut impl FnMut(usize, Option<(Tag, &[u8])>) -> Result<()>,
) -> Result<()> {
    let mut wanted = [true; GROUP];
    let mut hashes = [0u64; GROUP];
    for (hash, &sort) in hashes.iter_mut().zip(sorts) {
        *hash = t.kind.filter_hash(sort);
    }
    for level in t.levels.iter() {
        let mut steps = [Step::default(); GROUP];
        filter(level, sorts, &hashes, &wanted, &mut steps)?;
        let mut handles = [const { None }; GROUP];
        for (i, &sort) in sorts.iter().enumerate() {
            let Some(run) = steps[i].run else { continue };
            let handle = run.page(steps[i].page)?;
            handles[i] = Some((handle.prefetch_key(sort), handle));
        }
        for (i, &sort) in sorts.iter().enumerate() {
            let Some((guess, handle)) = handles[i].take() else { continue };
            let found = find_held(steps[i].page, handle, guess, sort, |hit| {
                let (tag, expiry) = hit.content();
                let found = match says(tag, expiry, now) {
                    Says::Folded => return Ok(false),
                    Says::Absent => None,
                    Says::Value => Some((tag, &hit.page[hit.value.clone()])),
                };
                give(i, found).map(|()| true)
            });
            if let Some(given) = found {
                if !given? {
                    lookup(t, seq, sort, now, |tag, slot, _| give(i, Some((tag, slot.bytes()))))?
                        .transpose()?;
                }
                wanted[i] = false;
            }
        }
    }
    for i in (0..sorts.len()).filter(|&i| wanted[i]) {
        give(i, None)?;
    }
    Ok(())
}

/// Asks the filters, then the fences: which keys to look for in which page.
fn filter<'a>(
    level: &'a Level,
    sorts: &[SortKey<'_>],
    hashes: &[u64; GROUP],
    wanted: &[bool; GROUP],
    steps: &mut [Step<'a>; GROUP],
) -> Result<()> {
    for (i, sort) in sorts.iter().enumerate().filter(|&(i, _)| wanted[i]) {
        if let Some(run) = level.run_for(*sort) {
            run.prefetch_filter(hashes[i]);
            steps[i].run = Some(run);
        }
    }
    for (i, &sort) in sorts.iter().enumerate() {
        let Some(run) = steps[i].run else { continue };
        match run.page_for(sort, Some(hashes[i]))? {
            Some(page) => {
                steps[i].page = page;
                run.prefetch_page(page);
            }
            None => steps[i].run = None,
        }
    }
    Ok(())
}
