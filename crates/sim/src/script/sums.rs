//! What a script writes to the table of sums.

use super::names::SUMS;
use super::write::{NUMBER, Write};
use crate::rng::Rng;

/// Writes to the table of sums: most are merges.
pub(super) fn writes(rng: &mut Rng, rich: bool) -> Vec<Write> {
    let key = |rng: &mut Rng| match rng.below(3) {
        0 => format!("sum-{}", rng.below(20)).into_bytes(),
        _ => rng.below(40).to_be_bytes().to_vec(),
    };
    let any = |rng: &mut Rng| match (key(rng), rng.below(14)) {
        (k, 0) => Write::Put(SUMS, k, (rng.below(1000) as u32, NUMBER)),
        (k, 1) => Write::Remove(SUMS, k),
        (k, _) => Write::Merge(SUMS, k, rng.below(1000) as u32),
    };
    let mut writes: Vec<Write> = (0..1 + rng.below(6)).map(|_| any(rng)).collect();
    match rng.below(30) {
        0 => {
            let (a, b) = (key(rng), key(rng));
            writes.insert(0, Write::Range(SUMS, a.clone().min(b.clone()), a.max(b)));
        }
        1..=3 => {
            // A batch that is large enough to be a chunk.
            let n = if rich { 1300 } else { 80 };
            writes.extend((0..n).map(|n: u64| Write::Merge(SUMS, (n * 5).to_be_bytes().to_vec(), 1)));
        }
        _ => {}
    }
    writes
}
