//! The source's side of a pipe: it hears questions until the pipe ends, and answers them.

use super::server::Server;
use super::{HAVE, QUESTION_BYTES, Question, bad, hear_hello, hello, read_as_far};
use crate::backup::failed;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::format::superblock::{self, Parsed, Superblock};
use crate::storage::{File, OpenMode, OsStorage, Storage, read_error};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// What a mirror at the other end of a pipe has, durably, and what it lacks, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorReport {
    /// The number of the checkpoint. 0: it is not there yet.
    pub checkpoint: u64,
    /// The newest commit.
    pub commit: u64,
    /// Whether it lacked nothing that is durable here when it last looked.
    pub level: bool,
    /// Commits that it lacks.
    pub behind_commits: u64,
    /// Bytes that it lacks.
    pub behind_bytes: u64,
    /// For how long it has lacked something.
    pub behind: Duration,
}

/// Answers a mirror at the other end of a pipe, until that ends it: see [`MirrorPipe`](crate::MirrorPipe).
/// The database is only read, and pinned as by any follower. `told` is called when the mirror has made
/// something durable, and some times a second while it lacks something.
///
/// # Errors
/// `Open` or `NotADatabase` if the file cannot be opened or is none; `Corrupt` if something comes that no
/// mirror says; `Invalid` if it speaks another version; `Io` if the pipe fails.
pub fn stream_mirror(
    path: impl AsRef<Path>,
    from: &mut dyn Read,
    to: &mut dyn Write,
    told: &mut dyn FnMut(&MirrorReport),
) -> Result<()> {
    stream_mirror_on(&OsStorage, path.as_ref(), from, to, told)
}

/// As [`stream_mirror`], on a disk of the caller's making: for simulators and tests.
///
/// # Errors
/// As [`stream_mirror`].
pub fn stream_mirror_on(
    storage: &dyn Storage,
    path: &Path,
    from: &mut dyn Read,
    to: &mut dyn Write,
    told: &mut dyn FnMut(&MirrorReport),
) -> Result<()> {
    let sent = |done: io::Result<()>| done.map_err(|e| Error::io("writing to the mirror", e));
    // So that what is wrong with it is said here, and not to the mirror alone.
    check(path, storage.open(path, OpenMode::ReadOnly).map_err(failed(path, "opening it"))?.as_ref())?;
    sent(to.write_all(&hello()).and_then(|()| to.flush()))?;
    if !hear_hello(from, "a mirror")? {
        return Ok(());
    }
    let mut server = Server::new(storage, path);
    let mut n = 1;
    while let Some(question) = next(from, n)? {
        n = n.wrapping_add(1);
        if question.what == HAVE {
            told(&report(&question));
        } else if server.answers(&question)? {
            server.send(to).map_err(|e| Error::io("writing to the mirror", e))?;
        }
    }
    Ok(())
}

/// Whether a file is a database, as far as its superblocks tell.
fn check(path: &Path, file: &dyn File) -> Result<()> {
    let foreign =
        |reason: &str| Err(Error::NotADatabase { path: path.display().to_string(), reason: reason.into() });
    let mut bytes = vec![0; usize_of64(SUPERBLOCKS_BYTES)];
    match file.read_at(&mut bytes, 0) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return foreign("it is too short"),
        read => read.map_err(|e| read_error(e, 0))?,
    }
    for copy in bytes.chunks(superblock::BYTES) {
        if matches!(Superblock::parse(copy)?, Parsed::Foreign) {
            return foreign("no superblock at its start");
        }
    }
    Ok(())
}

/// The question that comes next, number `n`. None at the end.
fn next(from: &mut dyn Read, n: u32) -> Result<Option<Question>> {
    let mut bytes = [0; QUESTION_BYTES];
    let there = read_as_far(from, &mut bytes).map_err(|e| Error::io("reading from the mirror", e))?;
    let at = u64::from(n);
    match there {
        0 => Ok(None),
        QUESTION_BYTES => match Question::decode(&bytes, n) {
            None => Err(bad(at, format!("question {n} has changed on its way"))),
            question => Ok(question),
        },
        _ => Err(bad(at, format!("the pipe from the mirror has ended within question {n}"))),
    }
}

fn report(question: &Question) -> MirrorReport {
    let [checkpoint, commit, behind_commits, behind_bytes, behind_ms] = question.with;
    let (level, behind) = (question.file == 1, Duration::from_millis(behind_ms));
    MirrorReport { checkpoint, commit, level, behind_commits, behind_bytes, behind }
}
