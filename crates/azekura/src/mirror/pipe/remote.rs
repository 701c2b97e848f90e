//! The mirror's side of a pipe: the source's file, as far as a mirror reads it.

use super::{
    CLOSE, DIGEST, KINDS, LAG, LENGTH, LOCK, MAGIC, OPEN, PIN, Question, READ, READ_BYTES_MAX, REPORT, SYNC,
    TEXT_BYTES_MAX, UNLOCK, UNPIN, VERSION,
};
use crate::backup::CopyOptions;
use crate::base::checksum::crc;
use crate::base::error::{Error, Result};
use crate::mirror::going::Mirror;
use crate::mirror::names::resolved;
use crate::mirror::status::MirrorStatus;
use crate::storage::{File, OpenMode, OsStorage, Storage};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the other end is told what lacks, while nothing comes.
const LAG_LOOKS: Duration = Duration::from_millis(100);

/// What is read at once is a frame, a manifest or a step of a copy. None of them is as long as this. (A length
/// that is not true has taken no memory before it is refused: nobody has touched it.)
const PART_BYTES_MAX: usize = 256 << 20;

/// The end of a pipe at the other end of which [`stream_mirror`](crate::stream_mirror) answers: the source of a
/// mirror that is on another machine.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-pipe-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
/// # use azekura::{CopyOptions, Db, MirrorPipe, Options};
/// # Db::open(&path, Options::new())?.close()?;
/// # let ((questions, ask), (answers, answer)) = (std::io::pipe()?, std::io::pipe()?);
/// # let source = path.clone();
/// # let serving = std::thread::spawn(move || {
/// #     azekura::stream_mirror(&source, &mut { questions }, &mut { answer }, &mut |_| {})
/// # });
/// // `answers` and `ask` are, for example, the output and the input of a command.
/// let pipe = MirrorPipe::new(answers, ask)?;
/// let mut mirror = pipe.mirror(&copy, CopyOptions::default())?;
/// mirror.run(|status| {
///     pipe.tell(status);
///     !status.is_level()
/// })?;
/// # drop((mirror, pipe));
/// # serving.join().unwrap()?;
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MirrorPipe(Arc<Mutex<Wire>>);

struct Wire {
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
    /// Why nothing more goes through it.
    cut: Option<String>,
    /// The number of the next file.
    next_file: u32,
    /// What the other end was last told, and when.
    told: Option<((u64, u64, bool), Instant)>,
}

impl MirrorPipe {
    /// A pipe: what comes from the other end, and what goes there.
    ///
    /// # Errors
    /// `Corrupt` if what comes is not what the other end of such a pipe says; `NewerVersion`; `Io`.
    pub fn new(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Result<MirrorPipe> {
        let (from, to) = (Box::new(from), Box::new(to));
        let mut wire = Wire { from, to, cut: None, next_file: 0, told: None };
        let mut head = [0; 12];
        wire.from.read_exact(&mut head).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => bad("the other end has ended before it began"),
            _ => Error::io("reading from the source", e),
        })?;
        if head[..8] != MAGIC {
            return Err(bad("what comes is not the source of a mirror"));
        }
        let version = crate::base::codec::u32_at(&head, 8);
        if version != VERSION {
            return Err(Error::NewerVersion { found: version, supported: VERSION });
        }
        Ok(MirrorPipe(Arc::new(Mutex::new(wire))))
    }

    /// A mirror of the database at the other end in the file `path`: as [`Mirror::open`].
    ///
    /// # Errors
    /// As [`Mirror::open`].
    pub fn mirror(&self, path: impl AsRef<Path>, options: CopyOptions) -> Result<Mirror> {
        self.mirror_on(Arc::new(OsStorage), &resolved(path.as_ref())?, options)
    }

    pub(super) fn mirror_on(
        &self,
        storage: Arc<dyn Storage>,
        path: &Path,
        options: CopyOptions,
    ) -> Result<Mirror> {
        let file = self.wire().next_file;
        let mut mirror = Mirror::open_on(Arc::new(self.clone()), "the source", storage, path, options)?;
        let pipe = self.clone();
        mirror.source.digests = Some(Arc::new(move |offset, bytes| pipe.wire().digest(file, offset, bytes)));
        Ok(mirror)
    }

    /// Tells the other end what the mirror has made durable and what it lacks, if that is news.
    pub fn tell(&self, status: &MirrorStatus) {
        let mut wire = self.wire();
        let (a, b) = (status.checkpoint, status.commit);
        let is_news = wire.told.is_none_or(|(told, at)| {
            told != (a, b, status.level) || !status.level && at.elapsed() >= LAG_LOOKS
        });
        if is_news {
            wire.told = Some(((a, b, status.level), Instant::now()));
            let lag = u32::try_from(status.behind.as_millis()).unwrap_or(u32::MAX);
            let (commits, bytes) = (status.behind_commits, status.behind_bytes);
            // Who asks next hears that the pipe is cut.
            let _unheard = wire.say(Question { what: LAG, file: lag, a: commits, b: bytes });
            let _unheard = wire.say(Question { what: REPORT, file: status.level.into(), a, b });
        }
    }

    /// Why nothing more goes through the pipe, if it is cut.
    pub fn cut(&self) -> Option<String> {
        self.wire().cut.clone()
    }

    fn wire(&self) -> std::sync::MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bad(detail: &str) -> Error {
    Error::corrupt("mirror's pipe", 0, detail)
}

impl Wire {
    fn check(&self) -> io::Result<()> {
        match &self.cut {
            Some(why) => Err(io::Error::new(io::ErrorKind::BrokenPipe, why.clone())),
            None => Ok(()),
        }
    }

    fn cut_off<T>(&mut self, why: String) -> io::Result<T> {
        let error = io::Error::new(io::ErrorKind::BrokenPipe, why.clone());
        self.cut.get_or_insert(why);
        Err(error)
    }

    fn say(&mut self, question: Question) -> io::Result<()> {
        self.check()?;
        match self.to.write_all(&question.encode()).and_then(|()| self.to.flush()) {
            Ok(()) => Ok(()),
            Err(e) => self.cut_off(format!("asking the source: {e}")),
        }
    }

    fn hear(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self.from.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut_off("the source's answer ends before its end: the pipe was cut".into())
            }
            Err(e) => self.cut_off(format!("hearing the source: {e}")),
        }
    }

    /// Asks, and reads what comes before the answer proper.
    fn ask(&mut self, question: Question) -> io::Result<()> {
        self.say(question)?;
        let mut status = [0];
        self.hear(&mut status)?;
        match status[0] {
            0 => Ok(()),
            1 => Err(self.refusal()?),
            other => self.cut_off(format!("the source's answer is none ({other})")),
        }
    }

    /// The error that the source has met.
    fn refusal(&mut self) -> io::Result<io::Error> {
        let mut head = [0; 3];
        self.hear(&mut head)?;
        let len = usize::from(u16::from_le_bytes([head[1], head[2]]));
        if len > TEXT_BYTES_MAX {
            return self.cut_off(format!("an error of {len} bytes"));
        }
        let mut text = vec![0; len];
        self.hear(&mut text)?;
        let text: String = String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).collect();
        let kind = KINDS.iter().find(|kind| kind.0 == head[0]).map_or(io::ErrorKind::Other, |kind| kind.1);
        Ok(io::Error::new(kind, format!("at the source: {text}")))
    }

    fn read(&mut self, file: u32, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let b = buf.len() as u64;
        self.ask(Question { what: READ, file, a: offset, b })?;
        let mut sum = [0; 4];
        self.hear(&mut sum)?;
        self.hear(buf)?;
        if crc(0, buf) != u32::from_le_bytes(sum) {
            return self.cut_off("bytes have changed on their way".into());
        }
        Ok(())
    }
}

impl Wire {
    fn digest(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<u128> {
        self.ask(Question { what: DIGEST, file, a: offset, b: bytes })?;
        let mut digest = [0; 16];
        self.hear(&mut digest)?;
        Ok(u128::from_le_bytes(digest))
    }
}

/// The database at the other end. Whatever path is asked for, there is only that.
impl Storage for MirrorPipe {
    fn open(&self, _: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode != OpenMode::ReadOnly {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut wire = self.wire();
        let file = wire.next_file;
        wire.next_file = wire.next_file.wrapping_add(1);
        wire.ask(Question { what: OPEN, file, a: 0, b: 0 })?;
        Ok(Arc::new(RemoteFile { pipe: self.clone(), file }))
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &Path, _: &Path, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

struct RemoteFile {
    pipe: MirrorPipe,
    file: u32,
}

impl RemoteFile {
    fn question(&self, what: u8, a: u64) -> Question {
        Question { what, file: self.file, a, b: 0 }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        // If the pipe is cut, the other end has ended too.
        let _unheard = self.pipe.wire().say(self.question(CLOSE, 0));
    }
}

impl File for RemoteFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if buf.len() > PART_BYTES_MAX {
            let detail = format!("the source has something of {} bytes in one part", buf.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
        }
        let mut wire = self.pipe.wire();
        let mut at = offset;
        for part in buf.chunks_mut(READ_BYTES_MAX) {
            wire.read(self.file, part, at)?;
            at = at.saturating_add(part.len() as u64);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut wire = self.pipe.wire();
        wire.ask(self.question(LENGTH, 0))?;
        let mut len = [0; 8];
        wire.hear(&mut len)?;
        Ok(u64::from_le_bytes(len))
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        self.pipe.wire().ask(self.question(PIN, number))
    }

    fn unpin(&self, number: u64) {
        // If the pipe is cut, the other end has ended, and its pins with it.
        let _unheard = self.pipe.wire().say(self.question(UNPIN, number));
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_durable_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    fn sync_data(&self) -> io::Result<()> {
        self.pipe.wire().ask(self.question(SYNC, 0))
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        if exclusive {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut wire = self.pipe.wire();
        wire.ask(self.question(LOCK, 0))?;
        let mut has_it = [0];
        wire.hear(&mut has_it)?;
        Ok(has_it[0] == 1)
    }

    fn unlock(&self) -> io::Result<()> {
        self.pipe.wire().ask(self.question(UNLOCK, 0))
    }
}
