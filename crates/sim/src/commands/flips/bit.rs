//! One flipped bit.

use crate::disk::Disk;
use crate::judge::PATH;

/// Flips a bit of the file, and says which.
pub(super) fn flip(disk: &Disk, bit: u64) -> String {
    let byte = disk.peek(PATH, bit / 8, 1)[0];
    disk.patch(PATH, bit / 8, &[byte ^ (1 << (bit % 8))]);
    format!("bit {} of byte {}", bit % 8, bit / 8)
}
