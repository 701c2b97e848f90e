//! The source's side of a pipe: it answers what the mirror asks.

use super::{
    CLOSE, DIGEST, KINDS, LAG, LENGTH, LOCK, MAGIC, OPEN, PIN, QUESTION_BYTES, Question, READ,
    READ_BYTES_MAX, REPORT, SYNC, TEXT_BYTES_MAX, UNLOCK, UNPIN, VERSION,
};
use crate::backup::failed;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::format::point::digest;
use crate::storage::{File, OpenMode, OsStorage, Storage};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A mirror has the source's file open once, and once more for a moment.
const FILES_MAX: usize = 8;
/// It pins the checkpoints that its readers need, and those that it copies.
const PINS_MAX: usize = 4096;

/// What a mirror at the other end of a pipe has, durably, and what it lacks, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorReport {
    /// The number of the checkpoint.
    pub checkpoint: u64,
    /// The newest commit.
    pub commit: u64,
    /// Whether it lacked nothing when it last looked.
    pub level: bool,
    /// Commits that it lacks.
    pub behind_commits: u64,
    /// Bytes that it lacks.
    pub behind_bytes: u64,
    /// For how long it has lacked something.
    pub behind: Duration,
}

/// Answers a mirror at the other end of a pipe, until that ends it: see [`MirrorPipe`](crate::MirrorPipe). The
/// database is only read, and pinned as by any follower. `told` is called when the mirror has become durable
/// as far as that.
///
/// # Errors
/// `Open` if the database cannot be opened; `Corrupt` if something comes that no mirror says; `Io` if the pipe
/// fails.
pub fn stream_mirror(
    path: impl AsRef<Path>,
    from: &mut dyn Read,
    to: &mut dyn Write,
    told: &mut dyn FnMut(MirrorReport),
) -> Result<()> {
    stream_mirror_on(&OsStorage, path.as_ref(), from, to, told)
}

pub(super) fn stream_mirror_on(
    storage: &dyn Storage,
    path: &Path,
    from: &mut dyn Read,
    to: &mut dyn Write,
    told: &mut dyn FnMut(MirrorReport),
) -> Result<()> {
    let sent = |done: io::Result<()>| done.map_err(|e| Error::io("writing to the mirror", e));
    // So that what is wrong with it is said here, and not to the mirror alone.
    storage.open(path, OpenMode::ReadOnly).map_err(failed(path, "opening it"))?;
    sent(to.write_all(&MAGIC).and_then(|()| to.write_all(&VERSION.to_le_bytes())).and_then(|()| to.flush()))?;
    let mut server = Server { storage, path, files: BTreeMap::new(), pins: 0, answer: Vec::new() };
    let (mut at, mut report) = (0, MirrorReport::default());
    while let Some(question) = next(from, at)? {
        at += QUESTION_BYTES as u64;
        let Question { what, file, a, b } = question;
        match what {
            LAG => {
                let behind = Duration::from_millis(file.into());
                report = MirrorReport { behind_commits: a, behind_bytes: b, behind, ..report };
                continue;
            }
            REPORT => {
                report = MirrorReport { checkpoint: a, commit: b, level: file == 1, ..report };
                told(report);
                continue;
            }
            _ => {}
        }
        if server.answer(question, at)? {
            sent(to.write_all(&server.answer).and_then(|()| to.flush()))?;
        }
    }
    Ok(())
}

/// None at the end.
fn next(from: &mut dyn Read, at: u64) -> Result<Option<Question>> {
    let mut bytes = [0; QUESTION_BYTES];
    let mut there = 0;
    while there < QUESTION_BYTES {
        match from.read(&mut bytes[there..]) {
            Ok(0) if there == 0 => return Ok(None),
            Ok(0) => return Err(Error::corrupt("mirror's question", at, "it ends before its end")),
            Ok(n) => there += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("reading from the mirror", e)),
        }
    }
    Ok(Some(Question::decode(&bytes)))
}

struct Server<'a> {
    storage: &'a dyn Storage,
    path: &'a Path,
    files: BTreeMap<u32, Arc<dyn File>>,
    pins: usize,
    answer: Vec<u8>,
}

impl Server<'_> {
    /// Prepares the answer, if there is to be one.
    fn answer(&mut self, question: Question, at: u64) -> Result<bool> {
        self.answer.clear();
        self.answer.push(0);
        let done = match question.what {
            OPEN => self.open(question.file),
            READ => self.read(question),
            LENGTH => self.length(question.file),
            PIN => self.pin(question),
            LOCK => self.lock(question.file),
            UNLOCK => self.file(question.file).and_then(|file| file.unlock()),
            SYNC => self.file(question.file).and_then(|file| file.sync_data()),
            DIGEST => self.digest(question),
            UNPIN => {
                if let Some(file) = self.files.get(&question.file) {
                    self.pins = self.pins.saturating_sub(1);
                    file.unpin(question.a);
                }
                return Ok(false);
            }
            CLOSE => {
                self.files.remove(&question.file);
                return Ok(false);
            }
            what => {
                return Err(Error::corrupt("mirror's question", at, format!("there is no question {what}")));
            }
        };
        if let Err(e) = done {
            self.refuse(&e);
        }
        Ok(true)
    }

    fn refuse(&mut self, error: &io::Error) {
        let kind = KINDS.iter().find(|kind| kind.1 == error.kind()).map_or(0, |kind| kind.0);
        let text = error.to_string();
        let text = &text.as_bytes()[..text.len().min(TEXT_BYTES_MAX)];
        self.answer.clear();
        self.answer.extend([1, kind]);
        self.answer.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
        self.answer.extend(text);
    }

    fn file(&self, file: u32) -> io::Result<&Arc<dyn File>> {
        self.files.get(&file).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no such file"))
    }

    fn open(&mut self, file: u32) -> io::Result<()> {
        if self.files.len() >= FILES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many files"));
        }
        let opened = self.storage.open(self.path, OpenMode::ReadOnly)?;
        self.files.insert(file, opened);
        Ok(())
    }

    fn read(&mut self, question: Question) -> io::Result<()> {
        let len = usize_of64(question.b.min(READ_BYTES_MAX as u64 + 1));
        if len > READ_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too long a read"));
        }
        let file = self.file(question.file)?.clone();
        self.answer.resize(1 + 4 + len, 0);
        file.read_at(&mut self.answer[5..], question.a)?;
        let sum = crate::base::checksum::crc(0, &self.answer[5..]);
        self.answer[1..5].copy_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    fn digest(&mut self, question: Question) -> io::Result<()> {
        self.read(question)?;
        let digest = digest(&self.answer[5..]);
        self.answer.truncate(1);
        self.answer.extend(digest.to_le_bytes());
        Ok(())
    }

    /// Shared, so that it keeps nobody from reading.
    fn lock(&mut self, file: u32) -> io::Result<()> {
        let has_it = self.file(file)?.try_lock(false)?;
        self.answer.push(has_it.into());
        Ok(())
    }

    fn length(&mut self, file: u32) -> io::Result<()> {
        let len = self.file(file)?.len()?;
        self.answer.extend(len.to_le_bytes());
        Ok(())
    }

    fn pin(&mut self, question: Question) -> io::Result<()> {
        if self.pins >= PINS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many pins"));
        }
        self.file(question.file)?.pin(question.a)?;
        self.pins += 1;
        Ok(())
    }
}
