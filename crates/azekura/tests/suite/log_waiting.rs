//! What waits for the log refers to memtables. Whatever becomes of them, the log gets what was committed.

use azekura::{Db, Durability, Options, Table, TableKind, WriteOptions};
use sim::disk::{Disk, Keep};
use sim::rng::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

const PATH: &str = "log_waiting.azk";

fn noise(seed: u64, len: usize) -> Vec<u8> {
    Rng(seed).bytes(len)
}

/// A record's key: short, of eight bytes, or long.
fn key_of(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.to_be_bytes()[5..].to_vec(),
        1 => number.to_be_bytes().to_vec(),
        _ => noise(number, 20),
    }
}

/// Small commits to two tables: runs of them to one and a few to each in turns, of one record or several, of
/// which some remove, and some commits to both.
fn commit_many(rng: &mut Rng, db: &Db, tables: &[Table; 2], models: &mut [BTreeMap<Vec<u8>, Vec<u8>>; 2]) {
    for round in 0..200u64 {
        let here = usize::from(rng.one_in(2));
        for commit in 0..if round % 4 == 0 { 150 } else { rng.below(4) } {
            let mut txn = db.write();
            for _ in 0..if commit % 8 == 0 { 1 + rng.below(20) } else { 1 } {
                let key = key_of(rng.below(900));
                if rng.one_in(8) {
                    txn.remove(&tables[here], &key).unwrap();
                    models[here].remove(&key);
                } else {
                    let value = noise(rng.number(), *rng.pick(&[0, 4, 8, 300, 1000]));
                    txn.put(&tables[here], &key, &value).unwrap();
                    models[here].insert(key, value);
                }
            }
            if rng.one_in(30) {
                txn.put(&tables[1 - here], b"beside", round.to_le_bytes()).unwrap();
                models[1 - here].insert(b"beside".to_vec(), round.to_le_bytes().to_vec());
            }
            txn.commit().unwrap();
        }
    }
}

/// Small commits wait for the log by reference to memtables, which are sealed and merged meanwhile, and one
/// durable commit writes them all.
#[test]
fn what_waits_for_the_log_is_what_was_committed() {
    for seed in 1..=4 {
        println!("seed {seed}");
        let options = || {
            // A memtable that is never full, nor flushed because nobody has written for a second.
            let options = Options::new().memory_bytes(64 << 20).memtable_bytes(256 << 20);
            options.eventual_delay(Duration::from_secs(60)).durability(Durability::Eventual)
        };
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        let names = ["ordered", "hash"];
        let tables = [
            db.create_table(names[0], TableKind::Ordered).unwrap(),
            db.create_table(names[1], TableKind::Hash).unwrap(),
        ];
        let mut models = [BTreeMap::new(), BTreeMap::new()];
        commit_many(&mut Rng(seed), &db, &tables, &mut models);
        assert_eq!(db.stats().flushes, 0, "the log is to be all there is");
        let durable = WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() };
        let mut last = db.write_with(durable);
        last.put(&tables[0], b"the last", b"one").unwrap();
        last.commit().unwrap();
        models[0].insert(b"the last".to_vec(), b"one".to_vec());
        let disk = disk.after_cut(Keep::None, &mut Rng(1));
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        for (name, model) in names.into_iter().zip(models) {
            let table = db.open_table(name).unwrap();
            assert_eq!(table.count().unwrap(), model.len() as u64);
            for (key, value) in model {
                assert!(table.get(&key).unwrap() == Some(value), "{name}, {key:?}");
            }
        }
        let report = db.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}
