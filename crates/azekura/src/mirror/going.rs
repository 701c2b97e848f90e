//! A mirror that goes on: step by step it comes to what its source has.

use super::chain::LogReader;
use super::dest::{Dest, Going, Stop};
use super::names::throw_away;
use super::source::MirrorSource;
use super::status::{Gauge, MirrorStatus};
use crate::backup::Pace;
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
use crate::format::superblock::{Role, Superblock};
use crate::storage::{File, Lease, Storage};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a mirror waits before it looks again: at first, and at most while nothing comes.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// The same where commits wait for the mirror.
const WAITED_FOR_PAUSE_MIN: Duration = Duration::from_micros(50);
const WAITED_FOR_PAUSE_MAX: Duration = Duration::from_millis(1);
/// If the second superblock is not there after so long, it is looked whether its writer has gone.
const SETTLE_AFTER: Duration = Duration::from_millis(200);
/// A checkpoint takes no longer than this, unless its writer has ended.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Is told how it goes, and says whether it is to go on.
pub(super) type Told<'a> = &'a mut dyn FnMut(&MirrorStatus) -> bool;

/// A file that is kept equal to a database which another process writes, or another handle of this one. At
/// every moment it is the database after one of its commits, and it never goes back, whatever crashes.
///
/// It can be read meanwhile with [`Options::follow`](crate::Options::follow), and without that when nobody
/// keeps it. Nobody can write to it before [`promote`](crate::promote) has made it a database of its own.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-mirror-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
/// use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let people = db.table("people", TableKind::Ordered)?;
/// people.put("ada", "1815")?;
/// db.flush()?;
///
/// // In another process.
/// let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
/// while mirror.step()? {}                              // or for good: mirror.run(|status| …)
/// assert!(mirror.status().is_level());
///
/// let reader = Options::new().follow(true).open(&copy)?;
/// assert_eq!(reader.open_table("people")?.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # drop((people, reader, mirror)); db.close()?; std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Mirror {
    pub(super) source: MirrorSource,
    pub(super) storage: Arc<dyn Storage>,
    /// The mirror's name.
    pub(super) path: PathBuf,
    pub(super) dest: Option<Dest>,
    /// The name of `dest`, if it has not the mirror's yet.
    pub(super) unnamed: Option<PathBuf>,
    /// The file that has the mirror's name until then.
    pub(super) old: Option<Old>,
    /// Pins in the source that keep what states of the mirror need.
    pub(super) pins: BTreeMap<u64, Arc<Lease>>,
    /// Whether value segments were copied under a pin that is gone.
    pub(super) is_doubtful: bool,
    /// The log of the newest checkpoint that was shipped.
    pub(super) log: Option<LogReader>,
    /// Whether the end of the log was looked at since it last grew.
    pub(super) is_end_checked: bool,
    /// When it last grew.
    pub(super) came_at: Instant,
    /// Since when the source has had no checkpoint that is surely durable.
    pub(super) waits_since: Option<Instant>,
    /// When the source's name was last looked at.
    pub(super) named_at: Instant,
    /// How long a step waits for news of a source on another machine.
    pub(super) patience: Duration,
    /// Whether commits in the source wait for it.
    pub(super) is_synchronous: bool,
    /// The newest commit that it has acknowledged, if it does that.
    pub(super) acknowledged: Option<u64>,
    pub(super) pace: Pace<'static>,
    pub(super) gauge: Gauge,
}

/// A file that was the mirror until another one has its name.
pub(super) struct Old {
    pub(super) file: Arc<dyn File>,
    pub(super) block: Superblock,
    /// The newest commit in it, as far as is known.
    pub(super) commit: u64,
}

impl Mirror {
    /// Ships what there is, up to the next checkpoint or some mebibytes of the log. False if there was
    /// nothing. The first step of a mirror that is not there yet copies the whole database.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("azekura-doc-step-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
    /// # use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let people = db.table("people", TableKind::Ordered)?;
    /// people.put("ada", "1815")?;
    /// db.flush()?;
    /// let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
    /// assert!(mirror.step()?, "the database");
    /// people.put("grace", "1906")?;
    /// db.flush()?;
    /// while mirror.step()? {}                              // at the pace of whoever calls it
    /// # drop((people, mirror)); db.close()?; std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading the source, and of writing the mirror; `NoSpace`, after which it can be called again;
    /// `Poisoned` after a write has failed: then the mirror must be opened anew. `Invalid` if the source is
    /// not what was mirrored until now.
    pub fn step(&mut self) -> Result<bool> {
        self.patience = Duration::ZERO;
        Ok(self.step_telling(&mut |_| true)?.unwrap_or(false))
    }

    /// Goes on until `goes_on` returns false. It is told the state of things after each step, each mebibyte
    /// of a long one, and some fifty times a second while nothing comes.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("azekura-doc-run-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
    /// # use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let people = db.table("people", TableKind::Ordered)?;
    /// people.put("ada", "1815")?;
    /// db.flush()?;
    /// let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
    /// mirror.run(|status| {
    ///     println!("{} bytes behind", status.behind_bytes);
    ///     !status.is_level()                               // a service goes on until it is told to end
    /// })?;
    /// # drop((people, mirror)); db.close()?; std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`step`](Mirror::step).
    pub fn run(&mut self, mut goes_on: impl FnMut(&MirrorStatus) -> bool) -> Result<()> {
        let (pause_min, pause_max) = self.pauses();
        let mut pause = pause_min;
        // One on another machine answers when there is something.
        let is_afar = self.source.afar.is_some();
        self.patience = if is_afar { PAUSE_MAX } else { Duration::ZERO };
        loop {
            let began = Instant::now();
            let Some(shipped) = self.step_telling(&mut goes_on)? else { break };
            if !goes_on(&self.status()) {
                break;
            }
            if shipped {
                pause = pause_min;
            } else {
                let waited = if is_afar { began.elapsed() } else { Duration::ZERO };
                sleep(pause.saturating_sub(waited));
                pause = if is_afar { pause_min } else { (2 * pause).min(pause_max) };
            }
        }
        Ok(())
    }

    fn pauses(&self) -> (Duration, Duration) {
        let at_leisure = (PAUSE_MIN, PAUSE_MAX);
        if self.is_synchronous { (WAITED_FOR_PAUSE_MIN, WAITED_FOR_PAUSE_MAX) } else { at_leisure }
    }

    /// How far it is.
    pub fn status(&self) -> MirrorStatus {
        let status = self.gauge.status;
        let came = self.source.afar.as_ref().map(|afar| afar.came());
        MirrorStatus { copied_bytes: came.unwrap_or(status.copied_bytes), ..status }
    }

    /// None if the caller wants no more.
    fn step_telling(&mut self, told: Told<'_>) -> Result<Option<bool>> {
        if let Some(dest) = &self.dest {
            dest.check()?;
        }
        let done = self.go(told);
        self.note_status();
        let stop = match done {
            Ok(shipped) => {
                self.acknowledge().inspect_err(|_| self.acknowledge_nothing())?;
                return Ok(Some(shipped));
            }
            Err(stop) => stop,
        };
        // What was taken from it may not have been shipped.
        self.log = None;
        if let Some(dest) = &mut self.dest {
            dest.next = None;
        }
        match stop {
            Stop::Ended => Ok(None),
            Stop::Failed(e) => {
                self.acknowledge_nothing();
                Err(e)
            }
            Stop::Overtaken => Ok(Some(true)),
            Stop::Taken => {
                self.build_anew();
                Ok(Some(true))
            }
        }
    }

    fn go(&mut self, told: Told<'_>) -> Going<bool> {
        self.source.look(self.tail(), self.patience)?;
        let Some(block) = self.source.newest()? else { return self.wait_for_checkpoint() };
        self.waits_since = None;
        self.check_source(&block)?;
        if self.dest.is_none() {
            self.begin_beside()?;
        }
        if self.number() > 0 {
            // It may have failed when the file was complete.
            self.give_name()?;
        }
        if self.number() == block.number {
            return self.ship_log(&block, told);
        }
        self.ship_checkpoint(block, told)?;
        self.give_name()?;
        Ok(true)
    }

    /// A checkpoint is being written, or was when its writer ended. True if it counts from now on.
    fn wait_for_checkpoint(&mut self) -> Going<bool> {
        self.gauge.waits();
        let waited = self.waits_since.get_or_insert_with(Instant::now).elapsed();
        if waited >= SETTLE_AFTER {
            self.source.settle()?;
            if self.source.settled.is_some() {
                return Ok(true);
            }
        }
        if self.number() > 0 || waited < WAIT_MAX {
            return Ok(false);
        }
        let detail = "its last checkpoint was not completed: open it once for writing";
        Err(Error::open(&self.source.path, io::ErrorKind::Other, detail).into())
    }

    /// Whether the source is what was mirrored until now.
    pub(super) fn check_source(&self, block: &Superblock) -> Result<()> {
        let refuse = |detail: &str| {
            let (from, to) = (self.source.path.display(), self.path.display());
            Err(Error::Invalid { detail: format!("{to} cannot mirror {from}: {detail}") })
        };
        if block.role == Role::Replaced {
            return refuse("another file has its name now");
        }
        let own = self.dest.as_ref().and_then(|dest| dest.block.as_ref());
        let Some(own) = own.or(self.old.as_ref().map(|old| &old.block)) else { return Ok(()) };
        if own.file_id != block.file_id {
            return refuse("it mirrors another database");
        }
        if (own.lineage, own.hash_seed) != (block.lineage, block.hash_seed) {
            return refuse(
                "it mirrors another life of that database, from before one of them was restored or promoted",
            );
        }
        if own.number > block.number {
            return refuse("it is newer. The source has been put back to an earlier state");
        }
        if own.number == block.number && own.manifest != block.manifest {
            return refuse("they have parted. The source has been put back to an earlier state");
        }
        Ok(())
    }

    /// The checkpoint that the mirror has, or 0.
    pub(super) fn number(&self) -> u64 {
        self.dest.as_ref().map_or(0, Dest::number)
    }

    /// The file that is written.
    pub(super) fn dest(&mut self) -> Result<&mut Dest> {
        let missing = || Error::Invalid { detail: "the mirror has no file".into() };
        self.dest.as_mut().ok_or_else(missing)
    }

    /// Tells a source on another machine how far the mirror is.
    pub(super) fn tell(&self) {
        if let Some(afar) = &self.source.afar {
            afar.tell(&self.gauge.status);
        }
    }

    fn note_status(&mut self) {
        if let Some(dest) = self.dest.as_ref().filter(|_| self.unnamed.is_none()) {
            self.gauge.status.checkpoint = dest.number();
            self.gauge.status.commit = dest.commit;
        }
        self.tell();
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let (Some(beside), Some(dest)) = (&self.unnamed, &self.dest) else { return };
        // What was built so far is of use to who goes on, unless nobody knows what of it is durable.
        if dest.len <= SUPERBLOCKS_BYTES || dest.check().is_err() {
            throw_away(self.storage.as_ref(), beside, dest.file.as_ref());
        }
    }
}
