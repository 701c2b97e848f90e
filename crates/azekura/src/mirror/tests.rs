mod expiry;
pub(in crate::mirror) mod hooked;
mod moved;
mod review;
mod synchronous;

use super::*;
use crate::base::error::Error;
use crate::engine::Db;
use crate::storage::{MemStorage, OpenMode, Storage};
use crate::{CopyOptions, Durability, Freshness, Options, TableKind, WriteTxn};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(in crate::mirror) const DB: &str = "db.azk";
pub(in crate::mirror) const COPY: &str = "mirror.azk";

pub(in crate::mirror) type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

pub(in crate::mirror) fn options() -> Options {
    Options::new().threads(false).large_value_bytes(512).durability(Durability::Sync)
}

pub(in crate::mirror) fn open(disk: &MemStorage) -> Db {
    Db::open_on(disk, DB, options()).unwrap()
}

fn mirror(disk: &MemStorage) -> Mirror {
    let disk = || Arc::new(disk.clone());
    Mirror::open_on(disk(), DB, disk(), COPY, CopyOptions::default()).unwrap()
}

fn level(mirror: &mut Mirror) {
    let mut steps = 0;
    while mirror.step().unwrap() {
        steps += 1;
        assert!(steps < 1000, "it does not end");
    }
}

pub(in crate::mirror) fn contents(db: &Db) -> Contents {
    let of = |name: &str| {
        let table = db.open_table(name).unwrap();
        table.cursor().unwrap().owned().map(Result::unwrap).collect()
    };
    db.tables().into_iter().map(|t| (t.name.clone(), of(&t.name))).collect()
}

/// What the mirror has, read as a follower does.
pub(in crate::mirror) fn followed(disk: &MemStorage) -> Contents {
    let db = Db::open_on(disk, COPY, Options::new().freshness(Freshness::Log)).unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    contents(&db)
}

/// Records that fill runs and segments, from a number on; `tag` is in every value.
fn fill(db: &Db, from: u32, to: u32, tag: u8) {
    let ordered = db.table("ordered", TableKind::Ordered).unwrap();
    let hash = db.table("hash", TableKind::Hash).unwrap();
    let mut txn: WriteTxn = db.write();
    for n in from..to {
        let len = if n % 50 == 0 { 3000 } else { 20 };
        txn.put(&ordered, &n.to_be_bytes(), &vec![tag; len]).unwrap();
        txn.put(&hash, &u64::from(n).to_be_bytes(), &[tag; 8]).unwrap();
    }
    txn.commit().unwrap();
}

fn put(db: &Db, key: &[u8], value: &[u8]) {
    db.table("small", TableKind::Ordered).unwrap().put(key, value).unwrap();
}

#[test]
fn a_mirror_has_what_its_source_has() {
    let disk = MemStorage::default();
    let db = open(&disk);
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    assert_eq!(followed(&disk), contents(&db), "an empty database");
    for round in 0..12u8 {
        let from = u32::from(round) * 500;
        fill(&db, from, from + 3000, round);
        match round % 4 {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            2 => {
                put(&db, b"round", &[round; 8700]);
                db.flush().unwrap();
                put(&db, b"round", &[round; 8900]);
                db.rename_table("small", "tiny").unwrap();
                put(&db, b"other", &[round]);
                db.drop_table("tiny").unwrap();
            }
            _ => {
                db.shrink(|_| {}).unwrap();
            }
        }
        level(&mut mirror);
        // Durable is what a later frame, or a checkpoint, vouches for.
        db.flush().unwrap();
        level(&mut mirror);
        assert_eq!(followed(&disk), contents(&db), "round {round}");
        assert!(mirror.status().is_level() && mirror.status().behind_bytes == 0, "{:?}", mirror.status());
    }
    assert_eq!(mirror.status().built, 1, "pins keep what the mirror needs");
    db.close().unwrap();
    level(&mut mirror);
    drop(mirror);
    let copy = Db::open_on(&disk, COPY, options().read_only(true)).unwrap();
    assert_eq!(contents(&copy), contents(&open(&disk)));
}

#[test]
fn the_log_is_shipped_commit_by_commit() {
    let disk = MemStorage::default();
    let db = open(&disk);
    put(&db, b"n", &0u32.to_be_bytes());
    db.flush().unwrap();
    put(&db, b"n", &0u32.to_be_bytes());
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let checkpoint = mirror.status().checkpoint;
    let copy = Db::open_on(&disk, COPY, options().freshness(Freshness::Log)).unwrap();
    let table = copy.open_table("small").unwrap();
    for n in 1..300u32 {
        put(&db, b"n", &n.to_be_bytes());
        if n % 7 == 0 {
            put(&db, b"large", &vec![n as u8; 100_000]);
        }
        while mirror.step().unwrap() {}
        // The last frame waits for one that vouches for it.
        let seen = table.get(b"n").unwrap().unwrap();
        let seen = u32::from_be_bytes(seen[..].try_into().unwrap());
        assert!(seen + 1 >= n, "{seen} of {n}");
        if n % 7 == 1 && n > 1 {
            assert_eq!(table.get(b"large").unwrap().unwrap(), vec![(n - 1) as u8; 100_000]);
        }
    }
    assert_eq!(mirror.status().checkpoint, checkpoint, "no checkpoint was needed");
}

#[test]
fn only_its_mirror_writes_to_a_mirror() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    let mut first = mirror(&disk);
    level(&mut first);
    let shared = || Arc::new(disk.clone());
    let again = || Mirror::open_on(shared(), DB, shared(), COPY, CopyOptions::default());
    assert!(matches!(again(), Err(Error::Locked { .. })));
    assert!(matches!(promote_on(&disk, COPY), Err(Error::Locked { .. })));
    drop(first);
    assert!(matches!(Db::open_on(&disk, COPY, options()), Err(Error::Open { .. })));
    assert!(matches!(promote_on(&disk, DB), Err(Error::Locked { .. })));
    let expected = contents(&db);
    promote_on(&disk, COPY).unwrap();
    let own = Db::open_on(&disk, COPY, options()).unwrap();
    assert_eq!(contents(&own), expected);
    put(&own, b"own", b"life");
    own.close().unwrap();
    assert!(matches!(again(), Err(Error::Open { .. })), "it is no mirror any more");
    assert!(matches!(promote_on(&disk, COPY), Err(Error::Invalid { .. })));
    // A mirror of the promoted one is no mirror of the old one.
    let other = "other.azk";
    let of = |source: &str| Mirror::open_on(shared(), source, shared(), other, CopyOptions::default());
    level(&mut of(COPY).unwrap());
    let refused = of(DB).unwrap().step();
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

fn bytes_of(disk: &MemStorage, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Whatever stands where the mirror is to come, or where it is to be built, stays as it is.
#[test]
fn what_is_no_mirror_is_not_overwritten() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    let beside = format!("{COPY}.mirror-new");
    let of = |bytes: &[u8], path: &str| {
        let file = disk.open(Path::new(path), OpenMode::CreateNew).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    let shared = || Arc::new(disk.clone());
    let again = || Mirror::open_on(shared(), DB, shared(), COPY, CopyOptions::default());
    // A copy of a database has the file's id, and nothing in common with its mirror otherwise.
    db.copy_to_on(&disk, "copy.azk", |_| {}).unwrap();
    let long: Vec<u8> = b"a diary, ".repeat(2000);
    let own = [bytes_of(&disk, "copy.azk"), bytes_of(&disk, DB), long, b"a note".to_vec(), Vec::new()];
    for bytes in own {
        of(&bytes, COPY);
        let refused = again().map(drop);
        assert!(refused.is_err(), "{} bytes", bytes.len());
        assert!(bytes_of(&disk, COPY) == bytes, "{refused:?}");
        disk.remove(Path::new(COPY)).unwrap();
        if bytes.is_empty() {
            continue;
        }
        of(&bytes, &beside);
        let refused = again().unwrap().step();
        assert!(matches!(&refused, Err(Error::Open { path, .. }) if *path == beside), "{refused:?}");
        assert!(bytes_of(&disk, &beside) == bytes);
        disk.remove(Path::new(&beside)).unwrap();
    }
    // A file that comes to have the name while the mirror is built.
    let mut mirror = again().unwrap();
    of(b"a note", COPY);
    let refused = mirror.step();
    assert!(refused.is_err() && bytes_of(&disk, COPY) == b"a note", "{refused:?}");
    drop(mirror);
    disk.remove(Path::new(COPY)).unwrap();
    level(&mut again().unwrap());
    assert_eq!(followed(&disk), contents(&db));
}

/// A mirror that was being built when all was cut off is built anew.
#[test]
fn an_unfinished_mirror_is_taken_for_one() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    let beside = format!("{COPY}.mirror-new");
    let unfinished = disk.open(Path::new(&beside), OpenMode::CreateNew).unwrap();
    for len in [0, 8192, 100_000] {
        unfinished.set_len(len).unwrap();
        if len > 8192 {
            // Its superblock was torn.
            unfinished.write_at(&[7; 700], 0).unwrap();
            unfinished.write_at(&[9; 700], 50_000).unwrap();
        }
        assert!(names::is_left_behind(Path::new(&beside), unfinished.as_ref()).unwrap(), "{len}");
    }
    drop(unfinished);
    level(&mut mirror(&disk));
    assert_eq!(followed(&disk), contents(&db));
    assert!(!disk.exists(Path::new(&beside)).unwrap());
}

#[test]
fn a_mirror_of_another_life_is_refused() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    let mirrored = bytes_of(&disk, COPY);
    // A copy is another life of the database.
    db.copy_to_on(&disk, "copy.azk", |_| {}).unwrap();
    let shared = || Arc::new(disk.clone());
    let of = |source: &str| Mirror::open_on(shared(), source, shared(), COPY, CopyOptions::default());
    let refused = of("copy.azk").unwrap().step();
    assert!(
        matches!(&refused, Err(Error::Invalid { detail }) if detail.contains("another life")),
        "{refused:?}"
    );
    let other = Db::open_on(&disk, "other.azk", options()).unwrap();
    fill(&other, 0, 1000, 1);
    other.flush().unwrap();
    let refused = of("other.azk").unwrap().step();
    assert!(
        matches!(&refused, Err(Error::Invalid { detail }) if detail.contains("another database")),
        "{refused:?}"
    );
    assert!(bytes_of(&disk, COPY) == mirrored, "and stays as it was");
}

#[test]
fn mirroring_goes_on_where_it_ended() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 20_000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    // Nothing has changed but the log.
    put(&db, b"a", b"1");
    put(&db, b"b", b"2");
    let mut second = mirror(&disk);
    level(&mut second);
    assert_eq!(second.status().built, 0);
    assert!(second.status().copied_bytes < 100_000, "{:?}", second.status());
    drop(second);
    // Little has changed, and nothing stands where something else stood.
    fill(&db, 30_000, 30_100, 2);
    db.flush().unwrap();
    let mut third = mirror(&disk);
    level(&mut third);
    assert_eq!(followed(&disk), contents(&db));
    drop(third);
    // Much has, also in the same places.
    for round in 0..6 {
        fill(&db, 0, 20_000, round);
        db.compact().unwrap();
    }
    let mut fourth = mirror(&disk);
    level(&mut fourth);
    assert_eq!(followed(&disk), contents(&db));
    assert_eq!(fourth.status().built, 1, "it was built anew");
    assert!(!disk.exists(Path::new("mirror.azk.mirror-new")).unwrap());
}

/// The log of the mirror's state goes on in the source with values that came and went while nobody mirrored.
#[test]
fn values_that_have_gone_meanwhile_are_not_missed() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    put(&db, b"a", b"1");
    put(&db, b"b", b"2");
    level(&mut mirror(&disk));
    put(&db, b"large", &vec![7; 3 << 20]);
    put(&db, b"large", b"small");
    db.compact().unwrap();
    db.shrink(|_| {}).unwrap();
    let mut again = mirror(&disk);
    level(&mut again);
    assert_eq!(followed(&disk), contents(&db));
    // The same, and something else stands there.
    drop(again);
    put(&db, b"large", &vec![8; 3 << 20]);
    put(&db, b"large", b"small");
    db.compact().unwrap();
    fill(&db, 5000, 50_000, 9);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    assert_eq!(followed(&disk), contents(&db));
}

/// A reader of the mirror keeps what it reads, there and in the source.
#[test]
fn readers_of_a_mirror_keep_their_snapshot() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 20_000, 1);
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let copy = Db::open_on(&disk, COPY, options().follow(true)).unwrap();
    let (table, expected) = (copy.open_table("ordered").unwrap(), contents(&db)["ordered"].clone());
    let txn = copy.read();
    assert_eq!(txn.get(&table, &1u32.to_be_bytes()).unwrap().as_deref(), Some(&[1u8; 20][..]));
    for round in 2..8 {
        fill(&db, 0, 20_000, round);
        db.compact().unwrap();
        level(&mut mirror);
    }
    assert_eq!(mirror.status().built, 1, "it is kept by pins");
    let seen: BTreeMap<_, _> = txn.cursor(&table).unwrap().owned().map(Result::unwrap).collect();
    assert!(seen == expected, "the snapshot has changed");
    drop(txn);
    assert_eq!(table.get(1u32.to_be_bytes()).unwrap().as_deref(), Some(&[7u8; 20][..]));
    level(&mut mirror);
    assert!(mirror.pins.len() == 1, "nothing is kept any more");
}

#[test]
fn a_damaged_mirror_is_built_anew() {
    let disk = MemStorage::default();
    let db = open(&disk);
    let many: Vec<String> = (0..200).map(|n| format!("a table with a long name, number {n}")).collect();
    let tables: Vec<_> = many.iter().map(|name| (name.as_str(), TableKind::Ordered)).collect();
    db.create_tables(&tables).unwrap();
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    let file = disk.open(Path::new(COPY), OpenMode::ReadWrite).unwrap();
    let mut offset = [0; 8];
    file.read_at(&mut offset, 40).unwrap();
    file.write_at(&[0xee; 100], u64::from_le_bytes(offset)).unwrap();
    drop(file);
    let damaged = Db::open_on(&disk, COPY, options().read_only(true)).map(drop);
    assert!(matches!(damaged, Err(Error::Corrupt { .. })), "{damaged:?}");
    let mut again = mirror(&disk);
    level(&mut again);
    assert_eq!((again.status().built, followed(&disk)), (1, contents(&db)));
}

#[test]
fn an_earlier_source_is_refused() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.close().unwrap();
    let copy = |from: &str, to: &str| {
        let from = disk.open(Path::new(from), OpenMode::ReadOnly).unwrap();
        let mut bytes = vec![0; from.len().unwrap() as usize];
        from.read_at(&mut bytes, 0).unwrap();
        let to = disk.open(Path::new(to), OpenMode::CreateNew).unwrap();
        to.write_at(&bytes, 0).unwrap();
    };
    copy(DB, "saved.azk");
    let db = open(&disk);
    fill(&db, 0, 1000, 2);
    db.close().unwrap();
    level(&mut mirror(&disk));
    disk.remove(Path::new(DB)).unwrap();
    copy("saved.azk", DB);
    let refused = mirror(&disk).step();
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[test]
fn a_source_that_another_file_replaces_is_noticed() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    db.copy_to_on(&disk, "copy.azk", |_| {}).unwrap();
    disk.rename(Path::new("copy.azk"), Path::new(DB), true).unwrap();
    level(&mut mirror);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let refused = mirror.step();
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}
