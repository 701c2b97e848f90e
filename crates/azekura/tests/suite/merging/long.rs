//! What is appended, and elements of sets: operands that have a length.

use super::{PATH, copy_of, options};
use azekura::storage::{MemStorage, OpenMode, Storage};
use azekura::{Db, Error, Isolation, Merge, Options, Table, TableDefinition, TableKind, WriteOptions};
use std::path::Path;

/// Nothing is folded but when the test says so.
fn open(storage: &MemStorage) -> Db {
    crate::common::watch(std::time::Duration::from_secs(120));
    Db::open_on(storage, PATH, options().threads(false)).unwrap()
}

fn union(elements: &[u8]) -> Merge<'_> {
    Merge::Union { width: 2, elements }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed * 2 + 1;
    let next = |_| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    (0..len).map(next).collect()
}

/// Looks at a value in every way, and at the database.
fn expect(db: &Db, key: &str, wanted: &[u8]) {
    let t = db.open_table("t").unwrap();
    assert!(t.get(key).unwrap().unwrap() == wanted);
    assert!(*t.get_ref(key).unwrap().unwrap() == *wanted);
    assert!(t.get_many(&["none", key]).unwrap()[1].as_ref().unwrap() == wanted);
    for back in [false, true] {
        let mut cursor = t.cursor().unwrap();
        if back {
            cursor.seek_last();
        }
        let found = loop {
            let (k, value) = if back { cursor.prev() } else { cursor.next() }.unwrap().expect("it is there");
            if k == key.as_bytes() {
                assert_eq!(value.len(), wanted.len());
                break value.bytes().unwrap().to_vec();
            }
        };
        assert!(found == wanted);
    }
    let txn = db.write();
    assert!(txn.get(&t, key).unwrap().unwrap() == wanted);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}

/// A table whose oldest level has a value, so that nothing that is flushed later meets it at once.
fn above_a_base(storage: &MemStorage, base: &[u8]) -> (Db, Table) {
    let db = open(storage);
    let t = db.table("t", TableKind::Ordered).unwrap();
    (0..500u64).for_each(|i| t.put(i.to_be_bytes(), [0; 8]).unwrap());
    t.put("k", base).unwrap();
    db.flush().unwrap();
    (db, t)
}

#[test]
fn what_gets_too_long_for_a_page_stands_apart_as_an_operand_and_as_a_value() {
    for base in [0, 8, 63, 100, 20_000] {
        let storage = MemStorage::default();
        let mut wanted = noise(base, 1);
        let (db, t) = above_a_base(&storage, &wanted);
        for round in 0..3 {
            for i in 0..40 {
                let bytes = noise(300, round * 100 + i);
                t.merge("k", Merge::Append(&bytes)).unwrap();
                wanted.extend_from_slice(&bytes);
            }
            expect(&db, "k", &wanted);
            // 12 KB of operands, and what is below them stays where it is.
            db.flush().unwrap();
            expect(&db, "k", &wanted);
        }
        t.merge("k", Merge::Append(b"the end")).unwrap();
        wanted.extend_from_slice(b"the end");
        let copy = copy_of(&storage);
        let other = open(&copy);
        expect(&other, "k", &wanted);
        other.compact().unwrap();
        expect(&other, "k", &wanted);
        db.compact().unwrap();
        expect(&db, "k", &wanted);
        drop(t);
        db.close().unwrap();
        expect(&open(&storage), "k", &wanted);
    }
}

#[test]
fn sets_that_get_too_long_for_a_page_are_united_all_the_same() {
    for base in [0u16, 10, 9_000] {
        let storage = MemStorage::default();
        let mut model: std::collections::BTreeSet<[u8; 2]> =
            (0..base).map(|i| (i * 7).to_be_bytes()).collect();
        let value =
            |model: &std::collections::BTreeSet<[u8; 2]>| model.iter().flatten().copied().collect::<Vec<_>>();
        let (db, t) = above_a_base(&storage, &value(&model));
        for round in 0..3u16 {
            for i in 0..60u16 {
                let elements = noise(240, u64::from(round * 100 + i));
                t.merge("k", union(&elements)).unwrap();
                model.extend(elements.chunks(2).map(|e| <[u8; 2]>::try_from(e).unwrap()));
            }
            expect(&db, "k", &value(&model));
            db.flush().unwrap();
            expect(&db, "k", &value(&model));
        }
        expect(&open(&copy_of(&storage)), "k", &value(&model));
        db.compact().unwrap();
        expect(&db, "k", &value(&model));
        // The value is a set, whatever the elements were.
        assert_eq!(t.get("k").unwrap().unwrap().len() % 2, 0);
    }
}

#[test]
fn a_large_value_in_the_same_memtable_is_read_only_when_it_is_written_anew() {
    let storage = MemStorage::default();
    let db = open(&storage);
    let t = db.table("t", TableKind::Hash).unwrap();
    let mut wanted = noise(30_000, 3);
    t.put("k", &wanted).unwrap();
    for i in 0..2_000u64 {
        // Chunks are made and merged meanwhile.
        t.put(i.to_be_bytes(), noise(20, i)).unwrap();
        if i % 10 == 0 {
            t.merge("k", Merge::Append(&i.to_be_bytes())).unwrap();
            wanted.extend_from_slice(&i.to_be_bytes());
        }
    }
    assert!(t.get("k").unwrap().unwrap() == wanted);
    expect(&open(&copy_of(&storage)), "k", &wanted);
    db.flush().unwrap();
    expect(&db, "k", &wanted);
}

#[test]
fn many_appends_to_one_key_take_about_their_bytes() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    let mut wanted = Vec::new();
    let mut txn = db.write();
    for i in 0..50_000u64 {
        txn.merge(&t, "k", Merge::Append(&i.to_be_bytes())).unwrap();
        wanted.extend_from_slice(&i.to_be_bytes());
    }
    assert!(txn.get(&t, "k").unwrap().unwrap() == wanted);
    txn.commit().unwrap();
    expect(&db, "k", &wanted);
    for i in 0..50_000u64 {
        t.merge("k", Merge::Append(&i.to_be_bytes())).unwrap();
        wanted.extend_from_slice(&i.to_be_bytes());
    }
    expect(&db, "k", &wanted);
    let written = db.stats().file_bytes;
    assert!(written < 64 << 20, "{written} bytes for {}", wanted.len());
}

#[test]
fn a_snapshot_sees_the_operands_that_were_there() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    let mut held = Vec::new();
    let mut wanted = Vec::new();
    for i in 0..600u32 {
        t.merge("k", Merge::Append(&i.to_be_bytes())).unwrap();
        wanted.extend_from_slice(&i.to_be_bytes());
        if i % 50 == 0 {
            held.push((db.read(), wanted.clone()));
        }
        if i == 300 {
            db.flush().unwrap();
        }
        for (read, wanted) in &held {
            assert!(read.get(&t, "k").unwrap().unwrap() == *wanted);
        }
        let mut cursor = held[held.len() / 2].0.cursor(&t).unwrap();
        assert!(cursor.next().unwrap().unwrap().1.bytes().unwrap() == held[held.len() / 2].1);
    }
}

#[test]
fn those_of_four_threads_are_all_there_and_in_order() {
    let db = Db::open_on(&MemStorage::default(), PATH, options()).unwrap();
    let t = db.table("t", TableKind::Hash).unwrap();
    let s = db.table("s", TableKind::Hash).unwrap();
    std::thread::scope(|scope| {
        for n in 0..4u32 {
            let (db, t, s) = (db.clone(), t.clone(), s.clone());
            scope.spawn(move || {
                for i in 0..1_500u32 {
                    let entry = (n << 16 | i).to_be_bytes();
                    let options = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
                    let mut txn = db.write_with(options);
                    txn.merge(&t, "k", Merge::Append(&entry)).unwrap();
                    txn.merge(&s, "k", Merge::Union { width: 4, elements: &entry }).unwrap();
                    txn.commit().unwrap();
                    if i % 500 == 0 {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
    let list = t.get("k").unwrap().unwrap();
    let entries: Vec<u32> = list.chunks(4).map(|e| u32::from_be_bytes(e.try_into().unwrap())).collect();
    assert_eq!(entries.len(), 6_000);
    for n in 0..4 {
        assert!((0..1_500).eq(entries.iter().filter(|e| *e >> 16 == n).map(|e| e & 0xffff)));
    }
    let mut sorted = entries;
    sorted.sort_unstable();
    let set = s.get("k").unwrap().unwrap();
    assert!(set.chunks(4).map(|e| u32::from_be_bytes(e.try_into().unwrap())).eq(sorted));
}

#[test]
fn a_set_is_united_with_what_is_none_if_its_bytes_are_whole_elements() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    t.put("unsorted", "ccaabbaa").unwrap();
    t.put("odd", "aab").unwrap();
    t.put("large and odd", noise(20_001, 1)).unwrap();
    let get = |key: &str| t.get(key).unwrap().unwrap();
    for settle in [false, true] {
        for key in ["unsorted", "odd", "large and odd", "absent"] {
            t.merge(key, union(b"zzbb")).unwrap();
        }
        if settle {
            db.compact().unwrap();
        }
        assert_eq!(get("unsorted"), b"aabbcczz");
        assert_eq!(get("absent"), b"bbzz");
        for key in ["odd", "large and odd"] {
            let Err(e @ Error::WrongType { .. }) = t.get(key) else { panic!("{key}") };
            assert!(e.to_string().contains("elements of 2 bytes"), "{e}");
        }
    }
    // Nothing appended, and no element, is a value too.
    t.merge("none", union(b"")).unwrap();
    assert_eq!(get("none"), b"");
    for (width, elements) in [(0, &b""[..]), (256, &[0; 256]), (2, b"abc"), (usize::MAX, b"")] {
        let done = t.merge("k", Merge::Union { width, elements });
        assert!(matches!(done, Err(Error::Invalid { .. })), "{done:?}");
    }
    // Another width is another operator: it reads.
    t.merge("absent", Merge::Union { width: 4, elements: b"aaaa" }).unwrap();
    assert_eq!(get("absent"), b"aaaabbzz");
    let done = t.merge("absent", Merge::Union { width: 3, elements: b"aaa" });
    assert!(matches!(done, Err(Error::WrongType { .. })), "{done:?}");
    t.merge("absent", Merge::Append(b"!")).unwrap();
    assert_eq!(get("absent"), b"aaaabbzz!");
}

#[test]
fn a_damaged_value_holds_up_no_flush() {
    let storage = MemStorage::default();
    let (db, t) = above_a_base(&storage, b"");
    let base = noise(20_000, 5);
    t.put("k", &base).unwrap();
    db.sync().unwrap();
    t.merge("k", Merge::Append(b"one")).unwrap();
    t.merge("other", Merge::Append(b"one")).unwrap();
    // A byte of the value, which a flush would write anew.
    let bytes = crate::copies::bytes_of(&storage, PATH);
    let at = bytes.windows(100).position(|some| some == &base[1_000..1_100]).unwrap();
    let file = storage.open(Path::new(PATH), OpenMode::ReadWrite).unwrap();
    file.write_at(&[!bytes[at]], at as u64).unwrap();
    db.flush().unwrap();
    assert!(matches!(t.get("k"), Err(Error::Corrupt { .. })));
    assert_eq!(t.get("other").unwrap().unwrap(), b"one");
    assert_eq!(t.count().unwrap(), 502);
    t.put("k", b"new").unwrap();
    db.flush().unwrap();
    assert_eq!(t.get("k").unwrap().unwrap(), b"new");
}

#[test]
fn tables_with_types_append_and_unite() {
    const TEXTS: TableDefinition<str, str> = TableDefinition::ordered("texts");
    const SETS: TableDefinition<u64, [u8]> = TableDefinition::hash("sets");
    let db = open(&MemStorage::default());
    let (texts, sets) = (db.typed_table(&TEXTS).unwrap(), db.typed_table(&SETS).unwrap());
    texts.merge_append("day", "it ").unwrap();
    sets.merge_union(7, 2, b"bbaa").unwrap();
    sets.merge_append(8, b"bytes").unwrap();
    let mut txn = db.write();
    texts.write_in(&mut txn).merge_append("day", "rains").unwrap();
    sets.write_in(&mut txn).merge_union(7, 2, b"ccaa").unwrap();
    sets.write_in(&mut txn).merge_append(8, b" and more").unwrap();
    txn.commit().unwrap();
    assert_eq!(texts.get("day").unwrap().as_deref(), Some("it rains"));
    assert_eq!(sets.get(7).unwrap().unwrap(), b"aabbcc");
    assert_eq!(sets.get(8).unwrap().unwrap(), b"bytes and more");
}

#[test]
fn an_operand_that_is_too_long_to_wait_reads() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Hash).unwrap();
    let (short, long) = (noise(100, 1), noise((1 << 20) + 1, 2));
    for bytes in [&short, &long, &short] {
        t.merge("k", Merge::Append(bytes)).unwrap();
    }
    let mut txn = db.write();
    txn.merge(&t, "k", Merge::Append(&long)).unwrap();
    txn.merge(&t, "k", Merge::Append(&short)).unwrap();
    txn.commit().unwrap();
    let wanted = [&short[..], &long, &short, &long, &short].concat();
    assert!(t.get("k").unwrap().unwrap() == wanted);
}

#[test]
fn files_with_such_operands_are_of_a_version_of_their_own() {
    let version = |storage: &MemStorage| crate::copies::bytes_of(storage, PATH)[12];
    let storage = MemStorage::default();
    let (db, t) = above_a_base(&storage, b"");
    assert_eq!(version(&storage), 1);
    (0..500u64).for_each(|i| t.merge(i.to_be_bytes(), union(b"aa")).unwrap());
    db.flush().unwrap();
    assert_eq!(version(&storage), 3);
    let other = open(&copy_of(&storage));
    // What the file says of its operands is known again.
    other.open_table("t").unwrap().merge("k", union(b"bb")).unwrap();
    expect(&other, "k", b"bb");
    db.compact().unwrap();
    assert_eq!(version(&storage), 1, "all were folded");
}

#[test]
fn salvage_finds_what_stands_apart() {
    let dir = std::env::temp_dir().join(format!("azekura-salvage-appends-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (from, to) = (dir.join("a.azk"), dir.join("b.azk"));
    let db = Db::open(&from, Options::new().threads(false)).unwrap();
    let t = db.table("t", TableKind::Hash).unwrap();
    let mut wanted = noise(50_000, 9);
    t.put("k", &wanted).unwrap();
    t.put_many((0..2000u64).map(|i| (i.to_be_bytes(), [7; 8]))).unwrap();
    db.flush().unwrap();
    for round in 0..3 {
        let bytes = noise(30_000, round);
        t.merge("k", Merge::Append(&bytes)).unwrap();
        t.merge_many((0..2000u64).map(|i| (i.to_be_bytes(), Merge::Append(b"more")))).unwrap();
        wanted.extend_from_slice(&bytes);
        if round < 2 {
            db.flush().unwrap();
        }
    }
    std::fs::copy(&from, dir.join("c.azk")).unwrap();
    drop(t);
    db.close().unwrap();
    let out = Db::open(&to, Options::new()).unwrap();
    let report = azekura::salvage(dir.join("c.azk"), &out, |_| {}).unwrap();
    assert!(report.manifest && report.values_lost == 0, "{report:?}");
    let t = out.open_table("t").unwrap();
    assert!(t.get("k").unwrap().unwrap() == wanted);
    for i in 0..2000u64 {
        assert_eq!(t.get(i.to_be_bytes()).unwrap().unwrap(), b"\x07\x07\x07\x07\x07\x07\x07\x07moremoremore");
    }
    drop(t);
    out.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A blind merge of one operator, and another's commit of a second operator onto a large value before the
/// first one looks: what it sees is both.
#[test]
fn an_own_operand_is_folded_onto_parts_of_another_operator() {
    let storage = MemStorage::default();
    let base = noise(50_000, 3);
    let (db, t) = above_a_base(&storage, &base);
    let mut number = db.write();
    number.merge(&t, "k", Merge::AddU64(1)).unwrap();
    let mut set = db.write();
    set.merge(&t, "k", union(b"zz")).unwrap();
    t.merge("k", Merge::Append(b"tail")).unwrap();
    let mut elements: Vec<&[u8]> = base.chunks(2).chain([&b"ta"[..], b"il", b"zz"]).collect();
    elements.sort_unstable();
    elements.dedup();
    assert!(set.get(&t, "k").unwrap().unwrap() == elements.concat());
    assert!(matches!(number.get(&t, "k"), Err(Error::WrongType { .. })));
    drop((set, number));
    expect(&db, "k", &[&base[..], b"tail"].concat());
}
