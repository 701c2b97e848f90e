//! `FORMAT.md` is true: a reader that knows only what that page says (`reader/`) finds every record of
//! files that the engine has written. It takes every number from the marked tables of the page, so a
//! wrong one makes it fail; and at the end every name in those tables must have been used, so no line
//! of them is left untested.

use crate::reader::{
    Doc, Entries, Fed, Field, Records, Seen, Tables, filter_hash8, hash, mix, page_checksum, read, restored,
};
use azekura::{Db, Durability, FeedContent, Merge, Options, Table, TableKind, WriteTxn};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A database and what must be in it.
struct World {
    doc: Doc,
    dir: PathBuf,
    model: Tables,
    seen: Vec<Seen>,
}

fn value(i: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|k| ((i * 31 + k * 17) ^ (k >> 8)) as u8).collect()
}

impl World {
    fn put(&mut self, w: &mut WriteTxn, t: &Table, key: &[u8], value: Vec<u8>) {
        w.put(t, key, &value).unwrap();
        self.model.get_mut(&t.name()).unwrap().1.insert(key.to_vec(), value);
    }

    fn remove(&mut self, w: &mut WriteTxn, t: &Table, key: &[u8]) {
        w.remove(t, key).unwrap();
        self.model.get_mut(&t.name()).unwrap().1.remove(key);
    }

    fn remove_range(&mut self, w: &mut WriteTxn, t: &Table, from: &[u8], to: &[u8]) {
        w.remove_range(t, from..to).unwrap();
        self.model.get_mut(&t.name()).unwrap().1.retain(|k, _| k.as_slice() < from || k.as_slice() >= to);
    }

    fn open(&self, path: &Path) -> (Db, [Table; 3]) {
        let options =
            Options::new().durability(Durability::Eventual).eventual_delay(Duration::from_secs(3600));
        let least = u32::try_from(self.doc.constant("inline_value_bytes_max")).unwrap() + 1;
        // Without threads nothing is flushed by time alone, between a commit and the copy that is to have it
        // in the log.
        let options = options.large_value_bytes(least).background_merges(false).threads(false);
        let db = options.open(path).unwrap();
        let table = |name, kind| db.table(name, kind).unwrap();
        let tables = [
            table("numbers", TableKind::Ordered),
            table("text", TableKind::Ordered),
            table("hash", TableKind::Hash),
        ];
        (db, tables)
    }

    /// Copies the file as a crash would leave it, reads the copy and compares.
    fn compare(&mut self, file: &str, what: &str) -> PathBuf {
        let copy = self.dir.join(what);
        std::fs::copy(self.dir.join(file), &copy).unwrap();
        let (mut tables, seen) = read(&self.doc, &std::fs::read(&copy).unwrap());
        self.compare_indexes(&mut tables);
        self.compare_feed(&mut tables);
        assert!(tables.keys().eq(self.model.keys()));
        for (name, (is_hash, records)) in &self.model {
            let found = &tables[name];
            assert_eq!(found.0, *is_hash, "{what}: {name}");
            assert!(found.1.keys().eq(records.keys()), "{what}: {name} has other keys");
            records.iter().for_each(|(k, v)| assert!(found.1[k] == *v, "{what}: {name}: the value of {k:?}"));
        }
        self.seen.push(seen);
        copy
    }

    /// Takes the feed away, after it was compared with the table that is fed.
    fn compare_feed(&self, tables: &mut Tables) {
        let Some((_, records)) = tables.remove("\0feed") else { return };
        let fed = Fed::read(&self.doc, &records);
        let (_, all) = &self.model["fed"];
        assert!(fed.contents.keys().eq(["fed"]) && fed.contents["fed"] == *all);
        // That which was dropped is forgotten.
        let [(content, since)] = fed.tables.values().collect::<Vec<_>>()[..] else { panic!() };
        assert!(*content == 2 && *since >= fed.trimmed);
        assert_eq!(fed.cursors["reader"], fed.trimmed);
        assert!(!fed.marks.is_empty());
    }

    /// Takes the indexes away, after they were compared with their tables.
    fn compare_indexes(&self, tables: &mut Tables) {
        for (table, name, specification, fields_of) in INDEXES {
            let Some(found) = tables.remove(&format!("{table}\0{name}")) else { continue };
            let mut wanted: Vec<(Vec<Field>, Vec<u8>)> =
                tables[table].1.iter().map(|(key, value)| (fields_of(value), key.clone())).collect();
            let entries = Entries::read(&self.doc, &found.1, wanted.first().map_or(1, |w| w.0.len()));
            assert_eq!(entries.specification, specification);
            let by_key = |entry: &(Vec<Field>, Vec<u8>)| entry.1.clone();
            let mut all = entries.all;
            all.sort_by_cached_key(by_key);
            if !entries.is_ready {
                // Some are not there yet.
                assert!(!all.is_empty() && all.len() < wanted.len());
                wanted.retain(|(_, key)| all.binary_search_by(|entry| entry.1.cmp(key)).is_ok());
            }
            assert!(all == wanted, "index {name} does not agree with its table");
        }
    }

    /// Waits until the log has rested, so that a frame without records ends it.
    fn rest(&self, file: &str) {
        let path = self.dir.join(file);
        let has_empty =
            |bytes: &[u8]| bytes.chunks_exact(4096).any(|b| b[4..8] == *b"AZLF" && b[32..36] == [0; 4]);
        let until = Instant::now() + Duration::from_secs(60);
        while !has_empty(&std::fs::read(&path).unwrap()) {
            assert!(Instant::now() < until, "a log that rests has no empty frame");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn any(&self, f: impl Fn(&Seen) -> usize) -> bool {
        self.seen.iter().any(|s| f(s) > 0)
    }
}

fn url(i: u64) -> Vec<u8> {
    format!("https://example.org/{}/{}", ["a", "shop", "archive"][i as usize % 3], i * 7919 % 100_000)
        .into_bytes()
}

/// Records of all kinds and widths.
fn fill(world: &mut World, w: &mut WriteTxn, [numbers, text, hash]: &[Table; 3], from: u64, to: u64) {
    for i in from..to {
        world.put(w, numbers, &(i * i).to_be_bytes(), value(i, 8));
        world.put(w, text, &url(i), value(i, i as usize % 90));
        world.put(w, hash, &i.to_be_bytes(), value(i, 4));
        world.put(w, hash, &value(i, i as usize % 100), value(i, i as usize % 50));
    }
}

/// An index: its table, its name, its specification, and what its fields are for a value.
type Index = (&'static str, &'static str, &'static str, fn(&[u8]) -> Vec<Field>);

const INDEXES: [Index; 2] = [
    ("hash", "several", "v[0..2], v[0..1]:u8, v[0..1]:i8, v[0..4]:f32le, v[0..3]:text", |value| {
        let piece = |to: usize| value.get(..to);
        let float = piece(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).filter(|f| !f.is_nan());
        let text = piece(3).and_then(|b| std::str::from_utf8(b).ok());
        vec![
            piece(2).map_or(Field::Null, |b| Field::Bytes(b.to_vec())),
            piece(1).map_or(Field::Null, |b| Field::U64(b[0].into())),
            piece(1).map_or(Field::Null, |b| Field::I64(b[0].cast_signed().into())),
            float.map_or(Field::Null, |f| Field::F64(f.into())),
            text.map_or(Field::Null, |t| Field::Text(t.to_owned())),
        ]
    }),
    ("made", "whole", "v", |value| vec![Field::Bytes(value.to_vec())]),
];

/// A value segment that compaction has moved to several holes, none of which takes it whole.
fn moved_in_parts(world: &mut World) {
    world.model.values_mut().for_each(|(_, records)| records.clear());
    let (db, [_, text, hash]) = world.open(&world.dir.join("parts"));
    for (n, large_bytes) in [(0, 1_200_000), (1, 3_000_000)] {
        let mut w = db.write();
        (0..2200u64).for_each(|i| world.put(&mut w, &text, &url(n << 20 | i), value(i, 900)));
        w.commit().unwrap();
        db.flush().unwrap();
        let mut w = db.write();
        world.put(&mut w, &hash, &n.to_be_bytes(), value(n, large_bytes));
        w.commit().unwrap();
    }
    let mut w = db.write();
    world.remove_range(&mut w, &text, b"h", b"i");
    w.commit().unwrap();
    db.shrink(|_| {}).unwrap();
    // The log speaks of the segment while it stands so: what the manifest says counts.
    let mut w = db.write();
    world.put(&mut w, &hash, b"after it", value(3, 10_000));
    w.commit().unwrap();
    db.sync().unwrap();
    world.compare("parts", "moved in parts");
}

/// Records that expire: some have, and some will in an hour. Their times differ, and the values' lengths.
fn expiring(world: &mut World) {
    let hour = Duration::from_secs(3600);
    world.model.values_mut().for_each(|(_, records)| records.clear());
    let (db, [numbers, text, hash]) = world.open(&world.dir.join("expiring"));
    let mut w = db.write();
    let mut put_for = |world: &mut World, t: &Table, key: &[u8], value: Vec<u8>, ttl: Duration| {
        w.put_for(t, key, &value, ttl).unwrap();
        let records = &mut world.model.get_mut(&t.name()).unwrap().1;
        if ttl.is_zero() {
            records.remove(key)
        } else {
            records.insert(key.to_vec(), value)
        };
    };
    for i in 0..3000u64 {
        let ttl = if i % 10 == 3 { Duration::ZERO } else { hour + Duration::from_millis(i * 17 % 5000) };
        put_for(world, &numbers, &(i * 3).to_be_bytes(), value(i, 8), ttl);
        put_for(world, &text, &url(i), value(i, i as usize % 90), ttl);
        put_for(world, &hash, &i.to_be_bytes(), Vec::new(), ttl);
    }
    put_for(world, &hash, b"large", value(2, 60_000), hour);
    w.commit().unwrap();
    db.sync().unwrap();
    world.compare("expiring", "expiring, logged");
    db.flush().unwrap();
    world.compare("expiring", "expiring, flushed");
    // Beside records that stay, and deletes.
    let mut w = db.write();
    for i in 0..900u64 {
        match i % 3 {
            0 => world.put(&mut w, &text, &url(i * 7), value(i, 20)),
            1 => world.remove(&mut w, &text, &url(i * 7)),
            _ => {
                w.put_for(&text, url(i * 7), value(i, 30), hour).unwrap();
                world.model.get_mut("text").unwrap().1.insert(url(i * 7), value(i, 30));
            }
        }
    }
    w.commit().unwrap();
    db.flush().unwrap();
    world.compare("expiring", "expiring, flushed twice");
    let cache = db.expiring_table("cache", TableKind::Hash, hour).unwrap();
    let mut w = db.write();
    world.model.insert("cache".into(), (true, Records::new()));
    world.put(&mut w, &cache, b"page", value(9, 100));
    w.commit().unwrap();
    db.sync().unwrap();
    world.compare("expiring", "a cache in the log");
    db.compact().unwrap();
    world.compare("expiring", "expiring, merged");
    // What is put from then on lives longer, and for as long as it is there, by the log and by the manifest.
    for lives in [Some(hour * 2), None] {
        let mut w = db.write();
        w.rename_table("cache", "between").unwrap();
        w.set_usual_ttl(&cache, lives).unwrap();
        w.rename_table("between", "cache").unwrap();
        w.commit().unwrap();
        world.compare("expiring", "a cache of other times in the log");
        db.flush().unwrap();
        world.compare("expiring", "a cache of other times");
    }
    let seen = |lives: u64| world.seen.iter().filter(|seen| seen.lifetimes == [lives]).count();
    assert_eq!((seen(3_600_000), seen(7_200_000)), (2, 2));
    assert!(world.seen.iter().all(|seen| seen.lifetimes.len() < 2));
    assert!(world.seen.last().is_some_and(|seen| seen.lifetimes.is_empty()));
}

/// What is appended and united.
static NOISE: [u8; 10_000] = {
    let (mut bytes, mut i, mut x) = ([0; 10_000], 0, 1u64);
    while i < bytes.len() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes[i] = (x >> 56) as u8;
        i += 1;
    }
    bytes
};

/// Operands of all operators, in the log and in runs, over values, deletes, nothing, and what is no number.
fn merging(world: &mut World) {
    world.model.values_mut().for_each(|(_, records)| records.clear());
    let (db, tables) = world.open(&world.dir.join("merging"));
    let merges: [fn(u64) -> Merge<'static>; 12] = [
        Merge::AddU64,
        |n| Merge::AddF64(n as f64),
        |n| Merge::MinI64(n.cast_signed() - 500),
        |n| Merge::MaxI64(n.cast_signed() - 500),
        Merge::MinU64,
        Merge::MaxU64,
        |n| Merge::MinF64(n as f64 / 4.0),
        |n| Merge::MaxF64(n as f64 / 4.0),
        Merge::BitOr,
        |n| Merge::Append(&NOISE[..n as usize % 50]),
        |n| Merge::Append(&NOISE[..n as usize * 10]),
        |n| Merge::Union { width: 3, elements: &NOISE[..n as usize * 9] },
    ];
    // An operator has a table of its own.
    for (o, merge) in merges.into_iter().enumerate() {
        let name = format!("merged {o}");
        let t = db.table(&name, if o % 2 == 0 { TableKind::Ordered } else { TableKind::Hash }).unwrap();
        world.model.insert(name.clone(), (o % 2 == 1, Records::new()));
        let key = |i: u64| if i % 5 == 4 { url(i) } else { i.to_be_bytes().to_vec() };
        for round in 0..4u64 {
            let mut w = db.write();
            for i in 0..300u64 {
                let n = (i * 37 + round * 101) % 1000;
                match (i + round) % 7 {
                    // (Whole elements, where sets are united.)
                    0 => world.put(
                        &mut w,
                        &t,
                        &key(i),
                        n.to_le_bytes()[..if o == 11 { 6 } else { 8 }].to_vec(),
                    ),
                    1 => world.remove(&mut w, &t, &key(i)),
                    _ => {
                        w.merge(&t, key(i), merge(n)).unwrap();
                        let number = w.get(&t, key(i)).unwrap().unwrap();
                        world.model.get_mut(&name).unwrap().1.insert(key(i), number);
                    }
                }
            }
            w.commit().unwrap();
            db.sync().unwrap();
            if o == 0 {
                world.compare("merging", "merged, logged");
            }
            if round < 3 {
                db.flush().unwrap();
            }
        }
    }
    let t = &tables[1];
    t.put("text", "no number").unwrap();
    t.put("large", value(2, 60_000)).unwrap();
    db.flush().unwrap();
    t.merge("text", Merge::AddU64(1)).unwrap();
    t.merge("large", Merge::AddU64(1)).unwrap();
    db.sync().unwrap();
    world.compare("merging", "merged, in runs and the log");
    db.flush().unwrap();
    world.compare("merging", "merged, in runs");
    db.compact().unwrap();
    world.compare("merging", "merged, folded");
}

/// The examples of the page, and limits that programs know too.
fn expect_examples(doc: &Doc) {
    let examples = [
        ("example_mix", mix(doc, 1)),
        ("example_hash", hash(b"azekura", 7)),
        ("example_filter_hash", filter_hash8(doc, 1)),
        ("example_page_checksum", page_checksum(1, 2, 3, b"page")),
    ];
    assert_eq!(doc.constant("key_bytes_max"), azekura::KEY_BYTES_MAX as u64);
    assert_eq!(doc.constant("name_bytes_max"), azekura::NAME_BYTES_MAX as u64);
    examples
        .iter()
        .for_each(|(name, expected)| assert_eq!(doc.constant(name), *expected, "{name} is {expected:#x}"));
}

/// One run a table, the log unused. Then a second one: replacements, deletes, ranges, large values, a key
/// that makes a page of several units.
fn two_runs(world: &mut World, db: &Db, tables: &[Table; 3]) {
    let [numbers, text, hash] = tables;
    let mut w = db.write();
    fill(world, &mut w, tables, 0, 3000);
    w.commit().unwrap();
    db.flush().unwrap();
    world.compare("db", "flushed");

    let mut w = db.write();
    world.remove_range(&mut w, text, b"https://example.org/a/2", b"https://example.org/a/5");
    world.remove_range(&mut w, text, b"https://example.org/shop/9", b"https://example.org/shop/91");
    fill(world, &mut w, tables, 2900, 3300);
    for i in 0..400u64 {
        world.remove(&mut w, numbers, &(i * i * 9).to_be_bytes());
        world.remove(&mut w, text, &url(i * 5));
        world.put(&mut w, text, &url(i * 5 + 1), value(i, if i % 40 == 0 { 9000 } else { 900 }));
    }
    world.put(&mut w, text, &vec![b'z'; 65_536], value(1, 8191));
    world.put(&mut w, text, b"", Vec::new());
    world.put(&mut w, hash, b"large", value(2, 5 << 20));
    w.commit().unwrap();
    db.flush().unwrap();
    world.compare("db", "flushed twice");
}

/// An index over what is there, kept from now on.
fn an_index(world: &mut World, db: &Db, hash: &Table) {
    let (_, name, specification, _) = INDEXES[0];
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
        hash.create_index_with(name, specification, |_| {
            std::panic::resume_unwind(Box::new("the builder dies"))
        })
    }));
    assert!(ended.is_err());
    db.sync().unwrap();
    world.compare("db", "being indexed");
    hash.create_index(name, specification).unwrap();
    world.compare("db", "indexed");
}

/// A table that is fed, with each kind of change.
fn a_feed(world: &mut World, db: &Db) {
    let t = db.create_table("first", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    db.set_feed_limits(1 << 20, None).unwrap();
    db.rename_table("first", "fed").unwrap();
    world.model.insert("fed".into(), (false, Records::new()));
    let keys = db.create_table("gone", TableKind::Hash).unwrap();
    keys.set_feed(Some(FeedContent::Keys)).unwrap();
    keys.put("a", "b").unwrap();
    db.drop_table("gone").unwrap();
    let mut w = db.write();
    world.put(&mut w, &t, b"0", value(1, 10));
    world.remove_range(&mut w, &t, b"0", b"1");
    for i in 0..300u64 {
        world.put(&mut w, &t, &(i * i).to_be_bytes(), value(i, i as usize));
    }
    world.put(&mut w, &t, b"large", value(2, 300_000));
    w.commit().unwrap();
    let mut w = db.write();
    w.clear(&t).unwrap();
    world.model.get_mut("fed").unwrap().1.clear();
    for i in 0..20u64 {
        world.put(&mut w, &t, &url(i), value(i, 3));
    }
    world.remove(&mut w, &t, &url(7));
    w.commit().unwrap();
    t.set_feed(Some(FeedContent::Both)).unwrap();
    let mut w = db.write();
    world.put(&mut w, &t, &url(3), value(3, 5000));
    world.put(&mut w, &t, b"new", value(4, 5));
    world.remove(&mut w, &t, &url(4));
    world.remove_range(&mut w, &t, &url(10), &url(15));
    w.commit().unwrap();
    let oldest = db.feed_info().unwrap().unwrap().oldest;
    db.set_feed_cursor("reader", Some(oldest)).unwrap();
    db.sync().unwrap();
    world.compare("db", "fed");
}

/// The log's tail: rows, columns, a range, a record of several frames and segments.
fn a_log(world: &mut World, db: &Db, tables: &[Table; 3]) {
    let [numbers, text, _] = tables;
    let mut w = db.write();
    world.remove_range(&mut w, numbers, &0u64.to_be_bytes(), &5000u64.to_be_bytes());
    world.put(&mut w, numbers, &17u64.to_be_bytes(), value(17, 8));
    world.put(&mut w, text, b"large, in the log", value(3, 20_000));
    w.commit().unwrap();
    db.sync().unwrap();
    world.rest("db");
    world.compare("db", "rested");
    let mut w = db.write();
    (0..140_000u64).for_each(|i| world.put(&mut w, numbers, &(i << 20 | 5).to_be_bytes(), value(i, 12)));
    w.commit().unwrap();
    let mut w = db.write();
    fill(world, &mut w, tables, 3300, 3400);
    w.commit().unwrap();
    db.sync().unwrap();
    // A segment with room left, and a record that begins in it and goes on in the next.
    for (n, low) in [(3000u64, 6), (280_000, 7)] {
        let mut w = db.write();
        (0..n).for_each(|i| world.put(&mut w, numbers, &(i << 20 | low).to_be_bytes(), value(i, 12)));
        w.commit().unwrap();
        db.sync().unwrap();
    }
}

/// Tables that only the log knows. Of one that was dropped since, the manifest knows that it was there.
fn tables_of_the_log(world: &mut World, db: &Db) {
    db.create_tables(&[("few", TableKind::Hash), ("dropped", TableKind::Ordered)]).unwrap();
    db.open_table("dropped").unwrap().put(b"gone", b"with its table").unwrap();
    db.drop_table("dropped").unwrap();
    let few = db.create_table("made", TableKind::Ordered).unwrap();
    world.model.insert("few".into(), (true, Records::new()));
    world.model.insert("made".into(), (false, Records::new()));
    // All that a transaction can do with tables.
    db.create_tables(&[("yesterday", TableKind::Ordered), ("older", TableKind::Hash)]).unwrap();
    let mut w = db.write();
    w.drop_table("older").unwrap();
    w.rename_table("yesterday", "older").unwrap();
    let today = w.create_table("yesterday", TableKind::Hash).unwrap();
    w.put(&today, b"k", b"made and written at once").unwrap();
    w.commit().unwrap();
    let record = (b"k".to_vec(), b"made and written at once".to_vec());
    world.model.insert("older".into(), (false, Records::new()));
    world.model.insert("yesterday".into(), (true, Records::from([record])));
    world.compare("db", "checkpoint of a drop");
    let mut w = db.write();
    w.rename_table("older", "oldest").unwrap();
    w.commit().unwrap();
    let older = world.model.remove("older").unwrap();
    world.model.insert("oldest".into(), older);
    let mut w = db.write();
    world.put(&mut w, &few, b"a record", b"of a small table".to_vec());
    w.commit().unwrap();
    few.create_index("whole", "v").unwrap();
    let mut w = db.write();
    world.put(&mut w, &few, b"another", b"with an entry".to_vec());
    w.commit().unwrap();
    db.sync().unwrap();
}

/// The first segments of the log are given back, and the next begins within a record. Then copies.
fn a_log_cut_short(world: &mut World, db: &Db, tables: &[Table; 3]) {
    db.flush().unwrap();
    let mut w = db.write();
    world.remove(&mut w, &tables[1], b"");
    w.commit().unwrap();
    db.sync().unwrap();
    world.compare("db", "flushed, logged");
    // A repository that was filled beside the writer has the log, and goes on with it.
    let follower = Options::new().follow(true).open(world.dir.join("db")).unwrap();
    let mut keeper = follower.keep_log(world.dir.join("beside")).unwrap();
    let kept = keeper.step(|_| {}).unwrap();
    assert!(kept.first_commit < kept.commit, "{kept:?}");
    let mut w = db.write();
    world.put(&mut w, &tables[0], b"kept", vec![7; 9000]);
    world.put(&mut w, &tables[1], b"kept", b"small".to_vec());
    w.commit().unwrap();
    db.sync().unwrap();
    assert_eq!(keeper.step(|_| {}).unwrap().points, 1);
    drop((keeper, follower));
    std::fs::write(world.dir.join("restored-beside"), restored(&world.doc, &world.dir.join("beside"), 1))
        .unwrap();
    let again = world.compare("restored-beside", "restored by the page, with a log");
    assert!(Options::new().open(&again).unwrap().check(|_| {}).unwrap().problems.is_empty());
    db.compact().unwrap();
    // A copy; a repository, and a database that is restored from it by the page.
    db.copy_to(world.dir.join("copied"), |_| {}).unwrap();
    world.compare("copied", "copy");
    db.backup(world.dir.join("saved"), |_| {}).unwrap();
    std::fs::write(world.dir.join("restored"), restored(&world.doc, &world.dir.join("saved"), 1)).unwrap();
    let again = world.compare("restored", "restored by the page");
    assert!(Options::new().open(&again).unwrap().check(|_| {}).unwrap().problems.is_empty());
}

/// After a crash: a second chain behind the first, whose end is known now.
fn a_second_chain(world: &mut World, crashed: &Path) {
    let (db, tables) = world.open(crashed);
    let mut w = db.write();
    fill(world, &mut w, &tables, 3350, 3450);
    w.commit().unwrap();
    db.sync().unwrap();
    // A segment that no manifest knows yet.
    let mut w = db.write();
    world.put(&mut w, &tables[2], b"large, in a new segment", value(4, 30_000));
    w.commit().unwrap();
    db.sync().unwrap();
    world.compare("logged", "recovered");
}

/// Every kind of structure was met, and no name of the page was left over.
fn expect_all_kinds(world: &World) {
    let all: [fn(&Seen) -> usize; 37] = [
        |s| usize::from(s.is_copy),
        |s| s.pages[0],
        |s| s.pages[1],
        |s| s.large_pages,
        |s| s.expiring_pages[0],
        |s| s.expiring_pages[1],
        |s| s.expired,
        |s| s.operands[0],
        |s| s.operands[1],
        |s| s.operands[2],
        |s| s.long[0],
        |s| s.long[1],
        |s| s.long[2],
        |s| s.run_forms[0],
        |s| s.run_forms[1],
        |s| s.covers[0],
        |s| s.covers[1],
        |s| s.filters,
        |s| s.run_ranges,
        |s| s.jumps,
        |s| s.forms[0],
        |s| s.forms[1],
        |s| s.forms[2],
        |s| s.forms[3],
        |s| s.forms[4],
        |s| s.forms[5],
        |s| s.forms[6],
        |s| s.small,
        |s| s.log_ranges,
        |s| s.large,
        |s| s.parted,
        |s| s.ended,
        |s| s.skipped,
        |s| s.empty,
        |s| s.vouching_jumps,
        |s| usize::from(s.outside),
        |s| usize::from(!s.outside),
    ];
    all.iter()
        .enumerate()
        .for_each(|(i, f)| assert!(world.any(f), "nothing of kind {i} was met: {:?}", world.seen));
    assert!(world.any(|s| s.chains.saturating_sub(1)) && world.any(|s| s.levels.saturating_sub(5)));
    // The engine reads small runs, and writes none.
    assert_eq!(world.doc.unused(), ["small_page_bytes"], "FORMAT.md says what no reader needs");
}

#[test]
fn an_independent_reader_finds_every_record() {
    let doc = Doc::parse(
        &std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../FORMAT.md")).unwrap(),
    );
    expect_examples(&doc);
    let dir = std::env::temp_dir().join(format!("azekura-format-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let names = [("numbers", false), ("text", false), ("hash", true)];
    let model =
        names.into_iter().map(|(name, is_hash)| (name.to_owned(), (is_hash, Records::new()))).collect();
    let mut world = World { doc, dir: dir.clone(), model, seen: Vec::new() };

    let (db, tables) = world.open(&dir.join("db"));
    two_runs(&mut world, &db, &tables);
    an_index(&mut world, &db, &tables[2]);
    a_feed(&mut world, &db);
    a_log(&mut world, &db, &tables);
    tables_of_the_log(&mut world, &db);
    let crashed = world.compare("db", "logged");
    a_log_cut_short(&mut world, &db, &tables);
    drop(tables);
    db.close().unwrap();
    world.compare("db", "closed");
    world.model.get_mut("text").unwrap().1.insert(Vec::new(), Vec::new());
    ["numbers", "text"].iter().for_each(|name| {
        world.model.get_mut(*name).unwrap().1.remove(&b"kept"[..]);
    });
    a_second_chain(&mut world, &crashed);
    world.model.retain(|name, _| names.iter().any(|n| n.0 == name));
    moved_in_parts(&mut world);
    expiring(&mut world);
    world.model.remove("cache");
    merging(&mut world);
    expect_all_kinds(&world);
    std::fs::remove_dir_all(&dir).unwrap();
}
