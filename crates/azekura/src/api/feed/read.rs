//! Reading the feed.

use super::settings::FeedRecords;
use crate::base::clock::time_of;
use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
use crate::engine::{Db, no_feed};
use crate::format::feed::{FeedContent, PartPlace, RawChange, parse_part_key, part_key};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// Parts are read ahead up to so many bytes.
const AHEAD_BYTES: usize = 1 << 20;
/// How long a reader that waits sleeps between two looks, at first and at most.
const PAUSE_FIRST: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// What a commit has done in one place.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-change-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// t.set_feed(Some(FeedContent::Keys))?;
/// let begin = db.feed_info()?.unwrap().newest;
/// t.put("ada", "1815")?;
/// let mut feed = db.feed(begin)?;
/// let change = feed.next()?.expect("one was made");
/// assert!(change.commit > begin && change.table == "t");
/// # drop((feed, t)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<'a> {
    /// The number of the commit. Later ones are higher. Numbers are left out: commits to other tables.
    pub commit: u64,
    /// When it was committed, by the clock of the writer's machine, in milliseconds.
    pub time: SystemTime,
    /// The table, as it was called then.
    pub table: &'a str,
    /// What was done.
    pub kind: ChangeKind<'a>,
    /// When the record that was [put](ChangeKind::Put) expires; none if it does not. That it has expired is
    /// no change: nothing is told then.
    pub expires: Option<SystemTime>,
}

/// What was done.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-changekind-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::{ChangeKind, FeedContent};
/// t.set_feed(Some(FeedContent::Keys))?;
/// let begin = db.feed_info()?.unwrap().newest;
/// t.remove_range("a".."c")?;
/// let mut feed = db.feed(begin)?;
/// let kind = feed.next()?.map(|change| change.kind);
/// assert_eq!(kind, Some(ChangeKind::RemoveRange { start: b"a", end: Some(b"c") }));
/// # drop((feed, t)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind<'a> {
    /// A key has a new value, or the same again.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value, if the table is fed with values.
        value: Option<&'a [u8]>,
        /// The value before, if the table is fed with [both](FeedContent::Both) and the key was there.
        old: Option<&'a [u8]>,
    },
    /// A key was removed. It need not have been there.
    Remove {
        /// The key.
        key: &'a [u8],
        /// The value before, as with [`Put`](ChangeKind::Put).
        old: Option<&'a [u8]>,
    },
    /// All keys from `start` (inclusive) to `end` (exclusive) were removed. A table that is fed with
    /// [both](FeedContent::Both) values tells the keys one by one instead.
    RemoveRange {
        /// The first key.
        start: &'a [u8],
        /// The first key that stays; none: all to the end of the table.
        end: Option<&'a [u8]>,
    },
    /// All keys were removed.
    Clear,
    /// The table has another name from then on. Within the commit this comes after what was done in tables.
    Rename {
        /// The new name.
        to: &'a str,
    },
    /// The table was dropped. So this comes at the end of the commit, too.
    Drop,
    /// From this commit on the table is fed, or fed with something else than before. What was done in it
    /// before was not told, or not all of it: whoever keeps a copy of it reads it anew now, and takes what is
    /// told from here on.
    Begin {
        /// What is told of it.
        content: FeedContent,
    },
    /// The table is no longer fed. What is done in it after this commit is not told, or not all of it: a few
    /// changes that others were making meanwhile may follow.
    Stop,
}

/// A reader of the feed, from [`Db::feed`]. It holds nothing of the file between its calls.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-feed-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// t.set_feed(Some(FeedContent::Values))?;
/// let mut feed = db.feed(db.feed_info()?.unwrap().newest)?;
/// t.put("ada", "1815")?;
/// t.put("bob", "1900")?;
/// let mut changes = 0;
/// while feed.next()?.is_some() {
///     changes += 1;
/// }
/// assert_eq!(changes, 2);
/// # drop((feed, t)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Feed {
    db: Db,
    /// What the feed's numbers are beyond those of the file.
    base: u64,
    /// All changes of the commits up to this one were given.
    done: u64,
    /// The part that is to be read next.
    next: (u64, u32),
    /// Parts that were read. `place` is in the first.
    ahead: VecDeque<FeedPart>,
    place: Option<PartPlace>,
}

struct FeedPart {
    commit: u64,
    bytes: Vec<u8>,
}

impl Db {
    /// The changes of the tables that are [fed](crate::Table::set_feed), after commit number `after`, in the
    /// order of the commits. Within a commit they come table by table. The ranges that it removed in a table
    /// come before its records, which come by key. Only what is durable is given: commits that are to be
    /// durable [within a second](crate::Durability::Eventual) come a second later.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-feed-{}.azk", std::process::id()));
    /// use azekura::{ChangeKind, Db, FeedContent, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let users = db.table("users", TableKind::Ordered)?;
    /// users.set_feed(Some(FeedContent::Values))?;
    /// let begin = db.feed_info()?.unwrap().newest;
    /// users.put("ada", "1815")?;
    /// users.remove("bob")?;
    ///
    /// let mut feed = db.feed(begin)?;
    /// while let Some(change) = feed.next()? {
    ///     match change.kind {
    ///         ChangeKind::Put { key, value, .. } => println!("{}: {key:?} is {value:?}", change.table),
    ///         other => println!("{}: {other:?}", change.table),
    ///     }
    /// }
    /// db.set_feed_cursor("search", Some(feed.position()))?;  // goes on from here another time
    /// # assert_eq!(db.feed(db.feed_cursor("search")?.unwrap())?.next()?, None);
    /// # drop((feed, users)); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// A reader in another process [follows](crate::Options::follow) the file with
    /// [`Freshness::Log`](crate::Freshness::Log). A file that was restored from a backup, or copied, has a
    /// feed that begins there, with numbers that no other has: who read the one before gets `FeedGap`.
    ///
    /// # Errors
    /// `FeedGap` if changes after that commit are gone, or were made before anything was fed; `Invalid` if
    /// nothing ever was, or the database has no such commit yet; as [`feed_info`](Db::feed_info).
    pub fn feed(&self, after: u64) -> Result<Feed> {
        let state = self.engine.newest_full()?;
        let records = self.feed_records(&state).ok_or_else(|| no_feed(&self.engine.opened.path))?;
        let base = expect_kept(&records, after)?;
        let newest = base + state.visible();
        if after > newest {
            let detail = format!("there is no commit {after}: the newest is {newest}");
            return Err(Error::Invalid { detail });
        }
        let next = (after + 1, 0);
        Ok(Feed { db: self.clone(), base, done: after, next, ahead: VecDeque::new(), place: None })
    }
}

/// An error if changes after a commit are gone. Gives what the feed's numbers are beyond those of the file.
fn expect_kept(records: &FeedRecords<'_>, after: u64) -> Result<u64> {
    let (config, gone) = records.begin()?;
    if after < gone { Err(Error::FeedGap { after, resume_at: gone }) } else { Ok(config.base) }
}

impl Feed {
    /// The next change; none if there is no more at present. It may be called again then.
    ///
    /// # Errors
    /// `FeedGap` if the feed was faster, and what comes next is gone; as [`Db::feed_info`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Change<'_>>> {
        while !self.has_change()? {
            if !self.look()? {
                return Ok(None);
            }
        }
        self.given().map(Some)
    }

    /// Waits until there is a change that [`next`](Feed::next) will give, or the time is over. True if there
    /// is one.
    ///
    /// # Errors
    /// As [`next`](Feed::next).
    pub fn wait(&mut self, time: Duration) -> Result<bool> {
        let (began, mut pause) = (Instant::now(), PAUSE_FIRST);
        loop {
            if self.has_change()? || self.look()? {
                return Ok(true);
            }
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            sleep(pause.min(left));
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// The newest commit of which all changes were given, the last of them included: whoever has done with
    /// the last has done with the commit. From there another reader goes on.
    pub fn position(&self) -> u64 {
        self.done
    }

    /// How many durable commits there are beyond the [position](Feed::position), to all tables.
    ///
    /// # Errors
    /// As [`Db::feed_info`].
    pub fn lag(&self) -> Result<u64> {
        let state = self.db.engine.newest_full()?;
        Ok((self.base + self.db.engine.durable_of(&state)).saturating_sub(self.done))
    }

    /// Reads the parts that come next. False if there are none.
    fn look(&mut self) -> Result<bool> {
        let state = self.db.engine.newest_full()?;
        let newest = self.base + self.db.engine.durable_of(&state);
        if newest < self.next.0 {
            return Ok(false);
        }
        let records = self.db.feed_records(&state).ok_or_else(|| no_feed(&self.db.engine.opened.path))?;
        expect_kept(&records, self.next.0 - 1)?;
        let mut bytes = 0;
        let mut walk =
            records.walk(part_key(self.next.0, self.next.1).to_vec(), part_key(newest + 1, 0).to_vec())?;
        while bytes < AHEAD_BYTES {
            let Some((key, value)) = walk.next()? else {
                self.next = (newest + 1, 0);
                break;
            };
            let (commit, part) = parse_part_key(key)?;
            let value = value.bytes()?.to_vec();
            bytes += value.len();
            self.next = (commit, part.saturating_add(1));
            self.ahead.push_back(FeedPart { commit, bytes: value });
        }
        let has_read = !self.ahead.is_empty();
        if !has_read {
            self.done = newest;
        }
        Ok(has_read)
    }

    /// Goes to the next change of what was read. False if there is none.
    fn has_change(&mut self) -> Result<bool> {
        while let Some(part) = self.ahead.front() {
            let place = match self.place.take() {
                Some(place) => place,
                None => PartPlace::first(&part.bytes)?,
            };
            if place.clone().next(&part.bytes)?.is_some() {
                self.done = self.done.max(part.commit - 1);
                self.place = Some(place);
                return Ok(true);
            }
            self.ahead.pop_front();
            if self.ahead.is_empty() {
                // Of the last commit that was looked at there may be more.
                self.done = self.done.max(self.next.0 - 1);
            }
        }
        Ok(false)
    }

    fn given(&mut self) -> Result<Change<'_>> {
        let missing = || Error::corrupt("part of the feed", 0, "a change is missing");
        let part = self.ahead.front().ok_or_else(missing)?;
        let place = self.place.as_mut().ok_or_else(missing)?;
        let raw = place.next(&part.bytes)?.ok_or_else(missing)?;
        let after = self.ahead.get(1).map_or(self.next.0, |part| part.commit);
        if after > part.commit && place.clone().next(&part.bytes)?.is_none() {
            self.done = part.commit;
        }
        let mut until = None;
        let kind = match raw {
            RawChange::Put(key, value, old, until_ms) => {
                until = until_ms;
                ChangeKind::Put { key, value, old }
            }
            RawChange::Remove(key, old) => ChangeKind::Remove { key, old },
            RawChange::RemoveRange(b"", None) => ChangeKind::Clear,
            RawChange::Rename(to) => ChangeKind::Rename { to },
            RawChange::Drop => ChangeKind::Drop,
            RawChange::Begin(content) => ChangeKind::Begin { content },
            RawChange::Stop => ChangeKind::Stop,
            RawChange::RemoveRange(start, end) => ChangeKind::RemoveRange { start, end },
        };
        let (time, expires) = (time_of(place.time_ms), until.map(time_of));
        Ok(Change { commit: part.commit, time, table: place.table(&part.bytes), kind, expires })
    }
}
