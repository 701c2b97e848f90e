//! Opening: create (`create.rs`), or recover what is there (`found.rs`), and start the engine (`build.rs`).
//!
//! Recovery reads the newest valid superblock and its manifest, claims the extents that it names, and replays
//! the log chains into fresh memtables. The chains stay in the manifest until a flush has made them needless.
//! New commits get a chain of their own. So the time to open depends on the log's length, which flushes bound
//! (`freeze.rs`), and on nothing else.
//!
//! Of the last frames of a log nobody knows whether they are on the disk. The process may have been killed
//! before its sync, or the sync may have failed, and the system shows them all the same. They may hold
//! acknowledged commits, so their blocks are not touched. Their commits are logged anew in the handle's own
//! chain, and a checkpoint that names it ends the old one before them (`secure`). Only if there is no room
//! for that are they written again where they stand.

use super::Engine;
use super::build::{Disk, build, len_of};
use super::checkpoint::{Checkpoints, Purpose};
use super::create::{fill_empty, is_empty, named, open_file, random, sync_name};
use super::crew::Role;
use super::follow::newest_block;
use super::follower::{Follower, Following};
use super::found::{Found, Logs, check_role, read_superblocks};
use super::length::{Length, named_bytes};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::life::Life;
use crate::engine::config::{Config, Freshness};
use crate::format::manifest::Manifest;
use crate::storage::{File, Gate, IoCounters, Lease, Metered, Storage};
use std::path::Path;
use std::sync::Arc;

/// Ids that were given out between the last checkpoint and a crash must not be given out again. Else a page
/// of an unfinished run could pass for a page of a later run with its id. So could a frame of a chain that no
/// checkpoint came to name. The number of skipped ids is random, since several handles may find the same
/// checkpoint one after the other.
const ID_GAP: u64 = 1 << 20;

/// Opens a database. The background begins if there is something for it to do.
pub(crate) fn open(storage: &dyn Storage, path: &Path, config: Config) -> Result<Arc<Engine>> {
    let io = Arc::new(IoCounters::default());
    let raw = open_file(storage, path, &config)?;
    let life = Arc::new(Life::new());
    let metered = Arc::new(Metered::new(raw, io.clone()));
    let file: Arc<dyn File> = Arc::new(Gate::new(metered, life.clone()));
    if let Some(freshness) = config.follow {
        return follow(path, config, freshness, Disk::new(file, life, io));
    }
    let name = || path.display().to_string();
    let lock = file.try_lock(!config.read_only).map_err(|e| named(path, "locking the database file", e))?;
    if !lock {
        return Err(Error::Locked { path: name(), exclusive: !config.read_only });
    }
    if is_empty(file.as_ref())? {
        if config.read_only || !config.create {
            return Err(Error::NotADatabase { path: name(), reason: "the file is empty".into() });
        }
        fill_empty(storage, file.as_ref(), &config)?;
    }
    let file_bytes = len_of(file.as_ref())?;
    let length = Length { path, file_bytes, read_only: config.read_only };
    let found = read_superblocks(file.as_ref(), &length)?;
    check_role(path, &found.block, config.read_only)?;
    length.expect(named_bytes(&found.manifest, found.extent))?;
    if found.block.number == 1 && !config.read_only {
        // The process that made the file may have died before its name was durable.
        sync_name(storage, path)?;
    }
    let found = Arc::new(found);
    let disk = || Disk::new(file.clone(), life.clone(), io.clone());
    let build = |logs| {
        // Each engine has ids of its own: what one wrote before it failed must not pass for another's.
        let gap = if config.read_only { 0 } else { ID_GAP + (random(storage)? >> 32) };
        build(&length, config.clone(), disk(), &found, logs, gap).map(Arc::new)
    };
    if config.read_only {
        let engine = build(Logs::Leave)?;
        lease(&engine);
        return Ok(engine);
    }
    let mut engine = build(Logs::Copy)?;
    match secure(&engine.checkpoints(), engine.store.file.as_ref(), &found) {
        Err(Error::NoSpace { .. }) => {
            engine = build(Logs::Rewrite)?;
            engine.store.file.sync_data().map_err(|e| Error::io("syncing the log", e))?;
        }
        done => done?,
    }
    engine.mirrored.opened(engine.state.load().visible());
    lease(&engine);
    announce_limits(&engine.checkpoints())?;
    let worked_for = Arc::downgrade(&engine);
    engine.background.crew.belong_to(worked_for);
    let keeps_with_limits = engine.config.pins.are_set() && engine.space.kept_bytes() > 0;
    if !engine.background.crew.has(Role::Log) && (keeps_with_limits || engine.watcher().something_waits()?) {
        // If it is refused, the first commit asks again.
        let _later = engine.background.crew.need(Role::Log);
    }
    Ok(engine)
}

/// Opens a database that another process may be writing to. The engine has no tables of its own. It shows the
/// state of one checkpoint after the other.
fn follow(path: &Path, config: Config, freshness: Freshness, disk: Disk) -> Result<Arc<Engine>> {
    if is_empty(disk.file.as_ref())? {
        let (path, reason) = (path.display().to_string(), "the file is empty".into());
        return Err(Error::NotADatabase { path, reason });
    }
    let file_bytes = len_of(disk.file.as_ref())?;
    let length = Length { path, file_bytes, read_only: true };
    let block = newest_block(disk.file.as_ref(), &length)?;
    check_role(path, &block, true)?;
    let found = Found { block, stale_copy: None, manifest: Manifest::default(), extent: None };
    let mut engine = build(&length, config, disk, &found, Logs::Leave, 0)?;
    engine.following = Following::Handle(Follower::new(freshness, &found.block));
    drop(engine.followed()?);
    Ok(Arc::new(engine))
}

/// Where the file is mapped, its lock goes with the last state from now on, and not with the handle.
/// REQUIRES: this is the engine that is used, and nobody reads yet.
fn lease(engine: &Engine) {
    let Engine { store, state, .. } = engine;
    if store.is_mapped() {
        let lease = Some(Lease::new(store.file.clone()));
        state.store(Arc::new(State { lease, ..state.load().copy() }));
    }
}

/// With limits for followers, pins can be revoked from this checkpoint on. If there is no room for it, a
/// later one says so.
fn announce_limits(checkpoints: &Checkpoints<'_>) -> Result<()> {
    if !checkpoints.checkpointer.has_to_revoke() {
        return Ok(());
    }
    match checkpoints.write() {
        Err(Error::NoSpace { .. }) => Ok(()),
        done => done,
    }
}

/// Makes durable what recovery has read, before anything is built on it. If there is only one copy of the
/// superblock, a second one is written. The next checkpoint must not write over the only one. Commits of
/// which nobody knows whether they are durable get a chain of their own.
fn secure(checkpoints: &Checkpoints<'_>, file: &dyn File, found: &Found) -> Result<()> {
    if let Some(at) = found.stale_copy {
        let written = file.write_durable_at(&found.block.encode(), at);
        written.map_err(|e| Error::io("writing the superblock", e))?;
    }
    let Checkpoints { log, checkpointer, ids, .. } = checkpoints;
    if log.queued_bytes() == 0 {
        return Ok(());
    }
    // First the frames, then the checkpoint that names them and ends the old chain before its own.
    log.set_checkpoint(found.block.number);
    {
        let _checkpoint = checkpointer.lock();
        log.begin_chain(ids.next())?;
    }
    log.write(u64::MAX)?;
    checkpoints.write_for(Purpose::StartLog)
}
