//! The contents of a file of the disk.

use super::shown::Shown;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A sparse file in memory. Copies share unchanged chunks.
#[derive(Clone, Default)]
pub(super) struct Bytes {
    /// The length.
    pub(super) len: u64,
    chunks: BTreeMap<u64, Arc<[u8; CHUNK]>>,
    /// Where mappings show the file.
    pub(super) shown: Shown,
}

const CHUNK: usize = 16 << 10;

/// A part of a range: chunk, place in it, place in the range, length.
type Part = (u64, usize, usize, usize);

impl Bytes {
    fn parts(at: u64, n: usize) -> impl Iterator<Item = Part> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let from = at + done as u64;
            let place = (from % CHUNK as u64) as usize;
            let len = (n - done).min(CHUNK - place);
            done += len;
            (len > 0).then(|| (from / CHUNK as u64, place, done - len, len))
        })
    }

    /// Writes, and lengthens the file if necessary.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        for (chunk, place, from, len) in Bytes::parts(at, bytes.len()) {
            let part = &bytes[from..from + len];
            // Zeros in an absent chunk need no memory.
            if !self.chunks.contains_key(&chunk) && part.iter().all(|&b| b == 0) {
                continue;
            }
            let chunk = self.chunks.entry(chunk).or_insert_with(|| Arc::new([0; CHUNK]));
            Arc::make_mut(chunk)[place..place + len].copy_from_slice(part);
        }
        self.len = self.len.max(at + bytes.len() as u64);
        self.shown.follow(|file| file.write_all_at(bytes, at));
    }

    /// The chunks that exist, each with the place where it begins.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8; CHUNK])> {
        self.chunks.iter().map(|(n, bytes)| (n * CHUNK as u64, &**bytes))
    }

    /// Zeroes a range, as far as the file goes.
    pub(super) fn zero(&mut self, at: u64, end: u64) {
        let n = usize::try_from(end.min(self.len).saturating_sub(at)).unwrap_or(usize::MAX);
        for (chunk, place, _, len) in Bytes::parts(at, n) {
            if let Some(bytes) = self.chunks.get_mut(&chunk) {
                Arc::make_mut(bytes)[place..place + len].fill(0);
            }
        }
        self.shown.follow(|file| file.write_all_at(&vec![0; n], at));
    }

    /// Cuts the file, or lengthens it with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        self.zero(len, self.len);
        self.chunks.split_off(&len.div_ceil(CHUNK as u64));
        self.len = len;
        self.shown.follow(|file| file.set_len(len));
    }

    /// Fills `out`. False if the file ends before that.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> bool {
        if at.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return false;
        }
        for (chunk, place, from, len) in Bytes::parts(at, out.len()) {
            match self.chunks.get(&chunk) {
                Some(bytes) => out[from..from + len].copy_from_slice(&bytes[place..place + len]),
                None => out[from..from + len].fill(0),
            }
        }
        true
    }

    /// The whole contents.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; usize::try_from(self.len).unwrap_or(0)];
        self.read(0, &mut out);
        out
    }

    /// The places of its blocks of 4 KiB that are not all zeros.
    pub(super) fn used_blocks(&self) -> Vec<u64> {
        let blocks = self.chunks.iter().flat_map(|(chunk, bytes)| {
            let used = bytes.chunks(4096).zip(0..).filter(|(block, _)| block.iter().any(|&b| b != 0));
            used.map(move |(_, i)| chunk * CHUNK as u64 + i * 4096)
        });
        blocks.filter(|&at| at < self.len).collect()
    }
}
