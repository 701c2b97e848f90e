//! A version that is read: its manifest, and its shards as they are asked for.

use crate::error::{damaged, io, not_there, of_shard};
use crate::manifest::{Manifest, ShardFile};
use crate::{Result, TABLE, lock, names};
use azekura::{Cursor, Db, Error, KeyRange, Options, Table, TableKind};
use std::fs::{self, File};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The least budget of a database.
const SHARD_MEMORY_BYTES_MIN: u64 = 8 << 20;
/// Opening a shard takes fewer files than that at a time.
const SHARD_FILES_MAX: usize = 8;
/// A reader looks so often for a version that is not being removed.
const TRIES: usize = 8;

/// How a set is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The version. None: the newest.
    pub version: Option<u32>,
    /// How much memory all shards together may take, but at least 8 MiB each. What is read stands in the
    /// system's memory, and does not count.
    pub memory_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { version: None, memory_bytes: 256 << 20 }
    }
}

/// A version of a set. It never changes, and stays readable while it is held: [`prune`](crate::prune) leaves
/// the versions that readers of its machine hold.
pub struct Version {
    manifest: Manifest,
    folder: PathBuf,
    shards: Vec<OnceLock<Shard>>,
    /// Held while a shard is opened.
    opening: Mutex<()>,
    memory_bytes: u64,
    /// Locked against removal.
    _pin: File,
}

struct Shard {
    table: Table,
    /// Closed when nobody holds it.
    _db: Db,
}

/// The versions that a set has, the oldest first.
///
/// # Errors
/// `Io`.
pub fn versions(root: impl AsRef<Path>) -> Result<Vec<u32>> {
    let names = names::listed(root.as_ref())?;
    let mut versions: Vec<u32> = names.iter().filter_map(|name| names::version_of_manifest(name)).collect();
    versions.sort_unstable();
    Ok(versions)
}

/// The newest version that a set has, if it has any.
///
/// # Errors
/// `Io`.
pub fn newest(root: impl AsRef<Path>) -> Result<Option<u32>> {
    Ok(versions(root)?.last().copied())
}

impl Version {
    /// Opens a version. Its shards are opened when they are asked for.
    ///
    /// # Errors
    /// `Open` if there is no such version, or none at all; `Corrupt` if its manifest is not what was written;
    /// `Io`.
    pub fn open(root: impl AsRef<Path>, options: ReadOptions) -> Result<Version> {
        let root = root.as_ref();
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(version) = options.version.map_or_else(|| newest(root), |version| Ok(Some(version)))?
            else {
                return Err(not_there(root, "there is no version of a set of shards"));
            };
            match Version::open_one(root, version, options.memory_bytes) {
                // It has just been removed; there is a newer one then.
                Err(Error::Open { .. }) if options.version.is_none() && tries < TRIES => {}
                other => return other,
            }
        }
    }

    fn open_one(root: &Path, version: u32, memory_bytes: u64) -> Result<Version> {
        let (manifest, pin) = Manifest::read(root, version)?;
        lock::share(&pin);
        if !root.join(names::manifest(version)).exists() {
            return Err(not_there(root, format!("version {version} has just been removed")));
        }
        let shards = manifest.files.iter().map(|_| OnceLock::new()).collect();
        let folder = root.join(names::folder(version));
        Ok(Version { manifest, folder, shards, opening: Mutex::new(()), memory_bytes, _pin: pin })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.manifest.version
    }

    /// What it has.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The file of a shard.
    pub(crate) fn path_of(&self, place: usize) -> PathBuf {
        self.folder.join(&self.manifest.files[place].file)
    }

    /// The table of the shard that stands at this place in the manifest.
    ///
    /// # Errors
    /// `Corrupt` if the file is not the shard that the manifest names, and what opening it meets.
    pub fn table(&self, place: usize) -> Result<&Table> {
        let Some(shard) = self.shards.get(place) else {
            return Err(crate::error::invalid(format!("shard {place} of {}", self.shards.len())));
        };
        if let Some(open) = shard.get() {
            return Ok(&open.table);
        }
        let _alone = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if shard.get().is_none() {
            let opened = self.open_shard(place)?;
            return Ok(&shard.get_or_init(|| opened).table);
        }
        self.table(place)
    }

    fn open_shard(&self, place: usize) -> Result<Shard> {
        let (path, said) = (self.path_of(place), &self.manifest.files[place]);
        let count = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let memory = (self.memory_bytes / count).max(SHARD_MEMORY_BYTES_MIN);
        let found = fs::metadata(&path).map_err(|error| not_there(&path, error.to_string()))?;
        if found.len() != said.bytes {
            let detail = format!("it has {} bytes, and the manifest says {}", found.len(), said.bytes);
            return Err(damaged(&path, detail));
        }
        let opened = Options::new().read_only(true).memory_bytes(memory).open(&path);
        let db = opened.map_err(|error| of_shard(error, &path))?;
        let table = self.table_of(&db, place)?;
        Ok(Shard { table, _db: db })
    }

    /// The table of a shard that somebody has opened.
    pub(crate) fn table_of(&self, db: &Db, place: usize) -> Result<Table> {
        let (path, spec) = (self.path_of(place), &self.manifest.spec);
        let table = db.open_table(TABLE).map_err(|error| of_shard(error, &path))?;
        if table.kind() != spec.kind || spec.kind == TableKind::Hash && db.hash_seed() != spec.hash_seed {
            return Err(damaged(&path, "its table is of another kind, or of another seed"));
        }
        Ok(table)
    }

    /// Closes a shard that is not needed any more.
    pub(crate) fn close(&mut self, place: usize) {
        if let Some(shard) = self.shards.get_mut(place) {
            drop(shard.take());
        }
    }

    /// Fails if this process can open no more files, or does not come at the set any more. The manifest is
    /// there as long as it is held, so whoever cannot open that is not kept from it by damage.
    pub(crate) fn expect_reachable(&self) -> Result<()> {
        let path = self.folder.with_file_name(names::manifest(self.number()));
        let opened: std::io::Result<Vec<File>> = (0..SHARD_FILES_MAX).map(|_| File::open(&path)).collect();
        opened.map(drop).map_err(|error| io("opening the files of a set of shards", &path, &error))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// What opening its shard or reading it meets.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Calls `f` with the value of a key where it stands.
    ///
    /// # Errors
    /// As [`get`](Version::get).
    pub fn get_with<T>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let Some(place) = self.manifest.place_of(key) else { return Ok(None) };
        self.table(place)?.get_with(key, f).map_err(|error| of_shard(error, &self.path_of(place)))
    }

    /// Calls `f` for each of several keys, in no particular order, with the key's index among them and its
    /// value.
    ///
    /// # Errors
    /// As [`get`](Version::get).
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut f: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        if let [_] = &*self.shards {
            return self.get_many_in(0, keys, f);
        }
        let mut at: Vec<(usize, usize)> = Vec::with_capacity(keys.len());
        for (i, key) in keys.iter().enumerate() {
            match self.manifest.place_of(key.as_ref()) {
                Some(place) => at.push((place, i)),
                None => f(i, None),
            }
        }
        at.sort_unstable();
        let mut of_one = Vec::new();
        for group in at.chunk_by(|a, b| a.0 == b.0) {
            of_one.clear();
            of_one.extend(group.iter().map(|&(_, i)| keys[i].as_ref()));
            self.get_many_in(group[0].0, &of_one, |j, value| f(group[j].1, value))?;
        }
        Ok(())
    }

    fn get_many_in<K: AsRef<[u8]>>(
        &self,
        place: usize,
        keys: &[K],
        f: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.table(place)?.get_many_with(keys, f).map_err(|error| of_shard(error, &self.path_of(place)))
    }

    /// A cursor over the shard that stands at this place in the manifest.
    ///
    /// # Errors
    /// As [`table`](Version::table).
    pub fn cursor(&self, place: usize) -> Result<Cursor> {
        self.table(place)?.cursor().map_err(|error| of_shard(error, &self.path_of(place)))
    }

    /// An error of a shard's table or cursor, with the name of the shard's file.
    pub fn named(&self, place: usize, error: Error) -> Error {
        if place < self.shards.len() { of_shard(error, &self.path_of(place)) } else { error }
    }

    /// The places of the shards that may have keys of a range. In a set of hash tables it is all of them,
    /// unless the range is of one key.
    pub fn places_in(&self, range: &impl KeyRange) -> Vec<usize> {
        let (start, end) = (range.start(), range.end());
        if let (Bound::Included(first), Bound::Included(last)) = (start, end)
            && first == last
        {
            return self.manifest.place_of(first).into_iter().collect();
        }
        let meets = |file: &ShardFile| match &file.keys {
            None => true,
            Some([first, last]) => {
                let starts = match start {
                    Bound::Included(key) => &**last >= key,
                    Bound::Excluded(key) => &**last > key,
                    Bound::Unbounded => true,
                };
                let ends = match end {
                    Bound::Included(key) => &**first <= key,
                    Bound::Excluded(key) => &**first < key,
                    Bound::Unbounded => true,
                };
                starts && ends
            }
        };
        (0..self.shards.len()).filter(|&place| meets(&self.manifest.files[place])).collect()
    }
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Version").field("folder", &self.folder).finish_non_exhaustive()
    }
}
