//! What is in each block of an undamaged file, by its first bytes and checksums.

use std::collections::{BTreeMap, BTreeSet};

/// The unit of everything in a file.
pub(super) const BLOCK: usize = 4096;
/// The size of filter pages.
const FILTER_PAGE: usize = 16 << 10;
/// The numbers of filter pages, and of meta blocks, in their checksums.
const FILTER_NUMBER: u32 = 0x8000_0000;
const META_NUMBER: u32 = u32::MAX;
/// No run here has more filter pages.
const FILTER_PAGES_MAX: u32 = 16;

/// What a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Superblock,
    Manifest,
    /// The first block of a meta block, which has the label.
    Label,
    /// Any block of a meta block.
    Meta,
    Filter,
    Frame,
    /// Pages, values, and free space.
    Other,
}

/// The kinds of all blocks of a file.
#[derive(Default)]
pub(super) struct Blocks {
    what: Vec<What>,
    /// The record frames of the newest log chain that no checkpoint has made needless: the place of each, by
    /// number.
    frames: BTreeMap<u64, (usize, usize)>,
    /// All frames that are whole: where each begins, and its length.
    whole_frames: Vec<(usize, usize)>,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at) as u32) | u64::from(u32_at(bytes, at + 4) as u32) << 32
}

/// Whether the checksum of a part of a run holds.
fn is_part(bytes: &[u8], file_id: u64, run: u64, number: u32) -> bool {
    if bytes.len() < 4 {
        return false;
    }
    let identity = [&file_id.to_le_bytes()[..], &run.to_le_bytes(), &number.to_le_bytes()].concat();
    crc32c::crc32c_append(crc32c::crc32c(&identity), &bytes[4..]) as usize == u32_at(bytes, 0)
}

impl Blocks {
    /// Looks at an undamaged file.
    pub(super) fn of(bytes: &[u8]) -> Blocks {
        let mut blocks = Blocks { what: vec![What::Other; bytes.len().div_ceil(BLOCK)], ..Blocks::default() };
        blocks.mark(0, 2 * BLOCK, What::Superblock);
        let file_id = u64_at(bytes, 16);
        let mut runs = Vec::new();
        let places = || (2 * BLOCK..bytes.len()).step_by(BLOCK);
        for at in places().filter(|&at| bytes[at + 4..].starts_with(b"AZRM")) {
            let (len, run) = (u32_at(bytes, at + 8), u64_at(bytes, at + 32));
            // Free space has the remains of other runs.
            if bytes.get(at..at + len).is_some_and(|b| is_part(b, file_id, run, META_NUMBER)) {
                blocks.mark(at, len, What::Meta);
                runs.push(run);
            }
            // The rest of a meta block that was moved in parts may be elsewhere.
            if u64_at(bytes, at + 16) == file_id {
                blocks.mark(at, 1, What::Label);
            }
        }
        for at in places().filter(|&at| bytes[at..at + 4] != [0; 4] && bytes[at + 4..at + 64] == [0; 60]) {
            let Some(page) = bytes.get(at..at + FILTER_PAGE) else { continue };
            let mut ids =
                runs.iter().flat_map(|run| (0..FILTER_PAGES_MAX).map(move |n| (*run, FILTER_NUMBER + n)));
            if ids.any(|(run, number)| is_part(page, file_id, run, number)) {
                blocks.mark(at, FILTER_PAGE, What::Filter);
            }
        }
        blocks.find_frames(bytes);
        if u64_at(bytes, 40) > 0 {
            blocks.mark(u64_at(bytes, 40) as usize, u32_at(bytes, 48), What::Manifest);
        }
        blocks
    }

    fn find_frames(&mut self, bytes: &[u8]) {
        // The manifest is in the superblock, or where the superblock says.
        let manifest = if u64_at(bytes, 40) > 0 { u64_at(bytes, 40) as usize } else { 64 };
        let flushed = u64_at(bytes, manifest + 12);
        let mut chain = 0;
        for at in (2 * BLOCK..bytes.len()).step_by(BLOCK).filter(|&at| bytes[at + 4..].starts_with(b"AZLF")) {
            let len = 64 + u32_at(bytes, at + 32);
            let is_whole = |b: &[u8]| crc32c::crc32c(&b[4..]) as usize == u32_at(b, 0);
            if !bytes.get(at..at + len).is_some_and(is_whole) {
                continue;
            }
            self.mark(at, len, What::Frame);
            self.whole_frames.push((at, len));
            if u64_at(bytes, at + 16) > chain {
                chain = u64_at(bytes, at + 16);
                self.frames.clear();
            }
            let has_records = u32_at(bytes, at + 40) == 0 && u32_at(bytes, at + 36) != u32::MAX as usize;
            // One commit in a frame: after its length comes its number.
            let is_young = has_records && u64_at(bytes, at + 64 + u32_at(bytes, at + 36) + 8) > flushed;
            if u64_at(bytes, at + 16) == chain && is_young {
                self.frames.insert(u64_at(bytes, at + 24), (at, len));
            }
        }
    }

    fn mark(&mut self, at: usize, len: usize, what: What) {
        let end = (at + len).div_ceil(BLOCK).min(self.what.len());
        self.what[at / BLOCK..end].fill(what);
    }

    /// The blocks of a kind. A label is part of a meta block too.
    pub(super) fn all(&self, kind: What) -> Vec<usize> {
        let is = |what: What| what == kind || (kind == What::Meta && what == What::Label);
        (0..self.what.len()).filter(|&i| is(self.what[i])).collect()
    }

    /// The damaged file with everything mended except pages and values.
    pub(super) fn mended(&self, whole: &[u8], damaged: &[u8]) -> Vec<u8> {
        let mut bytes = damaged.to_vec();
        bytes.resize(whole.len(), 0);
        for (i, _) in self.what.iter().enumerate().filter(|(_, what)| **what != What::Other) {
            let range = i * BLOCK..whole.len().min((i + 1) * BLOCK);
            bytes[range.clone()].copy_from_slice(&whole[range]);
        }
        bytes
    }

    /// For each record frame of the newest chain, whether it has changed.
    pub(super) fn frames_lost(&self, whole: &[u8], damaged: &[u8]) -> Vec<bool> {
        self.frames
            .values()
            .map(|&(at, len)| damaged.get(at..at + len) != Some(&whole[at..at + len]))
            .collect()
    }

    /// How many parts that identify the file are unchanged: superblocks, labels, frames, pages. A page that
    /// is in two places counts once.
    pub(super) fn whole_ones(&self, whole: &[u8], damaged: &[u8]) -> usize {
        let same = |at: usize, len: usize| {
            let range = at..whole.len().min(at + len);
            damaged.get(range.clone()) == Some(&whole[range])
        };
        let is = |i: &usize, what: What| self.what[*i] == what;
        let all = || 0..self.what.len();
        let tells = |i: &usize| is(i, What::Superblock) || is(i, What::Label);
        let blocks = all().filter(tells).filter(|i| same(i * BLOCK, BLOCK)).count();
        let frames = self.whole_frames.iter().filter(|(at, len)| same(*at, *len)).count();
        // Pages of records begin with their type and shape, and say how long they are.
        let pages = all().filter(|i| is(i, What::Other)).map(|i| i * BLOCK);
        let pages = pages.filter(|at| whole[at + 4] == 1 && whole[at + 5] < 4);
        let pages = pages.filter(|&at| same(at, (u32_at(whole, at + 48) & 0xff_ffff).max(BLOCK)));
        blocks + frames + pages.map(|at| u32_at(whole, at)).collect::<BTreeSet<_>>().len()
    }
}
