//! Captures a file that another process writes: its newest checkpoint, and what its log has beyond that.
//!
//! 1. The newest checkpoint is pinned, as for any read (`engine/follow.rs`).
//! 2. All frames of its log are read. Then the superblock is looked at. If there is a newer one, all of this
//!    begins anew. Else what was read belongs to this checkpoint, and the pin keeps the values to which it
//!    refers. A writer may be faster again and again. In the end the log is read as far only as the manifest
//!    knows its frames to be durable: that part is kept by the pin, whatever comes.
//! 3. The file is synced. A frame or superblock that was read may have been in the system's memory only, and
//!    the machine may fail. So no commit of the copy is lost by the source.
//!
//! The copy gets a log of its own, in one segment, which begins behind the checkpoint. It has of each commit
//! what counts, and names the value segments where they stand in the copy. The commits are in memory
//! meanwhile, as they are when such a file is opened.

use super::{Capture, Packing, PartPlace};
use crate::base::error::{Error, Result};
use crate::base::sync::thread::sleep;
use crate::engine::build::{len_of, referred_values};
use crate::engine::follow::{CatchingUp, newest_block_now};
use crate::engine::followed::Followed;
use crate::engine::found::{Found, Logs, Replay, Replayed, read_logs, read_manifest};
use crate::engine::length::Length;
use crate::engine::state::State;
use crate::format::frame::RecordPart;
use crate::format::hidden::is_hidden;
use crate::format::manifest::{Manifest, TableInfo};
use crate::format::point::{PartId, Tables};
use crate::format::superblock::Superblock;
use crate::log::image::{ImageId, LogImage};
use crate::space::Extent;
use crate::storage::File;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How often the whole log is tried to be read before a newer checkpoint comes, and the pause before another
/// try.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

impl CatchingUp<'_> {
    /// The newest checkpoint of a file that another process writes, with all that is in its log. `between` is
    /// called before each further try.
    pub(in crate::engine) fn capture(&self, between: &mut dyn FnMut()) -> Result<Capture> {
        let mut tries = 0;
        loop {
            self.catch_up()?;
            let state = self.state.load_full();
            let Some(followed) = Followed::of(&state) else { return Err(Error::Closed) };
            let is_last = tries == TRIES;
            if let Some((found, replayed)) = self.read_pinned(followed, is_last)? {
                self.file.sync_data().map_err(|e| Error::io("making durable what was read", e))?;
                let file = followed.engine.store.file.clone();
                return Ok(captured(found, replayed, file, state));
            }
            tries += 1;
            between();
            sleep(PAUSE);
        }
    }

    /// What a checkpoint names, and its log. None if a newer one has come meanwhile. The last try takes what
    /// is sure.
    fn read_pinned(&self, followed: &Followed, is_last: bool) -> Result<Option<(Found, Replayed)>> {
        let read = self.read_checkpoint(followed, is_last);
        if !is_last && newest_block_now(self.path, self.file.as_ref())?.number != followed.number {
            return Ok(None);
        }
        read.map(Some)
    }

    fn read_checkpoint(&self, followed: &Followed, is_last: bool) -> Result<(Found, Replayed)> {
        let Some(looked) = followed.engine.following.checkpoint() else { return Err(Error::Closed) };
        let (block, file) = (Superblock::clone(&looked.block), followed.engine.store.file.as_ref());
        let length = Length { path: self.path, file_bytes: len_of(file)?, read_only: true };
        let (mut manifest, extent) = read_manifest(file, &block.manifest, &length)?;
        for log in manifest.logs.iter_mut().filter(|log| is_last && log.end_frame == u64::MAX) {
            log.end_frame = log.durable_below.max(log.first_frame);
        }
        let found = Found { block, stale_copy: None, manifest, extent };
        let replayed = read_logs(file, &length, &found, Logs::Follow)?;
        Ok((found, replayed))
    }
}

/// The capture of what was read. The pin goes with the state.
fn captured(found: Found, replayed: Replayed, file: Arc<dyn File>, state: Arc<State>) -> Capture {
    let values = referred_values(&found.manifest, &replayed);
    let Found { block, mut manifest, .. } = found;
    let Replayed { mut commits, clock, named_seq, .. } = replayed;
    let mut packing = Packing::new();
    packing.pack_tables(&mut manifest, &commits);
    let mut places = BTreeMap::new();
    manifest.values.clear();
    for value in values.values().filter(|value| value.used > 0) {
        let packed = packing.segment(value.id, value.used, &value.extents);
        places.insert(value.id, packed.extents[0]);
        manifest.values.push(packed);
    }
    let mut tables = Tables::of(&manifest);
    let commit = commits.last().map_or(manifest.flushed_seq, |last| last.seq);
    // An older file does not say which commits its tables show.
    let tables_seq = manifest.tables_seq.unwrap_or(commit);
    let first_commit = manifest.flushed_seq.max(tables_seq).max(named_seq).min(commit);
    for commit in &mut commits {
        commit.parts.iter_mut().for_each(|part| name_places(part, &places));
        tables.note(&commit.parts);
    }
    let (checkpoint, chain) = (block.number, manifest.next_id);
    let id = ImageId { file_id: block.file_id, chain, checkpoint };
    packing.pack_log(&mut manifest, commits, id, clock);
    let held: (_, Vec<Arc<dyn Send + Sync>>) = (Vec::new(), vec![state]);
    let parts = packing.parts;
    Capture { manifest, parts, checkpoint, commit, first_commit, tables, file, _held: held }
}

/// Lets a part of a commit name its value segments where they stand in the copy, and only those that are
/// there.
fn name_places(part: &mut RecordPart, places: &BTreeMap<u32, Extent>) {
    part.segments.retain_mut(|(id, extent)| match places.get(id) {
        Some(place) => {
            *extent = *place;
            true
        }
        None => false,
    });
}

impl Packing {
    /// Gives the runs of a manifest their places, and leaves out tables of which nothing tells what they are.
    fn pack_tables(&mut self, manifest: &mut Manifest, commits: &[Replay]) {
        let mut known: BTreeSet<u32> = manifest.few.iter().map(|few| few.0).collect();
        known.extend(commits.iter().flat_map(|commit| &commit.parts).map(|part| part.table));
        // The table of an index whose state record is nowhere.
        let is_without_record =
            |t: &TableInfo| is_hidden(&t.name) && t.levels.is_empty() && !known.contains(&t.id);
        manifest.tables.retain(|table| !is_without_record(table));
        let levels = manifest.tables.iter_mut().flat_map(|table| &mut table.levels);
        levels.flat_map(|level| &mut level.runs).for_each(|run| *run = self.run(run));
    }

    /// Puts the log behind all else.
    fn pack_log(&mut self, manifest: &mut Manifest, commits: Vec<Replay>, id: ImageId, clock: u32) {
        manifest.logs.clear();
        let mut image = LogImage::default();
        for commit in commits {
            image.add(commit.seq, &commit.parts);
        }
        let Some((bytes, log)) = image.finish(id, clock, self.end) else {
            // Who has no log goes on from there.
            manifest.tables_seq = Some(manifest.flushed_seq);
            return;
        };
        self.place(PartId::Log(id.chain), bytes.len() as u64, PartPlace::Memory(bytes));
        manifest.logs.push(log);
        manifest.next_id = id.chain + 1;
    }
}
