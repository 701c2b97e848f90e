//! The contents of a file of the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A sparse file in memory; copies share what neither has changed since.
#[derive(Clone, Default)]
pub struct Bytes {
    /// The length.
    pub len: u64,
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
}

const CHUNK: u64 = 16 << 10;

impl Bytes {
    /// The parts of a range: chunk, place in it, place in the range, length.
    fn parts(at: u64, n: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let from = at + done as u64;
            let len = (n - done).min((CHUNK - from % CHUNK) as usize);
            done += len;
            (len > 0).then(|| (from / CHUNK, (from % CHUNK) as usize, done - len, len))
        })
    }

    /// Writes, and lengthens the file if need be.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        for (chunk, place, from, len) in Bytes::parts(at, bytes.len()) {
            let chunk = self.chunks.entry(chunk).or_insert_with(|| Arc::new(vec![0; CHUNK as usize]));
            Arc::make_mut(chunk)[place..place + len].copy_from_slice(&bytes[from..from + len]);
        }
        self.len = self.len.max(at + bytes.len() as u64);
    }

    /// Zeroes a range as far as the file goes.
    pub fn zero(&mut self, at: u64, end: u64) {
        for (chunk, place, _, len) in Bytes::parts(at, end.min(self.len).saturating_sub(at) as usize) {
            if let Some(bytes) = self.chunks.get_mut(&chunk) {
                Arc::make_mut(bytes)[place..place + len].fill(0);
            }
        }
    }

    /// Cuts, or lengthens with zeros.
    pub fn set_len(&mut self, len: u64) {
        self.zero(len, self.len);
        self.chunks.split_off(&len.div_ceil(CHUNK));
        self.len = len;
    }

    /// False: the file ends before that.
    pub fn read(&self, at: u64, out: &mut [u8]) -> bool {
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

    /// Where its blocks of 4 KiB are that are not all zeros.
    pub fn used_blocks(&self) -> Vec<u64> {
        let blocks = self.chunks.iter().flat_map(|(chunk, bytes)| {
            let used = |i: &u64| bytes[(*i * 4096) as usize..(*i * 4096 + 4096) as usize].iter().any(|&b| b != 0);
            (0..CHUNK / 4096).filter(used).map(|i| chunk * CHUNK + i * 4096).collect::<Vec<_>>()
        });
        blocks.filter(|&at| at < self.len).collect()
    }
}
