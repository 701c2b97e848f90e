//! Pacing: writers are slowed in proportion to the debt they run up, never stopped dead.
//!
//! Two debts count: memtable bytes while a flush is under way, and levels beyond what merges keep up with.
//! A commit in debt is delayed by the time that its bytes take at some rate. The rate falls from the flush's
//! own to a twentieth of it as the debt grows. A commit waits for the flush itself only when the memtable
//! that fills has outgrown its size by half. (The log's queue may hold as much again, and so may what is
//! being flushed.)

mod writers;

use super::cpu_backoff::CpuBackoff;
use super::state::{ReadBy, State};
use crate::base::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Writers are slowed beyond so many levels of one table. After so many more the debt is at its limit.
const LEVELS_FREE: u64 = 24;
const LEVELS_SPAN: f64 = 40.0;
/// Assumed until a flush has been measured, in bytes per second.
const RATE_FIRST: f64 = 300e6;
/// Delays are gathered until a sleep is worth it.
const SLEEP_MIN: Duration = Duration::from_micros(300);
/// Each commit looks at all tables if they are so few.
const TABLES_FEW: usize = 8;
/// No single delay is longer.
const SLEEP_MAX: Duration = Duration::from_millis(40);

/// The figures that pacing goes by.
pub(crate) struct Pace {
    live: AtomicU64,
    frozen: AtomicU64,
    levels: AtomicU64,
    /// Bytes per second that flushes have managed lately.
    rate: Mutex<f64>,
    owed: Mutex<Duration>,
    /// What writers last found of who reads memtables, and how many calls ago that was.
    read_by: AtomicU32,
    calls: AtomicU64,
    cpu_backoff: CpuBackoff,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace {
            live: AtomicU64::new(0),
            frozen: AtomicU64::new(0),
            levels: AtomicU64::new(0),
            rate: Mutex::new(RATE_FIRST),
            owed: Mutex::new(Duration::ZERO),
            read_by: AtomicU32::new(ReadBy::Nobody as u32),
            calls: AtomicU64::new(0),
            cpu_backoff: CpuBackoff::new(),
        }
    }

    pub(super) fn set_live(&self, bytes: u64) {
        self.live.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_frozen(&self, bytes: u64) {
        self.frozen.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_levels(&self, n: usize) {
        self.levels.store(n as u64, Ordering::Relaxed);
    }

    /// Memtable bytes, live and frozen.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.live.load(Ordering::Relaxed) + self.frozen.load(Ordering::Relaxed)
    }

    pub(super) fn note_flush(&self, bytes: u64, took: Duration) {
        if bytes > 1 << 20 {
            let now = bytes as f64 / took.as_secs_f64().max(1e-6);
            let mut rate = self.rate.lock();
            *rate = *rate * 0.7 + now * 0.3;
        }
    }

    /// Who has looked into the memtables of any table lately. Many tables are looked at only once in as many
    /// calls, so that a call costs as much as with one table.
    fn read_by(&self, state: &State) -> ReadBy {
        let calls = self.calls.load(Ordering::Relaxed);
        if calls < state.tables.len() as u64 && state.tables.len() > TABLES_FEW {
            self.calls.store(calls + 1, Ordering::Relaxed);
            return ReadBy::of(self.read_by.load(Ordering::Relaxed));
        }
        let read_by = state.read_by();
        self.read_by.store(read_by as u32, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
        read_by
    }

    /// Whether writers are to wait for the flush under way. Memtables that hold `full_bytes` are full.
    fn is_memory_full(&self, full_bytes: u64) -> bool {
        self.frozen.load(Ordering::Relaxed) > 0 && self.live.load(Ordering::Relaxed) >= full_bytes
    }

    /// How far memory and runs are beyond what is free of charge: 0 = not at all, 1 = the limit.
    fn debt(&self, memtable_bytes: u64) -> f64 {
        let live = self.live.load(Ordering::Relaxed) as f64 / memtable_bytes as f64;
        let memory = if self.frozen.load(Ordering::Relaxed) > 0 { (live - 0.5) * 1.3 } else { 0.0 };
        let levels = self.levels.load(Ordering::Relaxed).saturating_sub(LEVELS_FREE) as f64 / LEVELS_SPAN;
        memory.max(levels)
    }

    /// The delay that `bytes` more cost at a debt. Zero until enough has gathered.
    fn delay(&self, debt: f64, bytes: u64) -> Duration {
        let part = (1.0 - debt).clamp(0.05, 1.0);
        let seconds = bytes as f64 / (*self.rate.lock() * 1.5 * part);
        let mut owed = self.owed.lock();
        *owed += Duration::from_secs_f64(seconds * debt.min(1.0));
        if *owed < SLEEP_MIN { Duration::ZERO } else { std::mem::take(&mut *owed).min(SLEEP_MAX) }
    }
}
