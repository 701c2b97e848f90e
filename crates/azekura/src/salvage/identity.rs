//! Which file a page belongs to: what every page's checksum begins with.
//!
//! A page's checksum covers file id, run id, page number and bytes, in this order. The page holds run id and
//! number. If nothing tells the file id, its checksum (32 bits) can be computed back from any page, since
//! each step of a CRC can be undone. Pages that agree on it are pages of the file.

use crate::base::checksum::crc;
use crate::format::page::PageIdentity;
use std::collections::HashMap;

/// The checksum of a file id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Identity(u32);

impl Identity {
    pub(super) fn of(file_id: u64) -> Identity {
        Identity(crc(0, &file_id.to_le_bytes()))
    }

    /// The seed of all checksums of a run.
    pub(super) fn seed(self, run: u64) -> u32 {
        crc(self.0, &run.to_le_bytes())
    }
}

/// Computes identities back from pages.
#[derive(Default)]
pub(super) struct Solver {
    /// For each length of the checksummed bytes, the matrix that undoes them.
    inverses: HashMap<usize, [u32; 32]>,
}

impl Solver {
    /// The file that the page belongs to if it is whole.
    pub(super) fn solve(&mut self, page: &[u8]) -> Identity {
        let place = PageIdentity::read(page);
        let expected = u32::from_le_bytes([page[0], page[1], page[2], page[3]]);
        let from = |seed| {
            let seed = crc(seed, &place.run.to_le_bytes());
            crc(crc(seed, &place.number.to_le_bytes()), &page[4..])
        };
        let inverse = self.inverses.entry(page.len()).or_insert_with(|| inverse(page.len() + 8));
        Identity(apply(inverse, expected ^ from(0)))
    }
}

/// The product of a matrix, given by its columns, and a vector of bits.
fn apply(columns: &[u32; 32], bits: u32) -> u32 {
    columns.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).fold(0, |sum, (_, column)| sum ^ column)
}

/// The matrix that undoes the effect of `len` bytes on a checksum's seed, which is linear.
fn inverse(len: usize) -> [u32; 32] {
    let zeroes = vec![0; len];
    let base = crc(0, &zeroes);
    let mut left: [u32; 32] = std::array::from_fn(|i| crc(1 << i, &zeroes) ^ base);
    let mut right: [u32; 32] = std::array::from_fn(|i| 1 << i);
    // Adds columns to each other until the left side is the identity.
    for bit in 0..32 {
        let Some(pivot) = (bit..32).find(|&i| left[i] >> bit & 1 == 1) else { continue };
        left.swap(bit, pivot);
        right.swap(bit, pivot);
        for i in (0..32).filter(|&i| i != bit) {
            if left[i] >> bit & 1 == 1 {
                left[i] ^= left[bit];
                right[i] ^= right[bit];
            }
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::checksum::seed;
    use crate::base::key::TableKind;
    use crate::format::page::seal_records;

    #[test]
    fn a_page_tells_the_checksum_of_its_files_id() {
        let mut solver = Solver::default();
        for (n, len) in [4096, 16_384, 98_304, 4096].into_iter().enumerate() {
            let n = n as u64;
            let mut page: Vec<u8> = (0..len).map(|i| (i * 7 + i / 100) as u8).collect();
            let (file_id, run) = (0x1234_5678_9abc_def0 + n, 77 << n);
            let place = PageIdentity { table: 3, kind: TableKind::Hash, run, number: 5 };
            seal_records(&mut page, seed(file_id, run), place);
            assert_eq!(PageIdentity::read(&page), place);
            assert_eq!(solver.solve(&page), Identity::of(file_id));
            assert_eq!(Identity::of(file_id).seed(run), seed(file_id, run));
            page[len / 2] ^= 1;
            assert_ne!(solver.solve(&page), Identity::of(file_id));
        }
    }
}
