//! Records that expire: they are gone at their time in every way of reading, and never come back.

mod meets;
mod model;
mod rules;

use azekura::storage::MemStorage;
use azekura::{Db, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATH: &str = "/e.azk";

/// A time that the test sets, in milliseconds since 1970.
#[derive(Clone)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn new() -> Time {
        Time(Arc::new(AtomicU64::new(1_700_000_000_000)))
    }

    fn ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn go_on(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    fn go_back(&self, ms: u64) {
        self.0.fetch_sub(ms, Ordering::Relaxed);
    }

    fn source(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
        let time = self.clone();
        move || UNIX_EPOCH + Duration::from_millis(time.ms())
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn options(time: &Time) -> Options {
    // A short value is a large one already.
    Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).large_value_bytes(64).clock(time.source())
}

fn open(storage: &MemStorage, time: &Time) -> Db {
    crate::common::watch(Duration::from_secs(120));
    Db::open_on(storage, PATH, options(time)).unwrap()
}

/// A copy of the file, as a crash of the process leaves it.
fn copy_of(storage: &MemStorage) -> MemStorage {
    crate::copies::copy_of(storage, PATH)
}
