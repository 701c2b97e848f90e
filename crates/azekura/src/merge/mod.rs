//! Merges sorted sources into one. Of each key the newest version stays.
//!
//! It uses a tournament tree of losers (Knuth, The Art of Computer Programming, volume 3, 5.4.1) over the
//! heads of the sources. Each record costs log2(k) comparisons, without branches when all records have
//! eight-byte keys. Sources come newest first. Among equal keys the lowest source number wins, and the others
//! are skipped. Sources that do not overlap are copied without comparisons.
//!
//! A merge runs in steps (`fill`). Between two steps its owner can write, pace itself or stop.

mod chunks;
mod copy;
mod fixed;
mod folding;
mod general;
mod pending;
mod source;
mod tree;

pub(crate) use chunks::merge_chunks;
pub(crate) use source::MergeSource;

use crate::base::error::Result;
use crate::base::key::common_prefix;
use crate::format::block::{Block, Fixed, Tag};
use crate::format::operand::Folding;
use crate::format::ranges::Ranges;
use copy::copy_block;
use pending::Pending;
use tree::Tree;

/// One `fill` adds at most about so many bytes of values, and of keys that are not numbers. Long keys with a
/// long prefix are few bytes in their pages, and here they are whole.
const FILL_BYTES_MAX: usize = 4 << 20;

/// How the sources are read.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    /// One after the other: no source overlaps another.
    Chain,
    /// All records have eight-byte keys and the same widths.
    Fixed,
    General,
    /// As `General`, where some records are operands.
    Folding,
    /// As `Fixed`, where all records are as long as operands, and stay so.
    FoldingFixed,
}

/// A merge in progress.
pub(crate) struct Merger {
    /// Newest first, or in key order if chained. A source is removed when all of it has been read.
    sources: Vec<MergeSource>,
    mode: Mode,
    fixed: Option<Fixed>,
    tree: Tree,
    /// Whether tombstones are dropped, because nothing older exists.
    bottom: bool,
    /// What has expired by then is deleted. 0: nothing has.
    now: u64,
    /// How many leading bytes all keys share (general mode).
    skip: usize,
    any_ranges: bool,
    /// The range deletes of each source, with its age. They stay when the source is removed.
    hiding: Vec<(usize, Ranges)>,
    ranges: Ranges,
    /// The last key taken from any source. Its older versions are skipped.
    last: Vec<u8>,
    last_head: u64,
    any_last: bool,
    /// The age of the source at whose partitions `fill` stops. Below, how many of these have been passed.
    watched: Option<usize>,
    partitions: usize,
    /// The operand of the last key, as long as older records may have its base.
    pending: Option<Pending>,
    /// Whether some records that were folded may be too long for a page, or have parts that stand apart.
    is_long: bool,
}

impl Merger {
    /// A merge of sources, newest first. `bottom`: no older record of these keys exists. What has expired at
    /// `now` is dropped then, and else becomes a tombstone.
    pub(crate) fn new(mut sources: Vec<MergeSource>, bottom: bool, now: u64) -> Result<Merger> {
        let (ranges, hiding) = number(&mut sources);
        let any_ranges = !ranges.is_empty();
        let now = if sources.iter().any(|s| s.expiring(now).any_past(now)) { now } else { 0 };
        let folding = sources.iter().map(MergeSource::folding).max().unwrap_or(Folding::None);
        let folds = folding != Folding::None;
        // What operands of numbers are folded to is as long as they are, unless they are folded to values.
        let stays = |f: &Fixed| match folding {
            Folding::None => true,
            Folding::Numbers => !bottom && *f == Fixed::OPERANDS,
            Folding::Long => false,
        };
        let is_fixed = |f: &Fixed| stays(f) && !becomes_deletes(&sources, *f, bottom, now);
        let fixed = common_widths(&sources).filter(is_fixed);
        let mut mode = match (fixed.filter(|_| !any_ranges), folds) {
            (Some(_), true) => Mode::FoldingFixed,
            (Some(_), false) => Mode::Fixed,
            (None, true) => Mode::Folding,
            (None, false) => Mode::General,
        };
        let is_long = folding == Folding::Long;
        let skip = common_skip(&sources);
        if !any_ranges && !folds && chain_order(&mut sources) {
            mode = Mode::Chain;
        }
        let mut ready = Vec::with_capacity(sources.len());
        for mut source in sources {
            if source.start()? {
                ready.push(source);
            }
        }
        let fixed = if any_ranges { None } else { fixed };
        let drops = fixed.is_some_and(|f| f.tag == Tag::Tombstone) && bottom;
        let mut merger = Merger {
            sources: if drops { Vec::new() } else { ready },
            mode,
            fixed,
            tree: Tree::default(),
            bottom,
            now,
            skip,
            any_ranges,
            hiding,
            ranges: if bottom { Ranges::default() } else { ranges },
            last: Vec::new(),
            last_head: 0,
            any_last: false,
            watched: None,
            partitions: 0,
            pending: None,
            is_long,
        };
        merger.rebuild();
        Ok(merger)
    }

    /// The widths that all records of the output share, known before the merge.
    pub(crate) fn fixed(&self) -> Option<Fixed> {
        self.fixed
    }

    /// The range deletes that the output keeps.
    pub(crate) fn ranges(&self) -> Ranges {
        self.ranges.clone()
    }

    /// Appends about `limit` more records to `out`, or fewer if these are long. True when all sources have
    /// been read. REQUIRES: `out` has the form that `fixed` tells.
    pub(crate) fn fill(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        match self.mode {
            Mode::Chain => self.fill_chain(out, limit),
            Mode::Fixed => self.fill_fixed(out, limit),
            Mode::General => self.fill_general(out, limit),
            Mode::Folding => self.fill_folding(out, limit),
            Mode::FoldingFixed => self.fill_folding_fixed(out, limit),
        }
    }

    /// Whether some records that it has folded may be too long for a page, or be gathered of parts that stand
    /// apart.
    pub(crate) fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether the sources are copied one after the other.
    pub(crate) fn is_chain(&self) -> bool {
        self.mode == Mode::Chain
    }

    /// Makes `fill` also stop where the oldest source goes from one partition to the next. At that point all
    /// keys up to the partition's end have been given out, and no key above it.
    pub(crate) fn stop_at_partitions(&mut self) {
        self.watched = self.sources.iter().map(|s| s.age).max();
    }

    /// How many partitions of the watched source have been given out.
    pub(crate) fn partitions_done(&self) -> usize {
        match self.sources.iter().find(|s| Some(s.age) == self.watched) {
            Some(source) => source.runs_read(),
            None => usize::MAX,
        }
    }

    /// Whether a watched partition has just ended, now that source `i` has read new records.
    fn crossed(&mut self, i: usize) -> bool {
        let source = &self.sources[i];
        if self.watched != Some(source.age) || source.runs_read() == self.partitions {
            return false;
        }
        self.partitions = source.runs_read();
        true
    }

    fn fill_chain(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        let (target, heap_target) = (out.len().saturating_add(limit), out.heap.len() + FILL_BYTES_MAX);
        while out.len() < target && out.heap.len() < heap_target {
            let Some(source) = self.sources.first_mut() else { return Ok(true) };
            if self.fixed.is_some() && source.block.fixed == out.fixed {
                let start = out.len();
                out.append_same(&source.block, source.at, source.block.len());
                if self.bottom {
                    out.drop_past(start, self.now);
                }
            } else {
                copy_block(source, out, self.bottom, self.now);
            }
            source.at = source.block.len();
            if !source.next_block()? {
                self.sources.remove(0);
            } else if self.crossed(0) {
                return Ok(false);
            }
        }
        Ok(self.sources.is_empty())
    }

    /// Removes a source that has been read, and rebuilds the tree.
    fn remove(&mut self, i: usize) {
        self.sources.remove(i);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        match self.mode {
            Mode::Chain => {}
            Mode::Fixed | Mode::FoldingFixed => self.rebuild_fixed(),
            Mode::General | Mode::Folding => self.rebuild_general(),
        }
    }
}

/// Gives the sources their ages. Their range deletes: all, and those of each that has some, with its age.
fn number(sources: &mut [MergeSource]) -> (Ranges, Vec<(usize, Ranges)>) {
    let (mut ranges, mut hiding) = (Ranges::default(), Vec::new());
    for (age, source) in sources.iter_mut().enumerate() {
        source.age = age;
        if !source.ranges().is_empty() {
            ranges.add_all(source.ranges());
            hiding.push((age, source.ranges().clone()));
        }
    }
    (ranges, hiding)
}

/// The widths of every record of every source, if they are the same.
fn common_widths(sources: &[MergeSource]) -> Option<Fixed> {
    let first = sources.first()?.fixed()?;
    sources.iter().all(|s| s.fixed() == Some(first)).then_some(first)
}

/// Whether most of some records of one width have expired. If tombstones must be left of them, these are not
/// of that width. (Where few have, all are left as they are: they hide what is older, too.)
fn becomes_deletes(sources: &[MergeSource], fixed: Fixed, bottom: bool, now: u64) -> bool {
    if bottom || now == 0 || fixed.tag != Tag::Expiring {
        return false;
    }
    let (past, all) = sources
        .iter()
        .map(|s| s.expiring(now))
        .fold((0.0, 0), |(past, all), expiring| (past + expiring.past(now), all + expiring.records));
    past * 2.0 >= all as f64
}

/// How many leading bytes all keys of all sources share.
fn common_skip(sources: &[MergeSource]) -> usize {
    let mut bounds = sources.iter().filter_map(MergeSource::bounds);
    let Some((first, last)) = bounds.next() else { return 0 };
    let mut skip = common_prefix(first, last);
    for (min, max) in bounds {
        skip = skip.min(common_prefix(first, min)).min(common_prefix(first, max));
    }
    skip
}

/// Puts sources in key order if none overlaps another, and returns whether it did.
fn chain_order(sources: &mut Vec<MergeSource>) -> bool {
    sources.retain(|s| s.bounds().is_some());
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by(|&a, &b| sources[a].bounds().cmp(&sources[b].bounds()));
    let apart = order.windows(2).all(|w| match (sources[w[0]].bounds(), sources[w[1]].bounds()) {
        (Some((_, max)), Some((min, _))) => max < min,
        _ => false,
    });
    if apart {
        let mut slots: Vec<Option<MergeSource>> = sources.drain(..).map(Some).collect();
        sources.extend(order.into_iter().filter_map(|i| slots[i].take()));
    }
    apart
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memtable::chunk::Chunk;
    use std::sync::Arc;

    /// Without a bound a step would have all 20 MB of each of these.
    #[test]
    fn a_step_has_few_records_if_they_are_long() {
        let prefix = vec![b'p'; 10_000];
        let chunk = |first: u64, step: usize| {
            let mut block = Block::new(None);
            for i in (first..2_000).step_by(step) {
                block.push(&[&prefix[..], &i.to_be_bytes()].concat(), Tag::Put, b"value");
            }
            MergeSource::chunk(Arc::new(Chunk::new(block, Ranges::default(), Vec::new())))
        };
        for sources in [vec![chunk(0, 1)], vec![chunk(0, 2), chunk(1, 2)]] {
            let mut merger = Merger::new(sources, true, 0).unwrap();
            let (mut steps, mut is_done, mut out) = (0, false, Block::new(None));
            while !is_done {
                let before = out.heap.len();
                is_done = merger.fill(&mut out, 32_768).unwrap();
                assert!(out.heap.len() - before < FILL_BYTES_MAX + (64 << 10));
                steps += 1;
            }
            assert_eq!((out.len(), steps), (2_000, 5));
        }
    }
}
