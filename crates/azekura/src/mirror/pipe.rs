//! A mirror whose source is on another machine: what goes through the pipe.
//!
//! The mirror's side asks, and the source's side answers, in turn. What is asked is what a mirror does with its
//! source's file, so that side decides nothing, and all that makes a mirror right stands in one place. Numbers
//! are little-endian.
//!
//! ```text
//! the source begins:  "AZKMIRR\0" | u32 version
//! a question:         u8 what | u32 file | u64 a | u64 b
//!                       1 open    the database, under the number `file`
//!                       2 read    b bytes (at most 1 MiB) from a on
//!                       3 length
//!                       4 pin     checkpoint a
//!                       5 unpin   checkpoint a                        (no answer)
//!                       6 close                                       (no answer)
//!                       7 the mirror has checkpoint a and commit b    (no answer)
//!                       8 take the file's lock, shared
//!                       9 give it back
//!                      10 make the file durable
//!                      11 the digest of b bytes (at most 1 MiB) from a on
//!                      12 the mirror lacks a commits and b bytes, and has lacked something for `file` ms
//!                                                                     (no answer)
//! an answer:          u8 0 | read: u32 CRC-32C, the bytes; length: u64; lock: u8; digest: u128
//!                     u8 1 | u8 kind of error | u16 length | text
//! ```
//!
//! Nothing that comes is believed: lengths are bounded before memory is taken for them, and bytes are what was
//! sent. Whether they are those of a database is looked at as in any file.

mod remote;
mod serve;

pub use remote::MirrorPipe;
pub use serve::{MirrorReport, stream_mirror};

use crate::base::codec::{u32_at, u64_at};
use std::io;

const MAGIC: [u8; 8] = *b"AZKMIRR\0";
const VERSION: u32 = 1;
/// So many bytes are read by one question at most.
const READ_BYTES_MAX: usize = 1 << 20;
/// The length of a question.
const QUESTION_BYTES: usize = 21;
/// An error's text is cut to this length.
const TEXT_BYTES_MAX: usize = 1000;

const OPEN: u8 = 1;
const READ: u8 = 2;
const LENGTH: u8 = 3;
const PIN: u8 = 4;
const UNPIN: u8 = 5;
const CLOSE: u8 = 6;
const REPORT: u8 = 7;
const LOCK: u8 = 8;
const UNLOCK: u8 = 9;
const SYNC: u8 = 10;
const DIGEST: u8 = 11;
const LAG: u8 = 12;

/// What the mirror's side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Question {
    what: u8,
    file: u32,
    a: u64,
    b: u64,
}

impl Question {
    fn encode(self) -> [u8; QUESTION_BYTES] {
        let mut bytes = [0; QUESTION_BYTES];
        bytes[0] = self.what;
        bytes[1..5].copy_from_slice(&self.file.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.a.to_le_bytes());
        bytes[13..].copy_from_slice(&self.b.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; QUESTION_BYTES]) -> Question {
        Question { what: bytes[0], file: u32_at(bytes, 1), a: u64_at(bytes, 5), b: u64_at(bytes, 13) }
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

#[cfg(all(test, not(loom)))]
mod tests;
