//! Many lookups at once: each step is done for a group of keys before the next step begins, so that
//! the misses of one key overlap those of the others.

use super::get::lookup;
use crate::base::error::Result;
use crate::base::key::{KeyBuf, SortKey};
use crate::engine::Engine;
use crate::engine::state::{SortedRun, TableState};
use crate::format::block::Tag;
use crate::run::{Run, find_held};
use std::sync::Arc;

/// Keys in flight: more than the processor's line buffers, few enough for the first-level cache.
const GROUP: usize = 32;

/// Calls `f` with the place and value of each key.
pub(crate) fn get_many<K: AsRef<[u8]>>(
    engine: &Engine,
    t: &TableState,
    seq: u64,
    keys: &[K],
    mut f: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    for (g, group) in keys.chunks(GROUP).enumerate() {
        let mut bufs: [KeyBuf; GROUP] = std::array::from_fn(|_| KeyBuf::new());
        let mut sorts: [SortKey<'_>; GROUP] = [SortKey { head: 0, bytes: &[] }; GROUP];
        for ((key, buf), sort) in group.iter().zip(&mut bufs).zip(&mut sorts) {
            *sort = t.kind.sort_key(key.as_ref(), engine.hash_seed, buf);
        }
        let base = g * GROUP;
        let mut give = |i: usize, found: Option<(Tag, &[u8])>| -> Result<()> {
            match found {
                None | Some((Tag::Delete, _)) => f(base + i, None),
                Some((Tag::Put, value)) => f(base + i, Some(value)),
                Some((Tag::Large, reference)) => f(base + i, Some(&engine.read_large(reference)?)),
            }
            Ok(())
        };
        let sorts = &sorts[..group.len()];
        if t.memtable_is_empty() && t.few.is_none() && t.levels.iter().all(|l| l.ranges.is_empty()) {
            group_in_runs(t, sorts, &mut give)?;
        } else {
            for (i, &sort) in sorts.iter().enumerate() {
                if lookup(t, seq, sort, |tag, slot| give(i, Some((tag, slot.bytes()))))?.transpose()?.is_none() {
                    give(i, None)?;
                }
            }
        }
    }
    Ok(())
}

/// A key on its way through a sorted run.
#[derive(Clone, Copy, Default)]
struct Step<'a> {
    run: Option<&'a Arc<Run>>,
    page: usize,
}

fn group_in_runs(
    t: &TableState,
    sorts: &[SortKey<'_>],
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
        let mut holds = [const { None }; GROUP];
        for (i, &sort) in sorts.iter().enumerate() {
            let Some(run) = steps[i].run else { continue };
            let hold = run.page(steps[i].page)?;
            holds[i] = Some((hold.send_for(sort), hold));
        }
        for (i, &sort) in sorts.iter().enumerate() {
            let Some((guess, hold)) = holds[i].take() else { continue };
            let found = find_held(steps[i].page, hold, guess, sort, |hit| {
                give(i, Some((hit.tag, &hit.page[hit.value.clone()])))
            });
            if let Some(given) = found {
                given?;
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
    level: &'a SortedRun,
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
        let page = if run.may_contain(hashes[i])? { run.meta()?.page_of(sort) } else { None };
        match page {
            Some(page) => {
                steps[i].page = page;
                run.prefetch_page(page);
            }
            None => steps[i].run = None,
        }
    }
    Ok(())
}
