//! Following: reading a file while another process writes it.
//!
//! A follower's engine writes nothing and has no thread. Each call that reads looks first whether the newest
//! state shows all that the file has (`Followed::is_newest`: a few loads, most of them from the mapping).
//! There may be a newer checkpoint, or a further frame of the log. If so, it **catches up**:
//!
//! 1. It reads the newest superblock, pins its number (`storage/pins.rs`), and reads the superblocks again.
//!    If there is a newer one, it begins anew.
//! 2. It reads manifest and log into an engine of its own, as recovery does (`build.rs`). It takes over the
//!    runs that it knows already, with all that is known of their pages. A checkpoint may have a part of a
//!    commit, what it did with tables: then the log is read up to that commit, by all followers. Those of
//!    checkpoints read no further. All of that was durable before the checkpoint was, so the pin keeps it.
//! 3. If it has read the log to its end, it reads the superblocks once more. If there is a newer one, the log
//!    may have led to what only a newer pin keeps, and it begins anew.
//!
//! A state of the follower holds that engine, and with it the pin. So do the places of its value segments. So
//! the pin goes when a newer state has come, and the last transaction, cursor and value of this one is gone:
//! then nobody has bytes of what it keeps.
//!
//! More frames of the same checkpoint's log are added to the same engine. A new state shows them, as after a
//! commit.
//!
//! Why a pin is enough: the writer asks for pins after it has written a superblock, and before it uses what
//! that one does not name (`space/pinned.rs`). A pin that it has not seen is of that superblock or a newer
//! one. The bytes that a checkpoint names do not change before they are freed. The end of the log does, but
//! its frames are believed by their numbers and checksums. The file is never cut before what is kept, so
//! reading in the mapping is as safe as in the writer's process.
//!
//! A writer with limits for followers says so in its superblocks, and in the same place which pins it has
//! revoked. Then the follower reads copies, through a file that looks after each read whether the pin is
//! still honoured (`storage/watched.rs`). It touches nothing in the mapping but the superblocks.
//!
//! Lock order: `turn` comes before all others.

use super::Engine;
use super::build::{Disk, Seen, build, page_source};
use super::commit::Committer;
use super::config::Config;
use super::followed::Followed;
use super::follower::Follower;
use super::found::{Found, Logs, Replay, check_role, read_manifest, read_newest};
use super::length::Length;
use super::memory::{Load, divide};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::life::Life;
use crate::base::sync::thread::sleep;
use crate::base::sync::{ArcSwap, Loaded};
use crate::engine::config::Freshness;
use crate::format::superblock::Superblock;
use crate::run::{PageSource, Run};
use crate::space::PinView;
use crate::storage::{File, IoCounters, Lease, Watched};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Whoever is overtaken by so many checkpoints has not met them by chance.
const TRIES: u32 = 1000;
/// After so many tries it waits before each of the next.
const TRIES_AT_ONCE: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// The newest superblock of a file. Each copy may be seen while it is written, and seldom both are.
pub(super) fn newest_block(file: &dyn File, length: &Length<'_>) -> Result<Superblock> {
    let mut tries = 0;
    loop {
        match read_newest(file, length) {
            Err(Error::Corrupt { .. }) if tries < TRIES_AT_ONCE => sleep(PAUSE),
            newest => return newest.map(|newest| newest.block),
        }
        tries += 1;
    }
}

/// As `newest_block`, of the file as long as it is now.
pub(super) fn newest_block_now(path: &Path, file: &dyn File) -> Result<Superblock> {
    let file_bytes = file.len().map_err(|e| Error::io("reading the file's length", e))?;
    newest_block(file, &Length { path, file_bytes, read_only: true })
}

/// A checkpoint that is pinned, and how it is read.
struct PinnedCheckpoint {
    block: Superblock,
    file: Arc<dyn File>,
    pin: Arc<Lease>,
    /// What `file` is, if the pin may be revoked.
    watched: Option<Arc<Watched>>,
}

impl Engine {
    /// The newest state, for a read that begins. In a follower it is what the file has.
    #[inline(always)]
    pub(crate) fn newest(&self) -> Result<Loaded<State>> {
        let state = self.followed()?;
        // Asked after the state was loaded. From then on a close by somebody else takes nothing away from
        // this read.
        self.life.check()?;
        Ok(state)
    }

    /// As `newest`, to be kept.
    pub(crate) fn newest_full(&self) -> Result<Arc<State>> {
        let state = self.newest()?;
        Ok(Arc::<State>::clone(&state))
    }

    /// As `newest`, of a database that may be closed. A follower that cannot look at the file gives the state
    /// that it has seen last: reads give the error.
    pub(crate) fn last_known(&self) -> Loaded<State> {
        self.followed().unwrap_or_else(|_told_by_reads| self.state.load())
    }

    /// As `newest`, without asking whether the database was closed.
    #[inline(always)]
    pub(super) fn followed(&self) -> Result<Loaded<State>> {
        let state = self.state.load();
        let is_newest = || Followed::of(&state).is_some_and(|followed| followed.is_newest(state.visible()));
        if self.following.handle().is_none() || is_newest() {
            return Ok(state);
        }
        drop(state);
        self.catch_up()?;
        Ok(self.state.load())
    }

    #[cold]
    fn catch_up(&self) -> Result<()> {
        self.catching_up().map_or(Ok(()), |catching_up| catching_up.catch_up())
    }

    /// The newest state, for a transaction. If the file cannot be read, it is a state that says so of each
    /// table.
    pub(crate) fn newest_state(&self) -> Arc<State> {
        match self.followed() {
            Ok(state) => Arc::<State>::clone(&state),
            Err(e) => Arc::new(State { failure: Some(Arc::new(e)), ..State::new(0) }),
        }
    }

    /// The engine that made a state: another one in a follower, with its own value segments and names.
    #[inline(always)]
    pub(crate) fn behind<'a>(&'a self, state: &'a State) -> &'a Engine {
        Followed::of(state).map_or(self, |followed| &followed.engine)
    }

    /// An error if what is read may not be there any more: the database was closed, or the pin was revoked.
    pub(crate) fn check_readable(&self) -> Result<()> {
        self.life.check()?;
        let watched = self.store.watched.as_ref();
        watched.map_or(Ok(()), |watched| watched.check().map_err(|e| Error::io("looking at the pins", e)))
    }

    /// The number of the newest checkpoint, or of that which a follower's state shows, and the pins of
    /// others.
    pub(crate) fn pins(&self, state: &State) -> (u64, Vec<PinView>) {
        let followed = Followed::of(state).map(|followed| followed.number);
        if !self.config.read_only {
            // A checkpoint that is being written asks for the pins itself. Nobody waits for it here.
            if let Some(newest) = self.checkpointer.try_lock() {
                self.checkpointer.find_pins(&newest);
            }
            return (self.log.checkpoint(), self.space.pins());
        }
        let number = followed.unwrap_or_else(|| self.checkpointer.lock().number);
        let pins = self.store.file.pins().unwrap_or_default();
        // What is shown may be older than what the file has by now.
        let newest = newest_block_now(&self.opened.path, self.store.file.as_ref()).ok();
        let is_revoked = |checkpoint| newest.as_ref()?.pins.is_revoked(checkpoint);
        (number, PinView::from_outside(&pins, newest.as_ref().map(|block| block.number), is_revoked))
    }
}

/// Brings a follower up to what the file has.
pub(super) struct CatchingUp<'a> {
    pub(super) follower: &'a Follower,
    pub(super) path: &'a Path,
    pub(super) config: &'a Config,
    pub(super) file: &'a Arc<dyn File>,
    pub(super) life: &'a Arc<Life>,
    pub(super) io: &'a Arc<IoCounters>,
    /// Where pages are read that no pin may lose.
    pub(super) pages: &'a PageSource,
    pub(super) state: &'a ArcSwap<State>,
    pub(super) committer: &'a Committer,
}

impl CatchingUp<'_> {
    /// Looks what the file has, and makes it the newest state.
    pub(super) fn catch_up(&self) -> Result<()> {
        // In a forked child nobody may be there to release a lock.
        self.life.check()?;
        let _turn = self.follower.turn.lock();
        let before = self.state.load_full();
        if Followed::of(&before).is_some_and(|followed| followed.is_newest(before.visible())) {
            return Ok(());
        }
        let next = match self.read_on(&before) {
            Ok(Some(next)) => next,
            // The writer may revoke a pin at any moment. Then there is a newer checkpoint.
            Ok(None) | Err(Error::SnapshotTooOld { .. }) => self.look_anew(&before)?,
            Err(e) => return Err(e),
        };
        let _commit = self.committer.lock();
        self.life.check()?;
        self.state.store(Arc::new(next));
        Ok(())
    }

    /// The state with further commits of the same log. None if it is not as simple as that.
    fn read_on(&self, before: &State) -> Result<Option<State>> {
        let Some(followed) = Followed::shared(before) else { return Ok(None) };
        let engine = &followed.engine;
        let Some(looked) = engine.following.checkpoint() else { return Ok(None) };
        // Put back only if all that was read is in the state.
        let Some(mut tail) = looked.tail.lock().take() else { return Ok(None) };
        let read = tail.read_on(engine.store.file.as_ref());
        if newest_block_now(self.path, self.file.as_ref())?.number != followed.number {
            return Ok(None);
        }
        let commits = read?;
        let has_large = |commit: &Replay| commit.parts.iter().any(|part| !part.segments.is_empty());
        if commits.iter().any(has_large) {
            return Ok(None);
        }
        self.config.clock_found(None, tail.clock());
        engine.table_loader().apply_replayed(commits)?;
        followed.note_tail(Some(&tail))?;
        *looked.tail.lock() = Some(tail);
        Ok(Some(followed.state(before.lease.clone())))
    }

    /// The state of the newest checkpoint.
    fn look_anew(&self, before: &State) -> Result<State> {
        let follower = self.follower;
        let mut block = newest_block_now(self.path, self.file.as_ref())?;
        for tries in 0..TRIES {
            if (block.file_id, block.lineage) != (follower.file_id, follower.lineage) {
                let detail = "the file holds another database than when it was opened";
                return Err(Error::open(self.path, io::ErrorKind::Other, detail));
            }
            check_role(self.path, &block, true)?;
            let same = Followed::shared(before).filter(|_| follower.freshness == Freshness::Checkpoint);
            if let Some(same) = same.filter(|followed| followed.number == block.number) {
                // Copy A is not whole, and says nothing.
                return Ok(same.state(before.lease.clone()));
            }
            let number = block.number;
            let watched = follower.watched(self.file, &block);
            let file = watched.clone().map_or_else(|| self.file.clone(), |watched| watched as Arc<dyn File>);
            // What is not noticed if the number is not read again takes a writer some time.
            let idle = if fault!("read_once") { TRIES } else { 0 };
            (0..idle).for_each(|_| sleep(PAUSE));
            let pin = Lease::pin(file.clone(), number).map_err(|e| self.no_pin(e))?;
            let mut newest = match fault!("read_once") {
                true => block.clone(),
                false => newest_block_now(self.path, self.file.as_ref())?,
            };
            // All of it: the number may have been given to another checkpoint before it was pinned.
            if newest == block {
                let pinned = PinnedCheckpoint { block: block.clone(), file, pin, watched };
                let found = self.look_at(pinned, before);
                if found.is_ok() && follower.freshness == Freshness::Checkpoint {
                    return found;
                }
                newest = newest_block_now(self.path, self.file.as_ref())?;
                if newest.number == number {
                    return found;
                }
            }
            // The writer was faster.
            block = newest;
            if tries >= TRIES_AT_ONCE {
                sleep(PAUSE);
            }
        }
        Err(Error::io("looking for the newest checkpoint", io::ErrorKind::ResourceBusy.into()))
    }

    fn no_pin(&self, e: io::Error) -> Error {
        match Error::io("pinning a checkpoint", e) {
            Error::Io { source, .. } => {
                let detail = format!("the file cannot be followed: {source}");
                Error::open(self.path, source.kind(), detail)
            }
            other => other,
        }
    }

    /// Where pages are kept that are copied.
    fn copies(&self) -> Result<PageSource> {
        if let Some(copies) = self.follower.copies.get() {
            return Ok(copies.clone());
        }
        let made = page_source(None, &divide(Load::of(self.config)))?;
        Ok(self.follower.copies.get_or_init(|| made).clone())
    }

    /// The state of a checkpoint that is pinned.
    fn look_at(&self, pinned: PinnedCheckpoint, before: &State) -> Result<State> {
        let PinnedCheckpoint { block, file, pin, watched } = pinned;
        // After the superblock: the file has all that it names.
        let file_bytes = file.len().map_err(|e| Error::io("reading the file's length", e))?;
        let length = Length { path: self.path, file_bytes, read_only: true };
        let (mut manifest, extent) = read_manifest(file.as_ref(), &block.manifest, &length)?;
        // What a commit has done with tables may be in the manifest before its records are in runs.
        let tables_seq = manifest.tables_seq.unwrap_or(0);
        let logs = match self.follower.freshness {
            Freshness::Log => Logs::Follow,
            Freshness::Checkpoint => Logs::FollowTo(tables_seq),
        };
        if self.follower.freshness == Freshness::Checkpoint && tables_seq <= manifest.flushed_seq {
            manifest.logs.clear();
        }
        let found = Found { block, stale_copy: None, manifest, extent };
        let runs = before.tables.with_runs().flat_map(|t| t.levels.iter()).flat_map(|level| &level.runs);
        // Pages in the mapping are no copies.
        let runs = runs.filter(|run| run.is_watched() == watched.is_some());
        let runs: HashMap<u64, Arc<Run>> = runs.map(|run| (run.info.id, run.clone())).collect();
        let pages = match self.pages {
            PageSource::Mapped { .. } if watched.is_some() => self.copies()?,
            pages => pages.clone(),
        };
        let disk = Disk {
            file,
            life: self.life.clone(),
            io: self.io.clone(),
            seen: Some(Seen { pages, runs, pin: pin.clone(), watched }),
        };
        let engine = build(&length, self.config.clone(), disk, &found, logs, 0)?;
        let followed = Arc::new(Followed::new(engine, found.block.number, self.pages));
        if let Some(looked) = followed.engine.following.checkpoint() {
            // Not under the lock: noting takes another, and after an error the tail is not known.
            let tail = looked.tail.lock().take();
            followed.note_tail(tail.as_ref())?;
            *looked.tail.lock() = tail;
        }
        Ok(followed.state(Some(pin)))
    }
}
