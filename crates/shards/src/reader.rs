//! Reading the newest version of a set, and going to a newer one.

use crate::Result;
use crate::version::{ReadOptions, Version, newest};
use arc_swap::ArcSwap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a set. Threads may share it.
///
/// It stays with its version until [`refresh`](ShardedReader::refresh) finds a newer one. From then on all
/// calls read that one. A call that is under way, and what others hold by
/// [`version`](ShardedReader::version), go on with the older one.
#[derive(Debug)]
pub struct ShardedReader {
    root: PathBuf,
    options: ReadOptions,
    now: ArcSwap<Version>,
}

impl ShardedReader {
    /// Opens the newest version.
    ///
    /// # Errors
    /// As [`Version::open`].
    pub fn open(root: impl AsRef<Path>) -> Result<ShardedReader> {
        ShardedReader::open_with(root, ReadOptions::default())
    }

    /// Opens a set with options.
    ///
    /// # Errors
    /// As [`Version::open`].
    pub fn open_with(root: impl AsRef<Path>, options: ReadOptions) -> Result<ShardedReader> {
        let root = root.as_ref().to_path_buf();
        let now = ArcSwap::from_pointee(Version::open(&root, options)?);
        Ok(ShardedReader { root, options, now })
    }

    /// The version that is read now.
    pub fn version(&self) -> Arc<Version> {
        self.now.load_full()
    }

    /// Goes to the newest version. Returns whether there was a newer one. A reader of a chosen version stays
    /// with that.
    ///
    /// # Errors
    /// As [`Version::open`]. The reader stays with its version then.
    pub fn refresh(&self) -> Result<bool> {
        let held = self.version().number();
        if self.options.version.is_some() || newest(&self.root)?.is_none_or(|newest| newest <= held) {
            return Ok(false);
        }
        let fresh = Arc::new(Version::open(&self.root, self.options)?);
        let before =
            self.now.rcu(|now| if now.number() < fresh.number() { fresh.clone() } else { now.clone() });
        Ok(before.number() < fresh.number())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`Version::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.now.load().get(key)
    }

    /// The values of several keys, in their order, all of one version.
    ///
    /// # Errors
    /// As [`Version::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; keys.len()];
        self.version().get_many_with(keys, |i, value| found[i] = value.map(<[u8]>::to_vec))?;
        Ok(found)
    }
}
