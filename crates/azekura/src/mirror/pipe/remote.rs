//! The mirror's side of a pipe: the source's file, as far as a mirror reads it.

use super::wire::{Seen, Wire};
use super::{
    ACK, CLOSE, DIGEST, HAVE, LENGTH, LOG_BYTES_MAX, LOOK, OPEN, PART_BYTES, PIN, Question, SETTLE, UNPIN,
};
use crate::backup::CopyOptions;
use crate::base::codec::{u64_at, usize_of64};
use crate::base::error::Result;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES};
use crate::base::sync::Instant;
use crate::mirror::going::Mirror;
use crate::mirror::names::resolved;
use crate::mirror::source::{Afar, MirrorSource};
use crate::mirror::status::MirrorStatus;
use crate::storage::{File, OpenMode, OsStorage, Storage};
use parking_lot::{Mutex, MutexGuard};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the source is called in errors.
const SOURCE: &str = "the source";
/// What is read at once is a frame, a manifest or a step of a copy. None of them is longer.
const READ_BYTES_MAX: usize = 1 << 30;
/// The numbers with which a look is answered, before the frames.
const LOOK_BYTES: usize = 25;
/// So much of the log is read where a block of it is asked for.
const LOG_AHEAD_BYTES: u64 = 128 << 10;
/// How often the other end is told what lacks, if that is the only news.
const LAG_LOOKS: Duration = Duration::from_millis(100);

/// The end of a pipe at the other end of which [`stream_mirror`](crate::stream_mirror) answers: the source of
/// a mirror that is on another machine. Between the two ends some KiB must find room, as in any pipe or
/// connection of the system.
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
/// mirror.run(|status| !status.is_level())?;
/// # drop((mirror, pipe));
/// # serving.join().unwrap()?;
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MirrorPipe(Arc<Mutex<Wire>>);

impl MirrorPipe {
    /// A pipe: what comes from the other end, and what goes there. Waits for its first words.
    ///
    /// # Errors
    /// `Corrupt` if what comes is not what the other end of such a pipe says; `Invalid` if it speaks another
    /// version; `Io`.
    pub fn new(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Result<MirrorPipe> {
        Ok(MirrorPipe(Arc::new(Mutex::new(Wire::new(Box::new(from), Box::new(to))?))))
    }

    /// A mirror of the database at the other end in the file `path`: as [`Mirror::open`]. The other end hears
    /// how far it is. When the pipe is cut the mirror fails, and one that is opened at another pipe goes on.
    ///
    /// # Errors
    /// As [`Mirror::open`].
    pub fn mirror(&self, path: impl AsRef<Path>, options: CopyOptions) -> Result<Mirror> {
        self.mirror_on(Arc::new(OsStorage), resolved(path.as_ref())?, options)
    }

    /// As [`mirror`](MirrorPipe::mirror), on a disk of the caller's making: for simulators and tests.
    ///
    /// # Errors
    /// As [`Mirror::open`].
    pub fn mirror_on(
        &self,
        storage: Arc<dyn Storage>,
        path: impl AsRef<Path>,
        options: CopyOptions,
    ) -> Result<Mirror> {
        let opened = self.open_file().map_err(crate::backup::failed(Path::new(SOURCE), "opening it"))?;
        let log = RemoteFile {
            pipe: self.clone(),
            file: opened.file,
            is_log: true,
            acknowledges: AtomicBool::new(false),
        };
        let (file, came_before) = (Arc::new(opened), self.wire().came);
        let source = MirrorSource {
            path: PathBuf::from(SOURCE),
            file: file.clone(),
            log: Arc::new(log),
            storage: Arc::new(self.clone()),
            settled: None,
            afar: Some(Arc::new(RemoteSource { file, came_before, told: Mutex::new(None) })),
        };
        Mirror::open_from(source, storage, path.as_ref(), options)
    }

    /// Why nothing more goes through the pipe, if it is cut.
    pub fn cut(&self) -> Option<String> {
        self.wire().cut.clone()
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock()
    }

    fn open_file(&self) -> io::Result<RemoteFile> {
        let mut wire = self.wire();
        let file = wire.next_file;
        wire.next_file = wire.next_file.wrapping_add(1);
        wire.ask(&Question::new(OPEN, file))?;
        Ok(RemoteFile { pipe: self.clone(), file, is_log: false, acknowledges: AtomicBool::new(false) })
    }
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The database at the other end. Whatever path is asked for, there is only that.
impl Storage for MirrorPipe {
    fn open(&self, _: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode == OpenMode::ReadOnly { Ok(Arc::new(self.open_file()?)) } else { unsupported() }
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        unsupported()
    }

    fn rename(&self, _: &Path, _: &Path, _: bool) -> io::Result<()> {
        unsupported()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        unsupported()
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        unsupported()
    }
}

/// What a mirror asks of its source beside reading its file.
struct RemoteSource {
    file: Arc<RemoteFile>,
    /// Bytes that had come through the pipe before.
    came_before: u64,
    /// What the other end was last told, and when.
    told: Mutex<Option<(MirrorStatus, Instant)>>,
}

impl Afar for RemoteSource {
    fn look(&self, tail: u64, wait: Duration) -> io::Result<()> {
        self.file.pipe.wire().look(self.file.file, tail, wait)
    }

    fn digest(&self, offset: u64, bytes: u64) -> io::Result<u128> {
        let question = self.file.question(DIGEST).with([offset, bytes]);
        Ok(u128::from_le_bytes(self.file.number(&question)?))
    }

    fn will_read(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.pipe.wire().ask_early(self.file.file, offset, bytes)
    }

    fn reads_anew(&self) -> io::Result<()> {
        self.file.pipe.wire().drop_early()
    }

    fn settle(&self) -> io::Result<bool> {
        let mut wire = self.file.pipe.wire();
        let is_unwritten = wire.ask(&self.file.question(SETTLE))? == [1];
        wire.files.entry(self.file.file).or_default().is_fresh = is_unwritten;
        Ok(is_unwritten)
    }

    fn came(&self) -> u64 {
        self.file.pipe.wire().came - self.came_before
    }

    fn tell(&self, status: &MirrorStatus) {
        let mut told = self.told.lock();
        let now = Instant::now();
        let is_news = told.is_none_or(|(before, at)| {
            let has = |status: &MirrorStatus| (status.checkpoint, status.commit, status.level);
            has(&before) != has(status) || !status.level && now.saturating_duration_since(at) >= LAG_LOOKS
        });
        if is_news {
            *told = Some((*status, now));
            let MirrorStatus { checkpoint, commit, behind_commits, behind_bytes, .. } = *status;
            let behind_ms = u64::try_from(status.behind.as_millis()).unwrap_or(u64::MAX);
            let have = Question::new(HAVE, status.level.into());
            let have = have.with([checkpoint, commit, behind_commits, behind_bytes, behind_ms]);
            // Who asks next hears that the pipe is cut.
            let _unheard = self.file.pipe.wire().say(&have);
        }
    }
}

impl Wire {
    /// Looks at the file: its head, its length, and the frames from the log's tail on.
    fn look(&mut self, file: u32, tail: u64, wait: Duration) -> io::Result<()> {
        let seen = self.files.entry(file).or_default();
        let mark = if seen.mark.1 == tail { seen.mark.0 } else { 0 };
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let said = self.ask(&Question::new(LOOK, file).with([tail, ms, mark]))?;
        let Some((numbers, packed)) = said.split_at_checked(LOOK_BYTES) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the source has looked at nothing"));
        };
        let is_known = mark != 0 && numbers[24] == 1;
        let frames = (!is_known).then(|| self.unpacked(packed, LOG_BYTES_MAX)).transpose()?;
        let seen = self.files.entry(file).or_default();
        (seen.is_fresh, seen.len) = (true, Some(u64_at(numbers, 0)));
        if let Some(frames) = frames {
            (seen.mark, seen.log) = ((u64_at(numbers, 8), u64_at(numbers, 16)), (tail, frames));
        }
        Ok(())
    }

    /// Reads within the superblocks.
    fn read_head(&mut self, file: u32, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.files.get(&file).is_some_and(|seen| seen.is_fresh) {
            self.look(file, 0, Duration::ZERO)?;
        }
        let head = self.files.get(&file).map_or(&[][..], |seen| &seen.head);
        let from = usize_of64(offset);
        match head.get(from..from + buf.len()) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the source has sent no superblock")),
        }
    }

    /// Reads within the log. Blocks of it come together.
    fn read_log(&mut self, file: u32, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if buf.len() as u64 == ALIGN_BYTES
            && self.files.get(&file).is_none_or(|seen| seen.of_log(offset, buf.len()).is_none())
        {
            let log = self.read_some(file, offset, LOG_AHEAD_BYTES)?;
            let seen = self.files.entry(file).or_default();
            (seen.log, seen.mark) = ((offset, log), (0, 0));
        }
        let known = self.files.get(&file).map_or(&[][..], |seen| seen.log_from(offset));
        let n = known.len().min(buf.len());
        let (first, rest) = buf.split_at_mut(n);
        first.copy_from_slice(&known[..n]);
        let mut at = offset + n as u64;
        for part in rest.chunks_mut(PART_BYTES) {
            let read = self.read_some(file, at, part.len() as u64)?;
            if read.len() != part.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            part.copy_from_slice(&read);
            at += read.len() as u64;
        }
        Ok(())
    }
}

impl Seen {
    /// Bytes of the log, if they are known.
    fn of_log(&self, offset: u64, bytes: usize) -> Option<&[u8]> {
        self.log_from(offset).get(..bytes)
    }

    /// What is known of the log from a place on.
    fn log_from(&self, offset: u64) -> &[u8] {
        let (at, log) = &self.log;
        let from = offset.checked_sub(*at).and_then(|from| log.get(usize_of64(from)..));
        from.unwrap_or_default()
    }
}

struct RemoteFile {
    pipe: MirrorPipe,
    file: u32,
    /// Whether the log is read here.
    is_log: bool,
    /// Whether commits wait for the mirror.
    acknowledges: AtomicBool,
}

impl RemoteFile {
    fn question(&self, what: u8) -> Question {
        Question::new(what, self.file)
    }

    fn ask(&self, question: &Question) -> io::Result<Vec<u8>> {
        self.pipe.wire().ask(question)
    }

    /// Asks for a number of so many bytes.
    fn number<const N: usize>(&self, question: &Question) -> io::Result<[u8; N]> {
        let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "the source has said no number");
        self.ask(question)?.try_into().map_err(wrong)
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        if !self.is_log {
            let mut wire = self.pipe.wire();
            wire.files.remove(&self.file);
            // If the pipe is cut, the other end has ended too.
            let _unheard = wire.say(&self.question(CLOSE));
        }
    }
}

impl File for RemoteFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if buf.len() > READ_BYTES_MAX {
            let detail = format!("the source has something of {} bytes in one part", buf.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
        }
        let mut wire = self.pipe.wire();
        if offset.saturating_add(buf.len() as u64) <= SUPERBLOCKS_BYTES {
            wire.read_head(self.file, buf, offset)
        } else if self.is_log {
            wire.read_log(self.file, buf, offset)
        } else {
            wire.read(self.file, buf, offset)
        }
    }

    fn len(&self) -> io::Result<u64> {
        if let Some(len) = self.pipe.wire().files.get(&self.file).and_then(|seen| seen.len) {
            return Ok(len);
        }
        let len = u64::from_le_bytes(self.number(&self.question(LENGTH))?);
        self.pipe.wire().files.entry(self.file).or_default().len = Some(len);
        Ok(len)
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        let mut wire = self.pipe.wire();
        wire.ask(&self.question(PIN).with([number]))?;
        wire.drop_early()?;
        let seen = wire.files.entry(self.file).or_default();
        // What the log is read for from now on may be newer than what was read of it.
        seen.log.1.clear();
        seen.mark = (0, 0);
        seen.is_fresh = true;
        Ok(())
    }

    fn unpin(&self, number: u64) {
        // If the pipe is cut, the other end has ended, and its pins with it.
        let _unheard = self.pipe.wire().say(&self.question(UNPIN).with([number]));
    }

    fn acknowledge(&self, commit: Option<u64>) -> io::Result<()> {
        let is_some = commit.is_some();
        let begins = is_some && !self.acknowledges.load(Ordering::Relaxed);
        let question = self.question(ACK).with([commit.unwrap_or(0), is_some.into(), begins.into()]);
        if begins {
            // When this returns commits wait.
            self.ask(&question)?;
        } else {
            self.pipe.wire().say(&question)?;
        }
        self.acknowledges.store(is_some, Ordering::Relaxed);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unsupported()
    }

    fn write_durable_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unsupported()
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    fn sync_data(&self) -> io::Result<()> {
        unsupported()
    }

    fn sync_all(&self) -> io::Result<()> {
        unsupported()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        unsupported()
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<bool> {
        unsupported()
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        unsupported()
    }

    fn try_lock(&self, _: bool) -> io::Result<bool> {
        unsupported()
    }
}
