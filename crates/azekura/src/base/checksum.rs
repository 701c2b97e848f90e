//! CRC32C with an identity mixed in: a page in the wrong place never passes.

use crate::base::fault::fault;
#[cfg(target_arch = "x86_64")]
use crate::base::fold::{FOLD_BYTES_MIN, can_fold, crc_folded};

/// The checksum of `bytes`, in a place that `seed` names.
#[inline]
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= FOLD_BYTES_MIN && can_fold() {
        // SAFETY: the processor has the instructions.
        return unsafe { crc_folded(seed, bytes) };
    }
    crc32c::crc32c_append(seed, bytes)
}

/// The seed of one numbered structure of one file.
pub(crate) fn seed(file_id: u64, structure_id: u64) -> u32 {
    let mut b = [0; 16];
    b[..8].copy_from_slice(&file_id.to_le_bytes());
    b[8..].copy_from_slice(&structure_id.to_le_bytes());
    crc32c::crc32c(&b)
}

/// The seed of one page of a structure.
#[inline]
pub(crate) fn page_seed(structure_seed: u32, page: u32) -> u32 {
    crc32c::crc32c_append(structure_seed, &page.to_le_bytes())
}

/// Whether checksums are ignored. Fuzzers need this to get past them.
#[inline(always)]
pub(crate) fn is_ignored() -> bool {
    cfg!(fuzzing) || fault!("fuzzing")
}
