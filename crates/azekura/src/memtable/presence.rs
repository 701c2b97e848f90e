//! The presence filter of the active buffer: one load tells that a key is surely absent.
//!
//! There is one writer at a time, and any number of readers. The buffer orders them (see *Memory ordering* in
//! `active.rs`).

use crate::base::codec::usize_of64;
use crate::base::sync::SetAlone;
use crate::base::sync::atomic::{AtomicU64, Ordering};

/// The keys that may be present: four bits of one 64-bit word per key, so that a lookup is one load. At 65
/// bits a key 0.02 % of absent keys pass, at 20 bits 0.3 %.
pub(super) struct Filter {
    words: Box<[AtomicU64]>,
    /// The index of a hash's word is `hash >> shift`.
    shift: u32,
}

impl Filter {
    /// A filter of a power of two of words, at least `words`.
    pub(super) fn new(words: usize) -> Filter {
        let count = words.max(2).next_power_of_two();
        Filter { words: (0..count).map(|_| AtomicU64::new(0)).collect(), shift: 64 - count.trailing_zeros() }
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    pub(super) fn clear(&mut self) {
        for word in &mut self.words {
            word.set_alone(0);
        }
    }

    #[inline(always)]
    fn word(&self, hash: u64) -> &AtomicU64 {
        &self.words[usize_of64(hash >> self.shift)]
    }

    /// Four bits of a word, from a product that depends on the whole hash.
    #[inline(always)]
    fn bits(hash: u64) -> u64 {
        let h = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
        1 << (h >> 58) | 1 << (h >> 52 & 63) | 1 << (h >> 46 & 63) | 1 << (h >> 40 & 63)
    }

    /// REQUIRES: one caller at a time, or bits get lost.
    #[inline(always)]
    pub(super) fn add(&self, hash: u64) {
        let word = self.word(hash);
        word.store(word.load(Ordering::Relaxed) | Filter::bits(hash), Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let bits = Filter::bits(hash);
        self.word(hash).load(Ordering::Relaxed) & bits == bits
    }
}
