//! Opening a mirror, and building it anew beside the file that has its name.

use super::dest::Dest;
use super::going::{Mirror, Old};
use super::load::{load, secure};
use super::names::{
    NAMING, OPENING, beside, forget_names, is_left_behind, lock, mark_replaced, open_locked, resolved,
    take_name, throw_away,
};
use super::source::MirrorSource;
use super::status::Gauge;
use crate::backup::{CopyOptions, Pace, failed};
use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
use crate::engine::{Length, Newest, read_newest};
use crate::format::superblock::Role;
use crate::storage::{File, OpenMode, OsStorage, Storage, pins_of_others};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often is looked whether others still read what is not known, and the pause between two looks.
const LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

impl Mirror {
    /// A mirror of the database `source` in the file `path`, which is made if there is none. Nothing is
    /// copied yet: see [`step`](Mirror::step) and [`run`](Mirror::run).
    ///
    /// # Errors
    /// `Open` if one of them cannot be opened, or `path` is no mirror; `Invalid` if it mirrors something
    /// else, or the options are; `Locked` if another process keeps it, or reads it without following;
    /// `NotADatabase`.
    pub fn open(source: impl AsRef<Path>, path: impl AsRef<Path>, options: CopyOptions) -> Result<Mirror> {
        let (source, path) = (source.as_ref(), &*resolved(path.as_ref())?);
        let same =
            |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if same(source, path) {
            let detail = format!("{} cannot mirror itself", path.display());
            return Err(Error::Invalid { detail });
        }
        let storage = || Arc::new(OsStorage);
        Mirror::open_on(storage(), source, storage(), path, options)
    }

    /// As [`open`](Mirror::open), on disks of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`open`](Mirror::open).
    pub fn open_on(
        source_storage: Arc<dyn Storage>,
        source: impl AsRef<Path>,
        storage: Arc<dyn Storage>,
        path: impl AsRef<Path>,
        options: CopyOptions,
    ) -> Result<Mirror> {
        let source = source.as_ref();
        let file = source_storage.open(source, OpenMode::ReadOnly).map_err(failed(source, "opening it"))?;
        let (path_of, log) = (source.to_path_buf(), file.clone());
        let source =
            MirrorSource { path: path_of, file, log, storage: source_storage, settled: None, afar: None };
        Mirror::open_from(source, storage, path.as_ref(), options)
    }

    /// A mirror of a source that is open.
    pub(super) fn open_from(
        source: MirrorSource,
        storage: Arc<dyn Storage>,
        path: &Path,
        options: CopyOptions,
    ) -> Result<Mirror> {
        let mut mirror = Mirror {
            source,
            storage,
            path: path.to_path_buf(),
            dest: None,
            unnamed: None,
            old: None,
            pins: BTreeMap::new(),
            is_doubtful: true,
            log: None,
            is_end_checked: false,
            came_at: Instant::now(),
            waits_since: None,
            named_at: Instant::now(),
            patience: Duration::ZERO,
            is_synchronous: false,
            acknowledged: None,
            pace: Pace::new(options)?,
            gauge: Gauge::default(),
        };
        // So that what is no database is refused before anything is made.
        mirror.source.newest()?;
        mirror.open_dest()?;
        Ok(mirror)
    }

    /// Opens the file that has the mirror's name, if there is one.
    fn open_dest(&mut self) -> Result<()> {
        let path = self.path.clone();
        let at = failed(&path, OPENING);
        let Some(file) = open_locked(self.storage.as_ref(), &path)? else { return Ok(()) };
        // It may have got its name from one that was cut off before that was durable.
        self.storage.sync_dir_of(&path).map_err(&at)?;
        let length = Length { path: &self.path, file_bytes: file.len().map_err(&at)?, read_only: false };
        let Newest { block, .. } = read_newest(file.as_ref(), &length)?;
        if block.role != Role::Mirror {
            let detail = "it is a database of its own, and no mirror";
            return Err(Error::open(&self.path, io::ErrorKind::AlreadyExists, detail));
        }
        secure(&self.path, file.as_ref(), &block)?;
        let found = block.clone();
        match load(&self.path, file.clone(), block) {
            Ok(dest) if !self.is_read_elsewhere(&dest)? => self.dest = Some(dest),
            Ok(dest) => {
                self.dest = Some(dest);
                self.build_anew();
            }
            // The source has all of it.
            Err(Error::Corrupt { .. } | Error::Truncated { .. }) => {
                self.old = Some(Old { file, block: found, commit: 0 })
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Whether somebody reads a state of which is not known any more what it needs. Mostly that ends soon.
    fn is_read_elsewhere(&self, dest: &Dest) -> Result<bool> {
        for _ in 0..LOOKS {
            let pins = pins_of_others(dest.file.as_ref()).map_err(failed(&self.path, OPENING))?;
            if pins.iter().all(|pin| *pin == (dest.number()..=dest.number())) {
                return Ok(false);
            }
            sleep(LOOK_PAUSE);
        }
        Ok(true)
    }

    /// Begins a file that will have the mirror's name, or goes on with one that was left unfinished.
    pub(super) fn begin_beside(&mut self) -> Result<()> {
        let beside = beside(&self.path);
        let file = match self.left_beside(&beside)? {
            Some(file) => file,
            None => {
                let made = self.storage.open(&beside, OpenMode::CreateNew);
                let file = made.map_err(failed(&beside, OPENING))?;
                lock(&beside, file.as_ref())?;
                file
            }
        };
        if let Err(e) = forget_names(&beside, file.as_ref()) {
            // Nobody knows any more what of it is durable.
            throw_away(self.storage.as_ref(), &beside, file.as_ref());
            return Err(e);
        }
        self.dest = Some(Dest::new(&self.path, file)?);
        self.unnamed = Some(beside);
        Ok(())
    }

    /// What was left where a mirror is to be built, if it can be built in. A mirror that lost its name there
    /// may still be read: then the name goes, and the file stays to who reads it.
    fn left_beside(&self, beside: &Path) -> Result<Option<Arc<dyn File>>> {
        let Some(file) = open_locked(self.storage.as_ref(), beside)? else { return Ok(None) };
        if !is_left_behind(beside, file.as_ref())? {
            let detail = "a mirror was to be built there, but it is no unfinished mirror";
            return Err(Error::open(beside, io::ErrorKind::AlreadyExists, detail));
        }
        let at = failed(beside, OPENING);
        if pins_of_others(file.as_ref()).map_err(&at)?.is_empty() {
            return Ok(Some(file));
        }
        self.storage.remove(beside).map_err(&at)?;
        Ok(None)
    }

    /// The mirror that there is cannot become what the source is.
    pub(super) fn build_anew(&mut self) {
        if let Some(Dest { file, block: Some(block), commit, .. }) = self.dest.take() {
            self.old = Some(Old { file, block, commit });
        }
        self.acknowledge_nothing();
        self.pins.clear();
        self.is_doubtful = true;
    }

    /// Gives the file that was built its name.
    pub(super) fn give_name(&mut self) -> Result<()> {
        let Some(beside) = self.unnamed.clone() else { return Ok(()) };
        self.dest()?.sync()?;
        let file = self.dest()?.file.clone();
        let (path, storage) = (self.path.clone(), self.storage.clone());
        let at = failed(&path, NAMING);
        let synced = file.sync_all().map_err(&at);
        self.dest()?.keep_any_failure(synced)?;
        match &self.old {
            Some(old) => take_name(storage.as_ref(), &beside, &path, old.file.as_ref())?,
            None => storage.rename(&beside, &path, false).map_err(&at)?,
        }
        let named = storage.sync_dir_of(&path).map_err(&at);
        // After a failure it counts as unnamed: nobody hears of a state that may be gone after a crash.
        self.dest()?.keep_any_failure(named)?;
        self.unnamed = None;
        self.gauge.status.built += 1;
        if let Some(old) = self.old.take() {
            // Who reads it goes on, and learns that it will not change any more.
            let _unheard = mark_replaced(&path, old.file.as_ref());
        }
        Ok(())
    }
}
