//! Reads inside reads, and reads in order: what a position hint must not get wrong. Reads that fail.

use azekura::{Db, Durability, Error, LazyValue, Options, Result, TableKind};
use sim::disk::{Call, Disk, Effect, Fault};

fn database(name: &str) -> (Db, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("azekura-reading-{name}-{}.azk", std::process::id()));
    if path.exists() {
        std::fs::remove_file(&path).unwrap();
    }
    let db = Options::new().durability(Durability::Eventual).open(&path).unwrap();
    (db, path)
}

/// A cursor's record with its value.
fn read<'a>(record: Result<Option<(&'a [u8], LazyValue<'a>)>>) -> Option<(&'a [u8], &'a [u8])> {
    record.unwrap().map(|(key, value)| (key, value.bytes().unwrap()))
}

#[test]
fn a_closure_may_read_from_its_own_transaction() {
    let (db, path) = database("nested");
    let names = db.table("names", TableKind::Ordered).unwrap();
    let ids = db.table("ids", TableKind::Ordered).unwrap();
    let n = 5_000u64;
    ids.put_many((0..n).map(|i| (i.to_be_bytes(), (n - 1 - i).to_be_bytes()))).unwrap();
    names.put_many((0..n).map(|i| (i.to_be_bytes(), (i * 7).to_be_bytes()))).unwrap();
    db.compact().unwrap();
    let txn = db.read();
    for i in 0..n {
        // Ascending keys, so that the outer get follows its hint while the inner one looks elsewhere.
        let inner = txn.get_with(&ids, &i.to_be_bytes(), |id| txn.get(&names, id).unwrap()).unwrap();
        assert_eq!(inner, Some(Some(((n - 1 - i) * 7).to_be_bytes().to_vec())), "{i}");
        let same = txn.get_with(&ids, &i.to_be_bytes(), |id| txn.get(&ids, id).unwrap()).unwrap();
        assert_eq!(same, Some(Some(i.to_be_bytes().to_vec())), "{i}");
    }
    drop((txn, names, ids));
    db.close().unwrap();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn compacting_gives_back_large_values_of_small_commits() {
    let (db, path) = database("spares");
    let t = db.table("t", TableKind::Hash).unwrap();
    for i in 0..40u64 {
        t.put(&i.to_be_bytes(), &vec![i as u8; 1 << 20]).unwrap();
    }
    for i in 0..40u64 {
        t.remove(&i.to_be_bytes()).unwrap();
    }
    let report = db.shrink(|_| {}).unwrap();
    assert!(report.after_bytes < 2 << 20, "{report:?}");
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(path).unwrap();
}

/// The read of a page fails once; what follows must not be given as if the lost records had never been,
/// whether one source is walked or several are merged.
#[test]
fn a_cursor_repeats_its_error_until_it_is_sent_elsewhere() {
    for levels in [1, 3] {
        let disk = Disk::new();
        let options = || Options::new().background_merges(false).durability(Durability::Eventual);
        let db = Db::open_on(&disk, "sticky.azk", options()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        let n = 60_000u64;
        for level in 0..levels {
            let keys = (0..n).filter(|i| i % levels == level);
            t.put_many(keys.map(|i| (i.to_be_bytes(), (i * 3).to_be_bytes()))).unwrap();
            db.flush().unwrap();
        }
        drop(t);
        db.close().unwrap();
        for forward in [true, false] {
            let db = Db::open_on(&disk, "sticky.azk", options()).unwrap();
            let t = db.open_table("t").unwrap();
            let mut cursor = t.cursor().unwrap();
            if !forward {
                cursor.seek_last();
            }
            let mut step = || if forward { cursor.next() } else { cursor.prev() }.map(|r| r.is_some());
            for _ in 0..100 {
                assert!(step().unwrap());
            }
            disk.set_fault(Some(Fault {
                call: Call::Read,
                nth: 1,
                forever: false,
                effect: Effect::Error(5),
            }));
            let mut given = 100;
            while let Ok(more) = step() {
                assert!(more, "{levels} levels: the walk ended after {given} of {n}");
                given += 1;
            }
            assert_eq!(disk.faults_hit(), 1);
            for again in 0..3 {
                assert!(matches!(step(), Err(Error::Io { .. })), "{levels} levels, {again}");
            }
            assert!(cursor.next().is_err() && cursor.prev().is_err());
            cursor.seek_first();
            for i in 0..n {
                assert_eq!(read(cursor.next()), Some((&i.to_be_bytes()[..], &(i * 3).to_be_bytes()[..])));
            }
            assert_eq!(read(cursor.next()), None);
            drop((cursor, t));
            db.close().unwrap();
        }
    }
}

/// A value that stands apart is read when its bytes are asked for, and not before; one that cannot be read is
/// an error then, and the cursor goes on.
#[test]
fn a_walk_over_keys_reads_no_large_values() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let disk = Disk::new();
        let options = || Options::new().background_merges(false).durability(Durability::Eventual);
        let db = Db::open_on(&disk, "lazy.azk", options()).unwrap();
        let t = db.create_table("t", kind).unwrap();
        let (n, value) = (500u64, |i: u64| vec![i as u8; 2000 + i as usize]);
        t.put_many((0..n).map(|i| (i.to_be_bytes(), value(i)))).unwrap();
        drop(t);
        db.close().unwrap();
        let db = Db::open_on(&disk, "lazy.azk", options()).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(t.count().unwrap(), n);
        let mut cursor = t.cursor().unwrap();
        while cursor.next().unwrap().is_some() {}
        disk.set_fault(Some(Fault { call: Call::Read, nth: 1, forever: true, effect: Effect::Error(5) }));
        for forward in [false, true] {
            let mut seen = 0;
            while let Some((key, value)) = if forward { cursor.next() } else { cursor.prev() }.unwrap() {
                let i = u64::from_be_bytes(key.try_into().unwrap());
                assert_eq!(value.len(), 2000 + i as usize);
                if i % 7 == 0 {
                    assert!(matches!(value.bytes(), Err(Error::Io { .. })), "{kind:?}, {i}");
                }
                seen += 1;
            }
            assert_eq!(seen, n, "{kind:?}, forward: {forward}");
        }
        disk.set_fault(None);
        cursor.seek_first();
        while let Some((key, found)) = read(cursor.next()) {
            assert!(found == value(u64::from_be_bytes(key.try_into().unwrap())));
        }
        drop((cursor, t));
        db.close().unwrap();
    }
}

/// How the records of `a_cursor_may_turn_anywhere` come to lie.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lies {
    /// In the active list.
    List,
    /// In a chunk, with deletes among them.
    Chunk,
    /// In pages of one sorted run.
    Run,
    /// In pages, and deletes and newer values in memory.
    Both,
}

/// Walks of random lengths up and down, over one source (which gives records where they stand) and several
/// (which does not), against the records in order.
#[test]
fn a_cursor_may_turn_anywhere() {
    let (db, path) = database("turns");
    let mut state = 11u64;
    let mut below = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (state >> 33) as usize % n
    };
    for (round, lies) in [Lies::List, Lies::Chunk, Lies::Run, Lies::Both].into_iter().enumerate() {
        for (kind, value_bytes) in
            [(TableKind::Ordered, 8), (TableKind::Ordered, 0), (TableKind::Hash, 8), (TableKind::Hash, 0)]
        {
            let t = db.table(&format!("t{round}{kind:?}{value_bytes}"), kind).unwrap();
            let n = if lies == Lies::List { 40u64 } else { 6000 };
            let value = |i: u64, v: u64| {
                let bytes = if value_bytes > 0 { value_bytes } else { (i % 90) as usize };
                vec![(i + v) as u8; bytes]
            };
            let mut records: Vec<(Vec<u8>, Vec<u8>)> = (0..n)
                .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(), value(i, 0)))
                .collect();
            let mut write = db.write();
            for (key, value) in &records {
                write.put(&t, key, value).unwrap();
            }
            if matches!(lies, Lies::Run | Lies::Both) {
                write.commit().unwrap();
                db.compact().unwrap();
                write = db.write();
            }
            if lies != Lies::Run {
                for i in (0..n).filter(|i| i % 3 == 0) {
                    let (key, kept) = &mut records[i as usize];
                    if i % 2 == 0 {
                        write.remove(&t, &*key).unwrap();
                        key.clear();
                    } else {
                        *kept = value(i, 7);
                        write.put(&t, &*key, &*kept).unwrap();
                    }
                }
            }
            write.commit().unwrap();
            records.retain(|(key, _)| !key.is_empty());
            records.sort();
            let txn = db.read();
            if kind == TableKind::Hash {
                let mut seen: Vec<_> = txn.cursor(&t).unwrap().owned().map(Result::unwrap).collect();
                std::mem::swap(&mut seen, &mut records);
                seen.sort();
                let mut all = records.clone();
                all.sort();
                assert_eq!(all, seen);
            } else {
                let (low, high) = (records.len() / 5, records.len() / 2);
                let within = txn.range(&t, &records[low].0..&records[high].0).unwrap();
                walk(
                    within,
                    &records[low..high],
                    &mut below,
                    &format!("{lies:?} {kind:?} {value_bytes} within bounds"),
                );
            }
            walk(txn.cursor(&t).unwrap(), &records, &mut below, &format!("{lies:?} {kind:?} {value_bytes}"));
        }
    }
    db.close().unwrap();
    std::fs::remove_file(path).unwrap();
}

/// Goes up and down, often beyond an end; `at` is how many records are before the cursor.
fn walk(
    mut cursor: azekura::Cursor,
    records: &[(Vec<u8>, Vec<u8>)],
    below: &mut impl FnMut(usize) -> usize,
    what: &str,
) {
    let mut at = 0;
    for _ in 0..60 {
        let most = if below(3) == 0 { records.len() * 3 / 2 } else { 70 };
        let (steps, up) = (below(most), below(2) == 0);
        for _ in 0..steps {
            let (got, expected) = if up {
                let expected = records.get(at);
                at = (at + 1).min(records.len());
                (read(cursor.next()), expected)
            } else {
                let expected = at.checked_sub(1).map(|before| &records[before]);
                at = at.saturating_sub(1);
                (read(cursor.prev()), expected)
            };
            let expected = expected.map(|(key, value)| (key.as_slice(), value.as_slice()));
            assert!(
                got == expected,
                "{what}: {} at {at}: {got:?}, not {expected:?}",
                if up { "up" } else { "down" }
            );
        }
    }
}
