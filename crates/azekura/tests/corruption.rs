//! Damaged files: opening, reading and checking give the right values or errors; never a panic, a
//! wrong value, a hang, or an allocation larger than the file. What a read trips over, `check` reports.
//!
//! `AZEKURA_EXHAUSTIVE=1` flips every bit of every block in use, which takes hours.

use azekura::{Db, Error, Kind, Options};
use sim::disk::Disk;
use sim::rng::Rng;
use sim::script::{Ack, Script, bytes_of, options, problems};
use sim::watchdog::Watchdog;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PATH: &str = "corrupt.azk";

/// Remembers the largest allocation.
struct Measured;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Measured = Measured;

/// Panics of any thread, with their places.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// One test at a time, as panics and allocations are watched in all threads.
static TURN: Mutex<()> = Mutex::new(());

fn watch_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(hook_panics);
}

fn hook_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // The engine's panics count, not those of the test itself.
        if info.location().is_some_and(|l| l.file().contains("src/")) {
            PANICS.lock().unwrap().push(info.to_string());
        }
        before(info);
    }));
}

/// A database to be damaged, and what it holds.
struct Sample {
    name: &'static str,
    disk: Disk,
    script: Script,
    /// Its state when it was whole, and the oldest one that damage at the log's end may lead to.
    last: usize,
    oldest: usize,
}

/// What became of a damaged database.
#[derive(Debug, Default)]
struct Outcome {
    refused: bool,
    errors: usize,
    problems: usize,
    state: Option<usize>,
}

impl Sample {
    fn new(name: &'static str, seed: u64, rich: bool, closed: bool) -> Sample {
        let script = Script::new(seed, 60, rich);
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options(false, 60_000)).unwrap();
        script.run(&db, 0, &mut Ack::default()).unwrap();
        let last = script.digests.len() - 1;
        if closed {
            db.close().unwrap();
            return Sample { name, disk: disk.after_kill(), script, last, oldest: last };
        }
        db.sync().unwrap();
        Sample { name, disk: disk.after_kill(), script, last, oldest: 0 }
    }

    /// Looks at a damaged copy in every way. `Err`: it gave something wrong.
    fn look(&self, disk: &Disk, read_only: bool) -> Result<Outcome, String> {
        let (len, _) = disk.used_blocks(PATH);
        PANICS.lock().unwrap().clear();
        LARGEST.store(0, Ordering::Relaxed);
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.look_inside(disk, read_only)));
        if let Some(panic) = PANICS.lock().unwrap().first() {
            return Err(format!("panic: {panic}"));
        }
        let largest = LARGEST.load(Ordering::Relaxed);
        if largest as u64 > len + (8 << 20) {
            return Err(format!("{largest} bytes were allocated at once for a file of {len}"));
        }
        looked.unwrap_or_else(|_| Err("the test panicked".into()))
    }

    fn look_inside(&self, disk: &Disk, read_only: bool) -> Result<Outcome, String> {
        let db = match Db::open_on(disk, PATH, options(false, 60_000).read_only(read_only)) {
            Ok(db) => db,
            Err(Error::Corrupt { .. } | Error::NotADatabase { .. } | Error::NewerVersion { .. }) => {
                return Ok(Outcome { refused: true, ..Outcome::default() });
            }
            Err(e) => return Err(format!("opening gives {e}")),
        };
        let mut out = Outcome { problems: problems(&db).len(), ..Outcome::default() };
        let mut states: Vec<usize> = (self.oldest..=self.last).collect();
        let names: Vec<String> = db.tables().into_iter().map(|t| t.name).collect();
        states.retain(|&k| self.script.models[k].keys().eq(&names));
        for name in &names {
            let table = db.open_table(name).map_err(|e| e.to_string())?;
            let read = self.scan(&table, name, &mut states, &mut out)?;
            let keys = self.script.models[self.last].get(name).into_iter().flat_map(|m| m.1.keys());
            for key in keys {
                match table.get(key) {
                    Ok(found) => states.retain(|&k| self.value(k, name, key) == found),
                    Err(Error::Corrupt { .. }) => out.errors += 1,
                    Err(e) => return Err(format!("get gives {e}")),
                }
            }
            if states.is_empty() {
                return Err(format!("table {name:?}: what can be read was never together ({read} records scanned)"));
            }
        }
        if out.errors > 0 && out.problems == 0 {
            return Err(format!("check is silent, but {} reads failed", out.errors));
        }
        out.state = states.last().copied();
        Ok(out)
    }

    /// Reads a table to its end or the first error; both directions if it is ordered.
    fn scan(
        &self,
        table: &azekura::Table,
        name: &str,
        states: &mut Vec<usize>,
        out: &mut Outcome,
    ) -> Result<usize, String> {
        let mut found = BTreeMap::new();
        let mut whole = true;
        let cursor = match table.cursor() {
            Ok(cursor) => cursor,
            Err(e) => return Err(format!("cursor gives {e}")),
        };
        for record in cursor.owned() {
            match record {
                Ok((k, v)) => drop(found.insert(k, v)),
                Err(Error::Corrupt { .. }) => {
                    out.errors += 1;
                    whole = false;
                }
                Err(e) => return Err(format!("a scan gives {e}")),
            }
        }
        let ordered = table.kind() == Kind::Ordered;
        states.retain(|&k| {
            let Some((_, records)) = self.script.models[k].get(name) else { return false };
            // An ordered scan that broke off has given all records up to there.
            let expected = if ordered { found.len() } else { records.len() };
            let expected = if whole { records.len() } else { expected.min(records.len()) };
            (!whole && !ordered || expected == found.len())
                && found.iter().all(|(key, v)| records.get(key).is_some_and(|s| bytes_of(*s) == *v))
                && (!ordered || found.keys().eq(records.keys().take(expected)))
        });
        Ok(found.len())
    }

    fn value(&self, k: usize, table: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.script.models[k].get(table).and_then(|m| m.1.get(key)).map(|s| bytes_of(*s))
    }
}

fn samples() -> Vec<Sample> {
    vec![
        Sample::new("closed", 11, false, true),
        Sample::new("closed, rich", 12, true, true),
        Sample::new("left open", 13, false, false),
        Sample::new("left open, rich", 14, true, false),
    ]
}

/// Damages copies of the samples in turn until the time is over.
fn damage(seconds: u64, mut change: impl FnMut(&Sample, &Disk, &mut Rng, u64) -> Option<String>) {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    watch_panics();
    let watchdog = Watchdog::start(30);
    let until = Instant::now() + Duration::from_secs(seconds);
    let samples = samples();
    let (mut failures, mut outcomes) = (Vec::new(), BTreeMap::new());
    let mut rng = Rng(7);
    let mut done = vec![false; samples.len()];
    for i in 0.. {
        let sample = &samples[i as usize % samples.len()];
        let disk = sample.disk.after_kill();
        let Some(what) = change(sample, &disk, &mut rng, i / samples.len() as u64) else {
            done[i as usize % samples.len()] = true;
            if done.iter().all(|&d| d) {
                break;
            }
            continue;
        };
        let name = format!("{:?}, {what}", sample.name);
        watchdog.at(name.clone());
        match sample.look(&disk, i % 3 == 0) {
            Ok(out) => {
                let kind = match &out {
                    Outcome { refused: true, .. } => "refused",
                    Outcome { errors: 1.., .. } => "errors",
                    Outcome { problems: 1.., .. } => "found by check only",
                    Outcome { state: Some(k), .. } if *k == sample.last => "as before",
                    _ => "commits at the log's end lost",
                };
                *outcomes.entry((sample.name, kind)).or_insert(0) += 1;
            }
            Err(e) => {
                eprintln!("{name}: {e}");
                failures.push(format!("{name}: {e}"));
            }
        }
        if failures.len() > 8 || Instant::now() > until {
            break;
        }
    }
    println!("{outcomes:#?}");
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
}

fn seconds(default: u64) -> u64 {
    std::env::var("AZEKURA_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

#[test]
fn samples_are_whole() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for sample in samples() {
        let out = sample.look(&sample.disk.after_kill(), true).unwrap();
        assert_eq!((out.state, out.errors, out.problems), (Some(sample.last), 0, 0), "{}", sample.name);
        let (len, blocks) = sample.disk.used_blocks(PATH);
        println!("{}: {len} bytes, {} blocks in use", sample.name, blocks.len());
    }
}

#[test]
fn single_bits_flipped() {
    let exhaustive = std::env::var_os("AZEKURA_EXHAUSTIVE").is_some();
    damage(if exhaustive { 1 << 30 } else { seconds(14) }, |_, disk, rng, i| {
        let (_, blocks) = disk.used_blocks(PATH);
        let bit = if exhaustive {
            let block = blocks.get((i / 32_768) as usize)?;
            block * 8 + i % 32_768
        } else {
            // Superblocks and the beginnings of blocks, where headers are, more often than the rest.
            let block =
                if rng.below(12) == 0 { rng.below(2) * 4096 } else { blocks[rng.below(blocks.len() as u64) as usize] };
            let within = if rng.below(3) == 0 { rng.below(64 * 8) } else { rng.below(4096 * 8) };
            block * 8 + within
        };
        let byte = disk.peek(PATH, bit / 8, 1)[0];
        disk.patch(PATH, bit / 8, &[byte ^ (1 << (bit % 8))]);
        Some(format!("bit {} of byte {}", bit % 8, bit / 8))
    });
}

#[test]
fn blocks_zeroed_copied_and_swapped() {
    damage(seconds(10), |_, disk, rng, _| {
        let (_, blocks) = disk.used_blocks(PATH);
        let size = [4096, 16_384][rng.below(2) as usize];
        let pick = |rng: &mut Rng| blocks[rng.below(blocks.len() as u64) as usize];
        let (a, b) = (pick(rng), pick(rng));
        let (x, y) = (disk.peek(PATH, a, size), disk.peek(PATH, b, size));
        Some(match rng.below(4) {
            0 => {
                disk.patch(PATH, a, &vec![0; size]);
                format!("{size} bytes at {a} zeroed")
            }
            1 => {
                disk.patch(PATH, b, &x);
                format!("{size} bytes at {a} copied to {b}")
            }
            2 => {
                let noise: Vec<u8> = (0..size).map(|_| rng.number() as u8).collect();
                disk.patch(PATH, a, &noise);
                format!("{size} bytes at {a} random")
            }
            _ => {
                disk.patch(PATH, a, &y);
                disk.patch(PATH, b, &x);
                format!("{size} bytes at {a} and {b} swapped")
            }
        })
    });
}

#[test]
fn files_cut_and_lengthened() {
    damage(seconds(6), |_, disk, rng, i| {
        let (len, blocks) = disk.used_blocks(PATH);
        if i % 4 == 0 {
            let noise: Vec<u8> = (0..1 + rng.below(40_000)).map(|_| rng.number() as u8).collect();
            disk.patch(PATH, len, &noise);
            return Some(format!("{} bytes of garbage at the end", noise.len()));
        }
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let to = match i % 4 {
            1 => block,
            2 => (block + rng.below(4096)).min(len),
            _ => rng.below(20_000).min(len),
        };
        disk.cut_file(PATH, to);
        Some(format!("cut to {to} bytes"))
    });
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut crc, b| {
        crc ^= u32::from(*b);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
        crc
    })
}

#[test]
fn files_that_are_no_databases() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let open = |bytes: &[u8]| {
        let disk = Disk::with_file(PATH, bytes);
        let read = Db::open_on(&disk, PATH, options(false, 1).read_only(true)).err();
        let write = Db::open_on(&disk, PATH, options(false, 1)).err();
        assert_eq!(disk.bytes(PATH) == bytes, write.is_some(), "a refused file is left alone");
        (read, write)
    };
    let refused = |e: &Option<Error>| matches!(e, Some(Error::NotADatabase { .. } | Error::Corrupt { .. }));
    let mut rng = Rng(3);
    let mut files: Vec<Vec<u8>> = vec![
        b"SQLite format 3\0".repeat(1000),
        b"\x89PNG\r\n\x1a\n".to_vec(),
        b"KC\n\0\x10\x0e\x06\xb4".repeat(2000),
        b"plain text\n".repeat(5000),
        b"AZEKURA\0".to_vec(),
        b"AZEKURA\0".repeat(2000),
        vec![0; 4095],
        vec![0; 100_000],
        vec![255; 8192],
    ];
    files.extend((0..200).map(|_| (0..1 + rng.below(30_000)).map(|_| rng.number() as u8).collect()));
    for (i, file) in files.iter().enumerate() {
        let (read, write) = open(file);
        assert!(refused(&read) && refused(&write), "file {i}: {read:?}, {write:?}");
    }
    let (read, write) = open(b"");
    assert!(refused(&read) && write.is_none(), "an empty file is a new database: {write:?}");

    let sample = Sample::new("closed", 11, false, true);
    for copies in [vec![0u64], vec![4096], vec![0, 4096]] {
        let disk = sample.disk.after_kill();
        for &at in &copies {
            let mut block = disk.peek(PATH, at, 4096);
            block[12..16].copy_from_slice(&2u32.to_le_bytes());
            let sum = crc32c(&block[12..]);
            block[8..12].copy_from_slice(&sum.to_le_bytes());
            disk.patch(PATH, at, &block);
        }
        let opened = Db::open_on(&disk, PATH, options(false, 1)).err();
        assert!(matches!(opened, Some(Error::NewerVersion { found: 2, .. })), "{copies:?}: {opened:?}");
    }

    let dir = std::env::temp_dir();
    let opened = Options::new().open(&dir).err();
    assert!(opened.is_some() && dir.is_dir(), "a directory: {opened:?}");
}
