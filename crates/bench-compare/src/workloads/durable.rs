//! Durable commits of one record, from one thread and from several. Beside them: the rate at which the
//! machine itself makes 4 KiB durable.

use super::bench::Bench;
use crate::failure::{Failure, Result};
use crate::job::{Job, Outcome};
use crate::measure::{Measured, Watch, latency};
use crate::peers::Store;
use crate::records::KeyBuffer;
use hdrhistogram::Histogram;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
/// The number of blocks that are written first for the overwriting reference. It cycles through them.
const PREPARED_BLOCKS: u64 = 4096;
/// The distance between the record indices of different threads.
const THREAD_STRIDE: u64 = 1 << 40;
/// The number of committed records that the check of each thread gets again, at most.
const CHECKED_MAX: u64 = 20_000;

/// A plain file as a reference.
#[derive(Debug, Clone, Copy)]
pub struct RawFile {
    /// As given to `--peers`.
    pub name: &'static str,
    /// As printed.
    pub title: &'static str,
    /// Overwrites blocks that exist, instead of making the file longer.
    overwrite: bool,
}

/// The references.
pub const RAW_FILES: [RawFile; 2] = [
    RawFile { name: "raw-append", title: "4 KiB append + fdatasync", overwrite: false },
    RawFile { name: "raw-overwrite", title: "4 KiB overwrite + fdatasync", overwrite: true },
];

/// Runs the workload.
pub fn run(bench: &Bench<'_>) -> Result<Measured> {
    let case = bench.case;
    let store = bench.open(true, true)?;
    let watch = Watch::start(store.as_ref());
    let sides = on_threads(case.threads, |thread| {
        commit_for(bench, store.as_ref(), thread, Duration::from_secs_f64(case.seconds))
    })?;
    let took = watch.elapsed();
    store.close()?;

    let store = bench.open(false, true)?;
    let mut reader = store.reader()?;
    let mut buffer = KeyBuffer::default();
    for (thread, (commits, _)) in (0..).zip(&sides) {
        for number in 0..CHECKED_MAX.min(*commits) {
            bench.get_present(reader.as_mut(), thread * THREAD_STRIDE + number, &mut buffer)?;
        }
    }
    drop(reader);
    store.close()?;
    Ok(summary(&sides, took))
}

/// Runs a reference.
pub fn raw_file(raw: &RawFile, job: &Job) -> Result<Outcome> {
    let limit = Duration::from_secs_f64(job.case.seconds);
    let files = (0..job.case.threads)
        .map(|thread| prepare(raw, &job.dir.join(format!("raw-{thread}"))))
        .collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    let sides = on_threads(job.case.threads, |thread| {
        let file = usize::try_from(thread).ok().and_then(|thread| files.get(thread));
        let file = file.ok_or_else(|| Failure::Usage("a thread without a file".to_owned()))?;
        write_for(raw, file, limit)
    })?;
    let measured = summary(&sides, began.elapsed());
    let configuration = "a file a thread; one write call and one fdatasync each".to_owned();
    Ok(Outcome { version: String::new(), configuration, measured })
}

type Side = (u64, Histogram<u64>);

/// Runs the same work on several threads. Returns the results in thread order.
fn on_threads(threads: u64, work: impl Fn(u64) -> Result<Side> + Sync) -> Result<Vec<Side>> {
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        handles
            .into_iter()
            .map(|handle| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

fn commit_for(bench: &Bench<'_>, store: &dyn Store, thread: u64, limit: Duration) -> Result<Side> {
    let mut writer = store.writer()?;
    let mut key = KeyBuffer::default();
    let mut watch = Watch::start(store);
    repeat_for(limit, |number| {
        let index = thread * THREAD_STRIDE + number;
        writer.begin()?;
        writer.put(bench.records.key(index, &mut key), bench.records.value(index))?;
        writer.commit()?;
        Ok(watch.lap())
    })
}

fn prepare(raw: &RawFile, path: &Path) -> Result<File> {
    let failed = |path: &Path| Failure::io(format!("preparing {}", path.display()));
    let file = File::options().create(true).truncate(true).write(true).open(path).map_err(failed(path))?;
    if raw.overwrite {
        for number in 0..PREPARED_BLOCKS {
            let offset = number * crate::records::to_u64(BLOCK_BYTES);
            file.write_all_at(&[1; BLOCK_BYTES], offset).map_err(failed(path))?;
        }
    }
    file.sync_all().map_err(failed(path))?;
    Ok(file)
}

fn write_for(raw: &RawFile, file: &File, limit: Duration) -> Result<Side> {
    let block = [2; BLOCK_BYTES];
    repeat_for(limit, |number| {
        let place = if raw.overwrite { number % PREPARED_BLOCKS } else { number };
        let offset = place * crate::records::to_u64(BLOCK_BYTES);
        let began = Instant::now();
        file.write_all_at(&block, offset).and_then(|()| file.sync_data()).map_err(Failure::io(raw.title))?;
        Ok(began.elapsed())
    })
}

/// Repeats a step until the time is over. The step returns how long it took.
fn repeat_for(limit: Duration, mut step: impl FnMut(u64) -> Result<Duration>) -> Result<Side> {
    let mut times = latency::histogram();
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < limit {
        latency::record(&mut times, step(number)?);
        number += 1;
    }
    Ok((number, times))
}

fn summary(sides: &[Side], took: Duration) -> Measured {
    let mut measured = Measured::default();
    let mut times = latency::histogram();
    for (_, one) in sides {
        times += one;
    }
    let commits = sides.iter().map(|(commits, _)| commits).sum();
    measured.set_timed("commits", commits, took);
    measured.set_count("commits", commits);
    latency::report(&times, "commit", &mut measured);
    measured
}
