//! Copies of a database: backups and hot copies.

use crate::backup::{self, BackupReport, CopyOptions, LogKeeper, PointInfo};
use crate::base::error::Result;
use crate::engine::{Db, Progress};
use crate::storage::{OsStorage, Storage};
use std::io::Write;
use std::path::Path;

impl Db {
    /// Adds a point to the repository of backups in the directory `repository`: the database after its newest
    /// commit. The repository is made if there is none. Others read and write meanwhile. What the repository
    /// has already is not copied again, so a second backup costs what has changed. When this returns, the
    /// point is durable. A backup that was cut off leaves no point, or a whole one. What it has copied the
    /// next one need not write. `progress` is called now and then. See [`Repository`](crate::Repository) for
    /// an example.
    ///
    /// Records that are replaced or removed meanwhile keep their space until the backup has ended. So the
    /// file may grow.
    ///
    /// In a follower, whatever its [`Freshness`](crate::Freshness), the point has every commit that was
    /// durable when this was called, and a log: so it can be restored as it was after earlier commits, too
    /// ([`PointInfo::first_commit`]). Where checkpoints follow each other too fast for the log to be read,
    /// it is the newest checkpoint.
    ///
    /// # Errors
    /// `Invalid` if the repository has the backups of another database, or another lineage of this one;
    /// `Open` if there is something else, or the system refuses; `NoSpace`, `Locked` while it is pruned;
    /// `Corrupt`; what [`flush`](Db::flush) meets. `ReadOnly` if the database is open to read only and was
    /// not closed: its log would have to be flushed. `SnapshotTooOld` in a follower if the writer's limits
    /// have ended its pin; `Io` if the file cannot be synced.
    pub fn backup(
        &self,
        repository: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<BackupReport> {
        self.backup_on(&OsStorage, repository, progress)
    }

    /// As [`backup`](Db::backup), with options.
    ///
    /// # Errors
    /// As [`backup`](Db::backup), and `Invalid` options.
    pub fn backup_with(
        &self,
        repository: impl AsRef<Path>,
        options: CopyOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<BackupReport> {
        self.engine.life.check()?;
        backup::backup(&self.engine, &OsStorage, repository.as_ref(), options, &mut progress)
    }

    /// As [`backup`](Db::backup), to a disk of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`backup`](Db::backup).
    pub fn backup_on(
        &self,
        storage: &dyn Storage,
        repository: impl AsRef<Path>,
        mut progress: impl FnMut(Progress),
    ) -> Result<BackupReport> {
        self.engine.life.check()?;
        backup::backup(&self.engine, storage, repository.as_ref(), CopyOptions::default(), &mut progress)
    }

    /// Keeps the log of a database that another process writes in the repository of backups in the directory
    /// `repository`, for as long as the result is used: so that the database can be restored as it was after
    /// each commit that was in the log. See [`LogKeeper`] for an example.
    ///
    /// # Errors
    /// `Invalid` if this handle does not follow ([`Options::follow`](crate::Options::follow)).
    pub fn keep_log(&self, repository: impl AsRef<Path>) -> Result<LogKeeper<'static>> {
        self.keep_log_with(&OsStorage, repository, CopyOptions::default())
    }

    /// As [`keep_log`](Db::keep_log), with options, and to a disk of the caller's making (`&OsStorage` is the
    /// system's).
    ///
    /// # Errors
    /// As [`keep_log`](Db::keep_log).
    pub fn keep_log_with<'s>(
        &self,
        storage: &'s dyn Storage,
        repository: impl AsRef<Path>,
        options: CopyOptions,
    ) -> Result<LogKeeper<'s>> {
        self.engine.life.check()?;
        LogKeeper::new(self.clone(), storage, repository.as_ref().to_path_buf(), options)
    }

    /// Writes a whole backup to `out`, for a pipe. [`restore_stream`](crate::restore_stream) makes a database
    /// of it.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("azekura-doc-stream-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let (path, out) = (dir.join("people.azk"), dir.join("again.azk"));
    /// use azekura::{Db, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// db.table("born", TableKind::Ordered)?.put(b"ada", b"1815")?;
    /// let mut stream = Vec::new();
    /// db.backup_to(&mut stream, |_| {})?;
    /// azekura::restore_stream(&mut stream.as_slice(), &out, |_| {})?;
    /// # assert_eq!(Db::open(&out, Options::new())?.open_table("born")?.count()?, 1);
    /// # db.close()?; std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`backup`](Db::backup), and those of `out` as `Io`.
    pub fn backup_to(&self, out: &mut dyn Write, progress: impl FnMut(Progress)) -> Result<PointInfo> {
        self.backup_to_with(out, CopyOptions::default(), progress)
    }

    /// As [`backup_to`](Db::backup_to), with options.
    ///
    /// # Errors
    /// As [`backup_to`](Db::backup_to), and `Invalid` options.
    pub fn backup_to_with(
        &self,
        out: &mut dyn Write,
        options: CopyOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<PointInfo> {
        self.engine.life.check()?;
        backup::backup_to(&self.engine, out, options, &mut progress)
    }

    /// Copies the database to the new file `path`, while others read and write. The copy is what was
    /// committed when this began, without free space. It gets its name when it is whole and durable. Its
    /// lineage is its own, as that of a restored backup.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("azekura-doc-copy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let (path, copy) = (dir.join("people.azk"), dir.join("copy.azk"));
    /// use azekura::{Db, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// db.table("born", TableKind::Ordered)?.put(b"ada", b"1815")?;
    /// db.copy_to(&copy, |_| {})?;
    /// assert_eq!(Db::open(&copy, Options::new())?.open_table("born")?.count()?, 1);
    /// # db.close()?; std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Open` if there is such a file, or the system refuses; else as [`backup`](Db::backup).
    pub fn copy_to(&self, path: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<()> {
        self.copy_to_on(&OsStorage, path, progress)
    }

    /// As [`copy_to`](Db::copy_to), with options.
    ///
    /// # Errors
    /// As [`copy_to`](Db::copy_to), and `Invalid` options.
    pub fn copy_to_with(
        &self,
        path: impl AsRef<Path>,
        options: CopyOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<()> {
        self.engine.life.check()?;
        backup::copy(&self.engine, &OsStorage, path.as_ref(), options, &mut progress)
    }

    /// As [`copy_to`](Db::copy_to), to a disk of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`copy_to`](Db::copy_to).
    pub fn copy_to_on(
        &self,
        storage: &dyn Storage,
        path: impl AsRef<Path>,
        mut progress: impl FnMut(Progress),
    ) -> Result<()> {
        self.engine.life.check()?;
        backup::copy(&self.engine, storage, path.as_ref(), CopyOptions::default(), &mut progress)
    }
}
