//! The order in which a shard takes its records, and which of them are its own.

use crate::error::invalid;
use crate::spec::shard_of_hash;
use azekura::{Result, TableKind, hash_of};
use std::collections::BTreeSet;

/// A key is shown up to this length.
const KEY_BYTES_SHOWN: usize = 40;

/// The key as people can read it.
pub(crate) fn shown(key: &[u8]) -> String {
    let text = key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii();
    if key.len() > KEY_BYTES_SHOWN { format!("\"{text}\"…") } else { format!("\"{text}\"") }
}

/// What stands before a key in the order of a set's records: its hash, or nothing. Keys of one hash follow
/// each other in no particular order.
pub(crate) fn hash_in(kind: TableKind, key: &[u8], seed: u64) -> u64 {
    match kind {
        TableKind::Hash => hash_of(key, seed),
        TableKind::Ordered => 0,
    }
}

/// Lets the records of one shard pass, each key once, in their order.
pub(crate) struct Gate {
    kind: TableKind,
    seed: u64,
    shards: u32,
    shard: u32,
    any: bool,
    hash: u64,
    /// The last key.
    key: Vec<u8>,
    /// The keys that share the last key's hash, if there are several.
    same: BTreeSet<Vec<u8>>,
}

impl Gate {
    pub(crate) fn new(kind: TableKind, seed: u64, (shard, shards): (u32, u32)) -> Gate {
        Gate { kind, seed, shards, shard, any: false, hash: 0, key: Vec::new(), same: BTreeSet::new() }
    }

    /// The last key that has passed.
    pub(crate) fn last(&self) -> &[u8] {
        &self.key
    }

    /// Fails if the key is of another shard, comes before the last one, or is that.
    pub(crate) fn pass(&mut self, key: &[u8]) -> Result<()> {
        match self.kind {
            TableKind::Hash => self.by_hash(key)?,
            TableKind::Ordered => self.by_key(key)?,
        }
        self.any = true;
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }

    fn by_hash(&mut self, key: &[u8]) -> Result<()> {
        let hash = hash_of(key, self.seed);
        let own = shard_of_hash(hash, self.shards);
        if own != self.shard {
            return Err(invalid(format!(
                "the key {} is of shard {own}, not of shard {}: the records have to be divided first",
                shown(key),
                self.shard
            )));
        }
        if self.any && hash <= self.hash {
            if hash < self.hash {
                return Err(self.unsorted(key));
            }
            self.same.insert(self.key.clone());
            if self.same.contains(key) {
                return Err(twice(key));
            }
        } else {
            self.same.clear();
        }
        self.hash = hash;
        Ok(())
    }

    fn by_key(&self, key: &[u8]) -> Result<()> {
        if self.any && key <= &*self.key {
            return Err(if key == self.key { twice(key) } else { self.unsorted(key) });
        }
        Ok(())
    }

    #[cold]
    fn unsorted(&self, key: &[u8]) -> azekura::Error {
        let order = if self.kind == TableKind::Hash { "by their hashes" } else { "by their keys" };
        invalid(format!(
            "the key {} comes after {}: the records of a shard have to be sorted {order}",
            shown(key),
            shown(&self.key)
        ))
    }
}

#[cold]
fn twice(key: &[u8]) -> azekura::Error {
    invalid(format!("two records have the key {}", shown(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of eight bytes that has this hash.
    fn key_of_hash(hash: u64, seed: u64) -> [u8; 8] {
        let mut x = hash;
        x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
        x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
        ((x ^ (x >> 30) ^ (x >> 60)) ^ seed).to_be_bytes()
    }

    #[test]
    fn records_of_another_shard_or_place_are_refused() {
        let mut gate = Gate::new(TableKind::Hash, 7, (1, 2));
        let [low, high, higher] = [1 << 62, 3 << 62, (3 << 62) + 1].map(|hash| key_of_hash(hash, 7));
        assert_eq!(hash_of(&low, 7), 1 << 62);
        gate.pass(&high).expect("its own");
        let said = |outcome: Result<()>| outcome.expect_err("refused").to_string();
        assert!(said(gate.pass(&low)).contains("is of shard 0, not of shard 1"));
        assert!(said(gate.pass(&high)).contains("two records"));
        gate.pass(&higher).expect("after it");
        assert!(said(gate.pass(&high)).contains("sorted by their hashes"));
        assert_eq!(gate.last(), higher);
    }

    #[test]
    fn keys_of_one_hash_pass_in_any_order_but_each_once() {
        let text = b"a key that is longer".to_vec();
        let same = key_of_hash(hash_of(&text, 7), 7);
        for order in [[&text[..], &same[..]], [&same[..], &text[..]]] {
            let mut gate = Gate::new(TableKind::Hash, 7, (0, 1));
            order.iter().for_each(|key| gate.pass(key).expect("it is new"));
            for key in order {
                assert!(gate.pass(key).expect_err("it was there").to_string().contains("two records"));
            }
        }
    }

    #[test]
    fn ordered_shards_take_keys_in_their_order() {
        let mut gate = Gate::new(TableKind::Ordered, 0, (0, 1));
        for key in ["", "a", "aa", "b"] {
            gate.pass(key.as_bytes()).expect("in order");
        }
        assert!(gate.pass(b"b").expect_err("twice").to_string().contains("two records have the key \"b\""));
        assert!(gate.pass(b"ab").expect_err("late").to_string().contains("sorted by their keys"));
    }
}
