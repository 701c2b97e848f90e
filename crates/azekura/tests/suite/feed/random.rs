//! Random commits to several tables, with cuts: who applies the feed has what the database has.

use super::{Map, Replica, contents, options};
use crate::common::{Rng, doing};
use azekura::{Db, Durability, FeedContent, Options, TableKind};
use sim::disk::{Disk, Keep};
use std::time::Duration;

const PATH: &str = "feed.azk";
const TABLES: [(&str, TableKind, FeedContent); 4] = [
    ("ordered", TableKind::Ordered, FeedContent::Both),
    ("hash", TableKind::Hash, FeedContent::Values),
    ("both", TableKind::Hash, FeedContent::Both),
    ("keys", TableKind::Ordered, FeedContent::Keys),
];

fn random_options(rng: &mut Rng) -> Options {
    let durability = if rng.one_in(2) { Durability::Sync } else { Durability::Eventual };
    let memtable = (64 << 10) << rng.below(4);
    // With threads eventual commits wait in memory, and small ones tell what they change under the lock.
    let is_waiting = rng.one_in(2);
    let options = options().threads(is_waiting).eventual_delay(Duration::from_secs(600));
    options.durability(durability).memtable_bytes(memtable).large_value_bytes(64 << rng.below(6))
}

fn key(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(300);
    match n % 3 {
        0 => n.to_be_bytes().to_vec(),
        1 => format!("key {n}").into_bytes(),
        _ => vec![n as u8; 1 + n as usize % 40],
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.one_in(30) { rng.below(700_000) } else { rng.below(300) };
    (0..len).map(|_| rng.number() as u8).collect()
}

/// One commit.
fn commit(db: &Db, rng: &mut Rng) {
    let mut txn = db.write();
    for _ in 0..1 + rng.below(3) {
        let (name, kind, _) = TABLES[rng.below(4) as usize];
        let table = db.open_table(name).unwrap();
        match rng.below(40) {
            0 => txn.clear(&table).unwrap(),
            1..4 if kind == TableKind::Ordered => {
                let (a, b) = (key(rng), key(rng));
                txn.remove_range(&table, a.clone().min(b.clone())..a.max(b)).unwrap();
            }
            4..12 => txn.remove(&table, key(rng)).unwrap(),
            12 => (0..rng.below(3000)).for_each(|_| txn.put(&table, key(rng), value(rng)).unwrap()),
            _ => txn.put(&table, key(rng), value(rng)).unwrap(),
        }
    }
    txn.commit().unwrap();
}

fn expect(db: &Db, replica: &Replica, what: &str) {
    for (name, _, content) in TABLES {
        let (found, told) = (contents(db, name), replica.table(name));
        match content {
            FeedContent::Values | FeedContent::Both => assert!(found == told, "{what}: table {name}"),
            FeedContent::Keys => {
                let keys = |map: &Map| map.keys().cloned().collect::<Vec<_>>();
                assert!(keys(&found) == keys(&told), "{what}: table {name}");
                assert!(told.values().all(|value| value == b"(no value)"));
            }
        }
    }
}

#[test]
fn a_replica_has_what_the_database_has_after_every_cut() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut disk = Disk::new();
        let mut db = Db::open_on(&disk, PATH, random_options(&mut rng)).unwrap();
        for (name, kind, content) in TABLES {
            db.create_table(name, kind).unwrap().set_feed(Some(content)).unwrap();
        }
        let (mut replica, mut position) = (Replica::default(), super::newest(&db));
        for step in 0..60 {
            doing(format!("feed: seed {seed}, step {step}"));
            for _ in 0..rng.below(12) {
                commit(&db, &mut rng);
            }
            match rng.below(6) {
                0 => db.flush().unwrap(),
                1 => db.sync().unwrap(),
                2 => db.compact().unwrap(),
                _ => {}
            }
            // What was told so far is durable, and stays.
            let mut feed = db.feed(position).unwrap();
            replica.catch_up(&mut feed).unwrap();
            position = feed.position();
            if rng.one_in(3) {
                let cut = disk.after_cut(Keep::None, &mut sim::rng::Rng(seed));
                db.close().unwrap();
                if rng.one_in(2) {
                    disk = cut;
                }
                db = Db::open_on(&disk, PATH, random_options(&mut rng)).unwrap();
                let mut feed = db.feed(position).unwrap();
                replica.catch_up(&mut feed).unwrap();
                position = feed.position();
                expect(&db, &replica, &format!("seed {seed}, step {step}, opened anew"));
                assert!(db.check(|_| {}).unwrap().problems.is_empty());
            }
        }
        db.sync().unwrap();
        replica.catch_up(&mut db.feed(position).unwrap()).unwrap();
        expect(&db, &replica, &format!("seed {seed}, at the end"));
    }
}
