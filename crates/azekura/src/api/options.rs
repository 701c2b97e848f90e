//! Options of a database, set when it is opened. None needs tuning for speed.

use super::Db;
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::engine::config::{Config, Durability, Freshness, TimeSourceOption};
use crate::engine::default_memtable_bytes;
use crate::space::PinLimits;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How to open a database.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-options-{}.azk", std::process::id()));
/// use azekura::{Durability, Options};
/// let db = Options::new().memory_bytes(64 << 20).durability(Durability::Eventual).open(&path)?;
/// # db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    config: Config,
}

/// The smallest budget with which everything works.
const MEMORY_BYTES_MIN: u64 = 8 << 20;
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;
const MEMTABLE_BYTES_MAX: u64 = 1 << 30;
/// A writer that has waited for so long for a mirror goes on, if it is not told otherwise.
const MIRROR_TIMEOUT: Duration = Duration::from_secs(10);

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

impl Options {
    /// The defaults: create the file if it does not exist, 256 MiB of memory, durable commits.
    pub fn new() -> Options {
        Options {
            config: Config {
                create: true,
                exclusive: false,
                read_only: false,
                follow: None,
                memory_bytes: 256 << 20,
                memtable_bytes: 0,
                durability: Durability::Sync,
                eventual_delay: Duration::from_secs(1),
                large_value_bytes: 1024,
                background_merges: true,
                mapped: true,
                threads: true,
                hash_seed: None,
                pins: PinLimits::default(),
                mirror_timeout: MIRROR_TIMEOUT,
                require_mirror: false,
                time_source: TimeSourceOption::default(),
                clock: Arc::new(Clock::new(None)),
            },
        }
    }

    /// Whether to make a database if the file does not exist, or is empty. Default: true.
    pub fn create(mut self, yes: bool) -> Options {
        self.config.create = yes;
        self
    }

    /// Whether to fail if the file exists. Default: false.
    pub fn exclusive(mut self, yes: bool) -> Options {
        self.config.exclusive = yes;
        self
    }

    /// Whether to open for reading only. Several processes may do so, as long as none writes. Nothing is
    /// written then, not even to recover: the log is replayed in memory. A file that was cut can be opened
    /// only so. Default: false.
    pub fn read_only(mut self, yes: bool) -> Options {
        self.config.read_only = yes;
        self
    }

    /// Whether to follow a file: to read it while another process writes it. Neither waits for the other. A
    /// follower sees the state after one commit, and later never an older one. Each call that reads, and each
    /// transaction when it begins, looks whether there is a newer state. Which states count is what
    /// [`freshness`](Options::freshness) says. Nothing is written to the file. The writer may crash and come
    /// back meanwhile. A follower holds only a pin of what it reads: a lock on a byte far behind the file's
    /// end. The system drops it when the process ends, however it ends. Default: false.
    ///
    /// The writer keeps the space of what a follower sees, and no more: as long as a transaction, cursor or
    /// [`ValueRef`](crate::ValueRef) of it lives, else until its next call
    /// ([`Stats::pins`](crate::Stats::pins)).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-follow-{}.azk", std::process::id()));
    /// # use azekura::{Db, Freshness, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// // In another process.
    /// let follower = Options::new().follow(true).freshness(Freshness::Log).open(&path)?;
    /// t.put("ada", "1815")?;
    /// assert_eq!(follower.open_table("t")?.get("ada")?.as_deref(), Some(&b"1815"[..]));
    /// # drop((follower, t)); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn follow(mut self, yes: bool) -> Options {
        self.config.follow = yes.then(|| self.config.follow.unwrap_or_default());
        self
    }

    /// What a follower sees. Setting it implies [`follow`](Options::follow). Default: the newest checkpoint.
    pub fn freshness(mut self, freshness: Freshness) -> Options {
        self.config.follow = Some(freshness);
        self
    }

    /// The memory to be used, in bytes, for memtables, merges, and what is kept of pages. Open transactions
    /// come on top, and so do the fences of runs, about 1/1000 of the data. Default: 256 MiB; at least 8 MiB.
    pub fn memory_bytes(mut self, bytes: u64) -> Options {
        self.config.memory_bytes = bytes;
        self
    }

    /// The memory that commits fill before they are flushed to the file as a run, in bytes. The
    /// default, an eighth of the budget but no more than 64 MiB, is right for nearly everybody.
    pub fn memtable_bytes(mut self, bytes: u64) -> Options {
        self.config.memtable_bytes = bytes;
        self
    }

    /// The durability of commits that do not say otherwise. Default: `Sync`.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.config.durability = durability;
        self
    }

    /// Within what time eventual commits become durable. Default: one second.
    pub fn eventual_delay(mut self, delay: Duration) -> Options {
        self.config.eventual_delay = delay;
        self
    }

    /// Values of so many bytes or more are written once, apart from their keys. (Those of durable commits
    /// are in the log before, the first 64 KiB of a commit's that are shorter than 8,192 bytes: so a small
    /// commit waits for the disk once.) Merges move them only out of segments that are mostly dead.
    /// When the file is closed or left alone they are moved out of the emptiest segments, as long as a
    /// sixteenth of the file is dead. Default: 1024; from 64 to 8192. Two values of more than 5,400 bytes
    /// fill a page of 16 KiB badly.
    pub fn large_value_bytes(mut self, bytes: u32) -> Options {
        self.config.large_value_bytes = crate::base::codec::usize_of(bytes);
        self
    }

    /// Whether threads of the library merge runs in the background. Without them, reads slow down as runs
    /// pile up, and the file keeps what was replaced, also when it is closed. [`Db::compact`] or
    /// [`Db::shrink`] ends that. Default: true.
    pub fn background_merges(mut self, yes: bool) -> Options {
        self.config.background_merges = yes;
        self
    }

    /// Whether runs and large values are read in shared read-only mappings of the file. Nothing is copied
    /// then, and what the system keeps of the file serves all processes. Else they are read into a cache of
    /// the library's own, within the budget. Default: true. On systems other than Linux, and where the system
    /// refuses, it is as false.
    ///
    /// Either way everything is checked by its checksum before it is used, and what cannot be read is an
    /// error. There is one exception. What was read once, or was in the system's memory when something within
    /// 2 MiB of it was read first, the system reads again if it has dropped it since for want of memory. If
    /// the disk fails just then, or somebody else has cut the file meanwhile, the process gets the signal
    /// SIGBUS. Choose false where that must not be. In a forked child a [`ValueRef`](crate::ValueRef) or a
    /// cursor's record may change when the parent goes on: a child lets go of them unread.
    pub fn mapped(mut self, yes: bool) -> Options {
        self.config.mapped = yes;
        self
    }

    /// How many bytes of the file followers may keep at most
    /// ([`Stats::pinned_bytes`](crate::Stats::pinned_bytes)). While they keep more, this handle, which
    /// writes, stops honouring their pins, the oldest first. What a follower reads under such a pin may be
    /// written over from then on. It gets [`Error::SnapshotTooOld`], never a wrong value. Its next
    /// transaction sees the newest checkpoint, whose pins are always honoured. Default: no limit.
    ///
    /// The limit is looked at with each checkpoint, and five times a second in between. So it may be passed
    /// for a moment, by what one checkpoint frees. A writer without a limit does not know which pins were
    /// revoked before. Such a pin keeps its space until its process lets go of it.
    ///
    /// As long as the file is written with a limit, followers read copies, as with
    /// [`mapped(false)`](Options::mapped): in a mapping the bytes may change while they are read. A snapshot
    /// that a follower took before such a writer came is read in a mapping. Its pin is honoured for as long
    /// as it lives.
    pub fn pinned_bytes_max(mut self, bytes: u64) -> Options {
        self.config.pins.bytes_max = Some(bytes);
        self
    }

    /// For how long a follower may read what is not the newest checkpoint any more. Older pins are not
    /// honoured. All else is as [`pinned_bytes_max`](Options::pinned_bytes_max) says. Default: no limit.
    pub fn pinned_age_max(mut self, age: Duration) -> Options {
        self.config.pins.age_max = Some(age);
        self
    }

    /// For how long a durable commit, or [`Db::sync`], waits at most for a mirror that is kept synchronously
    /// ([`Mirror::synchronous`](crate::Mirror::synchronous)). It waits only while there is one: when the
    /// mirror ends, or its process is killed, it goes on at once. If the time is over it returns all the
    /// same, for it is durable here, and nobody waits until the mirror has caught up:
    /// [`Stats::unmirrored_commits`](crate::Stats) counts them. Default: 10 seconds.
    ///
    /// No lock is held meanwhile. Others commit, and readers see the commit already.
    pub fn mirror_timeout(mut self, time: Duration) -> Options {
        self.config.mirror_timeout = time;
        self
    }

    /// Whether a durable commit, or [`Db::sync`], that succeeds is surely in a mirror that is kept
    /// synchronously. Then it also waits if there is none, and is
    /// [`MirrorBehind`](crate::Error::MirrorBehind) when
    /// [`mirror_timeout`](Options::mirror_timeout) is over. It is durable in this file all the same.
    /// Default: false.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-require-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Options, TableKind};
    /// # use std::time::Duration;
    /// # drop(Db::open(&path, Options::new())?.table("t", TableKind::Ordered)?);
    /// let db = Options::new().require_mirror(true).mirror_timeout(Duration::from_millis(10)).open(&path)?;
    /// let t = db.open_table("t")?;
    /// assert!(matches!(t.put("ada", "1815"), Err(Error::MirrorBehind { .. })), "nobody mirrors it");
    /// assert!(t.get("ada")?.is_some(), "it is committed");
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn require_mirror(mut self, yes: bool) -> Options {
        self.config.require_mirror = yes;
        self
    }

    /// The seed of the hashes by which hash tables are ordered, for a file that is made. A file that is there
    /// keeps its own. Default: a random one. Files with one seed have their hash tables in one order, so the
    /// records of one can be put into another in the order of that ([`hash_of`](crate::hash_of) tells it).
    pub fn hash_seed(mut self, seed: u64) -> Options {
        self.config.hash_seed = Some(seed);
        self
    }

    /// What time it is, for records that expire. Default: the system's time. A program may give a clock of
    /// its own: a test need not wait then. However it is set, the clock of a file never runs backwards, over
    /// a restart neither.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-clock-{}.azk", std::process::id()));
    /// use azekura::{Options, TableKind};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::{Duration, SystemTime};
    /// let time = Arc::new(Mutex::new(SystemTime::now()));
    /// let shown = time.clone();
    /// let db = Options::new().clock(move || *shown.lock().unwrap()).open(&path)?;
    /// let sessions = db.table("sessions", TableKind::Hash)?;
    /// sessions.put_for("ada", "let in", Duration::from_secs(60))?;
    /// assert!(sessions.contains("ada")?);
    /// *time.lock().unwrap() += Duration::from_secs(60);
    /// assert!(!sessions.contains("ada")?);
    /// # drop(sessions); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Options {
        self.config.time_source = TimeSourceOption(Some(Arc::new(now)));
        self
    }

    /// Whether the library starts threads at all. Without them the call that finds a flush or the writing of
    /// large values due does it. Only [`Db::compact`], [`Db::shrink`] and closing merge. Eventual commits
    /// become durable by [`Db::sync`], a later durable commit, a flush or the close, and not by time alone.
    /// For simulators, which must be able to repeat a run call by call.
    #[doc(hidden)]
    pub fn threads(mut self, yes: bool) -> Options {
        self.config.threads = yes;
        self
    }

    /// Opens the database.
    ///
    /// # Errors
    /// `Open`, `NotADatabase`, `NewerVersion`, `Locked`, `Corrupt`, `Truncated`, `Io`, or `Invalid` options.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        Db::open(path, self)
    }

    /// Fills in what was not set, and refuses what has no meaning.
    pub(crate) fn fixed(self) -> Result<Config> {
        let mut c = self.config;
        c.clock = Arc::new(Clock::new(c.time_source.0.clone()));
        let refuse = |detail: String| Err(Error::Invalid { detail });
        if c.memory_bytes < MEMORY_BYTES_MIN {
            return refuse(format!(
                "memory_bytes is {}, at least {MEMORY_BYTES_MIN} are needed",
                c.memory_bytes
            ));
        }
        if c.memtable_bytes == 0 {
            c.memtable_bytes = default_memtable_bytes(c.memory_bytes);
        }
        if !(MEMTABLE_BYTES_MIN..=MEMTABLE_BYTES_MAX).contains(&c.memtable_bytes) {
            return refuse(format!(
                "memtable_bytes is {}, from {MEMTABLE_BYTES_MIN} to {MEMTABLE_BYTES_MAX} are allowed",
                c.memtable_bytes
            ));
        }
        if !(64..=crate::base::limits::INLINE_VALUE_BYTES_MAX).contains(&c.large_value_bytes) {
            return refuse(format!(
                "large_value_bytes is {}, from 64 to 8192 are allowed",
                c.large_value_bytes
            ));
        }
        c.read_only |= c.follow.is_some();
        if c.read_only && c.exclusive {
            return refuse("read_only and exclusive contradict each other".into());
        }
        Ok(c)
    }
}
