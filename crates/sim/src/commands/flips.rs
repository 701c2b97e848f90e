//! Damage: a flipped bit; zeroed, random, swapped, misdirected and stale pages; files cut and lengthened.
//! Opening, reading and checking give right values or errors. They never panic, hang, give a wrong value, or
//! allocate much more than the file's size. Damage that a read finds, `check` reports.
//!
//! A database that was closed must give its last state or an error. So must one that was left open after its
//! log had rested, if the damage is within one block: a frame vouches for the last ones. Wider damage may hit
//! the last frames and the one that vouches for them. That looks like a torn write, so an older state is
//! allowed there. The number of such answers is printed.
//!
//! `--every-bit` flips each bit of a database of 1 MiB in turn. `--part 3/100` takes only the third of a
//! hundred parts (`every.rs`).

mod bit;
mod every;
mod sample;
mod view;

use crate::disk::Disk;
use crate::judge::PATH;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use bit::flip;
use every::Every;
use sample::{Outcome, Sample};
use std::collections::BTreeMap;
use std::sync::Mutex;

const HANG_SECONDS: u64 = 120;
const BLOCK: usize = 4096;
const PAGE: usize = 16 << 10;

/// The limits, and whether to flip every bit.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    /// Flip every bit of a database of 1 MiB, one after the other, instead of damage at random.
    #[arg(long)]
    every_bit: bool,
    /// Of every bit only those of part I of N, from 1/N on.
    #[arg(long, value_name = "I/N", requires = "every_bit", value_parser = part)]
    part: Option<Part>,
}

/// One of several parts of equal length.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: u64,
    of: u64,
}

fn part(text: &str) -> Result<Part, String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
        _ => Err("a part is written like 3/100".into()),
    }
}

impl Part {
    fn range(self, total: u64) -> std::ops::Range<u64> {
        total * (self.number - 1) / self.of..total * self.number / self.of
    }
}

/// The number of outcomes, by sample and kind.
type Tally = Mutex<BTreeMap<(&'static str, &'static str), u64>>;

/// Damages databases and judges them.
pub fn run(arguments: &Arguments) -> Verdict {
    let run = Run::new(&arguments.limits, "damaged databases");
    let watchdog = Watchdog::start(HANG_SECONDS);
    let tally = Tally::default();
    if arguments.every_bit {
        let part = arguments.part.unwrap_or(Part { number: 1, of: 1 });
        every_bit(&run, &watchdog, &tally, part);
    } else {
        let samples = sample::all();
        let whole = samples.iter().all(|s| match s.look(&s.disk.after_kill(), true) {
            Ok(out) => out.is_whole(),
            Err(e) => {
                run.violation(format!("{} before any damage: {e}", s.name));
                false
            }
        });
        if !whole {
            run.violation("a sample is not whole before any damage");
        }
        run.on_all_processors(|n| {
            let sample = &samples[usize::try_from(n).unwrap_or(0) % samples.len()];
            let mut rng = Rng::of(run.seed, n);
            let disk = sample.disk.after_kill();
            if rng.one_in(2) {
                disk.set_mapping();
            }
            let damage = damage(sample, &disk, &mut rng);
            look(&run, &watchdog, &tally, sample, &disk, rng.one_in(3), &damage);
        });
    }
    for ((sample, kind), n) in tally.lock().unwrap_or_else(|e| e.into_inner()).iter() {
        run.note(format!("{sample}: {n} {kind}"));
    }
    run.verdict()
}

fn every_bit(run: &Run, watchdog: &Watchdog, tally: &Tally, part: Part) {
    let every = match Every::new() {
        Ok(every) => every,
        Err(e) => {
            run.violation(e);
            return;
        }
    };
    let bits = part.range(every.bits());
    run.note(format!("a database of {} bytes; bits {} to {}", every.bits() / 8, bits.start, bits.end));
    let all = run.each(bits.end - bits.start, |n| {
        let bit = bits.start + n;
        watchdog.at(format!("bit {} of byte {}", bit % 8, bit / 8));
        found(run, tally, &every.sample, every.flip(bit), || format!("bit {} of byte {}", bit % 8, bit / 8));
    });
    if all {
        run.note(format!("all bits from {} to {} were flipped", bits.start, bits.end));
    }
}

fn look(
    run: &Run,
    watchdog: &Watchdog,
    tally: &Tally,
    sample: &Sample,
    disk: &Disk,
    read_only: bool,
    damage: &Damage,
) {
    let what = &damage.what;
    watchdog.at(format!("{}, {what}", sample.name));
    let to_write = if read_only { "" } else { ", opened to write" };
    let looked = sample.look(disk, read_only).and_then(|out| {
        let silent = kind(&out, sample) == TORN;
        if silent && damage.blocks == 1 { Err("an older state, and nothing says so".into()) } else { Ok(out) }
    });
    found(run, tally, sample, looked, || format!("{what}{to_write}"));
}

/// Counts an outcome.
fn found(
    run: &Run,
    tally: &Tally,
    sample: &Sample,
    found: Result<Outcome, String>,
    what: impl Fn() -> String,
) {
    run.tried(1);
    match found {
        Ok(out) => {
            let mut tally = tally.lock().unwrap_or_else(|e| e.into_inner());
            *tally.entry((sample.name, kind(&out, sample))).or_insert(0) += 1;
        }
        Err(e) => run.violation(format!("{}, {}: {e}", sample.name, what())),
    }
}

fn kind(out: &Outcome, sample: &Sample) -> &'static str {
    match out {
        Outcome { unread: true, .. } => "read by nobody",
        Outcome { refused: true, .. } => "refused",
        Outcome { errors: 1.., .. } => "errors on reading, reported by check",
        Outcome { problems: 1.., .. } => "reported by check only",
        Outcome { state: Some(k), .. } if *k == sample.last => "harmless",
        _ => TORN,
    }
}

/// An older state without an error.
const TORN: &str = "taken for a torn end of the log";

/// A change of a file.
struct Damage {
    what: String,
    /// How many of the file's blocks differ, including blocks that were cut off.
    blocks: usize,
}

/// Damages a disk at random, and says how.
fn damage(sample: &Sample, disk: &Disk, rng: &mut Rng) -> Damage {
    let before = disk.bytes(PATH);
    let what = change(sample, disk, rng);
    let after = disk.bytes(PATH);
    let blocks = |b: &[u8]| b.len().div_ceil(BLOCK);
    let differ = before.chunks(BLOCK).zip(after.chunks(BLOCK)).filter(|(a, b)| a != b).count();
    Damage { what, blocks: differ + blocks(&before).abs_diff(blocks(&after)) }
}

/// Changes a disk at random, and says how.
fn change(sample: &Sample, disk: &Disk, rng: &mut Rng) -> String {
    let (len, blocks) = disk.used_blocks(PATH);
    let block = |rng: &mut Rng| if rng.one_in(12) { rng.below(2) * BLOCK as u64 } else { *rng.pick(&blocks) };
    let size = if rng.one_in(2) { BLOCK } else { PAGE };
    let (a, b) = (block(rng), block(rng));
    let (x, y) = (disk.peek(PATH, a, size), disk.peek(PATH, b, size));
    match rng.below(20) {
        0..=7 => {
            // The beginnings of blocks, where headers are, more often than the rest.
            let within = if rng.one_in(3) { rng.below(64 * 8) } else { rng.below(BLOCK as u64 * 8) };
            flip(disk, (a * 8 + within).min(len * 8 - 1))
        }
        8..=9 => {
            disk.patch(PATH, a, &vec![0; size]);
            format!("{size} bytes at {a} zeroed")
        }
        10..=11 => {
            disk.patch(PATH, a, &rng.bytes(size));
            format!("{size} bytes at {a} random")
        }
        12..=13 => {
            disk.patch(PATH, b, &x);
            format!("{size} bytes at {a} written to {b} as well")
        }
        14..=15 => {
            disk.patch(PATH, a, &y);
            disk.patch(PATH, b, &x);
            format!("{size} bytes at {a} and {b} swapped")
        }
        16..=17 => stale(sample, disk, a, size, rng),
        18 => {
            disk.patch(PATH, len, &rng.bytes(1 + rng.clone().below(40_000) as usize));
            "garbage at the end".into()
        }
        _ => {
            let to = (a + rng.below(2 * BLOCK as u64)).min(len);
            disk.cut_file(PATH, to);
            format!("cut from {len} to {to} bytes")
        }
    }
}

/// A write that never reached the disk: a place holds what it held earlier. Only one copy of the superblock
/// becomes stale. The two copies are two writes, and a file with both old copies is an older file: if it was
/// closed then, nothing in it can tell.
fn stale(sample: &Sample, disk: &Disk, at: u64, size: usize, rng: &mut Rng) -> String {
    let size = if at < 2 * BLOCK as u64 { BLOCK } else { size };
    let earlier = rng.pick(&sample.earlier);
    let old = earlier.disk.peek(PATH, at, size);
    disk.patch(PATH, at, &old);
    format!("{size} bytes at {at} as they were at call {}", earlier.mark.calls)
}
