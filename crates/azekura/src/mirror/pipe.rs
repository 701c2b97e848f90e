//! Mirrors of a source on another machine: what goes through the pipe.
//!
//! The mirror's side asks and the source's side answers, in turn. What is asked is what a mirror does with
//! its source's file, so all that makes a mirror right stands in one place, and the source's side decides
//! nothing. Both begin with their hello. Numbers are little-endian.
//!
//! ```text
//! hello     "AZKMIRR\0" | u32 version | u32 CRC-32C of these
//! question  u8 what | u32 file | u64 a | u64 b | u64 c | u64 d | u64 e | u32 CRC-32C of these
//!             1 open    the database, under the number `file`
//!             2 read    b bytes from a on, in answers of 1 MiB. c = 1: as far as the file goes, packed
//!             3 length                                                -> u64
//!             4 pin     checkpoint a
//!             5 unpin   checkpoint a                                  no answer
//!             6 close                                                 no answer
//!             7 have    the mirror has checkpoint a and commit b durably, lacks c commits and d bytes, has
//!                       lacked something for e milliseconds. file = 1: it lacked nothing     no answer
//!             8 settle  make durable what stands in the file, and read its head while nobody can begin to
//!                       write, unless somebody writes it already       -> u8: whether nobody does
//!             9 digest  of b bytes from a on                          -> u128
//!            10 look    the log's next frame stands at a (0: nobody knows); answer when what stands there
//!                       has no longer the mark c, or another head is there, or after b milliseconds
//!                                                -> u64 length of the file | u64 mark of the two blocks
//!                                                   behind the frames | u64 their place | u8 | packed:
//!                                                   the frames from a on, and these blocks
//!                       1: what the mirror has read there is all that is there, and no frames are sent
//!            11 ack     the mirror has commit a and those before it durably. b = 1: durable commits wait for it
//!                       from now on; 0: they wait no more. c = 1: it begins  -> nothing; else no answer
//! answer    u32 length of the body | u32 its CRC-32C | u32 CRC-32C of these | the body
//!             u8 0 | u8 0, or 1 and the head | what was asked for
//!             u8 1 | u8 kind of error | its text
//! ```
//!
//! The **head** is both superblocks. Answers to read, pin, settle and look have it if it is not what was sent
//! last. It is read when all else that was asked is done. So the mirror's side knows, without another
//! question, whether what it has been sent was read while a checkpoint was the newest (`Seen`).
//!
//! The log is **packed** on its way (`packed`), also where it is read. Blocks behind the frames that are no
//! frames go as zeros: who reads the log sees no difference, and they may be what stood there before.
//!
//! Checksums begin with the number of the message, so none can be lost, or come twice. Nothing that comes is
//! believed: lengths are bounded before memory is taken for them, and whether bytes are those of a database
//! is looked at as in any file.

mod packed;
mod remote;
mod serve;
mod server;
mod tail;
mod wire;

pub use remote::MirrorPipe;
pub use serve::{MirrorReport, stream_mirror, stream_mirror_on};

use crate::base::checksum::crc;
use crate::base::codec::{u32_at, u64_at};
use crate::base::error::{Error, Result};
use std::io::{self, Read};

const MAGIC: [u8; 8] = *b"AZKMIRR\0";
const VERSION: u32 = 2;
const HELLO_BYTES: usize = 16;
const QUESTION_BYTES: usize = 49;
const ANSWER_HEAD_BYTES: usize = 12;
/// A read is answered in parts of this size.
const PART_BYTES: usize = 1 << 20;
/// Frames that come with a look. The longest frame is shorter.
const LOG_BYTES_MAX: usize = 2 << 20;
/// An error's text is cut to this length.
const TEXT_BYTES_MAX: usize = 1000;
/// The longest body of an answer: frames, a head, and some numbers. What is packed may get a byte longer for
/// each step, and a step that does so follows 16 KiB as they are.
const BODY_BYTES_MAX: usize = LOG_BYTES_MAX + LOG_BYTES_MAX / (16 << 10) + (8 << 10) + 128;

const OPEN: u8 = 1;
const READ: u8 = 2;
const LENGTH: u8 = 3;
const PIN: u8 = 4;
const UNPIN: u8 = 5;
const CLOSE: u8 = 6;
const HAVE: u8 = 7;
const SETTLE: u8 = 8;
const DIGEST: u8 = 9;
const LOOK: u8 = 10;
const ACK: u8 = 11;

/// What the mirror's side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Question {
    what: u8,
    file: u32,
    with: [u64; 5],
}

impl Question {
    fn new(what: u8, file: u32) -> Question {
        Question { what, file, with: [0; 5] }
    }

    fn with<const N: usize>(mut self, numbers: [u64; N]) -> Question {
        self.with[..N].copy_from_slice(&numbers);
        self
    }

    /// The bytes of message `n`.
    fn encode(&self, n: u32) -> [u8; QUESTION_BYTES] {
        let mut bytes = [0; QUESTION_BYTES];
        bytes[0] = self.what;
        bytes[1..5].copy_from_slice(&self.file.to_le_bytes());
        for (place, number) in bytes[5..45].chunks_exact_mut(8).zip(self.with) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc(n, &bytes[..45]);
        bytes[45..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// None if these are not the bytes of message `n`.
    fn decode(bytes: &[u8; QUESTION_BYTES], n: u32) -> Option<Question> {
        let with = std::array::from_fn(|i| u64_at(bytes, 5 + 8 * i));
        let question = Question { what: bytes[0], file: u32_at(bytes, 1), with };
        (crc(n, &bytes[..45]) == u32_at(bytes, 45)).then_some(question)
    }
}

/// Errors that the mirror's side tells apart, by their numbers.
const KINDS: [(u8, io::ErrorKind); 5] = [
    (1, io::ErrorKind::UnexpectedEof),
    (2, io::ErrorKind::NotFound),
    (3, io::ErrorKind::PermissionDenied),
    (4, io::ErrorKind::Unsupported),
    (5, io::ErrorKind::InvalidInput),
];

fn hello() -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc(0, &bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads the other side's hello. False if nothing came at all. `who` it is to be.
fn hear_hello(from: &mut dyn Read, who: &str) -> Result<bool> {
    let mut bytes = [0; HELLO_BYTES];
    let mut there = 0;
    // What is no hello may be shorter than one, and nothing come after it.
    while there < HELLO_BYTES && bytes[..there.min(8)] == MAGIC[..there.min(8)] {
        match from.read(&mut bytes[there..]) {
            Ok(0) => break,
            Ok(n) => there += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("reading from the pipe", e)),
        }
    }
    if there == 0 {
        return Ok(false);
    }
    if bytes[..there.min(8)] != MAGIC[..there.min(8)] {
        let text = String::from_utf8_lossy(&bytes[..there]);
        return Err(bad(0, format!("what comes is not {who}; it begins with {:?}", text.trim_end())));
    }
    if there < HELLO_BYTES || crc(0, &bytes[..12]) != u32_at(&bytes, 12) {
        return Err(bad(0, format!("the hello of {who} is not whole")));
    }
    match u32_at(&bytes, 8) {
        VERSION => Ok(true),
        found => {
            let detail = format!("{who} speaks version {found} of the pipe, and this side version {VERSION}");
            Err(Error::Invalid { detail })
        }
    }
}

/// Fills a buffer as far as there is something before the end.
fn read_as_far(from: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut there = 0;
    while there < bytes.len() {
        match from.read(&mut bytes[there..]) {
            Ok(0) => break,
            Ok(n) => there += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(there)
}

fn bad(at: u64, detail: impl Into<String>) -> Error {
    Error::corrupt("mirror's pipe", at, detail)
}

#[cfg(all(test, not(loom)))]
mod tests;
