//! Large values of a damaged file. A reference has a value's segment, its place there, its length and its
//! checksum. It does not say where the segment is. The manifest says that, and the log for young segments. If
//! neither does, the file is searched for places at which values verify (`search`). Most segments are in one
//! piece. So a few of a segment's values are looked for first, and the others near those that were found. The
//! rest are looked for one by one.

use super::input::Input;
use super::search::{Content, Search, content_of};
use super::sums::{joined, states};
use crate::base::checksum::crc;
use crate::base::codec::{usize_of, usize_of64};
use crate::base::limits::ALIGN_BYTES;
use crate::format::frame::RecordPart;
use crate::format::manifest::Manifest;
use crate::space::Extent;
use crate::values::ValuePointer;
use std::collections::{BTreeMap, HashMap};

/// How many bytes may be read for values: this many times the file's length, and in addition.
const READS_OF_FILE: u64 = 1024;
const READ_BYTES: u64 = 64 << 20;
/// How many values are looked for together.
const WANTED_MAX: usize = 1 << 18;
/// How many of each segment's values are looked for first, then how many of those that are left, then all.
const SAMPLES: [usize; 3] = [64, 1024, usize::MAX];
/// How many places of a segment are kept. Below, how many of these are tried in pairs.
const FOUND_MAX: usize = 64;
const PAIRED_MAX: usize = 8;
/// A value that is found alone, away from others of its segment, is believed only after at most this many
/// comparisons: one in 2^32 succeeds by chance.
const COMPARED_MAX: u64 = 1 << 24;
/// How many values on either side of one are tried at its place.
const NEIGHBOURS: usize = 32;

/// Where a segment may be.
#[derive(Default)]
struct Places {
    /// Lists of extents, from the manifest or the log.
    named: Vec<Vec<Extent>>,
    /// Places in the file of the segment's first byte, by values that were found. Below zero if only a later
    /// part of the segment is there, near the start of the file.
    found: Vec<i64>,
}

/// The large values of one damaged file.
pub(super) struct Values<'a> {
    input: &'a Input,
    segments: HashMap<u32, Places>,
    /// The places of values that were found alone.
    alone: HashMap<Content, u64>,
    /// Values to look for, by segment and place in it.
    wanted: BTreeMap<(u32, u32, u32, u32), ValuePointer>,
    search: Search<'a>,
    bytes_left: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(input: &'a Input) -> Values<'a> {
        let bytes_left = READ_BYTES.saturating_add(input.len().saturating_mul(READS_OF_FILE));
        let (segments, alone, wanted) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Values { input, segments, alone, wanted, search: Search::new(input), bytes_left }
    }

    /// Notes the places that a manifest names.
    pub(super) fn note_manifest(&mut self, manifest: &Manifest) {
        for value in &manifest.values {
            self.segments.entry(value.id).or_default().named.push(value.extents.clone());
        }
    }

    /// Notes the places that the log names.
    pub(super) fn note_part(&mut self, part: &RecordPart) {
        for &(id, extent) in &part.segments {
            let places = self.segments.entry(id).or_default();
            if places.named.len() < 64 && !places.named.iter().any(|p| p[..] == [extent]) {
                places.named.push(vec![extent]);
            }
        }
    }

    /// Puts the value of a reference on the list of values to look for, unless it is where it should be.
    pub(super) fn want(&mut self, reference: &[u8]) {
        let Some(at) = self.believed(reference) else { return };
        if at.len > 0 && self.known(at).is_none() {
            self.wanted.insert((at.segment, at.offset, at.len, at.crc), at);
            if self.wanted.len() >= WANTED_MAX {
                self.find_wanted();
            }
        }
    }

    /// The value of a reference, if it was found anywhere.
    pub(super) fn read(&mut self, reference: &[u8]) -> Option<Vec<u8>> {
        let at = self.believed(reference)?;
        self.known(at).or_else(|| self.in_two(at))
    }

    /// A reference, unless its length is impossible.
    fn believed(&self, reference: &[u8]) -> Option<ValuePointer> {
        ValuePointer::decode(reference).ok().filter(|at| u64::from(at.len) <= self.input.len())
    }

    /// The value, if it is at a known place.
    fn known(&mut self, at: ValuePointer) -> Option<Vec<u8>> {
        let (start, len) = (u64::from(at.offset), u64::from(at.len));
        let mut value = vec![0; usize_of(at.len)];
        let empty = Places::default();
        let places = self.segments.get(&at.segment).unwrap_or(&empty);
        for extents in &places.named {
            let end = extents.iter().fold(0u64, |sum, e| sum.saturating_add(e.len));
            if start + len <= end {
                self.bytes_left = self.bytes_left.checked_sub(len)?;
                self.input.read_extents(extents, start, &mut value);
                if crc(0, &value) == at.crc {
                    return Some(value);
                }
            }
        }
        let found = places.found.iter().filter_map(|base| place(*base, start));
        for offset in found.chain(self.alone.get(&content_of(&at)).copied()) {
            self.bytes_left = self.bytes_left.checked_sub(len)?;
            self.input.read(offset, &mut value);
            if crc(0, &value) == at.crc {
                return Some(value);
            }
        }
        None
    }

    /// The value, if it begins at one known place of its segment and ends at another.
    fn in_two(&mut self, at: ValuePointer) -> Option<Vec<u8>> {
        let (start, end) = (u64::from(at.offset), u64::from(at.offset) + u64::from(at.len));
        let head = start.next_multiple_of(ALIGN_BYTES) - start;
        let found = &self.segments.get(&at.segment)?.found;
        if found.len() < 2 || head >= u64::from(at.len) {
            return None;
        }
        let mut bytes = vec![0; usize_of(at.len)];
        let mut sums = Vec::new();
        for offset in found.iter().take(PAIRED_MAX).filter_map(|&base| place(base, start)) {
            self.bytes_left = self.bytes_left.checked_sub(u64::from(at.len) * 2)?;
            self.input.read(offset, &mut bytes);
            sums.push((offset, states(&bytes, usize_of64(head), usize_of64(ALIGN_BYTES))));
        }
        let tail = (end - 1) % ALIGN_BYTES + 1;
        for (first, a) in &sums {
            for (second, b) in sums.iter().filter(|(second, _)| second != first) {
                let n = a.len() - 1;
                let border = joined(a, b, tail, ALIGN_BYTES).position(|sum| sum == at.crc).map(|i| n - 1 - i);
                if let Some(border) = border {
                    let (from_first, from_second) =
                        bytes.split_at_mut(usize_of64(head) + (border - 1) * usize_of64(ALIGN_BYTES));
                    self.input.read(*first, from_first);
                    self.input.read(second + from_first.len() as u64, from_second);
                    return (crc(0, &bytes) == at.crc).then_some(bytes);
                }
            }
        }
        None
    }

    /// Looks for all values on the list.
    pub(super) fn find_wanted(&mut self) {
        let mut left: Vec<ValuePointer> = std::mem::take(&mut self.wanted).into_values().collect();
        for sample in SAMPLES {
            let mut some: Vec<ValuePointer> = Vec::new();
            for of_one in left.chunk_by(|a, b| a.segment == b.segment) {
                some.extend(of_one.iter().step_by(of_one.len().div_ceil(sample)));
            }
            if some.is_empty() {
                return;
            }
            self.look(&some, &left);
            left.retain(|&at| self.known(at).is_none());
        }
    }

    /// Looks for some values. `all` has those that may be their neighbours.
    fn look(&mut self, some: &[ValuePointer], all: &[ValuePointer]) {
        let mut contents: Vec<(Content, ValuePointer)> =
            some.iter().map(|at| (content_of(at), *at)).collect();
        contents.sort_by_key(|c| c.0);
        let mut wanted: Vec<Content> = contents.iter().map(|c| c.0).collect();
        wanted.dedup();
        let mut places: Vec<(ValuePointer, u64)> = Vec::new();
        self.search.places(&wanted, |content, offset| {
            // Several segments may have had the value: it was moved from one to the next, with its
            // neighbours.
            let from = contents.partition_point(|c| c.0 < content);
            let same = contents[from..].iter().take_while(|c| c.0 == content);
            places.extend(same.map(|c| (c.1, offset)));
        });
        let base =
            |(at, offset): &(ValuePointer, u64)| Some(i64::try_from(*offset).ok()? - i64::from(at.offset));
        let mut votes: HashMap<(u32, i64), u32> = HashMap::new();
        for hit in &places {
            base(hit).into_iter().for_each(|base| *votes.entry((hit.0.segment, base)).or_default() += 1);
        }
        for hit in &places {
            let (at, Some(base)) = (hit.0, base(hit)) else { continue };
            if votes.get(&(at.segment, base)).is_some_and(|n| *n > 1) || self.has_neighbour(at, base, all) {
                let found = &mut self.segments.entry(at.segment).or_default().found;
                if found.len() < FOUND_MAX && !found.contains(&base) {
                    found.push(base);
                } else if !found.contains(&base) {
                    self.alone.insert(content_of(&at), hit.1);
                }
            } else if self.search.compared <= COMPARED_MAX {
                self.alone.insert(content_of(&at), hit.1);
            }
        }
    }

    /// Whether another value of the segment is there too, if the segment begins at `base`.
    fn has_neighbour(&mut self, at: ValuePointer, base: i64, all: &[ValuePointer]) -> bool {
        let here = all.partition_point(|v| (v.segment, v.offset) < (at.segment, at.offset));
        let near = &all[here.saturating_sub(NEIGHBOURS)..(here + NEIGHBOURS).min(all.len())];
        near.iter().filter(|v| v.segment == at.segment && v.offset != at.offset).any(|other| {
            let left = self.bytes_left.checked_sub(u64::from(other.len));
            let (Some(offset), Some(left)) = (place(base, u64::from(other.offset)), left) else {
                return false;
            };
            self.bytes_left = left;
            let mut value = vec![0; usize_of(other.len)];
            self.input.read(offset, &mut value);
            crc(0, &value) == other.crc
        })
    }
}

/// The place in the file of byte `start` of a segment that begins at `base`.
fn place(base: i64, start: u64) -> Option<u64> {
    u64::try_from(base.checked_add_unsigned(start)?).ok()
}
