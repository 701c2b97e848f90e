//! The time to open a database and get one record, in a process that did not write it.

use super::bench::Bench;
use crate::child;
use crate::counters;
use crate::failure::{Failure, Result};
use crate::job::{Job, Part};
use crate::measure::{Measured, count};
use crate::records::KeyBuffer;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

/// Only loads. The other process does this.
pub fn load(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let store = bench.reopen(&mut measured)?;
    store.settle()?;
    store.close()?;
    Ok(measured)
}

/// Runs the workload. Another process loads the database. Then this one opens it twice: first with nothing in
/// the page cache, then with what the first open left there.
pub fn run(bench: &mut Bench<'_>, job: &Job) -> Result<Measured> {
    let loaded = child::run(&Job { part: Part::Load, ..job.clone() }, None)?.measured;
    let mut measured = Measured { stopped: loaded.stopped.clone(), ..Measured::default() };
    for name in ["write_s", "flush_s", "raw_bytes", "records"] {
        if let Some(value) = loaded.get(name) {
            measured.set(name, value);
        }
    }
    measured.set_count("database_bytes", bench.peer.file_bytes(bench.dir));

    bench.loaded = loaded.loaded();
    let index = bench.loaded / 2;
    forget(&job.dir)?;
    let anonymous = counters::anonymous_rss_bytes();
    let (cold_ms, opened) = open_and_get(bench, index)?;
    let (warm_ms, _) = open_and_get(bench, index)?;
    measured.set("open_cold_ms", cold_ms);
    measured.set("open_warm_ms", warm_ms);
    measured.set("open_memory_bytes", count(opened.saturating_sub(anonymous)));
    Ok(measured)
}

/// The milliseconds to open the store and get a record, and the resident memory at that time without files.
fn open_and_get(bench: &Bench<'_>, index: u64) -> Result<(f64, u64)> {
    let began = Instant::now();
    let store = bench.open(false, false)?;
    let mut reader = store.reader()?;
    bench.get_present(reader.as_mut(), index, &mut KeyBuffer::default())?;
    let took = began.elapsed();
    let anonymous = counters::anonymous_rss_bytes();
    drop(reader);
    store.close()?;
    Ok((took.as_secs_f64() * 1e3, anonymous))
}

/// Drops the files below a directory from the page cache.
fn forget(dir: &Path) -> Result<()> {
    let doing = || Failure::io(format!("dropping {} from the page cache", dir.display()));
    for entry in fs::read_dir(dir).map_err(doing())? {
        let path = entry.map_err(doing())?.path();
        if path.is_dir() {
            forget(&path)?;
            continue;
        }
        let file = File::open(&path).map_err(doing())?;
        file.sync_all().map_err(doing())?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| doing()(error.into()))?;
    }
    Ok(())
}
