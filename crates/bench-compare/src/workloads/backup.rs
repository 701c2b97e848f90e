//! Backups of a store while it is written.
//!
//! Each peer backs up as its users do: Azekura and RocksDB by increments into a repository, LMDB and SQLite
//! by copying all. A backup is durable when its time ends.
//!
//! The first backup and the one after an update of 1 % are made while nobody writes. The second is restored,
//! and every byte of it is compared. Then a thread updates records at random, alone and beside whole backups
//! to new directories, one after the other, in turns.

use super::bench::Bench;
use super::versions::{self, Buffers};
use crate::counters::Io;
use crate::failure::{Failure, Result};
use crate::measure::{Measured, count};
use crate::peers::{Open, Store};
use crate::records::{KeyBuffer, ScanSum, mix};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One record of so many is updated between the first backup and the second.
const UPDATED_PART: u64 = 100;
/// Turns of the writer, alone and beside backups.
const TURNS: u32 = 3;

/// What a writer did in a time.
#[derive(Default)]
struct Wrote {
    updates: u64,
    took: Duration,
    longest: Duration,
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let store = bench.open(true, false)?;
    versions::load(bench, store.as_ref(), &mut measured)?;
    store.settle()?;
    let bench = &*bench;
    let saved = directory(bench, "saved")?;
    timed(bench, store.as_ref(), &saved, "first", &mut measured)?;
    update_part(bench, store.as_ref())?;
    timed(bench, store.as_ref(), &saved, "second", &mut measured)?;
    restore(bench, &saved, &mut measured)?;
    let (mut alone, mut beside, mut backups) = (Wrote::default(), Wrote::default(), 0);
    for turn in 0..2 * TURNS {
        let from = alone.updates + beside.updates;
        // Each goes first in every other turn.
        if matches!(turn % 4, 0 | 3) {
            alone.add(update(bench, store.as_ref(), from, &AtomicBool::new(false))?);
        } else {
            let (wrote, made) = beside_backups(bench, store.as_ref(), from)?;
            beside.add(wrote);
            backups += made;
        }
    }
    let (lonely, rate) = (alone.per_second(), beside.per_second());
    measured.set("alone_per_s", lonely);
    measured.set("beside_per_s", rate);
    measured.set("kept_percent", 100.0 * rate / lonely);
    measured.set("alone_max_ms", alone.longest.as_secs_f64() * 1e3);
    measured.set("beside_max_ms", beside.longest.as_secs_f64() * 1e3);
    measured.set_count("beside_backups", backups);
    store.close()?;
    Ok(measured)
}

impl Wrote {
    fn add(&mut self, other: Self) {
        self.updates += other.updates;
        self.took += other.took;
        self.longest = self.longest.max(other.longest);
    }

    fn per_second(&self) -> f64 {
        count(self.updates) / self.took.as_secs_f64()
    }
}

/// A new directory beside the store's files.
fn directory(bench: &Bench<'_>, name: &str) -> Result<PathBuf> {
    let dir = bench.dir.join(name);
    fs::create_dir(&dir).map_err(Failure::io(format!("creating {}", dir.display())))?;
    Ok(dir)
}

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).map_err(Failure::io(format!("removing {}", dir.display())))
}

fn back_up(bench: &Bench<'_>, store: &dyn Store, to: &Path) -> Result<()> {
    let made = store.back_up(to)?;
    if made {
        Ok(())
    } else {
        Err(Failure::peer(bench.peer.about().name, "backup", &"there is no such call"))
    }
}

/// Makes a backup while nobody writes: its time, and what was written.
fn timed(bench: &Bench<'_>, store: &dyn Store, to: &Path, name: &str, into: &mut Measured) -> Result<()> {
    let (before, began) = (Io::now(), Instant::now());
    back_up(bench, store, to)?;
    into.set(&format!("{name}_s"), began.elapsed().as_secs_f64());
    let written = count(Io::now().since(before).written_bytes());
    into.set(&format!("{name}_written_bytes"), written);
    into.set(&format!("{name}_per_raw"), written / count(bench.records.raw_bytes(bench.loaded)));
    Ok(())
}

/// The version that a record has in the second backup.
fn version(index: u64) -> u64 {
    u64::from(index.is_multiple_of(UPDATED_PART))
}

fn update_part(bench: &Bench<'_>, store: &dyn Store) -> Result<()> {
    let (mut writer, mut buffers, mut index) = (store.writer()?, Buffers::default(), 0);
    while index < bench.loaded {
        writer.begin()?;
        for _ in 0..bench.case.batch {
            if index < bench.loaded {
                versions::put(bench, writer.as_mut(), index, 1, &mut buffers)?;
            }
            index += UPDATED_PART;
        }
        writer.commit()?;
    }
    drop(writer);
    store.sync()
}

/// Restores the newest backup, and compares all of it.
fn restore(bench: &Bench<'_>, saved: &Path, into: &mut Measured) -> Result<()> {
    let dir = directory(bench, "restored")?;
    let began = Instant::now();
    bench.peer.restore(saved, &dir)?;
    into.set("restore_s", began.elapsed().as_secs_f64());
    let store = bench.peer.open(&Open { dir: dir.clone(), ..bench.how(false, false) })?;
    let seen = store.reader()?.scan()?;
    store.close()?;
    let (mut expected, mut key, mut value) = (ScanSum::default(), KeyBuffer::default(), Vec::new());
    for index in 0..bench.loaded {
        bench.records.versioned_value(index, version(index), &mut value);
        expected.add(bench.records.key(index, &mut key), &value);
    }
    bench.check_scan(expected, seen)?;
    remove(&dir)
}

/// Updates records at random, after so many updates, until its turn is over or it is told to stop.
fn update(bench: &Bench<'_>, store: &dyn Store, from: u64, stop: &AtomicBool) -> Result<Wrote> {
    let limit = Duration::from_secs_f64(bench.case.seconds / f64::from(2 * TURNS));
    let (mut writer, mut buffers, mut wrote) = (store.writer()?, Buffers::default(), Wrote::default());
    let began = Instant::now();
    let mut before = began;
    while before - began < limit && !stop.load(Ordering::Relaxed) {
        writer.begin()?;
        for _ in 0..bench.case.batch {
            wrote.updates += 1;
            let version = from + wrote.updates;
            versions::put(bench, writer.as_mut(), mix(version) % bench.loaded, version, &mut buffers)?;
        }
        writer.commit()?;
        let now = Instant::now();
        wrote.longest = wrote.longest.max(now - before);
        before = now;
    }
    wrote.took = before - began;
    Ok(wrote)
}

/// A turn of the writer beside whole backups. Gives how many were begun. The last one is restored.
fn beside_backups(bench: &Bench<'_>, store: &dyn Store, from: u64) -> Result<(Wrote, u64)> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let dir = directory(bench, "beside")?;
    let (wrote, made) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let wrote = update(bench, store, from, &stop);
            over.store(true, Ordering::Relaxed);
            wrote
        });
        let made = backups_until(bench, store, &dir, &over);
        stop.store(true, Ordering::Relaxed);
        let wrote = match writer.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok::<_, Failure>((wrote?, made?))
    })?;
    check_beside(bench, &dir)?;
    remove(&dir)?;
    Ok((wrote, made))
}

/// One backup at least, and more until the writer's turn is over.
fn backups_until(bench: &Bench<'_>, store: &dyn Store, dir: &Path, over: &AtomicBool) -> Result<u64> {
    let mut made = 0;
    loop {
        back_up(bench, store, dir)?;
        made += 1;
        if over.load(Ordering::Relaxed) {
            return Ok(made);
        }
        remove(dir)?;
        fs::create_dir(dir).map_err(Failure::io(format!("creating {}", dir.display())))?;
    }
}

/// Restores a backup that was made beside a writer. It has every record, in some version.
fn check_beside(bench: &Bench<'_>, saved: &Path) -> Result<()> {
    let dir = directory(bench, "restored")?;
    bench.peer.restore(saved, &dir)?;
    let store = bench.peer.open(&Open { dir: dir.clone(), ..bench.how(false, false) })?;
    let (mut reader, mut buffers) = (store.reader()?, Buffers::default());
    for index in 0..bench.loaded {
        versions::get(bench, reader.as_mut(), index, &mut buffers)?;
    }
    drop(reader);
    store.close()?;
    remove(&dir)
}
