//! The protocol of a connection to a helper process. The other side is in helpers/go/wire.go and
//! helpers/python/helper.py.
//!
//! A request has a length of four bytes (of all that follows), a kind of one byte, and a body. An answer has
//! a length, a status byte (0: done, 1: failed, and the body is a message), eight bytes of nanoseconds that
//! the peer's own calls took, and a body. All integers are little-endian.

use crate::failure::{Failure, Result};
use std::io::{Read, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};

/// Opens the store: create, durable (a byte each), budget, records, raw bytes, the directory.
pub const OPEN: u8 = 1;
/// Makes changes in the open transaction, which the first of them begins. Each is a byte (1: removes), the
/// lengths of key and value, the key, the value.
pub const APPLY: u8 = 2;
/// The same, and then commits.
pub const COMMIT: u8 = 3;
/// Drops the open transaction.
pub const ABANDON: u8 = 4;
/// Gets keys. Each is a length and the key. The answer has, for each, the value's length + 1 and the value,
/// or 0.
pub const GET: u8 = 5;
/// Visits all records. The answer is their number and sum.
pub const SCAN: u8 = 6;
/// Visits some records: the limit, a byte (1: down), a byte (1: from a key), the key. The answer is as for a
/// scan, or empty if the peer keeps no order.
pub const RANGE: u8 = 7;
/// Sees everything committed by now.
pub const REFRESH: u8 = 8;
/// Makes everything committed durable.
pub const SYNC: u8 = 9;
/// Finishes background work. The answer is a byte (1: there is such work).
pub const SETTLE: u8 = 10;
/// Closes the store.
pub const CLOSE: u8 = 11;
/// Keeps an index of the first 8 bytes of values from now on. Only of peers that can do that, as the next.
pub const INDEX: u8 = 12;
/// Visits the records whose values begin with the 8 bytes of the body, by the index. The answer is as for a
/// scan.
pub const FIND: u8 = 13;

/// A body of this length is sent at once, so that neither side keeps a large transaction twice.
pub const BODY_BYTES_MAX: usize = 4 << 20;

const HEAD_BYTES: usize = 5;
const ANSWER_HEAD_BYTES: usize = 9;

/// One connection. A request is put together in its buffer, and then sent by [`ask`](Wire::ask).
#[derive(Debug)]
pub struct Wire {
    peer: &'static str,
    stream: UnixStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Wire {
    /// Connects to an abstract socket.
    pub fn connect(peer: &'static str, socket: &str) -> Result<Self> {
        let stream = SocketAddr::from_abstract_name(socket)
            .and_then(|address| UnixStream::connect_addr(&address))
            .map_err(|error| Failure::peer(peer, "open: connecting to the helper", &error))?;
        Ok(Self { peer, stream, request: vec![0; HEAD_BYTES], answer: Vec::new() })
    }

    /// Adds bytes to the request.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.request.extend_from_slice(bytes);
        self
    }

    /// Adds an integer.
    #[inline]
    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds a length.
    #[inline]
    pub fn length(&mut self, length: usize) -> &mut Self {
        let length = u32::try_from(length).expect("a key or a value of less than 4 GiB");
        self.bytes(&length.to_le_bytes())
    }

    /// Adds a byte: 1 if true.
    #[inline]
    pub fn flag(&mut self, set: bool) -> &mut Self {
        self.bytes(&[u8::from(set)])
    }

    /// Bytes of the body so far.
    #[inline]
    pub fn body_bytes(&self) -> usize {
        self.request.len() - HEAD_BYTES
    }

    /// Drops the request so far.
    pub fn forget(&mut self) {
        self.request.truncate(HEAD_BYTES);
    }

    /// Sends the request and returns the answer's body. Adds the time that the peer took to a clock.
    pub fn ask(&mut self, kind: u8, call: &str, clock: &AtomicU64) -> Result<&[u8]> {
        let length = u32::try_from(self.request.len() - 4).expect("bodies are bounded");
        self.request[..4].copy_from_slice(&length.to_le_bytes());
        self.request[4] = kind;
        let peer = self.peer;
        let failed = |error: std::io::Error| Failure::peer(peer, call, &error);
        let sent = self.stream.write_all(&self.request);
        self.forget();
        sent.map_err(failed)?;

        let mut length = [0; 4];
        self.stream.read_exact(&mut length).map_err(failed)?;
        let length = usize::try_from(u32::from_le_bytes(length)).expect("addresses have 32 bits at least");
        self.answer.clear();
        let wanted = crate::records::to_u64(length);
        Read::take(&mut self.stream, wanted).read_to_end(&mut self.answer).map_err(failed)?;
        let Some((head, body)) = self.answer.split_first_chunk::<ANSWER_HEAD_BYTES>() else {
            return Err(Failure::peer(self.peer, call, &"a short answer"));
        };
        let [status, nanoseconds @ ..] = *head;
        clock.fetch_add(u64::from_le_bytes(nanoseconds), Ordering::Relaxed);
        match status {
            0 => Ok(body),
            _ => Err(Failure::peer(self.peer, call, &String::from_utf8_lossy(body))),
        }
    }
}

/// Takes an integer from the front of a body.
pub fn take_u64(body: &mut &[u8]) -> Option<u64> {
    let (number, rest) = body.split_first_chunk::<8>()?;
    *body = rest;
    Some(u64::from_le_bytes(*number))
}

/// Takes a value from the front of a body: `Some(None)` if it is absent.
pub fn take_value<'body>(body: &mut &'body [u8]) -> Option<Option<&'body [u8]>> {
    let (length, rest) = body.split_first_chunk::<4>()?;
    let Some(length) = u32::from_le_bytes(*length).checked_sub(1) else {
        *body = rest;
        return Some(None);
    };
    let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *body = rest;
    Some(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_one_by_one_and_short_bodies_are_noticed() {
        let mut body: &[u8] = &[3, 0, 0, 0, 7, 8, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1];
        assert_eq!(take_value(&mut body), Some(Some([7, 8].as_slice())));
        assert_eq!(take_value(&mut body), Some(None));
        assert_eq!(take_value(&mut body), Some(Some([].as_slice())));
        assert_eq!(take_value(&mut body), None);
        assert_eq!(take_u64(&mut body), None);
    }
}
