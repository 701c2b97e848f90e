//! Writing chunks: under another name first, and under their own when they are durable.
//!
//! A few are on their way at a time, so that the disk writes while the next ones are read.

use super::files::failed;
use super::repository::Repository;
use crate::base::error::Result;
use crate::format::point::Piece;
use crate::storage::{File, OpenMode};
use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// How many chunks may be on their way to the disk.
const UNSYNCED_MAX: usize = 8;
const WRITING: &str = "writing a chunk of the backup";

/// A chunk without its name.
struct Fresh {
    file: Arc<dyn File>,
    at: PathBuf,
    path: PathBuf,
    name: String,
}

/// The chunks of a repository.
pub(super) struct Chunks<'r> {
    repository: &'r Repository<'r>,
    /// The names of whole chunks.
    present: HashSet<String>,
    fresh: VecDeque<Fresh>,
    /// How many were written, and their bytes.
    pub(super) written: u64,
    pub(super) written_bytes: u64,
}

impl<'r> Chunks<'r> {
    pub(super) fn of(repository: &'r Repository<'r>) -> Result<Chunks<'r>> {
        let present = repository.names_in(&repository.chunks())?.into_iter().collect();
        Ok(Chunks { repository, present, fresh: VecDeque::new(), written: 0, written_bytes: 0 })
    }

    /// The same, for pieces of which it is known that the repository has none.
    pub(super) fn of_new(repository: &'r Repository<'r>) -> Chunks<'r> {
        let (present, fresh) = (HashSet::new(), VecDeque::new());
        Chunks { repository, present, fresh, written: 0, written_bytes: 0 }
    }

    /// Whether there is a chunk of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.present.contains(name)
    }

    /// Stores a piece, unless it is there.
    pub(super) fn put(&mut self, piece: &Piece, bytes: &[u8]) -> Result<()> {
        let name = piece.name(self.repository.identity);
        if self.has(&name) || self.fresh.iter().any(|fresh| fresh.name == name) {
            return Ok(());
        }
        let storage = self.repository.storage;
        let path = self.repository.chunk(piece);
        let unique = storage.random().map_err(failed(&path, WRITING))?;
        let at = path.with_file_name(format!("{name}.new-{unique:016x}"));
        let file = storage.open(&at, OpenMode::CreateNew).map_err(failed(&at, WRITING))?;
        self.fresh.push_back(Fresh { file: file.clone(), at, path: path.clone(), name });
        file.write_at(bytes, 0).map_err(failed(&path, WRITING))?;
        file.write_back(0, bytes.len() as u64);
        self.written += 1;
        self.written_bytes += bytes.len() as u64;
        if self.fresh.len() > UNSYNCED_MAX { self.name_oldest() } else { Ok(()) }
    }

    fn name_oldest(&mut self) -> Result<()> {
        let Some(oldest) = self.fresh.front() else { return Ok(()) };
        let named = oldest
            .file
            .sync_all()
            .and_then(|()| self.repository.storage.rename(&oldest.at, &oldest.path, true));
        named.map_err(failed(&oldest.path, WRITING))?;
        self.present.extend(self.fresh.pop_front().map(|fresh| fresh.name));
        Ok(())
    }

    /// Makes all chunks and their names durable, also those that others have written.
    pub(super) fn finish(&mut self) -> Result<()> {
        while !self.fresh.is_empty() {
            self.name_oldest()?;
        }
        let dir = self.repository.chunks();
        self.repository.storage.sync_dir_of(&dir.join("any")).map_err(failed(&dir, WRITING))
    }
}

impl Drop for Chunks<'_> {
    fn drop(&mut self) {
        for fresh in &self.fresh {
            // Pruning removes what stays.
            let _left_behind = self.repository.storage.remove(&fresh.at);
        }
    }
}
