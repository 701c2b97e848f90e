//! Room is looked for again when what was in vain may help.

use crate::api::{Db, Durability, Options, Table};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::engine::compaction::pick::MergeJob;
use crate::engine::state::Level;
use crate::engine::tests::hooked::Hooked;
use crate::salvage::salvage_on;
use crate::storage::{MemStorage, OpenMode, Storage};
use parking_lot::Mutex;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

const DISK_BYTES: u64 = 24 << 20;
const KEYS: u64 = 20_000;

fn put_hundred(table: &Table, first: u64, with: u8) -> Result<(), Error> {
    table.put_many((first..first + 100).map(|n| (n.to_be_bytes(), [with; 100])))
}

/// A merge that finds no room leaves its garbage, and is not tried again as long as there is no more of it.
/// That says nothing of the garbage that comes after the disk had much room.
#[test]
fn garbage_that_was_left_does_not_excuse_what_comes_later() {
    let disk = Hooked::default();
    let options = small_memtables();
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    disk.limit(DISK_BYTES);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let full = (0..).step_by(100).find_map(|first| put_hundred(&table, first, 7).err());
    assert!(matches!(full, Some(Error::NoSpace { .. })), "{full:?}");
    {
        // As a merge leaves it that found no room.
        let mut vain = db.engine.relief.lock();
        (vain.garbage, vain.levels) = (DISK_BYTES, 1000);
    }
    db.drop_table("t").unwrap();
    let table = db.create_table("u", TableKind::Ordered).unwrap();
    for round in 0..3 * DISK_BYTES / (KEYS * 108) {
        for first in (0..KEYS).step_by(100) {
            put_hundred(&table, first, round as u8).unwrap_or_else(|e| panic!("round {round}, {first}: {e}"));
        }
    }
    assert_eq!(table.count().unwrap(), KEYS);
    drop(table);
    db.close().unwrap();
}

/// One caller found enough before anything was merged. The next one needs more, and merges would give it,
/// though nothing has changed in between.
#[test]
fn room_that_was_found_does_not_end_the_search_for_more() {
    let disk = Hooked::default();
    let options = Options::new().memory_bytes(16 << 20).memtable_bytes(1 << 20).background_merges(false);
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    for round in 0..4 {
        (0..KEYS).step_by(100).for_each(|first| put_hundred(&table, first, round).unwrap());
        db.flush().unwrap();
    }
    let engine = &db.engine;
    let room = &engine.store.room;
    let kept = engine.relief.reserve_bytes() + engine.merges().flush_need();
    disk.limit(room.taken_bytes() + kept + (64 << 10));
    let levels = || engine.state.load().tables[0].levels.len();
    let (maker, before, asked) = (engine.room_maker(), levels(), Cell::new(0));
    let found = maker.relieve(false, || {
        asked.set(asked.get() + 1);
        (asked.get() > 1).then_some(())
    });
    assert_eq!((found.unwrap(), levels()), (Some(()), before), "nothing was merged for it");
    drop(maker.admit(3 << 20, false).unwrap_or_else(|e| panic!("the next: {e}")));
    assert!(levels() < before);
    drop(table);
    db.close().unwrap();
}

/// Others may free much room and take it again. What merges left is tried again after that, however small the
/// part of the file is that this room was.
#[test]
fn room_that_was_there_for_a_while_is_remembered() {
    let disk = Hooked::default();
    let options = small_memtables();
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    (0..KEYS).step_by(100).for_each(|first| put_hundred(&table, first, 1).unwrap());
    db.flush().unwrap();
    let (relief, room) = (&db.engine.relief, &db.engine.store.room);
    let tight = room.taken_bytes() + (64 << 10);
    let limit = |bytes| {
        disk.limit(bytes);
        room.look();
    };
    limit(tight);
    let mut vain = relief.lock();
    relief.note_room(&mut vain);
    assert!(!relief.room_has_changed(&vain));
    limit(DISK_BYTES);
    limit(tight);
    assert!(relief.room_has_changed(&vain));
    relief.note_room(&mut vain);
    assert!(!relief.room_has_changed(&vain));
    drop(vain);
    disk.limit(DISK_BYTES);
    drop(table);
    db.close().unwrap();
}

/// A search flushes first. Merges that found too little room may find enough by that.
#[test]
fn room_that_a_flush_makes_is_room_for_merges() {
    let disk = Hooked::default();
    let options = Options::new().memory_bytes(32 << 20).memtable_bytes(4 << 20).background_merges(false);
    // Nobody flushes meanwhile.
    let options = options.threads(false);
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Sync)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    for round in 0..4 {
        (0..KEYS).step_by(100).for_each(|first| put_hundred(&table, first, round).unwrap());
        db.flush().unwrap();
    }
    (0..KEYS).step_by(100).for_each(|first| put_hundred(&table, first, 4).unwrap());
    let (engine, levels) = (&db.engine, || db.engine.state.load().tables[0].levels.len());
    let before = levels();
    disk.limit(engine.store.room.taken_bytes() + engine.relief.reserve_bytes());
    engine.store.room.look();
    {
        // As merges leave it that found no room.
        let mut vain = engine.relief.lock();
        (vain.garbage, vain.levels) = (DISK_BYTES, 1000);
        engine.relief.note_room(&mut vain);
    }
    let found = engine.room_maker().relieve(false, || (levels() < before).then_some(()));
    assert_eq!(found.unwrap(), Some(()), "{before} levels, then {}", levels());
    drop(table);
    db.close().unwrap();
}

/// The numbers of a table's levels, the runs in each, and how many have joined.
fn levels_of(db: &Db) -> Vec<(u64, Vec<u64>, usize)> {
    let state = db.engine.state.load();
    let runs = |l: &Level| l.runs.iter().map(|r| r.info.id).collect();
    state.tables[0].levels.iter().map(|l| (l.newest, runs(l), l.joined)).collect()
}

/// Merges all levels but the oldest one.
fn merge_newer(db: &Db, table: &Table) {
    let mut newer = db.engine.state.load().tables[0].levels.to_vec();
    newer.pop();
    db.engine.merges().run(MergeJob::new(table.id, newer, false)).unwrap();
}

fn small_memtables() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(256 << 10).background_merges(false)
}

/// Upper keys in the oldest level, and above it a level of lower keys. A run that became part of that one
/// says that a key is removed, and stays in the file. `rest`: some of the newer level meets the oldest. The
/// file is then salvaged without its manifest.
fn what_salvage_finds_of_joined_runs(rest: bool) {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", small_memtables().durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    put_hundred(&table, 1 << 32, 1).unwrap();
    db.flush().unwrap();
    table.remove(7u64.to_be_bytes()).unwrap();
    put_hundred(&table, 100, 2).unwrap();
    db.flush().unwrap();
    let file = disk.open(Path::new("engine.azk"), OpenMode::ReadWrite).unwrap();
    let removal = db.engine.state.load().tables[0].levels[0].runs[0].info.extents[0];
    let mut old = vec![0; removal.len as usize];
    file.read_at(&mut old, removal.offset).unwrap();
    put_hundred(&table, 0, 3).unwrap();
    db.flush().unwrap();
    merge_newer(&db, &table);
    if rest {
        // A level of one run more, which meets the oldest.
        let lower = db.engine.state.load().tables[0].levels[0].clone();
        put_hundred(&table, (1 << 32) + 50, 4).unwrap();
        db.flush().unwrap();
        let upper = db.engine.state.load().tables[0].levels[0].clone();
        let runs = [lower.runs.clone(), upper.runs.clone()].concat();
        let both = Arc::new(Level::new(runs, 0.5, upper.newest).unwrap());
        assert!(
            db.engine.installer().replace(table.id, &[upper, lower], &[None, Some(both)], vec![]).unwrap()
        );
    }
    let before = levels_of(&db);
    assert!(db.engine.installer().join_oldest(table.id).unwrap());
    let joined = levels_of(&db);
    assert_eq!((before.len(), joined.len()), (2, if rest { 2 } else { 1 }), "{before:?}, then {joined:?}");
    assert_eq!(joined.last().unwrap().2, 1, "{joined:?}");
    // As a merge for what has expired does.
    let oldest = db.engine.state.load().tables[0].levels.last().unwrap().clone();
    db.engine.merges().run(MergeJob::new(table.id, vec![oldest], true)).unwrap();
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
    let expected: Vec<_> = table.cursor().unwrap().owned().map(|r| r.unwrap()).collect();
    assert_eq!(expected.len(), if rest { 350 } else { 300 });
    drop(table);
    db.close().unwrap();
    // The run is where it was, for nobody has written there.
    let end = file.len().unwrap().next_multiple_of(1 << 20);
    file.write_at(&old, end).unwrap();
    file.write_at(&[0xa5; 8192], 0).unwrap();
    let fresh = MemStorage::default();
    let out = Db::open_on(&fresh, "out", small_memtables()).unwrap();
    salvage_on(&disk, "engine.azk", &out, |_| {}).unwrap();
    let found: Vec<_> = out.open_table("t").unwrap().cursor().unwrap().owned().map(|r| r.unwrap()).collect();
    assert!(found == expected, "{} records, not {}", found.len(), expected.len());
}

#[test]
fn a_merge_of_what_has_joined_passes_for_newer_than_what_that_was_made_of() {
    what_salvage_finds_of_joined_runs(false);
    what_salvage_finds_of_joined_runs(true);
}

/// After the first step nothing is left of the newer level. If the merge ended there, a later one of the
/// oldest level alone must pass for newer than what the newer level was made of.
#[test]
fn a_merge_that_is_installed_in_part_keeps_its_age() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", small_memtables().durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    (0..KEYS).step_by(100).for_each(|first| put_hundred(&table, first, 1).unwrap());
    db.compact().unwrap();
    put_hundred(&table, 0, 2).unwrap();
    db.flush().unwrap();
    let before = levels_of(&db);
    assert!(before.len() == 2 && before[1].1.len() > 2, "{before:?}");
    let (seen, watched) = (Arc::new(Mutex::new(Vec::new())), db.clone());
    let noted = seen.clone();
    disk.hook(move |_| {
        noted.lock().push(levels_of(&watched));
        Ok(())
    });
    let levels = db.engine.state.load().tables[0].levels.to_vec();
    db.engine.merges().run(MergeJob::new(table.id, levels, true)).unwrap();
    disk.hook(|_| Ok(()));
    let is_partial = |levels: &&Vec<(u64, Vec<u64>, usize)>| {
        levels.len() == 1 && levels[0].1.iter().any(|id| before[1].1.contains(id))
    };
    let seen = seen.lock();
    assert!(seen.iter().find(is_partial).is_some_and(|levels| levels[0].0 == before[0].0), "{seen:?}");
    drop(table);
    db.close().unwrap();
}

/// The oldest level has but the keys above all others, and all of them are removed. A merge of both levels
/// would write nearly all of the newer one before anything goes.
#[test]
fn what_stands_below_the_oldest_level_need_not_be_written_first() {
    let disk = Hooked::default();
    let options = small_memtables();
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.table("t", TableKind::Ordered).unwrap();
    let (keys, above) = (2 * KEYS, 1 << 32);
    (0..keys).step_by(100).for_each(|first| put_hundred(&table, above + first, 1).unwrap());
    db.compact().unwrap();
    for first in (0..keys).step_by(100) {
        put_hundred(&table, first, 2).unwrap();
        put_hundred(&table, keys + first, 2).unwrap();
        (first..first + 100).for_each(|n| table.remove((above + n).to_be_bytes()).unwrap());
    }
    db.flush().unwrap();
    let engine = &db.engine;
    // What is merged here stays in the file: else there would be room.
    let mut newer = engine.state.load().tables[0].levels.to_vec();
    newer.pop();
    merge_newer(&db, &table);
    // A level above the other two that meets both.
    (0..2 * keys).step_by(1000).for_each(|n| table.put(n.to_be_bytes(), [3; 100]).unwrap());
    db.flush().unwrap();
    assert_eq!(levels_of(&db).len(), 3);
    let room = &engine.store.room;
    disk.limit(room.taken_bytes() + engine.merges().flush_need() + (2 << 20));
    room.look();
    let taken = room.taken_bytes();
    let all = engine.state.load().tables[0].levels.to_vec();
    assert!(
        engine.merges().claim(&MergeJob::new(table.id, all, true), 1.0).is_none(),
        "there is room for all"
    );
    drop(engine.room_maker().admit(1000, false).unwrap_or_else(|e| panic!("nothing was freed: {e}")));
    assert!(room.taken_bytes() < taken - (2 << 20), "{taken}, then {}", room.taken_bytes());
    assert_eq!(table.count().unwrap(), 2 * keys);
    assert_eq!(table.get((above + 7).to_be_bytes()).unwrap(), None);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
    drop(newer);
    disk.limit(DISK_BYTES);
    drop(table);
    db.close().unwrap();
    let db = Db::open_on(&disk, "engine.azk", small_memtables()).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 2 * keys);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}
