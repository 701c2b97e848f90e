//! Backups: a whole one, one after a few records were put again, and whole ones beside a writer.
//!
//! The writer puts records again as they are. So what is restored has to be the records, whenever the backup
//! was made. It is opened and read.

use super::bench::Bench;
use crate::counters;
use crate::failure::{Failure, Result};
use crate::measure::{Measured, count};
use crate::peers::Store;
use crate::records::{KeyBuffer, Shuffle, mix};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two backups one in so many records is put again.
const CHANGED_PART: u64 = 100;
/// The writer is watched alone and beside backups, so often in turn.
const TURNS: u64 = 2;
const NANOS_PER_MS: f64 = 1e6;

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let store = bench.reopen(&mut measured)?;
    let saved = directory(bench.dir.join("saved"))?;

    let bytes = timed_backup(store.as_ref(), &saved, "backup", &mut measured)?;
    let raw = measured.get("raw_bytes").unwrap_or(0.0);
    measured.set("backup_per_raw", bytes / raw);
    if let Some(seconds) = measured.get("backup_s") {
        measured.set("backup_mb_per_s", bytes / 1e6 / seconds);
    }
    let put = put_some_again(bench, store.as_ref())?;
    let more = timed_backup(store.as_ref(), &saved, "again", &mut measured)?;
    measured.set("again_per_put", more / (raw * count(put) / count(bench.loaded)));
    restore(bench, &saved, &mut measured)?;
    remove(&saved)?;
    beside_writer(bench, store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}

fn directory(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path).map_err(Failure::io(format!("creating {}", path.display())))?;
    Ok(path)
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(Failure::io(format!("removing {}", path.display())))
}

/// Makes a backup. Gives the bytes that it has added.
fn timed_backup(store: &dyn Store, to: &Path, name: &str, into: &mut Measured) -> Result<f64> {
    let before = counters::directory_bytes(to);
    let began = Instant::now();
    store.backup(to)?;
    into.set(&format!("{name}_s"), began.elapsed().as_secs_f64());
    let bytes = counters::directory_bytes(to).saturating_sub(before);
    into.set_count(&format!("{name}_bytes"), bytes);
    Ok(count(bytes))
}

/// Puts some records again, scattered, and makes them durable. Gives how many.
fn put_some_again(bench: &Bench<'_>, store: &dyn Store) -> Result<u64> {
    let (order, some) = (Shuffle::new(bench.loaded), bench.loaded.div_ceil(CHANGED_PART));
    let mut buffer = KeyBuffer::default();
    let mut writer = store.writer()?;
    let mut at = 0;
    while at < some {
        let end = some.min(at + bench.case.batch);
        writer.begin()?;
        for position in at..end {
            let index = order.at(position);
            writer.put(bench.records.key(index, &mut buffer), bench.records.value(index))?;
        }
        writer.commit()?;
        at = end;
    }
    drop(writer);
    store.sync()?;
    Ok(some)
}

/// Restores the newest backup, and reads what was restored.
fn restore(bench: &Bench<'_>, saved: &Path, into: &mut Measured) -> Result<()> {
    let restored = directory(bench.dir.join("restored"))?;
    let began = Instant::now();
    bench.peer.restore(saved, &restored)?;
    let seconds = began.elapsed().as_secs_f64();
    into.set("restore_s", seconds);
    into.set("restore_mb_per_s", count(counters::directory_bytes(&restored)) / 1e6 / seconds);
    let store = bench.open_in(&restored, false, false)?;
    let mut read = Measured::default();
    bench.read_present(store.as_ref(), &mut read)?;
    bench.scan(store.as_ref(), &mut read)?;
    store.close()?;
    into.stopped.extend(read.stopped.into_iter().map(|note| format!("restored {note}")));
    remove(&restored)
}

/// What the writer has done so far.
#[derive(Default)]
struct Written {
    records: AtomicU64,
    /// The longest transaction since the last look.
    longest_ns: AtomicU64,
    stop: AtomicBool,
}

/// Updates a second of a writer alone, and beside one whole backup after the other.
fn beside_writer(bench: &Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let written = Written::default();
    let watched = Duration::from_secs_f64(bench.case.seconds) / 2 / u32::try_from(TURNS).unwrap_or(1);
    let mut sides = [Side::default(), Side::default()];
    let (mut backups, mut backing_up, mut longest_ns) = (0, Duration::ZERO, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| update(bench, store, &written));
        let turns = (0..TURNS).try_for_each(|_| {
            sides[0].watch(&written, || {
                std::thread::sleep(watched);
                Ok(())
            })?;
            written.longest_ns.store(0, Ordering::Relaxed);
            sides[1].watch(&written, || {
                let began = Instant::now();
                while began.elapsed() < watched && !written.stop.load(Ordering::Relaxed) {
                    backups += 1;
                    let to = directory(bench.dir.join(format!("beside-{backups}")))?;
                    let begun = Instant::now();
                    store.backup(&to)?;
                    backing_up += begun.elapsed();
                    remove(&to)?;
                }
                Ok(())
            })?;
            longest_ns = longest_ns.max(written.longest_ns.load(Ordering::Relaxed));
            Ok(())
        });
        written.stop.store(true, Ordering::Relaxed);
        let done = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        turns.and(done)
    })?;
    let [alone, beside] = sides.map(|side| count(side.records) / side.took.as_secs_f64());
    into.set("alone_per_s", alone);
    into.set("beside_per_s", beside);
    into.set("beside_percent", beside / alone * 100.0);
    into.set("beside_backup_s", backing_up.as_secs_f64() / count(backups));
    into.set("beside_max_ms", count(longest_ns) / NANOS_PER_MS);
    into.set_count("beside_backups", backups);
    Ok(())
}

/// The writer's records while something went on.
#[derive(Default)]
struct Side {
    records: u64,
    took: Duration,
}

impl Side {
    fn watch(&mut self, written: &Written, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let (began, before) = (Instant::now(), written.records.load(Ordering::Relaxed));
        work()?;
        self.records += written.records.load(Ordering::Relaxed) - before;
        self.took += began.elapsed();
        Ok(())
    }
}

/// Commits transactions until it is told to stop.
fn update(bench: &Bench<'_>, store: &dyn Store, written: &Written) -> Result<()> {
    let done = (|| {
        let mut buffer = KeyBuffer::default();
        let mut writer = store.writer()?;
        let mut number = 0;
        while !written.stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            writer.begin()?;
            for _ in 0..bench.case.batch {
                number += 1;
                let index = mix(number) % bench.loaded;
                writer.put(bench.records.key(index, &mut buffer), bench.records.value(index))?;
            }
            writer.commit()?;
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            written.longest_ns.fetch_max(took, Ordering::Relaxed);
            written.records.fetch_add(bench.case.batch, Ordering::Relaxed);
        }
        Ok(())
    })();
    written.stop.store(true, Ordering::Relaxed);
    done
}
