//! Salvage of small files, damaged in chosen places. (The crate `sim` tries random damage.)

mod lists;
mod tables;
mod times;

use super::*;
use crate::api::{Durability, Options};
use crate::base::codec::{Writer, u32_of};
use crate::base::key::TableKind;
use crate::format::block::{Block, Tag};
use crate::format::frame::{Frame, HEADER_BYTES, begin_record, end_record, write_part};
use crate::format::operand::Merge;
use crate::format::page::{PageIdentity, SHAPE_MAX};
use crate::format::ranges::Ranges;
use crate::storage::{File, MemStorage, OpenMode};
use crate::values::ValuePointer;
use std::collections::BTreeMap;
use std::sync::Arc;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

const PATH: &str = "db";

fn options() -> Options {
    let small = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).threads(false);
    small.background_merges(false).durability(Durability::Eventual)
}

/// A database, and what it holds.
struct World {
    storage: MemStorage,
    db: Option<Db>,
    model: BTreeMap<String, Records>,
}

impl World {
    fn new() -> World {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options()).unwrap();
        World { storage, db: Some(db), model: BTreeMap::new() }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// Commits one transaction. A record without a value deletes its key.
    fn commit(
        &mut self,
        table: &str,
        kind: TableKind,
        records: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    ) {
        let db = self.db().clone();
        let t = db.table(table, kind).unwrap();
        let model = self.model.entry(table.into()).or_default();
        let mut w = db.write();
        for (key, value) in records {
            match value {
                Some(value) => {
                    w.put(&t, &key, &value).unwrap();
                    model.insert(key, value);
                }
                None => {
                    w.remove(&t, &key).unwrap();
                    model.remove(&key);
                }
            }
        }
        w.commit().unwrap();
    }

    fn close(&mut self) {
        self.db.take().unwrap().close().unwrap();
    }

    fn file(&self) -> Arc<dyn File> {
        self.storage.open(Path::new(PATH), OpenMode::ReadWrite).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let file = self.file();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Flips one bit of the byte at `at`.
    fn flip(&self, at: u64) {
        let (file, mut byte) = (self.file(), [0]);
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[byte[0] ^ 16], at).unwrap();
    }

    fn lose_superblocks(&self) {
        self.file().write_at(&[0xa5; 8192], 0).unwrap();
    }

    /// Where the blocks of the file begin that `which` accepts.
    fn blocks(&self, which: impl Fn(&[u8]) -> bool) -> Vec<u64> {
        let bytes = self.bytes();
        let blocks = bytes.chunks_exact(4096).enumerate().skip(2).filter(|(_, b)| which(b));
        blocks.map(|(i, _)| i as u64 * 4096).collect()
    }

    fn salvage(&self) -> (SalvageReport, BTreeMap<String, Records>) {
        let fresh = MemStorage::default();
        let out = Db::open_on(&fresh, "out", options()).unwrap();
        let before = self.bytes();
        let report = salvage_on(&self.storage, PATH, &out, |_| {}).unwrap();
        assert!(self.bytes() == before, "the damaged file was changed");
        assert!(out.check(|_| {}).unwrap().problems.is_empty());
        for table in &report.tables {
            assert_eq!(out.open_table(&table.name).unwrap().usual_ttl(), table.ttl, "{}", table.name);
        }
        let records = |name: &str| {
            out.open_table(name).unwrap().cursor().unwrap().owned().map(|r| r.unwrap()).collect()
        };
        let found = out.tables().into_iter().map(|t| (t.name.clone(), records(&t.name))).collect();
        (report, found)
    }

    /// Salvages, and expects all records.
    fn whole(&self) -> SalvageReport {
        let (report, found) = self.salvage();
        assert!(found == self.model, "{report:?}");
        report
    }
}

fn number(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn text(i: u64) -> Vec<u8> {
    format!("some key with a number in it {}", i * 7919 % 100_003).into_bytes()
}

fn value(i: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|k| (i * 31 + k * 17 + (k >> 8)) as u8).collect()
}

fn fill(world: &mut World, from: u64, to: u64, age: u64) {
    world.commit("numbers", TableKind::Ordered, (from..to).map(|i| (number(i * i), Some(value(i + age, 8)))));
    world.commit(
        "text",
        TableKind::Ordered,
        (from..to).map(|i| (text(i), Some(value(i + age, i as usize % 90)))),
    );
    world.commit("hash", TableKind::Hash, (from..to).map(|i| (number(i), Some(value(i + age, 12)))));
    world.commit("hash", TableKind::Hash, (from..to).map(|i| (text(i), Some(value(i + age, 40)))));
}

/// Several levels in each table, with deletes. The newest commits are only in the log.
fn layered() -> World {
    let mut world = World::new();
    fill(&mut world, 0, 3000, 0);
    // Pages that end in zeros are cut before these.
    world.commit("zeroes", TableKind::Ordered, (0..700).map(|i| (number(i * i), Some(vec![0; 20]))));
    world.db().flush().unwrap();
    world.db().compact().unwrap();
    for age in 1..4 {
        fill(&mut world, age * 900, age * 900 + 300, age);
        world.commit("text", TableKind::Ordered, (0..200).map(|i| (text(i * 3 + age), None)));
        world.commit("hash", TableKind::Hash, (0..200).map(|i| (number(i * 3 + age), None)));
        world.db().flush().unwrap();
    }
    // Few enough for the log: a bulk would be flushed.
    fill(&mut world, 2990, 3020, 9);
    world.db().sync().unwrap();
    world
}

fn is_page(block: &[u8]) -> bool {
    block[4] == 1
        && block[5] <= SHAPE_MAX
        && block[51] == 1
        && PageIdentity::read(block).run > 0
        && block[60..64] == [0; 4]
}

#[test]
fn a_file_that_is_whole_is_salvaged_whole() {
    let mut world = layered();
    let db = world.db.take();
    let copy = copy_of(&world);
    let report = copy.whole();
    assert!(report.is_whole() && report.manifest && report.commits > 0 && report.pages > 30, "{report:?}");
    drop(db);
    world.db = None;
    let report = world.whole();
    assert!(report.is_whole() && report.commits == 0, "{report:?}");
}

/// The same file in a storage of its own, where nobody has locked it.
fn copy_of(world: &World) -> World {
    let storage = MemStorage::default();
    storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap().write_at(&world.bytes(), 0).unwrap();
    World { storage, db: None, model: world.model.clone() }
}

#[test]
fn without_superblocks_everything_is_found_by_its_identity() {
    let world = copy_of(&layered());
    world.lose_superblocks();
    let report = world.whole();
    assert!(!report.manifest && !report.is_whole() && report.commits > 0, "{report:?}");
}

#[test]
fn a_page_that_is_damaged_costs_its_own_records_only() {
    for with_roots in [true, false] {
        let mut world = World::new();
        fill(&mut world, 0, 3000, 0);
        world.db().flush().unwrap();
        world.close();
        if !with_roots {
            world.lose_superblocks();
        }
        let pages = world.blocks(is_page);
        let mut costly = 0;
        for &at in &pages {
            let world = copy_of(&world);
            world.flip(at + 200);
            let (report, found) = world.salvage();
            assert!(report.pages_lost <= 1 && report.manifest == with_roots, "{report:?}");
            let mut gone = 0;
            for (name, records) in &world.model {
                assert!(
                    found[name].iter().all(|(k, v)| records.get(k) == Some(v)),
                    "what nobody has written"
                );
                gone += records.len() - found[name].len();
            }
            assert!(gone < 2000, "{gone} records are gone with one page");
            // (The damaged page may be a copy that moving the tail has left behind. Without a manifest it may
            // also be of a run that was merged.)
            assert!(gone == 0 || report.pages_lost == 1, "{report:?}");
            assert!(gone > 0 || report.pages_lost == 0 || !with_roots, "{report:?}");
            costly += usize::from(gone > 0);
        }
        assert!(costly > 20, "{costly} of {} pages", pages.len());
    }
}

#[test]
fn a_file_without_any_label_or_superblock_is_recognized_by_its_pages() {
    let mut world = World::new();
    world.commit("t", TableKind::Ordered, (0..4000).map(|i| (number(i * i), Some(value(i, 9)))));
    world.db().flush().unwrap();
    world.close();
    world.lose_superblocks();
    for at in world.blocks(|b| b[4..8] == *b"AZRM") {
        world.flip(at + 20);
    }
    let (report, found) = world.salvage();
    // Only the number of the table is left of its name.
    assert!(report.runs > 0 && found.len() == 1, "{report:?}");
    assert!(found.values().next() == world.model.get("t"));
}

/// A list that is appended to over several runs, and records that expire, of keys and values of both forms.
fn lists_and_times(world: &mut World) {
    let db = world.db().clone();
    for (name, kind) in [("ordered", TableKind::Ordered), ("hash", TableKind::Hash)] {
        let (lists, times) = (format!("lists, {name}"), format!("times, {name}"));
        let (of_lists, of_times) = (db.table(&lists, kind).unwrap(), db.table(&times, kind).unwrap());
        for round in 0..3u64 {
            let mut w = db.write();
            for i in 0..2000 {
                let (key, more) = (number(i * i), value(i, 5 + (i % 3) as usize));
                w.merge(&of_lists, &key, Merge::Append(&more)).unwrap();
                world.model.entry(lists.clone()).or_default().entry(key).or_default().extend(&more);
                let (key, value) = (if i % 2 == 0 { number(i * 7) } else { text(i) }, value(i + round, 12));
                let lives = std::time::Duration::from_secs(3_600_000 + i);
                w.put_for(&of_times, &key, &value, lives).unwrap();
                world.model.entry(times.clone()).or_default().insert(key, value);
            }
            w.commit().unwrap();
            db.flush().unwrap();
        }
    }
}

#[test]
fn pages_with_times_and_with_what_was_merged_are_found_without_a_manifest() {
    let mut world = World::new();
    lists_and_times(&mut world);
    world.close();
    world.whole();
    world.lose_superblocks();
    let (report, found) = world.salvage();
    assert!(!report.manifest && report.pages > 30, "{report:?}");
    for name in ["times, ordered", "times, hash"] {
        assert!(found[name] == world.model[name], "{name}");
    }
    // Nothing says which operands are in which runs, so there may be more of them, but no key is missing.
    for name in ["lists, ordered", "lists, hash"] {
        assert!(found[name].keys().eq(world.model[name].keys()), "{name}");
        let ends = |(key, value): (&Vec<u8>, &Vec<u8>)| found[name][key].ends_with(value);
        assert!(world.model[name].iter().all(ends), "{name}");
    }
}

#[test]
fn a_damaged_page_alone_is_not_believed() {
    let mut world = World::new();
    // The page ends in zeros. Cut before or behind them, it is the same page.
    world.commit("t", TableKind::Ordered, (0..400).map(|i| (number(i * i), Some(vec![0; 20]))));
    world.db().flush().unwrap();
    let at = world.blocks(is_page)[0];
    let label = world.blocks(|b| b[4..8] == *b"AZRM").into_iter().find(|label| *label > at).unwrap();
    let mut page = world.bytes()[at as usize..label as usize].to_vec();
    assert!(page.len() < 16384);
    page.resize(16384, 0);
    page[200] ^= 16;
    let fresh = MemStorage::default();
    let out = Db::open_on(&fresh, "out", options()).unwrap();
    for copies in 1..3 {
        let storage = MemStorage::default();
        let file = storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap();
        (0..copies).for_each(|n| file.write_at(&page, 8192 + n * 16384).unwrap());
        assert!(matches!(salvage_on(&storage, PATH, &out, |_| {}), Err(Error::NotADatabase { .. })));
    }
}

#[test]
fn what_was_deleted_before_a_merge_stays_away_without_a_manifest() {
    let mut world = World::new();
    fill(&mut world, 0, 3000, 0);
    world.db().flush().unwrap();
    world.commit("text", TableKind::Ordered, (0..1000).map(|i| (text(i), None)));
    world.commit("numbers", TableKind::Ordered, (500..900).map(|i| (number(i * i), None)));
    world.db().flush().unwrap();
    world.db().compact().unwrap();
    // The merged runs are in free space.
    world.db().flush().unwrap();
    let world = copy_of(&world);
    world.lose_superblocks();
    world.whole();
}

#[test]
fn a_delete_of_what_was_not_there_does_not_hide_what_came_later() {
    let mut world = World::new();
    let numbers = |from: u64, to: u64, age| (from..to).map(move |i| (number(i), Some(value(i + age, 8))));
    world.commit("t", TableKind::Ordered, numbers(0, 500, 0));
    world.db().flush().unwrap();
    world.commit(
        "t",
        TableKind::Ordered,
        (1000..1100).map(|i| (number(i), None)).chain(numbers(1200, 1300, 1)),
    );
    world.db().flush().unwrap();
    world.db().compact().unwrap();
    world.commit("t", TableKind::Ordered, numbers(1000, 1100, 2));
    world.db().flush().unwrap();
    world.db().compact().unwrap();
    let world = copy_of(&world);
    world.lose_superblocks();
    world.whole();
}

#[test]
fn a_run_without_a_label_is_not_hidden_by_older_range_deletes() {
    let mut world = World::new();
    world.commit("t", TableKind::Ordered, (0..500).map(|i| (number(i), Some(value(i, 9)))));
    world.db().flush().unwrap();
    let t = world.db().open_table("t").unwrap();
    t.remove_range(number(100)..number(300)).unwrap();
    world.model.get_mut("t").unwrap().retain(|k, _| *k < number(100) || *k >= number(300));
    drop(t);
    world.db().flush().unwrap();
    let before = world.blocks(|b| b[4..8] == *b"AZRM");
    world.commit("t", TableKind::Ordered, (150..250).map(|i| (number(i), Some(value(i + 1, 9)))));
    world.db().flush().unwrap();
    let world = copy_of(&world);
    world.lose_superblocks();
    let labels = world.blocks(|b| b[4..8] == *b"AZRM");
    let newest: Vec<u64> = labels.into_iter().filter(|at| !before.contains(at)).collect();
    assert_eq!(newest.len(), 1, "one run was written last");
    world.flip(newest[0] + 20);
    world.whole();
}

#[test]
fn large_values_are_found_without_a_manifest() {
    let mut world = World::new();
    let large = |i: u64| [text(i), value(i, 1500 + (i as usize * 977) % 30_000)].concat();
    world.commit("t", TableKind::Ordered, (0..60).map(|i| (number(i), Some(large(i)))));
    world.db().flush().unwrap();
    world.commit("t", TableKind::Ordered, (60..80).map(|i| (number(i), Some(large(i)))));
    world.close();
    let report = world.whole();
    assert_eq!((report.values, report.values_lost, report.is_whole()), (80, 0, true));
    world.lose_superblocks();
    assert_eq!(world.whole().values_lost, 0);
    // One value is damaged: its key is reported, and nothing else is lost.
    let needle = large(17);
    let at = world.bytes().windows(100).position(|w| w == &needle[..100]).unwrap();
    world.flip(at as u64 + 300);
    let (report, mut found) = world.salvage();
    assert_eq!(report.values_lost, 1, "{report:?}");
    assert!(report.losses.iter().any(|l| l.contains("\\x11")), "{report:?}");
    let expected = world.model["t"].clone();
    assert!(found.get_mut("t").unwrap().insert(number(17), needle).is_none());
    assert!(found["t"] == expected);
}

#[test]
fn values_are_found_behind_any_number_of_lost_ones() {
    let mut world = World::new();
    let large = |i: u64| [text(i), value(i, 1100 + (i as usize * 7) % 60)].concat();
    // One value is too long to be looked at in one window. It has a segment of its own.
    let long = [text(700), value(700, 1_600_000)].concat();
    world.commit("t", TableKind::Ordered, (0..600).map(|i| (number(i), Some(large(i)))));
    world.commit("t", TableKind::Ordered, [(number(700), Some(long))]);
    world.close();
    world.lose_superblocks();
    let bytes = world.bytes();
    let begin = bytes.windows(60).position(|w| w == &large(0)[..60]).unwrap();
    let mut at = begin;
    for i in 0..500 {
        assert!(bytes[at..].starts_with(&large(i)));
        world.flip(at as u64 + 40);
        at += large(i).len();
    }
    let (report, found) = world.salvage();
    assert_eq!((report.values, report.values_lost), (101, 500));
    assert_eq!(found["t"].len(), 101);
    assert!(found["t"].iter().all(|(k, v)| world.model["t"].get(k) == Some(v)), "what nobody has written");
}

/// Each time that a segment is emptied, its values may come to stand in the next one as they stood there.
/// What is left of older runs refers to the older segments.
#[test]
fn a_value_is_found_for_each_segment_that_has_had_it() {
    let values: Vec<Vec<u8>> = (0..14).map(|i| value(i, 3000 + i as usize)).collect();
    let storage = MemStorage::default();
    let file = storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap();
    file.write_at(&values.concat(), 5 << 12).unwrap();
    let mut offset = 0;
    let mut references = Vec::new();
    for value in &values {
        let (len, crc) = (u32_of(value.len()), crate::base::checksum::crc(0, value));
        references.extend((1..9).map(|segment| ValuePointer { segment, offset, len, crc }.encode()));
        offset += len;
    }
    let input = Input::open(&storage, Path::new(PATH)).unwrap();
    let mut found = Values::new(&input);
    references.iter().for_each(|reference| found.want(reference));
    found.find_wanted();
    let lost = references.iter().filter(|r| found.read(&r[..]).is_none()).count();
    assert_eq!(lost, 0, "of {} references", references.len());
}

#[test]
fn commits_behind_a_gap_of_the_log_are_applied_and_the_gap_is_told() {
    let mut world = World::new();
    for i in 0..20 {
        world.commit("t", TableKind::Ordered, [(number(i), Some(value(i, 20)))]);
        world.db().sync().unwrap();
    }
    // Behind the last frame is one without payload, which vouches for it.
    for (with_roots, lost) in [(true, 7), (false, 7), (true, 20), (false, 20)] {
        let world = copy_of(&world);
        if !with_roots {
            world.lose_superblocks();
        }
        // Without jumps and frames without payload.
        let frames = world.blocks(|b| b[4..8] == *b"AZLF" && b[40] == 0 && b[32..36] != [0; 4]);
        assert_eq!(frames.len(), 21, "one makes the table");
        world.flip(frames[lost] + 70);
        let (report, found) = world.salvage();
        assert_eq!(report.log_gaps, 1, "{report:?}");
        let found = &found.values().next().unwrap();
        assert_eq!(found.len(), 19, "{report:?}");
        assert!(found.iter().all(|(k, v)| world.model["t"].get(k) == Some(v)));
    }
}

/// Each frame has all frames after it as its value: from n blocks n commits of n blocks could be kept.
#[test]
fn frames_within_a_frame_are_its_payload() {
    const FRAMES: usize = 64;
    let mut bytes = vec![0; 8192 + FRAMES * 4096];
    let record = |seq: u64, value: &[u8]| {
        let (mut w, mut block) = (Writer::default(), Block::new(None));
        block.push(b"k", Tag::Put, value);
        let start = begin_record(&mut w, seq, 1);
        write_part(&mut w, 1, &[], &Ranges::none(), &block);
        end_record(&mut w, start);
        w.bytes
    };
    let before_value = record(1, b"").len();
    for n in (0..FRAMES).rev() {
        let at = 8192 + n * 4096;
        let payload = record(n as u64 + 1, &bytes[at + HEADER_BYTES + before_value..]);
        bytes[at + HEADER_BYTES..].copy_from_slice(&payload);
        let (chain, len) = (n as u64 + 1, u32_of(payload.len()));
        let frame = Frame {
            file_id: 7,
            chain,
            number: 1,
            len,
            first_record: 0,
            jump: false,
            checkpoint: 1,
            durable_below: 1,
            clock: 0,
        };
        frame.seal(&mut bytes[at..]);
    }
    let storage = MemStorage::default();
    storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    let out = Db::open_on(&MemStorage::default(), "out", options()).unwrap();
    let report = salvage_on(&storage, PATH, &out, |_| {}).unwrap();
    assert_eq!(report.commits, 1, "{report:?}");
}

/// Tables with a few short records, which only the manifest holds.
fn small_tables(world: &mut World) {
    for n in 0..5 {
        let kind = if n % 2 == 0 { TableKind::Ordered } else { TableKind::Hash };
        let name = format!("small {n}");
        world.commit(&name, kind, (0..7).map(|i| (number(i + n), Some(value(i + n, 9)))));
        world.commit(&name, kind, [(number(6 + n), None)]);
    }
    world.db().flush().unwrap();
}

#[test]
fn records_that_stand_in_the_manifest_are_salvaged() {
    let mut world = World::new();
    small_tables(&mut world);
    assert_eq!(world.db().stats().runs, 0);
    world.commit("small 1", TableKind::Hash, [(number(2), None), (number(900), Some(value(3, 9)))]);
    world.db().sync().unwrap();
    let report = copy_of(&world).whole();
    assert!(report.manifest && report.is_whole() && report.commits == 1, "{report:?}");
}

#[test]
fn an_older_manifest_tells_what_small_tables_had() {
    let mut world = World::new();
    small_tables(&mut world);
    let older = world.bytes()[4096..8192].to_vec();
    // One of them gets a run, and loses one of its records.
    let grown = (0..3000).map(|i| (number(i), (i != 3).then(|| value(i, 30))));
    world.commit("small 0", TableKind::Ordered, grown);
    world.db().flush().unwrap();
    world.commit("small 2", TableKind::Ordered, [(number(77), Some(value(7, 9)))]);
    world.db().sync().unwrap();
    let world = copy_of(&world);
    world.lose_superblocks();
    world.file().write_at(&older, 4096).unwrap();
    // Only the last commit of the log is left. It knows of a newer checkpoint.
    let frames = world.blocks(|b| b[4..8] == *b"AZLF" && b[32..36] != [0; 4]);
    let number_of = |at: u64| u64::from_le_bytes(world.bytes()[at as usize + 24..][..8].try_into().unwrap());
    let last = frames.iter().copied().max_by_key(|&at| number_of(at)).unwrap();
    frames.into_iter().filter(|&at| at != last).for_each(|at| world.flip(at + 66));
    let report = world.whole();
    assert!(!report.manifest && !report.is_whole() && report.runs > 0, "{report:?}");
}

/// Salvages copies, with superblocks and without.
fn whole_either_way(world: &World) {
    for with_roots in [true, false] {
        let world = copy_of(world);
        if !with_roots {
            world.lose_superblocks();
        }
        let report = world.whole();
        assert_eq!((report.manifest, report.is_whole()), (with_roots, with_roots), "{report:?}");
    }
}

/// Tables that no manifest names. One is empty.
fn young_tables() -> World {
    let mut world = World::new();
    fill(&mut world, 0, 300, 0);
    world.db().flush().unwrap();
    world.commit("young numbers", TableKind::Hash, (0..9).map(|i| (number(i), Some(value(i, 9)))));
    world.db().sync().unwrap();
    world.commit("young text", TableKind::Hash, (0..9).map(|i| (text(i), Some(value(i, 9)))));
    world.commit("young", TableKind::Ordered, []);
    world.db().sync().unwrap();
    world
}

#[test]
fn tables_that_the_log_alone_names_are_salvaged() {
    let world = young_tables();
    whole_either_way(&world);
    // A table that was dropped does not come back with the log.
    world.db().drop_table("young text").unwrap();
    let mut world = copy_of(&world);
    world.model.remove("young text");
    assert!(world.whole().is_whole());
}

#[test]
fn commits_to_a_table_are_salvaged_without_the_one_that_made_it() {
    let mut world = copy_of(&young_tables());
    let made = world.blocks(|b| b[4..8] == *b"AZLF" && b.windows(6).any(|w| w == b"young "));
    assert_eq!(made.len(), 2);
    made.into_iter().for_each(|at| world.flip(at + 66));
    let (report, mut found) = world.salvage();
    let text = world.model.remove("young text").unwrap();
    assert!(found.values().any(|records| *records == text), "{report:?}");
    // Keys of eight bytes do not show that they are hashes.
    assert_eq!(report.losses.iter().filter(|l| l.contains("of which kind")).count(), 1, "{report:?}");
    world.model.remove("young numbers").unwrap();
    found.retain(|name, _| !name.starts_with("table-"));
    assert!(found == world.model, "{report:?}");
}

#[test]
fn what_is_no_database_is_told_apart_from_one_of_which_nothing_is_left() {
    let storage = MemStorage::default();
    let out = Db::open_on(&storage, "out", options()).unwrap();
    storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap().write_at(&[7; 50_000], 0).unwrap();
    assert!(matches!(salvage_on(&storage, PATH, &out, |_| {}), Err(Error::NotADatabase { .. })));
    assert!(matches!(salvage_on(&storage, "absent", &out, |_| {}), Err(Error::Open { .. })));
}

/// What was popped, many at a time, does not come back.
#[test]
fn what_was_popped_is_not_salvaged() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let mut world = World::new();
        let key = |i: u64| (i.to_be_bytes().to_vec(), Some(vec![7; 20]));
        world.commit("t", kind, (0..3000).map(key));
        world.db().flush().unwrap();
        let table = world.db().open_table("t").unwrap();
        for _ in 0..700 {
            let (first, _) = table.pop_first().unwrap().unwrap();
            world.model.get_mut("t").unwrap().remove(&first).unwrap();
        }
        drop(table);
        world.close();
        let (_, found) = world.salvage();
        assert!(found == world.model, "{kind:?}");
    }
}
