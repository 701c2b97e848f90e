//! Many lookups at once. Each step is done for a group of keys before the next step begins. So the cache
//! misses of one key overlap those of the others. That is why they do not go through `lookup` one by one.
//! The steps are the same: `in_memory`, `Level::run_for`, `Run::page_for`, `find_held` and `says`.
//!
//! Where pages and values come from the disk, the system is asked for those of the keys ahead. So the disk
//! has many reads to do at once. That makes reads in memory slower. So it is done only once a wave of keys
//! has taken so long that it must have waited for the disk.

use super::get::{InMemory, Says, in_memory, lookup, prefetch_in_memory, says};
use super::value::resolve;
use crate::base::codec::u32_of;
use crate::base::error::Result;
use crate::base::key::{KeyBuf, SortKey};
use crate::engine::Engine;
use crate::engine::state::{Level, State, TableState};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::run::{Run, find_held};
use crate::values::{VALUE_POINTER_BYTES, ValuePointer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Keys in flight: more than the processor's line buffers, few enough for the first-level cache.
pub(super) const GROUP: usize = 32;
/// Keys for whose pages, and then values, the system is asked together.
const WAVE: usize = 4 * GROUP;
/// A key that takes longer has waited for the disk. One in memory takes less than a tenth of it, and a read
/// of the fastest disks takes more.
const WAITED: Duration = Duration::from_micros(10);

/// Calls `f` with the place of each key, its value, and when that expires.
pub(crate) fn get_many<K: AsRef<[u8]>>(
    engine: &Engine,
    state: &State,
    t: &TableState,
    seq: u64,
    keys: &[K],
    now: impl Fn() -> u64 + Copy,
    mut f: impl FnMut(usize, Option<(&[u8], Expiry)>),
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
                    Some((Tag::Large, reference, expiry)) if waits => {
                        apart.push(base + i, reference, expiry)?
                    }
                    Some((tag, stored, expiry)) => {
                        let large = |reference: &[u8]| engine.read_large(state, reference);
                        resolve(tag, stored, large, |value| f(base + i, Some((value, expiry))))?;
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

/// The tag of a key's record, its value or the reference to it, and when it expires.
type Found<'a> = Option<(Tag, &'a [u8], Expiry)>;

fn get_group<K: AsRef<[u8]>>(
    engine: &Engine,
    t: &TableState,
    seq: u64,
    keys: &[K],
    now: impl Fn() -> u64 + Copy,
    mut give: impl FnMut(usize, Found<'_>) -> Result<()>,
) -> Result<()> {
    let mut bufs: [KeyBuf; GROUP] = std::array::from_fn(|_| KeyBuf::new());
    let mut sorts: [SortKey<'_>; GROUP] = [SortKey { head: 0, bytes: &[] }; GROUP];
    let mut hashes = [0; GROUP];
    for (i, (key, buf)) in keys.iter().zip(&mut bufs).enumerate() {
        sorts[i] = t.kind.sort_key(key.as_ref(), engine.store.hash_seed, buf);
        hashes[i] = t.kind.filter_hash(sorts[i]);
    }
    let mut wanted = [false; GROUP];
    wanted[..keys.len()].fill(true);
    let mut group = Group { t, seq, sorts: &sorts[..keys.len()], hashes, wanted };
    if t.few.is_some() {
        return group.one_by_one(now, &mut give);
    }
    if !t.memtable_is_empty() {
        group.in_memory(now, &mut give)?;
    }
    for level in t.levels.iter() {
        group.in_level(level, now, &mut give)?;
    }
    group.left().try_for_each(|i| give(i, None))
}

/// Large values of a wave, to be read together: the places of their keys, their references, and when they
/// expire.
#[derive(Default)]
struct Apart(Vec<(usize, [u8; VALUE_POINTER_BYTES], Expiry)>);

impl Apart {
    fn push(&mut self, i: usize, reference: &[u8], expiry: Expiry) -> Result<()> {
        self.0.push((i, ValuePointer::decode(reference)?.encode(), expiry));
        Ok(())
    }

    /// Asks for all, then reads them one by one.
    fn give(
        &self,
        engine: &Engine,
        state: &State,
        f: &mut impl FnMut(usize, Option<(&[u8], Expiry)>),
    ) -> Result<()> {
        engine.behind(state).values.will_read(self.0.iter().map(|(_, reference, _)| reference.as_slice()));
        for (i, reference, expiry) in &self.0 {
            f(*i, Some((&engine.read_large(state, reference)?, *expiry)));
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

/// Keys that are looked for together.
struct Group<'a> {
    t: &'a TableState,
    seq: u64,
    sorts: &'a [SortKey<'a>],
    hashes: [u64; GROUP],
    /// Those of which nothing is known yet.
    wanted: [bool; GROUP],
}

impl Group<'_> {
    /// The places of the keys of which nothing is known yet.
    fn left(&self) -> impl Iterator<Item = usize> + use<> {
        let wanted = self.wanted;
        (0..GROUP).filter(move |&i| wanted[i])
    }

    /// Looks each key up by itself, everywhere.
    fn one_by_one(
        &self,
        now: impl Fn() -> u64 + Copy,
        give: &mut impl FnMut(usize, Found<'_>) -> Result<()>,
    ) -> Result<()> {
        (0..self.sorts.len()).try_for_each(|i| self.look_up(i, now, give))
    }

    fn look_up(
        &self,
        i: usize,
        now: impl Fn() -> u64,
        give: &mut impl FnMut(usize, Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let found = lookup(self.t, self.seq, self.sorts[i], now, |tag, slot, expiry| {
            give(i, Some((tag, slot.bytes(), expiry)))
        })?;
        found.unwrap_or_else(|| give(i, None))
    }

    /// Looks in the memtable, filters first.
    fn in_memory(
        &mut self,
        now: impl Fn() -> u64 + Copy,
        give: &mut impl FnMut(usize, Found<'_>) -> Result<()>,
    ) -> Result<()> {
        self.hashes[..self.sorts.len()].iter().for_each(|&hash| prefetch_in_memory(self.t, hash));
        for i in 0..self.sorts.len() {
            match in_memory(self.t, self.seq, self.sorts[i], self.hashes[i]) {
                None => continue,
                Some(InMemory::Hidden) => give(i, None)?,
                Some(InMemory::Record(tag, stored)) => {
                    let Content { tag, value, expiry } = Content::of(tag, stored);
                    match says(tag, expiry, now) {
                        Says::Absent => give(i, None)?,
                        Says::Folded => self.look_up(i, now, give)?,
                        Says::Value => give(i, Some((tag, value, expiry)))?,
                    }
                }
            }
            self.wanted[i] = false;
        }
        Ok(())
    }

    /// Looks in the pages of a level.
    fn in_level(
        &mut self,
        level: &Level,
        now: impl Fn() -> u64 + Copy,
        give: &mut impl FnMut(usize, Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut steps = [Step::default(); GROUP];
        self.filter(level, &mut steps)?;
        let mut handles = [const { None }; GROUP];
        for (i, &sort) in self.sorts.iter().enumerate() {
            let Some(run) = steps[i].run else { continue };
            let handle = run.page(steps[i].page)?;
            handles[i] = Some((handle.prefetch_key(sort, false), handle));
        }
        for (i, &sort) in self.sorts.iter().enumerate() {
            let Some((guess, handle)) = handles[i].take() else { continue };
            let found = find_held(steps[i].page, handle, guess, sort, |hit| {
                let (tag, expiry) = hit.content();
                let found = match says(tag, expiry, now) {
                    Says::Folded => return Ok(false),
                    Says::Absent => None,
                    Says::Value => Some((tag, &hit.page[hit.value.clone()], expiry)),
                };
                give(i, found).map(|()| true)
            });
            if let Some(given) = found {
                if !given? {
                    self.look_up(i, now, give)?;
                }
                self.wanted[i] = false;
            }
        }
        if level.ranges.is_empty() {
            return Ok(());
        }
        for i in self.left().filter(|&i| level.ranges.covers(self.sorts[i].bytes)) {
            give(i, None)?;
            self.wanted[i] = false;
        }
        Ok(())
    }

    /// Asks the filters, then the fences: which keys to look for in which page.
    fn filter<'l>(&self, level: &'l Level, steps: &mut [Step<'l>; GROUP]) -> Result<()> {
        for i in self.left() {
            if let Some(run) = level.run_for(self.sorts[i]) {
                run.prefetch_filter(self.hashes[i]);
                steps[i].run = Some(run);
            }
        }
        for (i, &sort) in self.sorts.iter().enumerate() {
            let Some(run) = steps[i].run else { continue };
            match run.page_for(sort, Some(self.hashes[i]))? {
                Some(page) => {
                    steps[i].page = page;
                    run.prefetch_page(page);
                }
                None => steps[i].run = None,
            }
        }
        Ok(())
    }
}
