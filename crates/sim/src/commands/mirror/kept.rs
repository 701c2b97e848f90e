//! A mirror that is kept: of a file, or through a pipe, which may be cut.

use crate::disk::Disk;
use crate::judge::PATH;
use crate::rng::Rng;
use azekura::{CopyOptions, Error, Mirror, MirrorPipe, stream_mirror_on};
use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The mirror's name.
pub(super) const MIRROR: &str = "mirror.azk";

/// Bytes that mirrors have copied within their files, because they were moved in the source.
pub(super) static MOVED_BYTES: AtomicU64 = AtomicU64::new(0);

/// How a mirror reaches its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    File,
    Pipe,
    /// A pipe through which no more than so many bytes come.
    Cut(usize),
}

impl Way {
    /// Any way, for a mirror that may have to be opened again.
    pub(super) fn any(rng: &mut Rng) -> Way {
        match rng.below(4) {
            0 | 1 => Way::File,
            2 => Way::Pipe,
            // Now and then within the first answers.
            _ => {
                let most = if rng.one_in(2) { 20_000 } else { 400_000 };
                Way::Cut(rng.below(most) as usize)
            }
        }
    }

    /// A way that stays.
    pub(super) fn whole(rng: &mut Rng) -> Way {
        if rng.one_in(2) { Way::File } else { Way::Pipe }
    }
}

/// A mirror, and what answers it.
pub(super) struct Kept {
    /// None only while it is dropped.
    mirror: Option<Mirror>,
    pipe: Option<Piped>,
}

struct Piped {
    serving: Option<JoinHandle<Result<(), Error>>>,
    was_cut: Arc<AtomicBool>,
}

impl Kept {
    /// Opens a mirror of the database on `source`. None if the pipe is cut before it is open.
    pub(super) fn open(source: &Disk, dest: &Disk, way: Way) -> Result<Option<Kept>, Error> {
        let options = CopyOptions::default();
        let storage = Arc::new(dest.clone());
        let most = match way {
            Way::File => {
                let mirror = Mirror::open_on(Arc::new(source.clone()), PATH, storage, MIRROR, options)?;
                return Ok(Some(Kept { mirror: Some(mirror), pipe: None }));
            }
            Way::Pipe => usize::MAX,
            Way::Cut(most) => most,
        };
        let io = |e| Error::Io { during: "making a pipe", source: Arc::new(e) };
        let ((mut questions, ask), (answers, mut answer)) =
            (io::pipe().map_err(io)?, io::pipe().map_err(io)?);
        let source = source.clone();
        let serving = std::thread::spawn(move || {
            stream_mirror_on(&source, Path::new(PATH), &mut questions, &mut answer, &mut |_| {})
        });
        let was_cut = Arc::new(AtomicBool::new(false));
        let answers = Limited { from: answers, left: most, was_cut: was_cut.clone() };
        let piped = Piped { serving: Some(serving), was_cut };
        let opened = MirrorPipe::new(answers, ask).and_then(|pipe| pipe.mirror_on(storage, MIRROR, options));
        match opened {
            Ok(mirror) => Ok(Some(Kept { mirror: Some(mirror), pipe: Some(piped) })),
            Err(_) if piped.was_cut.load(Ordering::Relaxed) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The same for a way that is not cut.
    pub(super) fn open_whole(source: &Disk, dest: &Disk, way: Way) -> Result<Kept, Error> {
        let missing = || Error::Invalid { detail: "the pipe was cut".into() };
        Kept::open(source, dest, way)?.ok_or_else(missing)
    }

    /// A mirror after a step: whether its pipe was cut.
    pub(super) fn was_cut(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| pipe.was_cut.load(Ordering::Relaxed))
    }

    pub(super) fn mirror(&mut self) -> Result<&mut Mirror, Error> {
        self.mirror.as_mut().ok_or(Error::Closed)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The pipe goes with it.
        let Some(mirror) = self.mirror.take() else { return };
        MOVED_BYTES.fetch_add(mirror.status().moved_bytes, Ordering::Relaxed);
    }
}

impl Drop for Piped {
    /// So that the pins are gone when the mirror is.
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            // What it could not send or hear any more is no matter.
            let _ended = serving.join();
        }
    }
}

/// What comes through a pipe, up to a limit.
struct Limited {
    from: PipeReader,
    left: usize,
    was_cut: Arc<AtomicBool>,
}

impl Read for Limited {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buf.is_empty() {
            self.was_cut.store(true, Ordering::Relaxed);
            return Ok(0);
        }
        let most = buf.len().min(self.left);
        let n = self.from.read(&mut buf[..most])?;
        self.left -= n;
        Ok(n)
    }
}
