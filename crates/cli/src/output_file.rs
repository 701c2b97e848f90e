//! Files that commands write: what they may not replace, and how a file gets its name.
//!
//! A target is refused if it is a database, or one of the command's inputs under any name, or if it exists
//! and `--force` was not given. The output is written under a name of its own, beside the target. When it is
//! whole and durable it gets the target's name. Until then a failure or an interrupt removes it, and the old
//! file stays. A target that is no regular file (a pipe, `/dev/null`) is written directly.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use azekura::storage::{OsStorage, Storage};

use crate::failure::{Failure, Outcome};
use crate::interrupt::{DRAWN, Scratch};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;
/// The first bytes of a database, and of the second copy of its superblock.
const MAGIC: &[u8; 8] = b"AZEKURA\0";
/// The offsets of the two copies of the superblock.
const SUPERBLOCKS_AT: [usize; 2] = [0, 4096];

/// A file that a command may write.
#[derive(Debug)]
pub struct Target {
    /// The name that the user has given.
    named: PathBuf,
    /// The file itself, at the end of symbolic links.
    path: PathBuf,
    inputs: Vec<PathBuf>,
    force: bool,
    /// Whether it is no regular file, and is written directly.
    direct: bool,
}

/// Checks that a command that reads `inputs` may write `path`. `force` lets it replace a file.
pub fn check_target(path: &Path, inputs: &[&Path], force: bool) -> Outcome<Target> {
    let inputs = inputs.iter().map(|&input| input.to_path_buf()).collect();
    let mut target =
        Target { named: path.to_path_buf(), path: path.to_path_buf(), inputs, force, direct: false };
    if let Some(metadata) = target.check()? {
        target.direct = !metadata.is_file();
        target.path = fs::canonicalize(path).map_err(|error| Failure::io("writing", path, &error))?;
    } else if path.is_symlink() {
        return Err(target.refused("is a symbolic link to nothing"));
    }
    Ok(target)
}

impl Target {
    /// Refuses what may not be written. Returns what is there, if anything is.
    fn check(&self) -> Outcome<Option<Metadata>> {
        let metadata = match fs::metadata(&self.named) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| Failure::io("writing", &self.named, &error))?,
        };
        if metadata.is_dir() {
            return Err(self.refused("is a directory"));
        }
        let is_input = |input: &PathBuf| fs::metadata(input).is_ok_and(|input| is_same(&input, &metadata));
        let is_database = metadata.is_file() && is_database(&self.named)?;
        match (self.inputs.iter().any(is_input), is_database) {
            (true, true) => return Err(self.refused("is the database itself")),
            (true, false) => return Err(self.refused("is what is being read")),
            (false, true) => return Err(self.refused("is a database, which is never written over")),
            (false, false) => {}
        }
        if !self.force && metadata.is_file() {
            return Err(self.refused("exists already (--force replaces it)"));
        }
        if !self.force && metadata.file_type().is_block_device() {
            return Err(self.refused("is a disk (--force writes to it)"));
        }
        Ok(Some(metadata))
    }

    fn refused(&self, reason: &str) -> Failure {
        Failure::Usage(format!("{} {reason}", self.named.display()))
    }

    /// A new name beside the target, for a file that will become the target. A target that is no regular file
    /// cannot be replaced by one and is refused.
    pub fn unfinished(self) -> Outcome<Unfinished> {
        if self.direct {
            return Err(self.refused("is no regular file"));
        }
        let failed = |error: io::Error| Failure::io("writing", &self.named, &error);
        let name = format!("{DRAWN}{}-{:016x}.new", std::process::id(), OsStorage.random().map_err(failed)?);
        let scratch = Scratch::new(&self.path.with_file_name(name));
        Ok(Unfinished { scratch, target: self })
    }

    /// Begins to write the target.
    pub fn create(self) -> Outcome<OutputFile> {
        let named = self.named.clone();
        let failed = |error: io::Error| Failure::io("writing", &named, &error);
        let (file, unfinished) = if self.direct {
            (File::options().write(true).open(&self.named).map_err(failed)?, None)
        } else {
            let unfinished = self.unfinished()?;
            (File::create_new(unfinished.path()).map_err(failed)?, Some(unfinished))
        };
        Ok(OutputFile { stream: BufWriter::with_capacity(BUFFER_BYTES, file), named, unfinished })
    }
}

/// A file that will become the target. Dropping it removes it.
pub struct Unfinished {
    scratch: Scratch,
    target: Target,
}

impl Unfinished {
    /// Where the file must be written.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Gives the file the target's name, durably. REQUIRES: the file is whole and synced. A replaced file
    /// passes on its permissions.
    pub fn publish(self) -> Outcome {
        // The target may have changed since the first check.
        let seen = self.target.check()?;
        self.publish_over(seen.as_ref())
    }

    /// As `publish`, but replaces only what has just been `seen`, and nothing newer.
    fn publish_over(self, seen: Option<&Metadata>) -> Outcome {
        let (named, path) = (self.target.named.clone(), self.target.path.clone());
        let failed = |error: io::Error| Failure::io("writing", &named, &error);
        match seen {
            None => OsStorage.rename(self.path(), &path, false).map_err(failed)?,
            Some(seen) => {
                fs::set_permissions(self.path(), seen.permissions()).map_err(failed)?;
                self.replace(seen)?;
            }
        }
        OsStorage.sync_dir_of(&path).map_err(failed)
    }

    /// Exchanges the names of the file and of the target. If the target is not what was `seen`, exchanges
    /// them back: another file may have come between a check and a rename. Without such a system call the
    /// check must be enough.
    fn replace(self, seen: &Metadata) -> Outcome {
        let Unfinished { scratch, target } = self;
        let failed = |error: io::Error| Failure::io("writing", &target.named, &error);
        let exchange = || OsStorage.exchange(scratch.path(), &target.path);
        let mut is_theirs = false;
        // An interrupt would remove the file that has the temporary name at this moment.
        let done = scratch.undisturbed(|| {
            match exchange() {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return OsStorage.rename(scratch.path(), &target.path, true).map_err(failed);
                }
                exchanged => exchanged.map_err(failed)?,
            }
            is_theirs = !is_still(scratch.path(), seen);
            if is_theirs {
                exchange().map_err(failed)?;
                is_theirs = false;
                return Err(target.refused("was replaced by somebody else meanwhile, and is left as it is"));
            }
            Ok(())
        });
        if is_theirs {
            let note = format!("what stood there is {} now", scratch.path().display());
            scratch.keep();
            return done.map_err(|failure| failure.noted(&note));
        }
        // The replaced file is removed together with its new, temporary name.
        done
    }
}

/// A target that is being written. [`OutputFile::finish`] gives it the target's name.
pub struct OutputFile {
    stream: BufWriter<File>,
    named: PathBuf,
    unfinished: Option<Unfinished>,
}

impl OutputFile {
    /// Ends the file and gives it its name.
    pub fn finish(self) -> Outcome {
        let failed = |error: io::Error| Failure::io("writing", &self.named, &error);
        let file = self.stream.into_inner().map_err(|error| failed(error.into_error()))?;
        match self.unfinished {
            Some(unfinished) => {
                file.sync_all().map_err(failed)?;
                unfinished.publish()
            }
            None => Ok(()),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Whether two are the same file, whatever their names are.
pub fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether a file is the one that was `seen`, and is no database.
fn is_still(path: &Path, seen: &Metadata) -> bool {
    fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, seen)) && matches!(is_database(path), Ok(false))
}

/// Whether a regular file is a database, perhaps a damaged one.
fn is_database(path: &Path) -> Outcome<bool> {
    let mut head = Vec::new();
    let most = u64::try_from(SUPERBLOCKS_AT[1] + MAGIC.len()).unwrap_or(u64::MAX);
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut head));
    read.map_err(|error| Failure::io("reading", path, &error))?;
    Ok(SUPERBLOCKS_AT.iter().any(|&at| head.get(at..).is_some_and(|bytes| bytes.starts_with(MAGIC))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target in its own directory, and an unfinished file for it, with `--force`.
    fn unfinished(old: Option<&str>) -> (tempfile::TempDir, PathBuf, Unfinished) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.tsv");
        old.into_iter().for_each(|old| fs::write(&path, old).unwrap());
        let unfinished = check_target(&path, &[], true).unwrap().unfinished().unwrap();
        fs::write(unfinished.path(), "new").unwrap();
        (dir, path, unfinished)
    }

    fn make_database(path: &Path) -> Vec<u8> {
        azekura::Db::open(path, azekura::Options::new()).unwrap().close().unwrap();
        fs::read(path).unwrap()
    }

    fn expect_only(dir: &tempfile::TempDir, path: &Path, bytes: &[u8]) {
        assert_eq!(fs::read(path).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_was_there_is_replaced_and_goes() {
        for old in [None, Some("old")] {
            let (dir, path, unfinished) = unfinished(old);
            unfinished.publish().unwrap();
            expect_only(&dir, &path, b"new");
        }
    }

    #[test]
    fn a_database_that_comes_after_the_last_look_is_not_replaced() {
        // Cases: in place of a file, in that same file, and where there was nothing.
        for (old, is_removed) in [(Some("old"), true), (Some(""), false), (None, false)] {
            let (dir, path, unfinished) = unfinished(old);
            let seen = unfinished.target.check().unwrap();
            if is_removed {
                // (The old inode stays in use.)
                fs::hard_link(&path, dir.path().join("kept")).unwrap();
                fs::remove_file(&path).unwrap();
            }
            let database = make_database(&path);
            unfinished.publish_over(seen.as_ref()).unwrap_err();
            let _kept = fs::remove_file(dir.path().join("kept"));
            expect_only(&dir, &path, &database);
        }
    }
}
