//! The options of a database once they are fixed.

use crate::base::clock::{Clock, TimeSource};
use crate::base::error::{Error, Result};
use crate::base::limits::INLINE_VALUE_BYTES_MAX;
use crate::space::PinLimits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A durable transaction may have so many bytes of large values in the log.
const LOGGED_BYTES_MAX: usize = 64 << 10;

/// When a commit survives a crash.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-durability-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::{Durability, WriteOptions};
/// // This one may be lost in a crash, with all that is committed in the same second; no half of it is.
/// let mut txn = db.write_with(WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() });
/// txn.put(&t, "seen", "today")?;
/// txn.commit()?;
/// // From here on it cannot be lost.
/// db.sync()?;
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When `commit` returns.
    #[default]
    Sync,
    /// Within the eventual delay (a second, if not set otherwise), or when [`Db::sync`](crate::Db::sync)
    /// returns. A crash never tears such a commit and never keeps a later one without an earlier one.
    Eventual,
}

/// What a follower sees of what another process commits.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-freshness-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::Freshness;
/// t.put("ada", "1815")?;
/// // In another process, most of the time.
/// let follower = Db::open(&path, Options::new().freshness(Freshness::Log))?;
/// assert_eq!(follower.open_table("t")?.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # drop(follower); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// The newest checkpoint: what the writer has flushed. It makes one when its memtables are full, when it
    /// rests, and at [`Db::flush`](crate::Db::flush). Of a commit that has changed tables all is seen at
    /// once, with those before it.
    #[default]
    Checkpoint,
    /// The commits in the log besides: all that are durable. (The newest may be seen a moment before the call
    /// that commits it returns.) The follower keeps them in memory until they are in a checkpoint.
    Log,
}

/// The options once they are fixed.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) read_only: bool,
    /// Whether another process may write meanwhile, and what is seen of that. It is read-only then.
    pub(crate) follow: Option<Freshness>,
    pub(crate) memory_bytes: u64,
    pub(crate) memtable_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) eventual_delay: Duration,
    pub(crate) large_value_bytes: usize,
    pub(crate) background_merges: bool,
    pub(crate) mapped: bool,
    pub(crate) threads: bool,
    /// The seed of the hash tables of a new file. None: a random one.
    pub(crate) hash_seed: Option<u64>,
    /// What followers may keep at most.
    pub(crate) pins: PinLimits,
    /// For how long a durable commit waits for a synchronous mirror.
    pub(crate) mirror_timeout: Duration,
    /// Whether a durable commit is to be in a mirror when it returns.
    pub(crate) require_mirror: bool,
    /// What tells the time instead of the system.
    pub(crate) time_source: TimeSourceOption,
    /// By which records expire. Each opening has one of its own.
    pub(crate) clock: Arc<Clock>,
}

/// A program's own clock, if it has one.
#[derive(Clone, Default)]
pub(crate) struct TimeSourceOption(pub(crate) Option<TimeSource>);

impl fmt::Debug for TimeSourceOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "the program's" } else { "the system's" })
    }
}

impl Config {
    /// A file says what time it was, in milliseconds, or in seconds, or in neither.
    pub(crate) fn clock_found(&self, ms: Option<u64>, seconds: u32) {
        let ms = ms.unwrap_or(0).max(u64::from(seconds) * 1000);
        if ms > 0 {
            self.clock.found(ms);
        }
    }

    /// Whether a value of this length goes to a value segment when it is put. In a durable transaction, which
    /// has kept values of `kept` bytes so far, it may go to the log instead, and the flush stores it apart.
    /// (What a commit has in a segment is synced before the log. One thread, values of 1,100 bytes: 3.3K
    /// commits/s with two syncs, 12K with one.)
    pub(crate) fn is_stored_apart(&self, len: usize, is_durable: bool, kept: usize) -> bool {
        let may_be_logged = is_durable && len < INLINE_VALUE_BYTES_MAX && len + kept <= LOGGED_BYTES_MAX;
        len >= self.large_value_bytes && !may_be_logged
    }

    /// An error where nothing may be changed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }
}
