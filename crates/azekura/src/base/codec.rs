//! Little-endian encoding of small structures, and the bounds-checked decoder.
//!
//! A `Reader` never panics. It checks every length that it reads against the bytes that remain, so it never
//! allocates more than the input has.

use super::error::{Error, Result};
use super::limits::{COUNT_END, SHORT_COUNT_END};

/// Appends little-endian fields to a byte vector.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// What has been written.
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, v: u8) {
        self.bytes.push(v);
    }

    pub(crate) fn u32(&mut self, v: u32) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, v: u64) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// A length (u32) and that many bytes.
    pub(crate) fn blob(&mut self, v: &[u8]) {
        self.u32(u32_of(v.len()));
        self.bytes.extend_from_slice(v);
    }
}

/// Takes little-endian fields from a byte slice. When the bytes run out, the error names the structure.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
    /// Where the structure begins in the file, for error reports.
    at: u64,
    len: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str, at: u64) -> Reader<'a> {
        Reader { rest: bytes, what, at, len: bytes.len() }
    }

    /// A `Corrupt` error about this structure.
    pub(crate) fn bad(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(self.what, self.at, detail)
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.rest.len() {
            return Err(self.bad(format!(
                "{n} bytes expected at byte {} of {}, {} are left",
                self.len - self.rest.len(),
                self.len,
                self.rest.len()
            )));
        }
        let (head, tail) = self.rest.split_at(n);
        self.rest = tail;
        Ok(head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.take(4).map(|b| u32_at(b, 0))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.take(8).map(|b| u64_at(b, 0))
    }

    /// A number that the engine counts up. It must be below `COUNT_END`, so that counting on does not wrap.
    pub(crate) fn counted(&mut self) -> Result<u64> {
        let n = self.u64()?;
        if n < COUNT_END { Ok(n) } else { Err(self.bad(format!("nobody has counted to {n}"))) }
    }

    /// As `counted`, for 32 bits and `SHORT_COUNT_END`.
    pub(crate) fn counted_short(&mut self) -> Result<u32> {
        let n = self.u32()?;
        if n < SHORT_COUNT_END { Ok(n) } else { Err(self.bad(format!("nobody has counted to {n}"))) }
    }

    /// A length (u32), then that many bytes. The length is checked before anything is copied.
    pub(crate) fn blob(&mut self) -> Result<&'a [u8]> {
        let n = usize_of(self.u32()?);
        self.take(n)
    }

    /// A count of items of at least `item_bytes_min` each. A count that cannot fit in the rest is refused.
    pub(crate) fn count(&mut self, item_bytes_min: usize) -> Result<usize> {
        let n = usize_of(self.u32()?);
        if n.saturating_mul(item_bytes_min) > self.rest.len() {
            return Err(self.bad(format!("{n} items cannot fit in {} bytes", self.rest.len())));
        }
        Ok(n)
    }

    /// The bytes that are left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// REQUIRES: nothing is left, else the structure is corrupt.
    pub(crate) fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.bad(format!("{} bytes too many", self.rest.len())))
        }
    }
}

/// The u16 at `at`. REQUIRES: in bounds.
#[inline(always)]
pub(crate) fn u16_at(b: &[u8], at: usize) -> u16 {
    let mut x = [0; 2];
    x.copy_from_slice(&b[at..at + 2]);
    u16::from_le_bytes(x)
}

/// The u32 at `at`. REQUIRES: in bounds.
#[inline(always)]
pub(crate) fn u32_at(b: &[u8], at: usize) -> u32 {
    let mut x = [0; 4];
    x.copy_from_slice(&b[at..at + 4]);
    u32::from_le_bytes(x)
}

/// The u64 at `at`. REQUIRES: in bounds.
#[inline(always)]
pub(crate) fn u64_at(b: &[u8], at: usize) -> u64 {
    let mut x = [0; 8];
    x.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(x)
}

/// A length as u32. REQUIRES: the caller has bounded the length; a longer one is a programming error.
#[inline(always)]
pub(crate) fn u32_of(n: usize) -> u32 {
    u32::try_from(n).expect("a length over 4 GiB reached the codec")
}

/// A u32 as usize; no platform we build for has narrower pointers.
#[inline(always)]
pub(crate) const fn usize_of(n: u32) -> usize {
    n as usize
}

const _: () = assert!(usize::BITS >= 64, "Azekura addresses files and buffers with 64 bits");

/// A u64 as usize (see the assertion above).
#[inline(always)]
pub(crate) const fn usize_of64(n: u64) -> usize {
    n as usize
}
