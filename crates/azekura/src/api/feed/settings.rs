//! Which tables are fed, how much is kept, and the cursors of readers.

use crate::api::stats::figures;
use crate::base::codec::u64_at;
use crate::base::error::{Error, Result};
use crate::base::key::SortKey;
use crate::base::limits::NAME_BYTES_MAX;
use crate::cursor::{Cursor, Limits};
use crate::engine::state::State;
use crate::engine::{Db, FeedTally, Table};
use crate::format::block::Tag;
use crate::format::feed::{
    CONFIG_KEY, FEED_NAME, FedTable, FeedConfig, FeedContent, FeedMark, TRIMMED_KEY, cursor_key, mark_key,
    part_key,
};
use crate::format::ranges::Range;
use crate::txn::WriteTxn;
use crate::txn::get::{FoundValue, lookup};
use crate::txn::value::resolve;
use std::sync::Arc;
use std::time::Duration;

/// The feed keeps so much at least.
const BYTES_MIN: u64 = 64 << 10;

/// A table that is fed.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-fedtableinfo-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// t.set_feed(Some(FeedContent::Values))?;
/// let info = db.feed_info()?.expect("a table is fed");
/// assert_eq!((info.tables[0].name.as_str(), info.tables[0].content), ("t", FeedContent::Values));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FedTableInfo {
    /// Its name.
    pub name: String,
    /// What of its changes the feed has.
    pub content: FeedContent,
    /// The feed has the commits after this one.
    pub since: u64,
}

/// A cursor that a reader keeps in the database.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-feedcursor-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// t.set_feed(Some(FeedContent::Keys))?;
/// let newest = db.feed_info()?.unwrap().newest;
/// db.set_feed_cursor("search", Some(newest))?;
/// let cursors = db.feed_info()?.unwrap().cursors;
/// assert_eq!((cursors[0].name.as_str(), cursors[0].commit), ("search", newest));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedCursor {
    /// Its name.
    pub name: String,
    /// The commit at which it stands: the last with which the reader has done.
    pub commit: u64,
}

/// What is fed, and how much of it there is.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-feedinfo-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// assert!(db.feed_info()?.is_none());
/// t.set_feed(Some(FeedContent::Keys))?;
/// let info = db.feed_info()?.expect("a table is fed");
/// assert!(info.oldest <= info.newest && info.tables.len() == 1);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedInfo {
    /// The tables, by name.
    pub tables: Vec<FedTableInfo>,
    /// About so many bytes of changes are kept, at most.
    pub bytes_max: u64,
    /// Changes are kept so long; none: however old they are.
    pub age_max: Option<Duration>,
    /// The changes up to this commit are gone.
    pub oldest: u64,
    /// The newest commit that is durable: a reader that has come to it has seen all.
    pub newest: u64,
    /// Bytes of it in the file and in memory, also of what is gone and not merged away yet.
    pub bytes: u64,
    /// The cursors, by name.
    pub cursors: Vec<FeedCursor>,
}

/// The records of the feed's table in a state.
pub(in crate::api) struct FeedRecords<'a> {
    pub(in crate::api) db: &'a Db,
    pub(in crate::api) state: &'a Arc<State>,
    pub(in crate::api) table: u32,
    /// Commits up to this one are looked at.
    pub(in crate::api) seq: u64,
}

impl FeedRecords<'_> {
    /// What a record says.
    fn get<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Result<T>) -> Result<Option<T>> {
        let (engine, state) = (&self.db.engine, self.state);
        // Its records never expire.
        let (now, large) = (|| 0, |reference: &[u8]| engine.read_large(state, reference));
        let take = |tag, slot: FoundValue<'_>, _| resolve(tag, slot.bytes(), large, read);
        let found = lookup(state.table(self.table)?, self.seq, SortKey::new(key), now, take);
        found?.transpose()?.transpose()
    }

    /// The records from a key (inclusive) to another (exclusive).
    pub(in crate::api) fn walk(&self, start: Vec<u8>, end: Vec<u8>) -> Result<Cursor> {
        let (state, table) = (self.state.clone(), self.state.table(self.table)?.clone());
        let limits = Limits::from(Range { start, end: Some(end) });
        Cursor::new(self.db.clone(), state, table, self.seq, 0, Vec::new(), limits)
    }

    /// What is fed, and the commit up to which all is gone.
    pub(super) fn begin(&self) -> Result<(FeedConfig, u64)> {
        let (config, is_new) = self.config()?;
        // Nothing was fed since the file was restored.
        let gone = if is_new { config.base + self.seq } else { self.trimmed()?.commit };
        Ok((config, gone))
    }

    /// What is fed. True if the feed is of another life of the file.
    pub(in crate::api) fn config(&self) -> Result<(FeedConfig, bool)> {
        let config = self.get(CONFIG_KEY, FeedConfig::decode)?.unwrap_or_default();
        Ok(config.in_life(self.db.engine.store.lineage))
    }

    pub(in crate::api) fn trimmed(&self) -> Result<FeedMark> {
        Ok(self.get(TRIMMED_KEY, FeedMark::decode_trimmed)?.unwrap_or_default())
    }

    /// What is fed, and how much the feed is, for the commits to come.
    fn load(&self) -> Result<(FeedConfig, FeedTally)> {
        let (config, is_new) = self.config()?;
        if !is_new {
            match self.tally() {
                // Readers learn that it begins anew.
                Err(Error::Corrupt { .. }) => {}
                tally => return Ok((config, tally?)),
            }
        }
        let trimmed = FeedMark { commit: config.base + self.seq, ..FeedMark::default() };
        Ok((config, FeedTally { trimmed, begins_anew: true, ..FeedTally::default() }))
    }

    fn tally(&self) -> Result<FeedTally> {
        let mut tally = FeedTally { trimmed: self.trimmed()?, ..FeedTally::default() };
        let mut marks = self.walk(mark_key(0), b"n".to_vec())?;
        while let Some((key, value)) = marks.next()? {
            tally.marks.push_back(FeedMark::decode(key, value.bytes()?)?);
        }
        let last = *tally.marks.back().unwrap_or(&tally.trimmed);
        tally.total_bytes = last.total_bytes;
        let mut parts = self.walk(part_key(last.commit.saturating_add(1), 0).to_vec(), b"e".to_vec())?;
        while let Some((_, value)) = parts.next()? {
            tally.total_bytes += value.len() as u64;
        }
        Ok(tally)
    }

    fn cursors(&self) -> Result<Vec<FeedCursor>> {
        let mut cursors = Vec::new();
        let mut walk = self.walk(b"c".to_vec(), b"d".to_vec())?;
        while let Some((key, value)) = walk.next()? {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            cursors.push(FeedCursor { name, commit: commit_of(value.bytes()?)? });
        }
        Ok(cursors)
    }
}

fn commit_of(value: &[u8]) -> Result<u64> {
    if value.len() != 8 {
        return Err(Error::corrupt("cursor of the feed", 0, format!("{} bytes instead of 8", value.len())));
    }
    Ok(u64_at(value, 0))
}

fn check_cursor_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::Invalid { detail: "the name of a cursor of the feed cannot be empty".into() });
    }
    if name.len() > NAME_BYTES_MAX {
        let (found, limit) = (name.len() as u64, NAME_BYTES_MAX as u64);
        return Err(Error::TooLarge { what: "name of a cursor of the feed", found, limit });
    }
    Ok(())
}

impl Table {
    /// From now on the feed has every change of this table: so much of it as `content` says, or none. When
    /// this returns, all later commits are in it. That is remembered in the file. See [`Db::feed`].
    ///
    /// What is fed is written twice, once for the feed. A transaction that wrote to the table before this,
    /// and commits afterwards, may get [`Error::Conflict`].
    ///
    /// # Errors
    /// `NoSuchTable`, `ReadOnly`, or what writing meets.
    pub fn set_feed(&self, content: Option<FeedContent>) -> Result<()> {
        self.db.expect(self)?;
        self.db.engine.feeder().change(|state, config| {
            self.of(state)?;
            match content {
                None => drop(config.tables.remove(&self.id)),
                Some(content) => {
                    config.tables.entry(self.id).or_insert(FedTable { content, since: 0 }).content = content;
                }
            }
            Ok(())
        })
    }
}

impl Db {
    /// Says how much of the past the feed keeps: about so many bytes of changes, and none that are older than
    /// `age_max`, give or take a sixty-fourth. It is 1 GiB, however old, where nobody has said. What is too
    /// much goes when something is added. A reader that has not come so far gets [`Error::FeedGap`].
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// # let users = db.table("users", TableKind::Ordered)?;
    /// use azekura::FeedContent;
    /// use std::time::Duration;
    /// users.set_feed(Some(FeedContent::Keys))?;
    /// let week = Duration::from_secs(7 * 86_400);
    /// db.set_feed_limits(64 << 20, Some(week))?;             // 64 MiB, and a week
    /// let info = db.feed_info()?.expect("a table is fed");
    /// assert_eq!((info.bytes_max, info.age_max), (64 << 20, Some(week)));
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for less than 64 KiB; `ReadOnly`, or what writing meets.
    pub fn set_feed_limits(&self, bytes_max: u64, age_max: Option<Duration>) -> Result<()> {
        if bytes_max < BYTES_MIN {
            let detail = format!("the feed keeps {BYTES_MIN} bytes at least, not {bytes_max}");
            return Err(Error::Invalid { detail });
        }
        let age_max_ms = age_max.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX).max(1));
        self.engine.feeder().change(|_, config| {
            config.bytes_max = bytes_max;
            config.age_max_ms = age_max_ms;
            Ok(())
        })
    }

    /// What is fed, and how much of it there is; none if nothing ever was.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `Closed`, `Forked`.
    pub fn feed_info(&self) -> Result<Option<FeedInfo>> {
        let state = self.engine.newest_full()?;
        let Some(records) = self.feed_records(&state) else { return Ok(None) };
        let (config, gone) = records.begin()?;
        let named = |(id, fed): (&u32, &FedTable)| {
            let name = state.table(*id).ok()?.name.to_string();
            Some(FedTableInfo { name, content: fed.content, since: fed.since })
        };
        let mut tables: Vec<FedTableInfo> = config.tables.iter().filter_map(named).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        let stats = figures(state.table(records.table)?);
        Ok(Some(FeedInfo {
            tables,
            bytes_max: config.bytes_max,
            age_max: (config.age_max_ms > 0).then(|| Duration::from_millis(config.age_max_ms)),
            oldest: gone,
            newest: config.base + self.engine.durable_of(&state),
            bytes: stats.run_bytes + stats.value_bytes + stats.memory_bytes,
            cursors: records.cursors()?,
        }))
    }

    /// Where the cursor of a name stands: the last commit with which its reader has done; none if there is no
    /// such cursor.
    ///
    /// # Errors
    /// As [`feed_info`](Db::feed_info).
    pub fn feed_cursor(&self, name: &str) -> Result<Option<u64>> {
        let state = self.engine.newest_full()?;
        match self.feed_records(&state) {
            Some(records) => records.get(&cursor_key(name), commit_of),
            None => Ok(None),
        }
    }

    /// Sets the cursor of a name, or removes it. [`WriteTxn::set_feed_cursor`] does that together with what
    /// the reader has made of the changes, if it writes that to the same database. A cursor keeps nothing
    /// from going.
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// # let users = db.table("users", TableKind::Ordered)?;
    /// use azekura::FeedContent;
    /// users.set_feed(Some(FeedContent::Keys))?;
    /// let commit = db.feed_info()?.expect("a table is fed").newest;
    /// db.set_feed_cursor("search", Some(commit))?;           // all up to this commit is done
    /// assert_eq!(db.feed_cursor("search")?, Some(commit));
    /// db.set_feed_cursor("search", None)?;
    /// assert_eq!(db.feed_cursor("search")?, None);
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteTxn::set_feed_cursor`] and [`WriteTxn::commit`].
    pub fn set_feed_cursor(&self, name: &str, commit: Option<u64>) -> Result<()> {
        let mut txn = self.write();
        txn.set_feed_cursor(name, commit)?;
        txn.commit()
    }

    pub(super) fn feed_records<'a>(&'a self, state: &'a Arc<State>) -> Option<FeedRecords<'a>> {
        let table = self.engine.behind(state).catalog.table(state, FEED_NAME).ok()?.id;
        Some(FeedRecords { db: self, state, table, seq: state.visible() })
    }

    /// Has commits fed as the file says. REQUIRES: nobody commits yet.
    pub(in crate::api) fn load_feed(&self) -> Result<()> {
        if self.engine.config.read_only {
            return Ok(());
        }
        let state = self.engine.state.load_full();
        let Some(records) = self.feed_records(&state) else { return Ok(()) };
        let (config, tally) = records.load()?;
        let is_new = tally.begins_anew;
        self.engine.feeder().found(records.table, config, tally);
        match is_new.then(|| self.engine.feeder().renew()) {
            // The first commit that is fed says it.
            None | Some(Err(Error::NoSpace { .. })) => Ok(()),
            Some(renewed) => renewed,
        }
    }
}

impl WriteTxn {
    /// Sets the cursor of a name at a commit, or removes it: the last one with which a reader of the feed has
    /// done ([`Feed::position`](crate::Feed::position)).
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// # let users = db.table("users", TableKind::Ordered)?;
    /// use azekura::FeedContent;
    /// users.set_feed(Some(FeedContent::Values))?;
    /// let by_year = db.table("by year", TableKind::Ordered)?;
    /// users.put("ada", "1815")?;
    ///
    /// let mut feed = db.feed(db.feed_cursor("by year")?.unwrap_or(db.feed_info()?.unwrap().oldest))?;
    /// let mut txn = db.write();                              // what is made of the changes, and how far
    /// while let Some(change) = feed.next()? {
    ///     if let azekura::ChangeKind::Put { key, value: Some(year), .. } = change.kind {
    ///         txn.put(&by_year, [year, key].concat(), "")?;
    ///     }
    /// }
    /// txn.set_feed_cursor("by year", Some(feed.position()))?;
    /// txn.commit()?;
    /// assert!(by_year.contains("1815ada")?);
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if nothing was ever fed, or for an empty name; `TooLarge` for one over 255 bytes.
    pub fn set_feed_cursor(&mut self, name: &str, commit: Option<u64>) -> Result<()> {
        check_cursor_name(name)?;
        match commit {
            Some(commit) => self.write_feed(&cursor_key(name), Tag::Put, &commit.to_le_bytes()),
            None => self.write_feed(&cursor_key(name), Tag::Tombstone, &[]),
        }
    }
}
