//! The mirror's end of a pipe: questions go out, and answers come in their order.
//!
//! Reads may be asked for before they are wanted (`ask_early`). Their answers wait in the pipe, or in `early`
//! once a later question's answer was needed before them.

use super::packed::unpack;
use super::{
    ANSWER_HEAD_BYTES, BODY_BYTES_MAX, KINDS, PART_BYTES, QUESTION_BYTES, Question, READ, TEXT_BYTES_MAX,
    hear_hello, hello,
};
use crate::base::checksum::crc;
use crate::base::codec::{u32_at, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};

/// What is known of a file at the other end.
#[derive(Default)]
pub(super) struct Seen {
    /// Both superblocks. Empty: they were never sent.
    pub(super) head: Vec<u8>,
    /// Whether they were read after all else that was asked, but for reads whose answers were not heard yet.
    pub(super) is_fresh: bool,
    /// The file's length, read after `head`, if nothing was asked since but for reads.
    pub(super) len: Option<u64>,
    /// Bytes of the log, and where they stand.
    pub(super) log: (u64, Vec<u8>),
    /// The mark of the blocks behind the frames that were sent last, and the place of these blocks.
    pub(super) mark: (u64, u64),
}

/// A read that was asked for early.
struct Early {
    file: u32,
    offset: u64,
    bytes: u64,
    /// The answer, if it was heard.
    heard: Option<io::Result<Vec<u8>>>,
}

pub(super) struct Wire {
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
    /// Why nothing more goes through it.
    pub(super) cut: Option<String>,
    /// The number of the next message, each way.
    asked: u32,
    heard: u32,
    early: VecDeque<Early>,
    pub(super) files: BTreeMap<u32, Seen>,
    pub(super) next_file: u32,
    /// Bytes of answers with something of the source's file, but for its superblocks.
    pub(super) came: u64,
}

impl Wire {
    pub(super) fn new(mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>) -> Result<Wire> {
        let sent = to.write_all(&hello()).and_then(|()| to.flush());
        if !hear_hello(from.as_mut(), "the source of a mirror")? {
            return Err(super::bad(0, "the other end has ended before it said anything"));
        }
        sent.map_err(|e| Error::io("writing to the pipe", e))?;
        let (early, files) = (VecDeque::new(), BTreeMap::new());
        Ok(Wire { from, to, cut: None, asked: 1, heard: 1, early, files, next_file: 0, came: 0 })
    }

    fn check(&self) -> io::Result<()> {
        match &self.cut {
            Some(why) => Err(io::Error::new(io::ErrorKind::BrokenPipe, why.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn cut_off<T>(&mut self, why: impl Into<String>) -> io::Result<T> {
        self.cut.get_or_insert(why.into());
        self.check().and_then(|()| Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Says something to which there is no answer, or whose answer is heard later.
    pub(super) fn say(&mut self, question: &Question) -> io::Result<()> {
        self.check()?;
        let bytes: [u8; QUESTION_BYTES] = question.encode(self.asked);
        self.asked = self.asked.wrapping_add(1);
        match self.to.write_all(&bytes).and_then(|()| self.to.flush()) {
            Ok(()) => Ok(()),
            Err(e) => self.cut_off(format!("asking the source: {e}")),
        }
    }

    /// Asks something that is answered once. What was known to be fresh of the file is not, from then on.
    pub(super) fn ask(&mut self, question: &Question) -> io::Result<Vec<u8>> {
        self.say(question)?;
        self.hear_early()?;
        let seen = self.files.entry(question.file).or_default();
        (seen.is_fresh, seen.len) = (false, None);
        self.answer(question.file)
    }

    /// Reads bytes that may have been asked for early.
    pub(super) fn read(&mut self, file: u32, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = buf.len() as u64;
        let is_first = |early: &Early| (early.file, early.offset, early.bytes) == (file, offset, bytes);
        let read = match self.early.pop_front_if(|early| is_first(early)) {
            Some(Early { heard: Some(heard), .. }) => heard,
            Some(_) => return self.hear_read(file, buf),
            None => {
                self.say(&Question::new(READ, file).with([offset, bytes]))?;
                self.hear_early()?;
                return self.hear_read(file, buf);
            }
        }?;
        buf.copy_from_slice(&read);
        Ok(())
    }

    /// Reads so many bytes, or as far as the file goes.
    pub(super) fn read_some(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        self.say(&Question::new(READ, file).with([offset, bytes, 1]))?;
        self.hear_early()?;
        let read = self.answer(file)?;
        self.files.entry(file).or_default().is_fresh = true;
        self.unpacked(&read, usize_of64(bytes))
    }

    /// The bytes that an answer has, which were packed, and are no more than so many.
    pub(super) fn unpacked(&mut self, packed: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
        match unpack(packed, bytes_max) {
            Some(bytes) => {
                // An answer that brings nothing is no progress.
                if !bytes.is_empty() {
                    self.count(packed);
                }
                Ok(bytes)
            }
            None => self.cut_off("what the source has packed is not what comes out"),
        }
    }

    /// Counts an answer in which this came.
    fn count(&mut self, came: &[u8]) {
        self.came += (ANSWER_HEAD_BYTES + 2 + came.len()) as u64;
    }

    /// Asks for bytes that will be read soon.
    pub(super) fn ask_early(&mut self, file: u32, offset: u64, bytes: u64) -> io::Result<()> {
        self.say(&Question::new(READ, file).with([offset, bytes]))?;
        self.early.push_back(Early { file, offset, bytes, heard: None });
        Ok(())
    }

    /// What was asked for early is not wanted any more.
    pub(super) fn drop_early(&mut self) -> io::Result<()> {
        self.hear_early()?;
        self.early.clear();
        Ok(())
    }

    /// Hears the answers that come before that of the last question.
    fn hear_early(&mut self) -> io::Result<()> {
        for i in 0..self.early.len() {
            let Some(early) = self.early.get(i).filter(|early| early.heard.is_none()) else { continue };
            let file = early.file;
            let mut read = vec![0; usize_of64(early.bytes)];
            let done = self.hear_read(file, &mut read);
            self.check()?;
            if let Some(early) = self.early.get_mut(i) {
                early.heard = Some(done.map(|()| read));
            }
        }
        Ok(())
    }

    fn hear_read(&mut self, file: u32, buf: &mut [u8]) -> io::Result<()> {
        for part in buf.chunks_mut(PART_BYTES) {
            let read = self.answer(file)?;
            if read.len() != part.len() {
                return self.cut_off(format!(
                    "{} bytes came where {} were asked for",
                    read.len(),
                    part.len()
                ));
            }
            part.copy_from_slice(&read);
            self.count(&read);
        }
        self.files.entry(file).or_default().is_fresh = true;
        Ok(())
    }

    /// Hears an answer, or the error that it is.
    fn answer(&mut self, file: u32) -> io::Result<Vec<u8>> {
        self.check()?;
        let mut body = self.body()?;
        match body.first_chunk() {
            Some([1, kind]) => {
                let refused = refusal(*kind, &body[2..]);
                // A head does not come with that.
                self.files.entry(file).or_default().is_fresh = false;
                Err(refused)
            }
            Some([0, 0]) => Ok(body.split_off(2)),
            Some([0, 1]) if body.len() >= 2 + usize_of64(SUPERBLOCKS_BYTES) => {
                let rest = body.split_off(2 + usize_of64(SUPERBLOCKS_BYTES));
                body.drain(..2);
                self.files.entry(file).or_default().head = body;
                Ok(rest)
            }
            _ => self.cut_off("what the source says is no answer"),
        }
    }

    fn body(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; ANSWER_HEAD_BYTES];
        self.hear(&mut head)?;
        if crc(self.heard, &head[..8]) != u32_at(&head, 8) {
            return self.cut_off("bytes have changed on their way from the source");
        }
        let len = usize_of(u32_at(&head, 0));
        if len > BODY_BYTES_MAX {
            return self.cut_off(format!("an answer of {len} bytes"));
        }
        let mut body = vec![0; len];
        self.hear(&mut body)?;
        if crc(self.heard, &body) != u32_at(&head, 4) {
            return self.cut_off("bytes have changed on their way from the source");
        }
        self.heard = self.heard.wrapping_add(1);
        Ok(body)
    }

    fn hear(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self.from.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut_off("the pipe from the source has ended")
            }
            Err(e) => self.cut_off(format!("hearing the source: {e}")),
        }
    }
}

/// The error that the source has met.
fn refusal(kind: u8, text: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let kind = KINDS.iter().find(|known| known.0 == kind).map_or(io::ErrorKind::Other, |known| known.1);
    io::Error::new(kind, format!("at the source: {text}"))
}
