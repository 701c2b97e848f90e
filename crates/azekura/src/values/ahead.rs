//! Reading large values ahead. Where they are read in the order in which they were written, it is done a
//! stretch at a time. Elsewhere the system is asked for values that are wanted soon.
//!
//! One read of a quarter of a mebibyte replaces many small ones. Its bytes stay in the processor's cache
//! until they are handed out. It begins when two values that stand one after the other are read. Any other
//! value is read alone.

use super::{LargeValue, Segment, ValuePointer, ValueStore};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::Result;
use std::ops::Range;
use std::sync::Arc;

/// How much is read ahead. It fits the second-level cache with room to spare.
const AHEAD_BYTES: u64 = 256 << 10;

/// The most that the system is asked to read at once.
pub(crate) const WILL_READ_BYTES: u64 = 1 << 20;
/// Values that are no farther apart than this are read together: a gap this small costs no more time.
const GAP_BYTES: u64 = 16 << 10;

impl ValueStore {
    /// Asks the system to begin reading some values, up to [`WILL_READ_BYTES`], and returns how many these
    /// are. A hint.
    pub(crate) fn will_read<'a>(&self, references: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut bytes = 0;
        let mut wanted: Vec<ValuePointer> = Vec::new();
        for at in references.map_while(|reference| ValuePointer::decode(reference).ok()) {
            bytes += u64::from(at.len);
            if bytes > WILL_READ_BYTES {
                break;
            }
            wanted.push(at);
        }
        wanted.sort_unstable_by_key(|at| (at.segment, at.offset));
        let end = |at: &ValuePointer| u64::from(at.offset) + u64::from(at.len);
        for near in
            wanted.chunk_by(|a, b| a.segment == b.segment && u64::from(b.offset) <= end(a) + GAP_BYTES)
        {
            if let (Some(first), Some(last)) = (near.first(), near.last())
                && let Ok(segment) = self.segment_of(*first)
            {
                segment.will_read(u64::from(first.offset), end(last));
            }
        }
        wanted.len()
    }
}

impl Segment {
    /// Asks the system to begin reading bytes `start` to `end`, as far as they are in the file.
    fn will_read(&self, start: u64, end: u64) {
        let (place, end) = (self.place(), end.min(self.written()));
        let mut at = start;
        while at < end {
            let Some((offset, together)) = place.stretch(at) else { break };
            let len = together.min(end - at);
            self.file.will_read(offset, len);
            at += len;
        }
    }
}

/// What one transaction or cursor has read ahead. There is nothing before the first value that has to be
/// copied.
#[derive(Default)]
pub(crate) struct ReadAhead(Option<Box<Stretch>>);

/// A part of a segment in memory.
#[derive(Default)]
struct Stretch {
    segment: Option<Arc<Segment>>,
    /// Where the stretch begins in the segment. `bytes`: its bytes.
    start: u64,
    bytes: Arc<Vec<u8>>,
    /// Where the last value that was read ended.
    end: u64,
}

impl ReadAhead {
    /// The value of a reference.
    pub(crate) fn read(&mut self, store: &ValueStore, reference: &[u8]) -> Result<LargeValue> {
        let at = ValuePointer::decode(reference)?;
        if let Some(value) = store.standing(at)? {
            return Ok(value);
        }
        let (bytes, range) = self.0.get_or_insert_default().copy(store, at)?;
        Ok(LargeValue::copied(bytes, range))
    }
}

impl Stretch {
    /// A buffer, and the value's range in it.
    fn copy(&mut self, store: &ValueStore, at: ValuePointer) -> Result<(Arc<Vec<u8>>, Range<usize>)> {
        let (from, to) = (u64::from(at.offset), u64::from(at.offset) + u64::from(at.len));
        let (same, segment) = match &self.segment {
            Some(s) if s.id == at.segment => (true, s.clone()),
            _ => (false, store.segment_of(at)?),
        };
        segment.check(at)?;
        let held = same && from >= self.start && to <= self.start + self.bytes.len() as u64;
        // A segment may end a few bytes before the next one begins, so a first value counts as the next one.
        let follows = if same { from == self.end } else { from == 0 && self.segment.is_some() };
        self.end = to;
        if held {
            let place = usize_of64(from - self.start);
            let range = place..place + usize_of(at.len);
            segment.verify(at, &self.bytes[range.clone()])?;
            return Ok((self.bytes.clone(), range));
        }
        let written = segment.written();
        let until = if follows { written.min(from + AHEAD_BYTES).max(to) } else { to };
        self.segment = Some(segment.clone());
        self.start = from;
        self.fill(usize_of64(until - from));
        let Some(buffer) = Arc::get_mut(&mut self.bytes) else { unreachable!("`fill` has made it our own") };
        if let Err(e) = segment.read_bytes(from, buffer) {
            *self = Stretch::default();
            return Err(e);
        }
        let range = 0..usize_of(at.len);
        segment.verify(at, &self.bytes[range.clone()])?;
        Ok((self.bytes.clone(), range))
    }

    /// Makes `bytes` a buffer of `n` bytes that nobody else holds.
    fn fill(&mut self, n: usize) {
        match Arc::get_mut(&mut self.bytes) {
            // One huge value must not keep its memory for good.
            Some(buffer) if buffer.capacity() <= usize_of64(AHEAD_BYTES) * 8 => buffer.resize(n, 0),
            _ => self.bytes = Arc::new(vec![0; n]),
        }
    }
}
