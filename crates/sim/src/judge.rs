//! The judge of a recovered database. The database must be in the state after some commit, not before the
//! last one acknowledged as durable, and not after the last one begun. `check` must be clean, and whoever has
//! followed the feed of changes must have the tables that are fed.

use crate::disk::{Disk, Mark};
use crate::fed;
use crate::script::{Ack, Script, problems};
use azekura::{Db, Error, Options};
use std::time::Duration;

/// The name of the databases on the simulated disk.
pub const PATH: &str = "sim.azk";

/// How a database is opened in a trial.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// With the engine's threads, as users have it. Without them a run can be repeated call by call.
    pub threads: bool,
    /// Merges run in the background.
    pub merges: bool,
    /// The eventual delay, in milliseconds.
    pub delay_ms: u64,
    /// The size of memtables.
    pub memtable_bytes: u64,
    /// Values of this size and more are stored apart.
    pub large_value_bytes: u32,
}

impl Setting {
    /// Without threads: every run is the same.
    pub const QUIET: Setting = Setting {
        threads: false,
        merges: false,
        delay_ms: 60_000,
        memtable_bytes: 64 << 10,
        large_value_bytes: 1024,
    };

    /// With the engine's threads except those that merge. Nothing is done by time alone.
    pub const STEADY: Setting = Setting { threads: true, ..Setting::QUIET };

    /// The options.
    pub fn options(self) -> Options {
        Options::new()
            .memory_bytes(self.memtable_bytes.saturating_mul(4).max(8 << 20))
            .memtable_bytes(self.memtable_bytes)
            .large_value_bytes(self.large_value_bytes)
            .background_merges(self.merges)
            .eventual_delay(Duration::from_millis(self.delay_ms))
            .threads(self.threads)
    }

    /// Opens the database of a disk.
    ///
    /// # Errors
    /// As the engine's.
    pub fn open(self, disk: &Disk) -> Result<Db, Error> {
        Db::open_on(disk, PATH, self.options())
    }
}

impl Ack {
    /// Exactly this state, durable.
    pub fn at(state: usize) -> Ack {
        Ack { durable: state, begun: state, done: state, steps: 0 }
    }

    /// Hands it to the disk, which keeps it for later copies.
    pub fn mark(&self, disk: &Disk) {
        disk.mark([self.durable, self.begun, self.steps]);
    }

    /// What was known at a moment.
    pub fn known(mark: &Mark) -> Ack {
        let [durable, begun, steps] = mark.numbers;
        Ack { durable, begun, done: durable, steps }
    }
}

/// Opens the database, runs the script from state `from` until the disk dies or the script ends, and closes.
/// Marks on the disk what is acknowledged.
///
/// # Errors
/// An error while the disk lives.
pub fn go(set: Setting, disk: &Disk, script: &Script, from: usize, ack: &mut Ack) -> Result<(), String> {
    *ack = Ack { durable: ack.durable, begun: from, done: from, steps: 0 };
    let note = |ack: &Ack| ack.mark(disk);
    note(ack);
    let done = set.open(disk).and_then(|db| {
        script.run(&db, from, ack, &note)?;
        db.close()?;
        ack.durable = ack.done;
        note(ack);
        Ok(())
    });
    match done {
        Err(e) if !disk.is_dead() => Err(format!("failed on a good disk: {e}")),
        _ => Ok(()),
    }
}

/// Opens a disk and returns the state of the database, which must lie within `ack`.
///
/// # Errors
/// What is wrong with it.
pub fn recovered(set: Setting, disk: &Disk, script: &Script, ack: Ack) -> Result<(Db, usize), String> {
    let db = set.open(disk).map_err(|e| format!("does not open: {e}"))?;
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {k}, but check says {wrong:?}"));
    }
    fed::compare(&db).map_err(|e| format!("state {k}: {e}"))?;
    Ok((db, k))
}

/// Recovers, runs the script to its end, closes, reopens and compares.
///
/// # Errors
/// What is wrong.
pub fn finish(set: Setting, disk: &Disk, script: &Script, ack: Ack) -> Result<(), String> {
    let (db, k) = recovered(set, disk, script, ack)?;
    let mut ack = Ack { durable: k, ..Ack::default() };
    script.run(&db, k, &mut ack, &|_| {}).map_err(|e| format!("from state {k} on: {e}"))?;
    db.close().map_err(|e| format!("closing: {e}"))?;
    let last = script.last();
    let end = Ack::at(last);
    recovered(set, disk, script, end)
        .map(drop)
        .map_err(|e| format!("after state {k}, the script and a reopening: {e}"))
}
