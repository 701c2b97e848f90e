//! Pages with a column of expiries: the words of their records, and how these are put before the values.

use super::{EXPIRIES_HEADER_BYTES, Page};
use crate::base::codec::u64_at;
use crate::format::block::{Block, Tag};
use crate::format::expiry::{Content, Expiry};
use crate::format::packed::Packed;
use crate::format::unpacked::Unpacked;
use std::ops::Range;

impl<'a> Page<'a> {
    /// The column of expiries, and its bits. REQUIRES: there is one.
    fn expiries(&self) -> (Packed, &'a [u8]) {
        let at = self.guide.expiries_at();
        let column = Packed { base: u64_at(self.bytes, at + 1), slope: 0, width: u32::from(self.bytes[at]) };
        (column, &self.bytes[at + EXPIRIES_HEADER_BYTES..])
    }

    /// The word of record `i`. REQUIRES: its tag is `Expiring`.
    pub(crate) fn word(&self, i: usize) -> u64 {
        let (column, bits) = self.expiries();
        column.get(bits, i)
    }

    /// What record `i` says, whether it has expired or not.
    #[inline(always)]
    pub(crate) fn content(&self, i: usize) -> Content<'a> {
        let (tag, value) = self.value(i);
        if tag != Tag::Expiring {
            return Content { tag, value, expiry: Expiry::NEVER };
        }
        let (expiry, tag) = Expiry::read(self.word(i));
        Content { tag, value, expiry }
    }

    /// As `unpack_some`, in a page with a column of expiries.
    #[cold]
    #[inline(never)]
    pub(super) fn unpack_expiring(
        &self,
        some: Range<usize>,
        now: u64,
        out: &mut Unpacked,
    ) -> std::result::Result<(), &'static str> {
        let (column, bits) = self.expiries();
        let first = some.start;
        self.unpack_stored(some, out)?;
        for i in 0..out.len() {
            if out.record(i).tag == Tag::Expiring {
                out.settle(i, column.get(bits, first + i), now);
            }
        }
        Ok(())
    }

    /// Appends the values of a fixed page, each with its word before it.
    pub(super) fn decode_expiring(&self, values: &[u8], out: &mut Block) {
        let ((column, bits), stride) = (self.expiries(), self.guide.stride());
        out.heap.reserve(values.len() + self.len() * 8);
        for i in 0..self.len() {
            out.heap.extend_from_slice(&column.get(bits, i).to_le_bytes());
            out.heap.extend_from_slice(&values[i * stride..(i + 1) * stride]);
        }
    }
}
