//! Large values of a damaged file. A reference knows a value's segment, its place there, its length and its checksum,
//! but not where the segment stands. The manifest says that, and the log of young segments; where both are silent,
//! the file is searched for a place at which the value verifies, and that goes for its neighbours too.

use super::input::Input;
use super::scan::Found;
use crate::base::checksum::crc;
use crate::base::codec::{usize_of, usize_of64};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES};
use crate::format::frame::Part;
use crate::format::manifest::Manifest;
use crate::space::Extent;
use crate::values::ValueRef;
use std::collections::{BTreeSet, HashMap};

/// Searching reads the file this many times over at most, and as many bytes besides.
const SEARCHES_OF_FILE: u64 = 1024;
const SEARCH_BYTES: u64 = 64 << 20;
/// Of a segment of which so many values were searched for in vain, no others are.
const VAIN_MAX: u32 = 256;
/// Of the places of a segment so many are tried in pairs.
const PAIRED_MAX: usize = 8;

/// Where a segment may stand.
#[derive(Default)]
struct Places {
    /// Lists of extents, as somebody has named them.
    named: Vec<Vec<Extent>>,
    /// Places in the file of the segment's first byte, as values were found; below zero, if only a part of the
    /// segment stands there and the file begins behind the place of the rest.
    found: Vec<i64>,
    /// Searches that found nothing.
    vain: u32,
}

/// See the file's head.
pub(super) struct Values<'a> {
    input: &'a Input,
    segments: HashMap<u32, Places>,
    /// Blocks that are something else.
    taken: BTreeSet<u64>,
    budget_bytes: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(input: &'a Input) -> Values<'a> {
        let budget_bytes = SEARCH_BYTES.saturating_add(input.len().saturating_mul(SEARCHES_OF_FILE));
        Values { input, segments: HashMap::new(), taken: BTreeSet::new(), budget_bytes }
    }

    /// The places that a manifest names.
    pub(super) fn note_manifest(&mut self, manifest: &Manifest) {
        for value in &manifest.values {
            self.segments.entry(value.id).or_default().named.push(value.extents.clone());
        }
    }

    /// The places that the log names.
    pub(super) fn note_part(&mut self, part: &Part) {
        for &(id, extent) in &part.segments {
            let places = self.segments.entry(id).or_default();
            if places.named.len() < 64 && !places.named.iter().any(|p| p[..] == [extent]) {
                places.named.push(vec![extent]);
            }
        }
    }

    /// Where pages and frames begin, no value is looked for.
    pub(super) fn note_found(&mut self, found: &Found) {
        self.taken.extend(found.runs.values().flat_map(|r| r.pages.iter().map(|p| p.offset)));
        self.taken.extend(found.frames.iter().map(|f| f.offset));
    }

    /// The value of a reference, if it stands anywhere.
    pub(super) fn read(&mut self, reference: &[u8]) -> Option<Vec<u8>> {
        let at = ValueRef::decode(reference).ok()?;
        // Before its length is believed.
        if u64::from(at.len) > self.input.len() {
            return None;
        }
        let mut value = vec![0; usize_of(at.len)];
        let places = self.segments.entry(at.segment).or_default();
        for extents in &places.named {
            let end = extents.iter().fold(0u64, |sum, e| sum.saturating_add(e.len));
            if u64::from(at.offset) + u64::from(at.len) <= end {
                self.input.read_extents(extents, u64::from(at.offset), &mut value);
                if crc(0, &value) == at.crc {
                    return Some(value);
                }
            }
        }
        for &base in &places.found {
            if let Some(offset) = base.checked_add_unsigned(u64::from(at.offset)).and_then(|o| u64::try_from(o).ok()) {
                self.input.read(offset, &mut value);
                if crc(0, &value) == at.crc {
                    return Some(value);
                }
            }
        }
        self.in_two(at).or_else(|| self.search(at, value))
    }

    /// The value if it begins in one place of its segment and ends in another, both of which are known.
    fn in_two(&self, at: ValueRef) -> Option<Vec<u8>> {
        let found = self.segments.get(&at.segment).map_or(&[][..], |p| &p.found);
        let (start, end) = (u64::from(at.offset), u64::from(at.offset) + u64::from(at.len));
        let read = |base: i64, from: u64, to: u64| {
            let offset = u64::try_from(base.checked_add_unsigned(from)?).ok()?;
            let mut bytes = vec![0; usize_of64(to - from)];
            self.input.read(offset, &mut bytes);
            Some(bytes)
        };
        // Places are many only in hostile files.
        for &first in found.iter().take(PAIRED_MAX) {
            for &second in found.iter().take(PAIRED_MAX).filter(|&&second| second != first) {
                let mut split = (start + 1).next_multiple_of(ALIGN_BYTES);
                while split < end {
                    let (Some(mut whole), Some(rest)) = (read(first, start, split), read(second, split, end)) else {
                        break;
                    };
                    whole.extend_from_slice(&rest);
                    if crc(0, &whole) == at.crc {
                        return Some(whole);
                    }
                    split += ALIGN_BYTES;
                }
            }
        }
        None
    }

    /// Tries every block at which the value may stand.
    fn search(&mut self, at: ValueRef, mut value: Vec<u8>) -> Option<Vec<u8>> {
        let places = self.segments.get_mut(&at.segment)?;
        if places.vain >= VAIN_MAX || value.is_empty() {
            return None;
        }
        let within = u64::from(at.offset) % ALIGN_BYTES;
        let mut block = SUPERBLOCKS_BYTES;
        while block + within + u64::from(at.len) <= self.input.len() {
            if !self.taken.contains(&block) {
                self.budget_bytes = self.budget_bytes.checked_sub(u64::from(at.len))?;
                self.input.read(block + within, &mut value);
                if crc(0, &value) == at.crc {
                    let base = i64::try_from(block + within).ok()?.checked_sub(i64::from(at.offset))?;
                    places.found.push(base);
                    return Some(value);
                }
            }
            block += ALIGN_BYTES;
        }
        places.vain += 1;
        None
    }
}
