//! Looks for large values whose place is not known. A value begins at the same place in its block as in its
//! segment, so each block of the file is one possibility. The checksum's states at both ends (`sums`) tell in
//! a few steps whether the value is there, however long it is. Values of one length and place in the block
//! are looked for together.

use super::input::Input;
use super::sums::{Stretch, after, fill};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES};
use crate::values::ValuePointer;

/// How much of the file is looked at together, with as much behind it. A value is short if it fits in this.
const WINDOW_BYTES: u64 = 1 << 20;
/// How many places are reported for each value. A value of zeros is in many places.
const PLACES_MAX: u8 = 4;
/// How many steps a search may take: some minutes.
const STEPS_MAX: u64 = 1 << 36;
/// How many steps one look for a long value costs, which reads two blocks. Below, for how many bytes
/// computing states is one step.
const LONG_STEPS: u64 = 256;
const BYTES_OF_STEP: u64 = 4;

/// A search for large values.
pub(super) struct Search<'a> {
    input: &'a Input,
    steps_left: u64,
    /// How many comparisons with a checksum were made. One in 2^32 succeeds by chance.
    pub(super) compared: u64,
    /// The states before each block of the file, once a long value was looked for.
    marks: Vec<u32>,
}

/// What is looked for: a length, a place in the block, a checksum. Values that agree in these are taken for
/// the same.
pub(super) type Content = (u32, u64, u32);

pub(super) fn content_of(at: &ValuePointer) -> Content {
    (at.len, u64::from(at.offset) % ALIGN_BYTES, at.crc)
}

impl<'a> Search<'a> {
    pub(super) fn new(input: &'a Input) -> Search<'a> {
        Search { input, steps_left: STEPS_MAX, compared: 0, marks: Vec::new() }
    }

    /// Calls `tell` with places in the file at which the values are, a few for each. REQUIRES: `wanted`
    /// ascends.
    pub(super) fn places(&mut self, wanted: &[Content], mut tell: impl FnMut(Content, u64)) {
        let short = wanted.partition_point(|w| u64::from(w.0) <= WINDOW_BYTES);
        let (short, long) = wanted.split_at(short);
        self.short(short, &mut tell);
        long.iter().for_each(|&w| self.long(w, &mut tell));
    }

    fn short(&mut self, wanted: &[Content], tell: &mut impl FnMut(Content, u64)) {
        let Some(longest) = wanted.last().map(|w| u64::from(w.0)) else { return };
        let file = self.input.len().saturating_sub(SUPERBLOCKS_BYTES);
        let mut window = vec![0; usize_of64(file.min(WINDOW_BYTES + longest + ALIGN_BYTES))];
        let mut states = vec![0; window.len() + 1];
        let mut told = vec![0u8; wanted.len()];
        let mut start = SUPERBLOCKS_BYTES;
        while start < self.input.len() {
            let have = usize_of64(self.input.len() - start).min(window.len());
            let window = &mut window[..have];
            self.input.read(start, window);
            fill(&mut states, window);
            let Some(left) = self.steps_left.checked_sub(have as u64 / BYTES_OF_STEP) else { return };
            self.steps_left = left;
            let mut from = 0;
            let mut stretch: Option<(u32, Stretch)> = None;
            for group in wanted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                let (len, within, _) = group[0];
                let told = &mut told[from..from + group.len()];
                from += group.len();
                let stretch = match &mut stretch {
                    Some(known) if known.0 == len => &known.1,
                    other => &other.insert((len, Stretch::new(u64::from(len)))).1,
                };
                let blocks = (0..have.min(usize_of64(WINDOW_BYTES))).step_by(usize_of64(ALIGN_BYTES));
                let Some(left) = self.steps_left.checked_sub(blocks.len() as u64) else { return };
                self.steps_left = left;
                self.compared += (blocks.len() * group.len()) as u64;
                for block in blocks {
                    let begin = block + usize_of64(within);
                    let Some(&behind) = states[..=have].get(begin + usize_of(len)) else { break };
                    let sum = stretch.checksum(states[begin], behind);
                    if let Ok(i) = group.binary_search_by_key(&sum, |w| w.2)
                        && told[i] < PLACES_MAX
                    {
                        told[i] += 1;
                        tell(group[i], start + begin as u64);
                    }
                }
            }
            start += WINDOW_BYTES;
        }
    }

    /// Looks for a value whose two ends are not in one window.
    fn long(&mut self, wanted: Content, tell: &mut impl FnMut(Content, u64)) {
        let (len, within, sum) = wanted;
        let len = u64::from(len);
        if SUPERBLOCKS_BYTES + within + len > self.input.len() || !self.mark() {
            return;
        }
        let stretch = Stretch::new(len);
        let mut told = 0;
        let mut begin = SUPERBLOCKS_BYTES + within;
        while begin + len <= self.input.len() && told < PLACES_MAX {
            let Some(left) = self.steps_left.checked_sub(LONG_STEPS) else { return };
            self.steps_left = left;
            self.compared += 1;
            if stretch.checksum(self.state_at(begin), self.state_at(begin + len)) == sum {
                told += 1;
                tell(wanted, begin);
            }
            begin += ALIGN_BYTES;
        }
    }

    /// Computes the states before each block, once. False if there are not enough steps left.
    fn mark(&mut self) -> bool {
        if !self.marks.is_empty() {
            return true;
        }
        let Some(left) = self.steps_left.checked_sub(self.input.len() / BYTES_OF_STEP) else { return false };
        self.steps_left = left;
        let (mut state, mut block) = (0, [0; ALIGN_BYTES as usize]);
        let mut at = 0;
        while at < self.input.len() {
            self.marks.push(state);
            self.input.read(at, &mut block);
            state = after(state, &block);
            at += ALIGN_BYTES;
        }
        self.marks.push(state);
        true
    }

    /// The state before a byte of the file.
    fn state_at(&self, at: u64) -> u32 {
        let mut bytes = [0; ALIGN_BYTES as usize];
        let bytes = &mut bytes[..usize_of64(at % ALIGN_BYTES)];
        self.input.read(at - at % ALIGN_BYTES, bytes);
        after(self.marks.get(usize_of64(at / ALIGN_BYTES)).copied().unwrap_or(0), bytes)
    }
}
