//! Power cuts: what is left of the waiting changes afterwards.

use super::{Disk, Node, Op, Waiting};
use crate::disk::bytes::Bytes;
use crate::rng::Rng;
use std::collections::BTreeSet;

/// The sector, which a disk writes whole or not at all, unless it leaves garbage.
const SECTOR: u64 = 512;

/// What is left of one waiting change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// Nothing.
    No,
    /// All of it.
    Yes,
    /// This many first sectors of a write.
    Head(u64),
    /// A write without this many first sectors.
    Tail(u64),
    /// Each block of a write that is `bytes` long, or not, at random by `seed`.
    Blocks {
        /// The size of a block.
        bytes: u64,
        /// The seed of the random choice.
        seed: u64,
    },
    /// Only the new length, for a write that makes the file longer. Zeros stand there.
    LengthOnly,
    /// Only the part within the old length, for a write that makes the file longer.
    DataOnly,
    /// All of it, but one sector holds garbage.
    Garbage(u64),
}

/// What is found after a power cut.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// How many changes of names are there.
    pub names: usize,
    /// What is left of each waiting change that is not safe already, file by file, oldest first.
    pub ops: Vec<Kept>,
}

/// A simple way to choose what is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// This many first changes, and the next one torn.
    Prefix,
    /// Each block of this size, or not, at random.
    Blocks(u64),
    /// Anything for each change.
    Wild,
}

/// How thorough [`Disk::choices`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// All subsets of the waiting changes, if there are at most this many. Otherwise all prefixes, each
    /// change alone, and all but each one.
    pub subsets_max: usize,
    /// Whether the current write is also torn, cut to a length, and garbled.
    pub torn: bool,
}

impl Kept {
    /// Anything, at random.
    fn wild(rng: &mut Rng, sectors: u64) -> Kept {
        match rng.below(10) {
            0..=2 => Kept::No,
            3..=5 => Kept::Yes,
            6 => Kept::Head(rng.below(sectors + 1)),
            7 => Kept::Blocks { bytes: [SECTOR, 4096][usize::from(rng.one_in(2))], seed: rng.number() },
            8 => [Kept::LengthOnly, Kept::DataOnly][usize::from(rng.one_in(2))],
            _ => Kept::Tail(rng.below(sectors + 1)),
        }
    }
}

impl Waiting {
    fn sectors(&self) -> u64 {
        match &self.op {
            Op::Write(_, bytes) => (bytes.len() as u64).div_ceil(SECTOR),
            _ => 1,
        }
    }

    fn lengthens(&self) -> bool {
        matches!(&self.op, Op::Write(at, bytes) if at + bytes.len() as u64 > self.len_before)
    }

    /// Applies what is left of the change.
    fn apply(&self, kept: Kept, to: &mut Bytes) {
        let Op::Write(at, bytes) = &self.op else {
            // A change that is no write is there or not.
            let there = match kept {
                Kept::No | Kept::DataOnly => false,
                Kept::Yes | Kept::LengthOnly | Kept::Garbage(_) | Kept::Tail(_) => true,
                Kept::Head(n) => n > 0,
                Kept::Blocks { seed, .. } => seed % 2 == 0,
            };
            if there {
                self.op.apply(to);
            }
            return;
        };
        let end = at + bytes.len() as u64;
        let mut part = |from: u64, until: u64| {
            let (from, until) = (from.clamp(*at, end), until.clamp(*at, end));
            if from < until {
                let (a, b) = ((from - at) as usize, (until - at) as usize);
                to.write(from, &bytes[a..b]);
            }
        };
        match kept {
            Kept::No => {}
            Kept::Yes => part(*at, end),
            Kept::Head(n) => part(*at, at + n * SECTOR),
            Kept::Tail(n) => part(at + n * SECTOR, end),
            Kept::Blocks { bytes: size, seed } => {
                let mut rng = Rng(seed);
                let odds = rng.below(4);
                let mut from = *at;
                while from < end {
                    let until = (from / size * size + size).min(end);
                    if rng.below(4) < odds {
                        part(from, until);
                    }
                    from = until;
                }
            }
            Kept::LengthOnly => to.len = to.len.max(end),
            Kept::DataOnly => part(*at, self.len_before),
            Kept::Garbage(sector) => {
                part(*at, end);
                let from = at + sector * SECTOR;
                if from < end {
                    let len = SECTOR.min(end - from) as usize;
                    to.write(from, &Rng(sector ^ 0xbad).bytes(len));
                }
            }
        }
    }
}

impl Node {
    /// The file with what is left of its changes.
    fn cut(mut self, kept: &mut impl Iterator<Item = Kept>) -> Node {
        for waiting in std::mem::take(&mut self.ops) {
            let this = if waiting.safe { Kept::Yes } else { kept.next().unwrap_or(Kept::No) };
            waiting.apply(this, &mut self.safe);
        }
        self.now = self.safe.clone();
        self
    }
}

impl Disk {
    /// The disk after the power has gone.
    pub fn image(&self, choice: &Choice) -> Disk {
        let d = self.lock();
        let mut kept = choice.ops.iter().copied();
        let disk = d.copy(|node| node.cut(&mut kept));
        let names =
            choice.names.checked_sub(1).and_then(|i| d.waiting_names.get(i)).unwrap_or(&d.safe_names).clone();
        drop(d);
        {
            let mut fresh = disk.lock();
            fresh.safe_names = names.clone();
            fresh.names = names;
            fresh.waiting_names.clear();
        }
        disk
    }

    /// As [`image`](Disk::image), with a simple choice.
    pub fn after_cut(&self, keep: Keep, rng: &mut Rng) -> Disk {
        let choice = self.choice(keep, rng);
        self.image(&choice)
    }

    /// A choice of a simple kind.
    pub fn choice(&self, keep: Keep, rng: &mut Rng) -> Choice {
        let d = self.lock();
        let waiting: Vec<&Waiting> = d.nodes.iter().flat_map(|n| n.ops.iter().filter(|w| !w.safe)).collect();
        let first = rng.below(waiting.len() as u64 + 1);
        let ops = waiting.iter().zip(0..).map(|(w, i)| match keep {
            Keep::None => Kept::No,
            Keep::All => Kept::Yes,
            Keep::Prefix if i < first => Kept::Yes,
            Keep::Prefix if i == first => Kept::Head(rng.below(w.sectors() + 1)),
            Keep::Prefix => Kept::No,
            Keep::Blocks(bytes) => Kept::Blocks { bytes, seed: rng.number() },
            Keep::Wild => Kept::wild(rng, w.sectors()),
        });
        let ops = ops.collect();
        let names = match keep {
            Keep::None => 0,
            Keep::All => d.waiting_names.len(),
            _ => rng.below(d.waiting_names.len() as u64 + 1) as usize,
        };
        Choice { names, ops }
    }

    /// All choices of a plan, each of them once.
    pub fn choices(&self, plan: Plan) -> Vec<Choice> {
        let d = self.lock();
        let waiting: Vec<&Waiting> = d.nodes.iter().flat_map(|n| n.ops.iter().filter(|w| !w.safe)).collect();
        let mut sets: BTreeSet<Vec<Kept>> = subsets(waiting.len(), plan.subsets_max).into_iter().collect();
        if plan.torn
            && let Some(last) = waiting.last()
        {
            let base: Vec<Kept> = vec![Kept::Yes; waiting.len() - 1];
            let none: Vec<Kept> = vec![Kept::No; waiting.len() - 1];
            for torn in tears(last) {
                for before in [&base, &none] {
                    let mut ops = before.clone();
                    ops.push(torn);
                    sets.insert(ops);
                }
            }
        }
        let names = 0..=d.waiting_names.len();
        names.flat_map(|names| sets.iter().map(move |ops| Choice { names, ops: ops.clone() })).collect()
    }
}

/// The sets of `n` changes that are there: all subsets if `n` is small.
fn subsets(n: usize, all_up_to: usize) -> Vec<Vec<Kept>> {
    let of =
        |yes: &dyn Fn(usize) -> bool| (0..n).map(|i| if yes(i) { Kept::Yes } else { Kept::No }).collect();
    if n <= all_up_to {
        return (0..1usize << n).map(|bits| of(&|i| bits >> i & 1 == 1)).collect();
    }
    let mut sets: Vec<Vec<Kept>> = (0..=n).map(|k| of(&|i| i < k)).collect();
    sets.extend((0..n).map(|k| of(&|i| i == k)));
    sets.extend((0..n).map(|k| of(&|i| i != k)));
    sets
}

/// The ways to tear a write: at each sector of a block, or at some sectors of a long write; length without
/// data, data without length, garbage at its start and end.
fn tears(waiting: &Waiting) -> Vec<Kept> {
    let sectors = waiting.sectors();
    if sectors < 2 {
        return Vec::new();
    }
    let mut out: Vec<Kept> = if sectors <= 8 {
        (1..sectors).map(Kept::Head).collect()
    } else {
        [1, 7, 8, sectors / 2, sectors - 1].map(Kept::Head).to_vec()
    };
    out.extend([Kept::Tail(1), Kept::Tail(sectors - 1)]);
    if waiting.lengthens() {
        out.extend([Kept::LengthOnly, Kept::DataOnly]);
    }
    out.extend([Kept::Garbage(0), Kept::Garbage(sectors - 1)]);
    out
}
