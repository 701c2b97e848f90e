//! Merges of values: each operand counts once, whatever is flushed, merged, copied or cut in between.

mod long;
mod model;
mod rules;

use azekura::storage::MemStorage;
use azekura::{Db, Merge, Options};
use std::collections::BTreeSet;
use std::time::Duration;

const PATH: &str = "/m.azk";

fn options() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).large_value_bytes(64)
}

fn open(storage: &MemStorage) -> Db {
    crate::common::watch(Duration::from_secs(120));
    Db::open_on(storage, PATH, options()).unwrap()
}

/// A copy of the file, as a crash of the process leaves it.
fn copy_of(storage: &MemStorage) -> MemStorage {
    crate::copies::copy_of(storage, PATH)
}

/// What a merge makes of a value, by a program of its own. None if the value is none for it.
fn merged(merge: Merge<'_>, base: Option<&[u8]>) -> Option<Vec<u8>> {
    match merge {
        Merge::Append(bytes) => Some([base.unwrap_or_default(), bytes].concat()),
        Merge::Union { width, elements } => {
            let base = base.unwrap_or_default();
            let all: BTreeSet<&[u8]> = base.chunks(width).chain(elements.chunks(width)).collect();
            base.len().is_multiple_of(width).then(|| all.into_iter().collect::<Vec<_>>().concat())
        }
        number => {
            let base = base.map(<[u8; 8]>::try_from).transpose().ok()?;
            Some(merged_number(number, base).to_vec())
        }
    }
}

/// What a merge makes of a number.
fn merged_number(merge: Merge<'_>, base: Option<[u8; 8]>) -> [u8; 8] {
    let i = |f: &dyn Fn(i64) -> i64, or: i64| base.map_or(or, |b| f(i64::from_le_bytes(b))).to_le_bytes();
    let u = |f: &dyn Fn(u64) -> u64, or: u64| base.map_or(or, |b| f(u64::from_le_bytes(b))).to_le_bytes();
    let d = |f: &dyn Fn(f64) -> f64, or: f64| base.map_or(or, |b| f(f64::from_le_bytes(b))).to_le_bytes();
    match merge {
        Merge::AddI64(n) => i(&|b| b.wrapping_add(n), n),
        Merge::AddU64(n) => u(&|b| b.wrapping_add(n), n),
        Merge::AddF64(n) => d(&|b| b + n, n),
        Merge::MinI64(n) => i(&|b| if n < b { n } else { b }, n),
        Merge::MaxI64(n) => i(&|b| if n > b { n } else { b }, n),
        Merge::MinU64(n) => u(&|b| if n < b { n } else { b }, n),
        Merge::MaxU64(n) => u(&|b| if n > b { n } else { b }, n),
        Merge::MinF64(n) => d(&|b| if n < b { n } else { b }, n),
        Merge::MaxF64(n) => d(&|b| if n > b { n } else { b }, n),
        Merge::BitOr(n) => u(&|b| b | n, n),
        other => panic!("{other:?} is not modelled"),
    }
}
