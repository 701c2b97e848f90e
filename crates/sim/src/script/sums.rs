//! What a script writes to the tables into which values are merged: sums, lists and sets.

use super::names::{LISTS, MERGED, SETS};
use super::write::{LIST, NUMBER, SET, Stamp, Write};
use crate::rng::Rng;
use azekura::{Error, Merge, Table, WriteTxn};
use std::collections::btree_map::Entry;

/// Bytes of an element of a set. One of all elements is nearly as long as what a page may have of one value.
const ELEMENT_BYTES: usize = 250;

/// The set with an element for each bit.
pub(super) fn elements(bits: u32) -> Vec<u8> {
    (0..32).filter(|bit| bits >> bit & 1 == 1).flat_map(|bit| [bit; ELEMENT_BYTES]).collect()
}

/// What stands in place of the length of a value of a table.
fn form_of(table: usize) -> u32 {
    match table {
        LISTS => LIST,
        SETS => SET,
        _ => NUMBER,
    }
}

/// What a merge makes of a record.
pub(super) fn merge(table: usize, record: Entry<'_, Vec<u8>, Stamp>, n: u32) {
    let (value, _) = record.or_insert((0, form_of(table)));
    if table == SETS { *value |= n } else { *value += n }
}

/// Merges into a table.
pub(super) fn take(txn: &mut WriteTxn, table: usize, at: &Table, key: &[u8], n: u32) -> Result<(), Error> {
    match table {
        LISTS => txn.merge(at, key, Merge::Append(&vec![0x5a; n as usize])),
        SETS => txn.merge(at, key, Merge::Union { width: ELEMENT_BYTES, elements: &elements(n) }),
        _ => txn.merge(at, key, Merge::AddU64(n.into())),
    }
}

/// Writes to these tables: most are merges.
pub(super) fn writes(rng: &mut Rng, rich: bool) -> Vec<Write> {
    let table = MERGED[rng.below(3) as usize].0;
    let key = |rng: &mut Rng| match rng.below(3) {
        0 => format!("sum-{}", rng.below(20)).into_bytes(),
        _ => rng.below(40).to_be_bytes().to_vec(),
    };
    let number = |rng: &mut Rng| match table {
        LISTS if rng.one_in(20) => rng.below(9_000) as u32,
        LISTS => rng.below(30) as u32,
        SETS => 1 << rng.below(32) | 1 << rng.below(32),
        _ => rng.below(1000) as u32,
    };
    let any = |rng: &mut Rng| match (key(rng), rng.below(14)) {
        (k, 0) => Write::Put(table, k, (number(rng), form_of(table))),
        (k, 1) => Write::Remove(table, k),
        (k, _) => Write::Merge(table, k, number(rng)),
    };
    let mut writes: Vec<Write> = (0..1 + rng.below(6)).map(|_| any(rng)).collect();
    match rng.below(30) {
        0 if table != SETS => {
            let (a, b) = (key(rng), key(rng));
            writes.insert(0, Write::Range(table, a.clone().min(b.clone()), a.max(b)));
        }
        1..=3 => {
            // A batch that is large enough to be a chunk.
            let n = if rich { 1300 } else { 80 };
            writes.extend((0..n).map(|n: u64| Write::Merge(table, (n * 5).to_be_bytes().to_vec(), 1)));
        }
        _ => {}
    }
    writes
}
