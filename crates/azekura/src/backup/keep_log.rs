//! Keeping the log: after a point, what is committed later is read from the file's log and added to it.
//!
//! A point that is kept up takes its own place in the repository again and again, each time with a longer
//! log. So what was published is never less than before. Where the log has lost what comes next (much was
//! written at once, and flushed before it was logged), or has become longer than the runs that it makes
//! needless, another point is begun, and the one before stays as it is.
//!
//! The log goes on while a point is copied. So it is read then, too. And until the state of the next point is
//! found, the one before grows. So it has what is flushed meanwhile, and between the two no commit is missing
//! that the log has.

use super::chunks::Chunks;
use super::growing::GrowingPoint;
use super::limits::LogLimits;
use super::make::{copy_parts, identity_of, now_ms, point_of};
use super::pace::{CopyOptions, Pace};
use super::repository::Repository;
use crate::base::error::{Error, Result};
use crate::engine::{Capture, Db, Progress};
use crate::format::point::Point;
use crate::storage::Storage;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the log is read.
const PAUSE: Duration = Duration::from_millis(50);
/// Where the log is broken again and again, points are at least so far apart, unless `every` is less.
const POINTS_APART: Duration = Duration::from_secs(10);
/// How often the last of a log is tried to be written while the repository is pruned.
const LAST_TRIES: u32 = 200;

/// Keeps the log of a database in a repository of backups, while another process writes it:
/// [`Db::keep_log`] makes one.
///
/// From one reading of the log to the next it pins the checkpoint that it has seen: what the writer replaces
/// or removes meanwhile keeps its space in the file. So one that is not used any more is to be dropped.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-keep-log-{}.azk", std::process::id()));
/// # let (saved, again) = (path.with_extension("saved"), path.with_extension("again.azk"));
/// use azekura::{Db, Options, Repository, TableKind, Which};
///
/// let db = Db::open(&path, Options::new())?;
/// let born = db.table("born", TableKind::Ordered)?;
/// born.put("ada", "1815")?;
///
/// let follower = Db::open(&path, Options::new().follow(true))?;
/// let mut keeper = follower.keep_log(&saved)?;
/// let before = keeper.step(|_| {})?;
/// born.put("ada", "wrong")?;
/// assert!(keeper.step(|_| {})?.commit > before.commit);
///
/// Repository::open(&saved)?.restore(Which::Commit(before.commit), &again, |_| {})?;
/// let again = Db::open(&again, Options::new())?;
/// assert_eq!(again.open_table("born")?.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// # drop((keeper, born)); follower.close()?; again.close()?; db.close()?;
/// # std::fs::remove_file(path.with_extension("again.azk")).unwrap();
/// # std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct LogKeeper<'s> {
    db: Db,
    storage: &'s dyn Storage,
    path: PathBuf,
    options: CopyOptions,
    pub(super) limits: LogLimits,
    /// The point that grows. None before the first.
    growing: Option<GrowingPoint>,
    status: LogKept,
}

/// What a [`LogKeeper`] has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogKept {
    /// The point that grows. 0: there is none yet.
    pub point: u64,
    /// The database can be restored as it was after any commit from this one on, up to `commit`.
    pub first_commit: u64,
    /// The newest commit in the repository.
    pub commit: u64,
    /// How many points were begun.
    pub points: u64,
    /// Bytes of all chunks that were written.
    pub new_bytes: u64,
}

impl<'s> LogKeeper<'s> {
    pub(crate) fn new(
        db: Db,
        storage: &'s dyn Storage,
        path: PathBuf,
        options: CopyOptions,
    ) -> Result<LogKeeper<'s>> {
        if db.engine.config.follow.is_none() {
            let detail = "a log is kept by a handle that follows the database (Options::follow)".into();
            return Err(Error::Invalid { detail });
        }
        Pace::new(options)?;
        let (limits, growing, status) = (LogLimits::USUAL, None, LogKept::default());
        Ok(LogKeeper { db, storage, path, options, limits, growing, status })
    }

    /// Divides the limits of a log's length, so that a simulation with little data reaches them.
    #[doc(hidden)]
    #[must_use]
    pub fn with_limits_divided(self, part: u64) -> LogKeeper<'s> {
        LogKeeper { limits: self.limits.divided(part), ..self }
    }

    /// What was done until now.
    #[must_use]
    pub fn status(&self) -> LogKept {
        self.status
    }

    /// Takes into the repository what was committed until now: as further log of the point that grows, or as
    /// another point. When this returns, it is durable there. `progress` is called while a point is copied.
    ///
    /// # Errors
    /// As [`Db::backup`](crate::Db::backup). What the repository has stays as it was, and the next step tries
    /// again.
    pub fn step(&mut self, mut progress: impl FnMut(Progress)) -> Result<LogKept> {
        self.read()?;
        self.publish(&mut progress)?;
        Ok(self.status)
    }

    /// Goes on for as long as `told` says so, which is called twenty times a second. What was committed is
    /// read as often, and goes to the repository each time that `every` has passed, and at the end. While a
    /// point is copied, `told` is called with the progress, and what it says counts when that is done.
    ///
    /// # Errors
    /// As [`step`](Self::step). While the repository is pruned, it is tried again, at the end for ten
    /// seconds.
    pub fn run(
        &mut self,
        every: Duration,
        mut told: impl FnMut(&LogKept, Option<Progress>) -> bool,
    ) -> Result<()> {
        let (mut next, mut begun) = (Instant::now(), None);
        loop {
            self.read()?;
            if !told(&self.status, None) {
                return self.write_last();
            }
            let may_begin = begun.is_none_or(|begun: Instant| begun.elapsed() >= every.min(POINTS_APART));
            if Instant::now() >= next || self.is_over() && may_begin || self.is_too_long() {
                let before = self.status;
                let mut goes_on = true;
                match self.publish(&mut |step| goes_on &= told(&before, Some(step))) {
                    Err(Error::Locked { .. }) => {}
                    done => {
                        done?;
                        next = Instant::now() + every;
                    }
                }
                if !goes_on {
                    return self.write_last();
                }
                begun = if self.status.points > before.points { Some(Instant::now()) } else { begun };
            }
            sleep(PAUSE);
        }
    }

    /// Writes what was read, and begins no other point.
    fn write_last(&mut self) -> Result<()> {
        for tries in 0.. {
            let repository = self.repository()?;
            match repository.lock(false) {
                Err(Error::Locked { .. }) if tries < LAST_TRIES => sleep(PAUSE),
                lock => {
                    let _shared = lock?;
                    return self.write(&repository);
                }
            }
        }
        Ok(())
    }

    fn repository(&self) -> Result<Repository<'s>> {
        Repository::of(self.storage, &self.path, identity_of(&self.db.engine))
    }

    /// Whether the point cannot go on, or should not.
    fn is_over(&self) -> bool {
        self.growing.as_ref().is_none_or(GrowingPoint::is_over)
    }

    /// Whether the point should not go on for long.
    fn is_too_long(&self) -> bool {
        self.growing.as_ref().is_some_and(GrowingPoint::is_too_long)
    }

    /// Reads the log on. If that is much, it is published at once. While the repository is pruned, reading
    /// waits instead.
    fn read(&mut self) -> Result<()> {
        let Some(growing) = &mut self.growing else { return Ok(()) };
        let read = growing.read_on(&self.db.engine);
        let is_full = growing.is_full();
        self.noted(read)?;
        if !is_full {
            return Ok(());
        }
        let repository = self.repository()?;
        match repository.lock(false) {
            Err(Error::Locked { .. }) => Ok(()),
            lock => {
                let _shared = lock?;
                self.write(&repository)
            }
        }
    }

    /// After an error it is not known what was read. The point stays as it was published.
    fn noted(&mut self, done: Result<()>) -> Result<()> {
        if done.is_err() {
            self.growing = None;
        }
        done
    }

    fn publish(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let repository = self.repository()?;
        let _shared = repository.lock(false)?;
        self.write(&repository)?;
        if !self.is_over() {
            return Ok(());
        }
        if let Some(begun) = self.begin(&repository, progress)? {
            self.status.points += 1;
            self.note_point(&begun);
            self.growing = Some(begun);
        }
        Ok(())
    }

    fn note_point(&mut self, growing: &GrowingPoint) {
        let Point { number, first_commit, commit, .. } = growing.point;
        (self.status.point, self.status.first_commit, self.status.commit) = (number, first_commit, commit);
    }

    /// Reads the log to its end, and publishes what was read. REQUIRES: the repository's lock.
    fn write(&mut self, repository: &Repository<'_>) -> Result<()> {
        // After an error it is not known what the point has. It stays as it was published.
        let Some(growing) = self.growing.take() else { return Ok(()) };
        self.write_grown(repository, growing, Chunks::of_new(repository))
    }

    /// The same of a point with chunks that were written already. If the point is not there any more, it does
    /// not grow any more.
    fn write_grown<'r>(
        &mut self,
        repository: &'r Repository<'r>,
        mut growing: GrowingPoint,
        mut chunks: Chunks<'r>,
    ) -> Result<()> {
        growing.read_all(&self.db.engine, &mut chunks)?;
        if growing.has_news() {
            growing.write(&self.db.engine, &mut chunks)?;
        }
        self.status.new_bytes += chunks.written_bytes;
        if repository.replace_point(&growing.point, chunks.written > 0)? {
            self.note_point(&growing);
            self.growing = Some(growing);
        }
        Ok(())
    }

    /// Finds the state of another point, and when that was. The one before has the log until then, and is
    /// published.
    fn hand_over(&mut self, repository: &Repository<'_>) -> Result<(Capture, u64)> {
        let engine = &self.db.engine;
        let Some(mut growing) = self.growing.take() else { return Ok((engine.capture()?, now_ms())) };
        let (mut chunks, mut read) = (Chunks::of_new(repository), Ok(()));
        let capture = engine.capture_beside(&mut || {
            if read.is_ok() {
                read = growing.read_all(engine, &mut chunks);
            }
        });
        let time_ms = now_ms();
        read?;
        self.write_grown(repository, growing, chunks)?;
        Ok((capture?, time_ms))
    }

    /// Copies another point. The log is read meanwhile. None if it would be the same as the one before.
    fn begin(
        &mut self,
        repository: &Repository<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<GrowingPoint>> {
        let mut pace = Pace::new(self.options)?;
        let (mut chunks, mut log_chunks) = (Chunks::of(repository)?, Chunks::of_new(repository));
        let (capture, time_ms) = self.hand_over(repository)?;
        let engine = &self.db.engine;
        let is_known = |known: &GrowingPoint| known.is_of(capture.checkpoint, capture.commit);
        if self.growing.as_ref().is_some_and(is_known) {
            return Ok(None);
        }
        let point = point_of(engine, &capture, Vec::new(), time_ms);
        let mut growing = GrowingPoint::of(point, &capture, self.limits);
        let mut read = growing.read_all(engine, &mut log_chunks);
        let mut step = |step| {
            if read.is_ok() {
                read = growing.read_all(engine, &mut log_chunks);
            }
            progress(step);
        };
        let pieces = copy_parts(engine, repository, &mut chunks, &capture, &mut pace, &mut step)?;
        read?;
        growing.point.pieces = pieces;
        if growing.has_news() {
            growing.write(engine, &mut log_chunks)?;
        }
        repository.add_point(&mut growing.point)?;
        self.status.new_bytes += chunks.written_bytes + log_chunks.written_bytes;
        Ok(Some(growing))
    }
}
