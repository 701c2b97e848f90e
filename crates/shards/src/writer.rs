//! Writing one shard: an ascending load of a new database, which is written once.

use crate::error::{invalid, io, of_shard};
use crate::manifest::ShardFile;
use crate::names;
use crate::order::Gate;
use crate::spec::Spec;
use crate::{Result, TABLE};
use azekura::{Db, Durability, Error, Options, Table, TableKind, WriteTxn};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3Default;

/// The budget of a writer. Many may be at work on a machine.
const MEMORY_BYTES: u64 = 128 << 20;
/// A commit has so many records, or so many bytes, at most: it stays in the processor's cache.
const COMMIT_RECORDS: u64 = 1 << 16;
const COMMIT_BYTES: usize = 4 << 20;
/// Nothing has to be durable before the end, so nothing is logged before that.
const NEVER: Duration = Duration::from_secs(1 << 30);
/// How much is read at a time for the digest.
const DIGEST_BYTES: usize = 1 << 20;

/// A shard that is being written. Dropped before [`finish`](ShardWriter::finish) it leaves nothing.
pub struct ShardWriter {
    /// None once it is closed.
    open: Option<Open>,
    path: PathBuf,
    gate: Gate,
    kind: TableKind,
    shard: u32,
    file: String,
    records: u64,
    first: Vec<u8>,
    /// What has gone wrong before.
    failed: Option<Error>,
}

struct Open {
    db: Db,
    table: Table,
    txn: WriteTxn,
    /// In the transaction.
    records: u64,
    bytes: usize,
}

impl ShardWriter {
    pub(crate) fn create(folder: &Path, spec: &Spec, shard: u32, attempt: &str) -> Result<ShardWriter> {
        names::check_attempt(attempt)?;
        if shard >= spec.shards {
            return Err(invalid(format!("shard {shard} of {}", spec.shards)));
        }
        let file = names::shard(shard, attempt);
        let path = folder.join(&file);
        let options = Options::new().exclusive(true).hash_seed(spec.hash_seed).memory_bytes(MEMORY_BYTES);
        let options = options.durability(Durability::Eventual).eventual_delay(NEVER);
        let db = Db::open(&path, options)?;
        let table = db.create_table(TABLE, spec.kind)?;
        let txn = db.write();
        let gate = Gate::new(spec.kind, spec.hash_seed, (shard, spec.shards));
        let open = Some(Open { db, table, txn, records: 0, bytes: 0 });
        let (kind, first) = (spec.kind, Vec::new());
        Ok(ShardWriter { open, path, gate, kind, shard, file, records: 0, first, failed: None })
    }

    /// The number of the shard.
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// How many records it has so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds a record. Its key comes after that of the one before: by the hash of both in a set of hash tables
    /// ([`hash_of`](crate::hash_of)), by their bytes in a set of ordered ones.
    ///
    /// # Errors
    /// `Invalid` if the key is of another shard, comes before the last one, or was there. What [`Table::put`]
    /// meets. After an error nothing more can be added.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let put = self.add(key, value);
        if let Err(error) = &put {
            self.failed = Some(error.clone());
        }
        put
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let open = self.open.as_mut().ok_or(Error::Closed)?;
        self.gate.pass(key)?;
        let of_shard = |error| of_shard(error, &self.path);
        open.txn.put(&open.table, key, value).map_err(of_shard)?;
        if self.records == 0 {
            self.first = key.to_vec();
        }
        self.records += 1;
        open.records += 1;
        open.bytes += key.len() + value.len();
        if open.records >= COMMIT_RECORDS || open.bytes >= COMMIT_BYTES {
            let full = std::mem::replace(&mut open.txn, open.db.write());
            (open.records, open.bytes) = (0, 0);
            full.commit().map_err(of_shard)?;
        }
        Ok(())
    }

    /// Makes the shard durable. It is a part of a version once that is committed with what this returns.
    ///
    /// # Errors
    /// What went wrong before, or what closing the file meets. The file is removed then.
    pub fn finish(mut self) -> Result<ShardFile> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let open = self.open.take().ok_or(Error::Closed)?;
        let closed = open.txn.commit().and_then(|()| {
            drop(open.table);
            open.db.close()
        });
        let described = closed.map_err(|error| of_shard(error, &self.path)).and_then(|()| self.describe());
        if described.is_err() {
            self.remove();
        }
        described
    }

    fn describe(&self) -> Result<ShardFile> {
        let (bytes, digest) = digest_of(&self.path)?;
        let keys = match self.kind {
            TableKind::Ordered if self.records > 0 => Some([self.first.clone(), self.gate.last().to_vec()]),
            _ => None,
        };
        let (shard, file, records) = (self.shard, self.file.clone(), self.records);
        Ok(ShardFile { shard, file, records, bytes, digest, keys })
    }

    fn remove(&self) {
        // What stays is named by nothing, and goes with the rest of the draft.
        let _left_behind = fs::remove_file(&self.path);
    }
}

impl Drop for ShardWriter {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            drop(open);
            self.remove();
        }
    }
}

/// The length of a file, and the digest of its bytes.
pub(crate) fn digest_of(path: &Path) -> Result<(u64, u128)> {
    let mut hasher = Xxh3Default::new();
    let mut len = 0_u64;
    let mut read = || -> std::io::Result<()> {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; DIGEST_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                count => {
                    hasher.update(&buffer[..count]);
                    len += u64::try_from(count).unwrap_or(0);
                }
            }
        }
    };
    read().map_err(|error| io("reading a shard for its digest", path, &error))?;
    Ok((len, hasher.digest128()))
}
