//! The database handle.

use super::{CheckReport, Options, Stats};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::engine::config::Config;
use crate::engine::{self, Db, Progress, Table};
use crate::format::hidden::is_hidden;
use crate::storage::{OsStorage, Storage};
use crate::txn::{ReadTxn, WriteOptions, WriteTxn};
use std::path::Path;
use std::sync::Arc;

/// A table and its kind, as [`Db::tables`] gives them.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-info-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// db.create_tables(&[("old", TableKind::Hash), ("born", TableKind::Ordered)])?;
/// let all = db.tables();
/// assert_eq!((all[0].name.as_str(), all[0].kind), ("born", TableKind::Ordered));
/// # db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// The table's name.
    pub name: String,
    /// Its kind.
    pub kind: TableKind,
}

/// What [`Db::shrink`] has done.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-shrinkreport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put("ada", "1815")?;
/// let report = db.shrink(|_| {})?;
/// println!("{} bytes, and {} before", report.after_bytes, report.before_bytes);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShrinkReport {
    /// The file's length before, in bytes.
    pub before_bytes: u64,
    /// And after.
    pub after_bytes: u64,
}

impl Db {
    /// Opens the database in the file `path`, or makes it.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_in(&OsStorage, path.as_ref(), options.fixed()?)
    }

    /// As [`Db::open`], on a disk of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_on(storage: &dyn Storage, path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_in(storage, path.as_ref(), options.fixed()?)
    }

    fn open_in(storage: &dyn Storage, path: &Path, config: Config) -> Result<Db> {
        let db = Db::of(engine::open(storage, path, config)?);
        db.load_feed()?;
        Ok(db)
    }

    /// Closes the database for all who have a handle of it. It flushes everything, ends the threads, gives
    /// the file its final length, and gives its lock up, so that this process or another can open it. The
    /// lock goes at once if nobody is reading, or if the file is not [`mapped`](Options::mapped). Else it
    /// goes when the last transaction, cursor and [`ValueRef`](crate::ValueRef) is dropped.
    ///
    /// The final length is at most 1.3 times the keys and values and 64 KiB, but for what readers still hold
    /// and very short keys of hash tables. For that closing writes anew what is alive in tables of which much
    /// was replaced or removed. That takes its time; after loads of new keys nothing is written anew.
    ///
    /// Clones of the handle, tables, transactions and cursors may outlive this. Each of their calls that
    /// reads or writes is [`Error::Closed`] from then on. So is one that is under way and needs the file
    /// after that. None gives a wrong value. Calls that were faster are complete: a commit is in the file, or
    /// was refused. Only what tells of memory stays: [`tables`](Db::tables), [`stats`](Db::stats), names, and
    /// values that were read already ([`ValueRef`](crate::ValueRef)).
    ///
    /// # Errors
    /// [`Error::NotDurable`] if the disk is full and commits would be lost. Then nothing is closed, and every
    /// other clone (a [`Table`] holds one) works as before. Where this is the only one the commits are lost
    /// with it, so whoever wants to go on calls [`try_close`](Db::try_close). Otherwise what flushing meets.
    /// Everything durable is safe all the same, and reopening recovers it. `Closed` if somebody else has
    /// closed it, or is about to. `Forked` in a forked child, where nothing is done.
    pub fn close(self) -> Result<()> {
        self.try_close()
    }

    /// As [`close`](Db::close), for those who go on with the handle if it fails for want of room.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-close-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Options};
    /// # let db = Db::open(&path, Options::new())?;
    /// while let Err(Error::NotDurable { commits, .. }) = db.try_close() {
    ///     eprintln!("the disk is full: {commits} commits would be lost");
    ///     std::thread::sleep(std::time::Duration::from_secs(1));
    /// }
    /// # drop(db); std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`close`](Db::close).
    pub fn try_close(&self) -> Result<()> {
        self.close_engine(false)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.engine.opened.path
    }

    /// The seed of the hashes by which hash tables are ordered: [`Options::hash_seed`], or a random one.
    pub fn hash_seed(&self) -> u64 {
        self.engine.store.hash_seed
    }

    /// Whether the file is a [`Mirror`](crate::Mirror) of another one, and can only be read.
    pub fn is_mirror(&self) -> bool {
        self.engine.opened.is_mirror
    }

    /// The table of a name, made if there is none.
    ///
    /// # Errors
    /// `WrongType` if it is of the other kind; as [`create_table`](Db::create_table).
    pub fn table(&self, name: &str, kind: TableKind) -> Result<Table> {
        let table = loop {
            match self.open_table(name) {
                Err(Error::NoSuchTable { .. }) => {}
                other => break other?,
            }
            match self.create_table(name, kind) {
                // Another thread was faster.
                Err(Error::TableExists { .. }) => {}
                other => return other,
            }
        };
        if table.kind != kind {
            let detail = format!("table {name:?} is of kind {:?}, not {kind:?}", table.kind);
            return Err(Error::WrongType { detail });
        }
        Ok(table)
    }

    /// The table of a name.
    ///
    /// # Errors
    /// `NoSuchTable`, `Closed`, `Forked`.
    pub fn open_table(&self, name: &str) -> Result<Table> {
        let t = self.engine.table_now(name)?;
        Ok(Table { db: self.clone(), id: t.id, kind: t.kind, name: t.name.clone() })
    }

    /// Makes a table. It is durable when this returns, and so is everything committed before.
    ///
    /// # Errors
    /// `TableExists`, `TooLarge` for a name over 255 bytes, `ReadOnly`, or what writing meets.
    pub fn create_table(&self, name: &str, kind: TableKind) -> Result<Table> {
        let id = self.engine.table_changer().create(&[(name, kind)], 0)?;
        Ok(Table { db: self.clone(), id, kind, name: name.into() })
    }

    /// Makes tables, all of them or none: as durable as one, and much faster than one by one.
    ///
    /// # Errors
    /// As [`create_table`](Db::create_table); `TableExists` also if two of the names are the same.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-many-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let days = db.create_tables(&[("monday", TableKind::Ordered), ("tuesday", TableKind::Hash)])?;
    /// days[1].put(b"begun", b"8:15")?;
    /// # drop((days, db));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn create_tables(&self, tables: &[(&str, TableKind)]) -> Result<Vec<Table>> {
        let first = self.engine.table_changer().create(tables, 0)?;
        Ok((first..)
            .zip(tables)
            .map(|(id, &(name, kind))| Table { db: self.clone(), id, kind, name: name.into() })
            .collect())
    }

    /// All tables, by name.
    pub fn tables(&self) -> Vec<TableInfo> {
        let state = self.engine.last_known();
        let shown = state.tables.iter().filter(|t| !is_hidden(&t.name));
        let mut tables: Vec<TableInfo> =
            shown.map(|t| TableInfo { name: t.name.to_string(), kind: t.kind }).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    }

    /// Gives a table another name; handles stay good.
    ///
    /// # Errors
    /// `NoSuchTable`, `TableExists`, as [`create_table`](Db::create_table).
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        match self.engine.table_changer().rename(from, to) {
            // It is fed.
            Err(Error::Conflict { .. }) => self.transact(|txn| txn.rename_table(from, to)),
            done => done,
        }
    }

    /// Removes a table with all its records and its indexes; its space is free for others once no snapshot
    /// sees it.
    ///
    /// # Errors
    /// `NoSuchTable`, as [`create_table`](Db::create_table).
    pub fn drop_table(&self, name: &str) -> Result<()> {
        match self.engine.table_changer().drop_table(name) {
            // It is fed.
            Err(Error::Conflict { .. }) => self.transact(|txn| txn.drop_table(name)),
            done => done,
        }
    }

    /// Begins to read a snapshot of all tables.
    pub fn read(&self) -> ReadTxn {
        ReadTxn::new(self.clone())
    }

    /// Begins a write transaction with the default durability, serializable: its snapshot begins with its
    /// first read, and what it has only written never conflicts.
    pub fn write(&self) -> WriteTxn {
        self.write_with(WriteOptions::default())
    }

    /// Begins a write transaction. Under [`Isolation::Snapshot`](crate::Isolation::Snapshot) its snapshot
    /// begins here, which waits for the commits under way.
    pub fn write_with(&self, options: WriteOptions) -> WriteTxn {
        WriteTxn::new(self.clone(), options)
    }

    /// Returns when everything committed so far is durable, also in mirrors that are kept synchronously
    /// ([`Options::mirror_timeout`]).
    ///
    /// # Errors
    /// `Io`, `Poisoned`, `NoSpace`, `MirrorBehind`. After `NoSpace` what is not durable stays in memory. It
    /// is tried again here, in the background and when the database is closed.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync_mirrored()
    }

    /// Writes the memtables to the file as runs, durably. There is no need to, but it bounds what
    /// the next opening has to replay.
    ///
    /// # Errors
    /// As [`sync`](Db::sync).
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes, and merges until every table is one level. Then reads are fastest and the file smallest. Half
    /// a second without commits does the same by itself. After a second or two the file has the length that
    /// it would have if it were closed.
    ///
    /// On a full disk only the flush must find room. The rest is done as far as there is some. That it ended
    /// early is no error; [`stats`](Db::stats) shows how many runs are left.
    ///
    /// # Errors
    /// As [`sync`](Db::sync). `Corrupt` if tables are damaged; the others are merged all the same.
    pub fn compact(&self) -> Result<()> {
        self.engine.check_writable()?;
        self.engine.compact()
    }

    /// Gives all free space back to the file system, while the database is in use. It compacts, moves the
    /// file's tail into its holes, and cuts it. `progress` is called now and then.
    ///
    /// On a full disk it goes as far as there is room, which is no error. The file keeps the room that
    /// removes need there. What came of it is in the report. A file that is small already can become a little
    /// longer, for its manifest may find no place but at the end.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-shrink-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many((0..100_000u64).map(|n| (n.to_be_bytes(), [7; 100])))?;
    /// db.flush()?;
    /// t.clear()?;
    /// let report = db.shrink(|_| {})?;
    /// assert!(report.after_bytes < report.before_bytes / 10);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`compact`](Db::compact).
    pub fn shrink(&self, mut progress: impl FnMut(Progress)) -> Result<ShrinkReport> {
        let before_bytes = self.file_bytes()?;
        self.engine.shrink(&mut progress)?;
        Ok(ShrinkReport { before_bytes, after_bytes: self.file_bytes()? })
    }

    fn file_bytes(&self) -> Result<u64> {
        self.engine.store.file.len().map_err(|e| Error::io("reading the file's length", e))
    }

    /// Reads everything and checks it: checksums, order, counts, filters, large values, and the log. Each
    /// part of the file must be in use once, or free. Indexes must agree with their tables. What is wrong is
    /// in the report. Memory stays within the budget, however many records there are.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-check-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// let report = db.check(|_| {})?;
    /// assert!(report.problems.is_empty(), "{:?}", report.problems);
    /// assert_eq!(report.records, 1);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the file cannot be read at all; `Closed`.
    pub fn check(&self, mut progress: impl FnMut(Progress)) -> Result<CheckReport> {
        self.engine.life.check()?;
        super::check::check(self, &mut progress)
    }

    /// The database in figures; none in a forked child.
    pub fn stats(&self) -> Stats {
        // What a fork has left locked stays so in the child.
        if self.engine.life.is_forked() { Stats::default() } else { super::stats::stats(&self.engine) }
    }

    /// An error if a table is of another database, or this one is not to be used any more.
    #[inline(always)]
    pub(crate) fn expect(&self, table: &Table) -> Result<()> {
        if Arc::ptr_eq(&self.engine, &table.db.engine) {
            self.engine.life.check()
        } else {
            Err(self.foreign(table))
        }
    }

    #[cold]
    fn foreign(&self, table: &Table) -> Error {
        let (ours, theirs) = (self.path().display(), table.db.path().display());
        let detail = if ours.to_string() == theirs.to_string() {
            format!("table {:?} was opened with another handle of {ours}", table.name)
        } else {
            format!("table {:?} is of the database {theirs}, not of {ours}", table.name)
        };
        Error::Invalid { detail }
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Db({})", self.path().display())
    }
}
