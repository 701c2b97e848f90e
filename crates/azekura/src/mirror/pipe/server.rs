//! What the source's side does with a question.

use super::packed::pack;
use super::tail::Frames;
use super::{
    ACK, ANSWER_HEAD_BYTES, CLOSE, DIGEST, KINDS, LENGTH, LOOK, OPEN, PART_BYTES, PIN, Question, READ,
    SETTLE, TEXT_BYTES_MAX, UNPIN, bad,
};
use crate::base::checksum::crc;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
use crate::format::point::digest;
use crate::mirror::source::read_unwritten;
use crate::storage::{File, OpenMode, Storage};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A mirror has the source's file open once, and once more for a moment.
const FILES_MAX: usize = 8;
/// It pins the checkpoints that its readers need, and those that it copies.
const PINS_MAX: usize = 4096;
/// One question reads no more than this.
const READ_BYTES_MAX: u64 = 1 << 30;
/// A look waits no longer than this, and looks so often.
const LOOK_MS_MAX: u64 = 1000;
const LOOKS: Duration = Duration::from_millis(1);
/// If commits wait for the mirror, it looks more often at first.
const LOOKS_AT_FIRST: Duration = Duration::from_micros(50);

/// A file that the mirror has open.
struct Opened {
    file: Arc<dyn File>,
    /// Its head, as it was last sent.
    head: Vec<u8>,
    /// The checkpoints that it has pinned here, each as often as it has.
    pins: Vec<u64>,
    /// Whether commits wait for the mirror.
    acknowledges: bool,
    /// The frames that it was last told of.
    told: Option<Told>,
}

/// Frames that were sent: the tail at which they stand, where they end, and the digest of the first one's
/// head. If the mirror asks at the same tail again, it can do nothing with them: they are of an older chain,
/// or wait for a checkpoint.
type Told = (u64, u64, u128);

pub(super) struct Server<'a> {
    storage: &'a dyn Storage,
    path: &'a Path,
    files: BTreeMap<u32, Opened>,
    /// The answer's head and body.
    answer: Vec<u8>,
    /// The rest of a read, of which one part after the other is answered.
    rest: Option<(u32, u64, u64)>,
    /// The number of the next answer.
    n: u32,
}

fn wrong<T>(detail: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, detail))
}

impl Server<'_> {
    pub(super) fn new<'a>(storage: &'a dyn Storage, path: &'a Path) -> Server<'a> {
        Server { storage, path, files: BTreeMap::new(), answer: Vec::new(), rest: None, n: 1 }
    }

    /// Does what is asked. False if there is no answer.
    ///
    /// # Errors
    /// If no mirror asks that.
    pub(super) fn answers(&mut self, question: &Question) -> Result<bool> {
        let (file, [a, b, c, ..]) = (question.file, question.with);
        let done = match question.what {
            OPEN => self.open(file),
            READ => self.read(file, a, b, c == 1),
            LENGTH => self.length(file),
            PIN => self.pin(file, a),
            SETTLE => self.settle(file),
            DIGEST => self.digest(file, a, b),
            LOOK => self.look(file, a, b, c),
            ACK => {
                let done = self.acknowledge(file, Some(a).filter(|_| b == 1));
                if c == 1 {
                    done
                } else {
                    // There is no answer that could say so.
                    done.map_err(|e| Error::io("acknowledging commits", e))?;
                    return Ok(false);
                }
            }
            UNPIN => {
                self.unpin(file, a);
                return Ok(false);
            }
            CLOSE => {
                self.files.remove(&file);
                return Ok(false);
            }
            what => return Err(bad(u64::from(self.n), format!("there is no question {what}"))),
        };
        if let Err(e) = done {
            self.refuse(&e);
        }
        Ok(true)
    }

    /// Sends the answer, which may be several.
    pub(super) fn send(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.send_one(to)?;
        while let Some((file, offset, bytes)) = self.rest.take() {
            if let Err(e) = self.part(file, offset, bytes) {
                self.refuse(&e);
            }
            self.send_one(to)?;
        }
        Ok(())
    }

    fn send_one(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let (head, body) = self.answer.split_at_mut(ANSWER_HEAD_BYTES);
        head[..4].copy_from_slice(&u32_of(body.len()).to_le_bytes());
        head[4..8].copy_from_slice(&crc(self.n, body).to_le_bytes());
        let sum = crc(self.n, &head[..8]);
        head[8..].copy_from_slice(&sum.to_le_bytes());
        self.n = self.n.wrapping_add(1);
        to.write_all(&self.answer)?;
        to.flush()
    }

    /// An answer that has nothing yet but that all is well.
    fn begin(&mut self) {
        self.answer.clear();
        self.answer.resize(ANSWER_HEAD_BYTES + 2, 0);
    }

    fn refuse(&mut self, error: &io::Error) {
        self.rest = None;
        // A head that was to come with the answer does not come, and must come with a later one.
        self.files.values_mut().for_each(|of| of.head.clear());
        let kind = KINDS.iter().find(|kind| kind.1 == error.kind()).map_or(0, |kind| kind.0);
        let text = error.to_string();
        self.begin();
        self.answer[ANSWER_HEAD_BYTES..].copy_from_slice(&[1, kind]);
        self.answer.extend(text.bytes().take(TEXT_BYTES_MAX));
    }

    fn of(&mut self, file: u32) -> io::Result<&mut Opened> {
        self.begin();
        self.files.get_mut(&file).map_or_else(|| wrong("no such file"), Ok)
    }

    fn open(&mut self, file: u32) -> io::Result<()> {
        self.begin();
        if self.files.len() >= FILES_MAX || self.files.contains_key(&file) {
            return wrong("too many files");
        }
        let opened = self.storage.open(self.path, OpenMode::ReadOnly)?;
        self.files.insert(
            file,
            Opened { file: opened, head: Vec::new(), pins: Vec::new(), acknowledges: false, told: None },
        );
        Ok(())
    }

    fn read(&mut self, file: u32, offset: u64, bytes: u64, as_far: bool) -> io::Result<()> {
        if bytes > READ_BYTES_MAX || offset.checked_add(bytes).is_none() {
            return wrong("too long a read");
        }
        if as_far { self.read_packed(file, offset, bytes) } else { self.part(file, offset, bytes) }
    }

    /// Answers with what there is, in one part.
    fn read_packed(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<()> {
        let opened = self.of(file)?.file.clone();
        let there = opened.len()?.saturating_sub(offset);
        let mut read = vec![0; usize_of64(bytes.min(there).min(PART_BYTES as u64))];
        opened.read_at(&mut read, offset)?;
        self.add_head(file)?;
        pack(&read, &mut self.answer);
        Ok(())
    }

    /// Answers with the first part of a read.
    fn part(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<()> {
        let part = bytes.min(PART_BYTES as u64);
        let opened = self.of(file)?.file.clone();
        let mut read = vec![0; usize_of64(part)];
        opened.read_at(&mut read, offset)?;
        self.add_head(file)?;
        self.answer.append(&mut read);
        self.rest = Some((file, offset + part, bytes - part)).filter(|rest| rest.2 > 0);
        Ok(())
    }

    /// Adds the file's head, if it is not what was sent last. REQUIRES: all else was done that was asked.
    fn add_head(&mut self, file: u32) -> io::Result<()> {
        let opened = self.of(file)?;
        let head = head_of(opened.file.as_ref())?;
        if head != opened.head {
            opened.head.clone_from(&head);
            self.answer[ANSWER_HEAD_BYTES + 1] = 1;
            self.answer.extend(head);
        }
        Ok(())
    }

    fn digest(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<()> {
        if bytes > PART_BYTES as u64 {
            return wrong("too long a read");
        }
        let mut read = vec![0; usize_of64(bytes)];
        self.of(file)?.file.read_at(&mut read, offset)?;
        self.answer.extend(digest(&read).to_le_bytes());
        Ok(())
    }

    /// The lock is held here, and not while anything is on its way.
    fn settle(&mut self, file: u32) -> io::Result<()> {
        let of = self.of(file)?.file.clone();
        let is_unwritten = read_unwritten(of.as_ref(), || self.add_head(file))?;
        self.answer.push(is_unwritten.into());
        Ok(())
    }

    fn length(&mut self, file: u32) -> io::Result<()> {
        let len = self.of(file)?.file.len()?;
        self.answer.extend(len.to_le_bytes());
        Ok(())
    }

    fn pin(&mut self, file: u32, number: u64) -> io::Result<()> {
        let opened = self.of(file)?;
        if opened.pins.len() >= PINS_MAX {
            return wrong("too many pins");
        }
        opened.file.pin(number)?;
        opened.pins.push(number);
        self.add_head(file)
    }

    fn unpin(&mut self, file: u32, number: u64) {
        let Some(opened) = self.files.get_mut(&file) else { return };
        if let Some(at) = opened.pins.iter().position(|pinned| *pinned == number) {
            opened.pins.swap_remove(at);
            opened.file.unpin(number);
        }
    }

    fn acknowledge(&mut self, file: u32, commit: Option<u64>) -> io::Result<()> {
        let opened = self.of(file)?;
        opened.file.acknowledge(commit)?;
        opened.acknowledges = commit.is_some();
        Ok(())
    }

    /// Waits until something is new, for a while, and says what there is.
    fn look(&mut self, file: u32, tail: u64, ms: u64, mark: u64) -> io::Result<()> {
        let opened = self.of(file)?;
        let until = Instant::now() + Duration::from_millis(ms.min(LOOK_MS_MAX));
        let mut frames = Frames::default();
        let mut pause = if opened.acknowledges { LOOKS_AT_FIRST } else { LOOKS };
        loop {
            let is_new = head_of(opened.file.as_ref())? != opened.head;
            if tail >= SUPERBLOCKS_BYTES {
                frames = Frames::at(opened.file.as_ref(), tail)?;
            }
            let told = frames.first().map(|first| (tail, frames.end, digest(first)));
            let has_come = match told {
                Some(_) => told != opened.told,
                None => frames.mark != mark && !frames.is_coming,
            };
            if is_new || has_come || Instant::now() >= until {
                break;
            }
            sleep(pause);
            pause = (2 * pause).min(LOOKS);
        }
        opened.told = frames.first().map(|first| (tail, frames.end, digest(first)));
        self.add_head(file)?;
        // After the head: what that names ends before this.
        let len = self.of_answered(file)?.file.len()?;
        self.answer.extend(len.to_le_bytes());
        let is_known = mark != 0 && frames.mark == mark && !frames.is_whole;
        self.answer.extend([frames.mark, frames.end].map(u64::to_le_bytes).concat());
        self.answer.push(is_known.into());
        if !is_known {
            pack(&frames.bytes, &mut self.answer);
        }
        Ok(())
    }

    /// As `of`, and the answer stays.
    fn of_answered(&mut self, file: u32) -> io::Result<&mut Opened> {
        self.files.get_mut(&file).map_or_else(|| wrong("no such file"), Ok)
    }
}

/// Both superblocks.
fn head_of(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; usize_of64(SUPERBLOCKS_BYTES)];
    file.read_at(&mut head, 0)?;
    Ok(head)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::LOG_BYTES_MAX;
    use super::super::packed::unpack;
    use super::super::tail::tests::frame;
    use super::*;
    use crate::base::codec::u64_at;
    use crate::format::frame::Frame;
    use crate::mirror::tests::hooked::{Call, Hooked};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const DB: &str = "db.azk";

    /// Whether the answer to a question has the head. None: it was refused.
    fn has_head(server: &mut Server<'_>, what: u8, with: [u64; 5]) -> Option<bool> {
        assert!(server.answers(&Question { what, file: 1, with }).unwrap());
        server.send(&mut io::sink()).unwrap();
        (server.answer[ANSWER_HEAD_BYTES] == 0).then(|| server.answer[ANSWER_HEAD_BYTES + 1] == 1)
    }

    fn served(disk: &Hooked) -> (Arc<dyn File>, Server<'_>) {
        let file = disk.open(Path::new(DB), OpenMode::CreateNew).unwrap();
        file.write_at(&[1; 16_384], 0).unwrap();
        let mut server = Server::new(disk, Path::new(DB));
        assert_eq!(has_head(&mut server, OPEN, [0; 5]), Some(false));
        (file, server)
    }

    #[test]
    fn a_head_that_a_refusal_has_swallowed_comes_later() {
        let disk = Hooked::default();
        let (file, mut server) = served(&disk);
        assert_eq!(has_head(&mut server, LOOK, [0; 5]), Some(true));
        assert_eq!(has_head(&mut server, LOOK, [0; 5]), Some(false));
        file.write_at(&[2; 4096], 0).unwrap();
        disk.fail_once(Call::Len);
        assert_eq!(has_head(&mut server, LOOK, [0; 5]), None);
        assert_eq!(has_head(&mut server, READ, [8192, 9, 0, 0, 0]), Some(true), "the mirror has the old one");
    }

    #[test]
    fn only_a_pin_that_is_there_is_taken_back() {
        let disk = Hooked::default();
        let (_file, mut server) = served(&disk);
        let pins_max = PINS_MAX as u64;
        (0..pins_max).for_each(|n| assert!(has_head(&mut server, PIN, [n, 0, 0, 0, 0]).is_some()));
        let unpin = |server: &mut Server<'_>, n| {
            assert!(!server.answers(&Question::new(UNPIN, 1).with([n])).unwrap(), "it has no answer");
        };
        unpin(&mut server, pins_max);
        assert_eq!(has_head(&mut server, PIN, [pins_max, 0, 0, 0, 0]), None, "too many");
        unpin(&mut server, 7);
        unpin(&mut server, 7);
        assert!(has_head(&mut server, PIN, [pins_max, 0, 0, 0, 0]).is_some());
        assert_eq!(has_head(&mut server, PIN, [7, 0, 0, 0, 0]), None, "too many again");
    }

    #[test]
    fn a_file_is_settled_in_one_question() {
        let disk = Hooked::default();
        let (file, mut server) = served(&disk);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        disk.hook(move |_, call| {
            counted.fetch_add(if call == Call::Sync { 100 } else { 1 }, Ordering::Relaxed);
        });
        assert!(file.try_lock(true).unwrap());
        assert_eq!(has_head(&mut server, SETTLE, [0; 5]), Some(false));
        assert_eq!((server.answer.last(), calls.swap(0, Ordering::Relaxed)), (Some(&0), 2), "it is written");
        file.unlock().unwrap();
        assert_eq!(has_head(&mut server, SETTLE, [0; 5]), Some(true));
        assert_eq!((server.answer.last(), calls.load(Ordering::Relaxed)), (Some(&1), 102));
        assert!(file.try_lock(true).unwrap(), "nobody holds it any more");
    }

    /// What a look at the log's tail has brought: whether it is known, frames, and the mark behind them.
    fn looked(server: &mut Server<'_>, mark: u64) -> (u8, Vec<u8>, u64) {
        let head = usize::from(has_head(server, LOOK, [8192, 0, mark, 0, 0]).unwrap()) * 8192;
        let body = &server.answer[ANSWER_HEAD_BYTES + 2 + head + 8..];
        let frames = if body[16] == 1 { Vec::new() } else { unpack(&body[17..], LOG_BYTES_MAX).unwrap() };
        (body[16], frames, u64_at(body, 0))
    }

    #[test]
    fn what_the_mirror_has_of_the_log_is_not_sent_again() {
        let disk = Hooked::default();
        let (file, mut server) = served(&disk);
        let (is_known, blocks, mark) = looked(&mut server, 0);
        assert!(is_known == 0 && blocks == [0; 8192], "what is no frame is not sent");
        assert_eq!(looked(&mut server, mark), (1, Vec::new(), mark));
        // The second block may be the second copy of a jump.
        let mut jump = vec![3; 4096];
        Frame { jump: true, len: 16, ..frame() }.seal(&mut jump);
        file.write_at(&jump, 12_288).unwrap();
        let (is_known, blocks, mark) = looked(&mut server, mark);
        assert_eq!((is_known, &blocks[..4096], &blocks[4096..]), (0, &[0; 4096][..], &jump[..]));
        assert_eq!(looked(&mut server, mark).0, 1);
        // Of a frame the mirror has the beginning, and now the rest is there.
        let mut bytes = vec![5; 8192];
        Frame { len: 5000, ..frame() }.seal(&mut bytes);
        bytes[8000] = 6;
        file.write_at(&bytes[..4096], 8192).unwrap();
        let (is_known, blocks, mark) = looked(&mut server, mark);
        assert_eq!((is_known, &blocks[..4096]), (0, &bytes[..4096]));
        file.write_at(&bytes[4096..], 12_288).unwrap();
        let (is_known, blocks, _) = looked(&mut server, mark);
        assert!(is_known == 0 && blocks == bytes, "it is whole, and the file ends there");
        file.set_len(8192).unwrap();
        assert_eq!(looked(&mut server, mark), (0, Vec::new(), 0), "nothing is there any more");
    }

    /// A whole frame that the mirror can do nothing with: it asks at the same tail again.
    #[test]
    fn frames_that_were_told_of_are_nothing_new() {
        const WAIT_MS: u64 = 50;
        let disk = Hooked::default();
        let (file, mut server) = served(&disk);
        let mut bytes = vec![0; 4096];
        let mut write = |number| {
            Frame { len: 5, number, ..frame() }.seal(&mut bytes);
            file.write_at(&bytes, 8192).unwrap();
        };
        let mut waits = || {
            let began = std::time::Instant::now();
            assert!(has_head(&mut server, LOOK, [8192, WAIT_MS, 0, 0, 0]).is_some());
            began.elapsed() >= Duration::from_millis(WAIT_MS)
        };
        write(1);
        waits();
        assert!(waits() && waits(), "nothing has come");
        write(2);
        waits();
        assert!(waits());
    }

    /// The blocks behind a frame have a mark of their own.
    #[test]
    fn behind_frames_it_is_looked_for_the_next_one() {
        let disk = Hooked::default();
        let (file, mut server) = served(&disk);
        let mut bytes = vec![0; 4096];
        Frame { len: 5, ..frame() }.seal(&mut bytes);
        file.write_at(&bytes, 8192).unwrap();
        let (_, blocks, mark) = looked(&mut server, 0);
        assert_eq!((&blocks[..4096], &blocks[4096..]), (&bytes[..], &[0; 4096][..]));
        let look = |server: &mut Server<'_>, mark| {
            assert!(has_head(server, LOOK, [12_288, 0, mark, 0, 0]).is_some());
            server.answer[ANSWER_HEAD_BYTES + 2 + 8 + 16]
        };
        assert_eq!((look(&mut server, mark), look(&mut server, mark + 1)), (1, 0));
        Frame { len: 5, number: 2, ..frame() }.seal(&mut bytes);
        file.write_at(&bytes, 12_288).unwrap();
        assert_eq!(look(&mut server, mark), 0);
    }
}
