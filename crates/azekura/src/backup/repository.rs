//! The directory of a repository: whose it is, which points it has, and who may change it.

use super::files::{failed, inside, publish, read, replace};
use crate::base::error::{Error, Result};
use crate::base::limits::COUNT_END;
use crate::format::point::{Identity, Piece, Point, decode_head, encode_head};
use crate::storage::{File, OpenMode, OsStorage, Storage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(super) const HEAD: &str = "repository";
const CHUNKS: &str = "chunks";
const POINTS: &str = "points";
const MAKING: &str = "making the repository";
const READING: &str = "reading the repository";
const WRITING: &str = "writing the point";
/// Points have smaller numbers, so that there is always a next one.
const NUMBER_END: u64 = COUNT_END - 1;

/// A directory of backups of one database, which [`Db::backup`](crate::Db::backup) has made.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-repository-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (path, saved, out) = (dir.join("people.azk"), dir.join("saved"), dir.join("again.azk"));
/// use azekura::{Db, Options, Repository, TableKind, Which};
///
/// let db = Db::open(&path, Options::new())?;
/// let born = db.table("born", TableKind::Ordered)?;
/// born.put(b"ada", b"1815")?;
/// let report = db.backup(&saved, |_| {})?;
/// born.remove(b"ada")?;
///
/// let repository = Repository::open(&saved)?;
/// assert!(repository.verify(|_| {})?.problems.is_empty());
/// repository.restore(Which::Point(report.point), &out, |_| {})?;
/// let again = Db::open(&out, Options::new())?;
/// assert_eq!(again.open_table("born")?.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// # again.close()?; db.close()?; std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Repository<'s> {
    pub(super) storage: &'s dyn Storage,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
}

/// One point of a repository: the database after one commit.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-pointinfo-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// db.backup(&saved, |_| {})?;
/// let points = azekura::Repository::open(&saved)?.points()?.points;
/// assert_eq!((points[0].number, points[0].tables), (1, 1));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointInfo {
    /// Its number, from 1 on.
    pub number: u64,
    /// The number of the newest commit in it.
    pub commit: u64,
    /// The database can be restored as it was after any commit from this one on, up to `commit`. That is the
    /// same one, unless the point has a log: those of backups beside a writing process have what was in the
    /// file's.
    pub first_commit: u64,
    /// When it was found what the point has, by the clock of the system that made it, rounded up to a
    /// millisecond. It has nothing that was committed later.
    pub time: SystemTime,
    /// When its log was last read on, by the same clock ([`Db::keep_log`](crate::Db::keep_log)). Of other
    /// points it is `time`.
    pub last_time: SystemTime,
    /// Its tables.
    pub tables: u64,
    /// Bytes of its chunks, which other points may share.
    pub bytes: u64,
}

/// What [`Repository::points`] has found.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-pointlist-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved");
/// # t.put("ada", "1815")?;
/// db.backup(&saved, |_| {})?;
/// let list = azekura::Repository::open(&saved)?.points()?;
/// assert_eq!((list.points.len(), list.damaged.len()), (1, 0));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_dir_all(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PointList {
    /// The points that can be read, by their numbers.
    pub points: Vec<PointInfo>,
    /// The points that cannot be read, and why.
    pub damaged: Vec<(u64, Error)>,
}

impl PointInfo {
    pub(super) fn of(point: &Point) -> PointInfo {
        PointInfo {
            number: point.number,
            commit: point.commit,
            first_commit: point.first_commit,
            time: time_of(point.time_ms),
            last_time: time_of(point.marks.last().map_or(point.time_ms, |mark| mark.time_ms)),
            tables: u64::from(point.tables),
            bytes: point.bytes(),
        }
    }
}

/// A number of a point as a time.
pub(super) fn time_of(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(SystemTime::UNIX_EPOCH)
}

impl Repository<'static> {
    /// Opens a repository.
    ///
    /// # Errors
    /// `Open` if there is none, or the system refuses; `Corrupt`, `NewerVersion`.
    pub fn open(path: impl AsRef<Path>) -> Result<Repository<'static>> {
        Repository::open_on(&OsStorage, path)
    }
}

impl<'s> Repository<'s> {
    /// As [`open`](Repository::open), on a disk of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`open`](Repository::open).
    pub fn open_on(storage: &'s dyn Storage, path: impl AsRef<Path>) -> Result<Repository<'s>> {
        let path = path.as_ref();
        let head = path.join(HEAD);
        if !storage.exists(&head).map_err(failed(path, READING))? {
            return Err(Error::open(path, io::ErrorKind::NotFound, "no repository of backups is there"));
        }
        let identity = decode_head(&read(storage, &head, READING)?).map_err(inside(&head))?;
        Ok(Repository { storage, path: path.to_path_buf(), identity })
    }

    /// The repository of a database in `path`, made if there is none.
    pub(super) fn of(storage: &'s dyn Storage, path: &Path, identity: Identity) -> Result<Repository<'s>> {
        let head = path.join(HEAD);
        if !storage.exists(&head).map_err(failed(path, MAKING))? {
            make(storage, path, identity)?;
        }
        let repository = Repository::open_on(storage, path)?;
        if repository.identity == identity {
            return Ok(repository);
        }
        let whose = if repository.identity.file_id == identity.file_id {
            "another lineage of this database (a restored database gets a repository of its own)"
        } else {
            "another database"
        };
        Err(Error::Invalid { detail: format!("{} has the backups of {whose}", path.display()) })
    }

    /// Takes the repository's lock: shared, or alone to remove something. On a file system without locks
    /// nothing is removed.
    pub(super) fn lock(&self, alone: bool) -> Result<Arc<dyn File>> {
        let head = self.path.join(HEAD);
        let mode = if alone { OpenMode::ReadWrite } else { OpenMode::ReadOnly };
        let file = self.storage.open(&head, mode).map_err(failed(&head, "locking the repository"))?;
        match file.try_lock(alone) {
            Ok(true) => Ok(file),
            Ok(false) => Err(Error::Locked { path: self.path.display().to_string(), exclusive: alone }),
            // What others use must not be removed.
            Err(e) if alone => Err(failed(&head, "locking the repository")(e)),
            Err(_) => Ok(file),
        }
    }

    pub(super) fn chunks(&self) -> PathBuf {
        self.path.join(CHUNKS)
    }

    pub(super) fn chunk(&self, piece: &Piece) -> PathBuf {
        self.chunks().join(piece.name(self.identity))
    }

    pub(super) fn point(&self, number: u64) -> PathBuf {
        self.path.join(POINTS).join(number.to_string())
    }

    /// The names in one of its directories.
    pub(super) fn names_in(&self, dir: &Path) -> Result<Vec<String>> {
        self.storage.names_in(dir).map_err(failed(dir, READING))
    }

    /// The numbers of all points, in order. A file with a greater number is no point.
    pub(super) fn numbers(&self) -> Result<Vec<u64>> {
        let names = self.names_in(&self.path.join(POINTS))?;
        let number =
            |name: &String| name.parse().ok().filter(|n: &u64| *n < NUMBER_END && n.to_string() == *name);
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads a point.
    pub(super) fn read_point(&self, number: u64) -> Result<Point> {
        let path = self.point(number);
        if !self.storage.exists(&path).map_err(failed(&path, READING))? {
            let detail = format!("{} has no point {number}", self.path.display());
            return Err(Error::Invalid { detail });
        }
        let point = Point::decode(&read(self.storage, &path, READING)?).map_err(inside(&path))?;
        if point.number == number && point.identity == self.identity {
            return Ok(point);
        }
        let detail = format!("it is point {} of a repository, and stands here as {number}", point.number);
        Err(inside(&path)(Error::corrupt("point of a backup", 0, detail)))
    }

    /// Its points, by their numbers. Each of them can be restored by itself.
    ///
    /// # Errors
    /// `Open` if the directory cannot be read. Damage is no error here: it is in the list.
    pub fn points(&self) -> Result<PointList> {
        let mut list = PointList::default();
        for number in self.numbers()? {
            match self.read_point(number) {
                Ok(point) => list.points.push(PointInfo::of(&point)),
                Err(e) => list.damaged.push((number, e)),
            }
        }
        Ok(list)
    }

    /// Publishes a point under the next free number, which it gets.
    pub(super) fn add_point(&self, point: &mut Point) -> Result<()> {
        loop {
            point.number = self.numbers()?.last().map_or(1, |n| n + 1);
            if publish(self.storage, &self.point(point.number), &point.encode(), WRITING)? {
                return Ok(());
            }
        }
    }

    /// Lets a point take its own place, if it has become another. False if it is not there any more.
    pub(super) fn replace_point(&self, point: &Point, is_changed: bool) -> Result<bool> {
        let path = self.point(point.number);
        if !self.storage.exists(&path).map_err(failed(&path, WRITING))? {
            return Ok(false);
        }
        if !is_changed {
            return Ok(true);
        }
        replace(self.storage, &path, &point.encode(), WRITING).map(|()| true)
    }
}

/// Makes an empty repository. The head is written last.
fn make(storage: &dyn Storage, path: &Path, identity: Identity) -> Result<()> {
    let at = failed(path, MAKING);
    if storage.exists(path).map_err(&at)? {
        let is_ours = |name: &String| name == CHUNKS || name == POINTS || name.starts_with(HEAD);
        if !storage.names_in(path).map_err(&at)?.iter().all(is_ours) {
            let detail = "there are other files in it, and it is no repository of backups";
            return Err(Error::open(path, io::ErrorKind::AlreadyExists, detail));
        }
    }
    for dir in [path, &path.join(CHUNKS), &path.join(POINTS)] {
        storage.create_dir(dir).map_err(failed(dir, MAKING))?;
        storage.sync_dir_of(dir).map_err(failed(dir, MAKING))?;
    }
    // If somebody else was faster, their head is compared.
    publish(storage, &path.join(HEAD), &encode_head(identity), MAKING).map(drop)
}
