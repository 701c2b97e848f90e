//! Reads inside reads, and reads in order: what a position hint must not get wrong. Reads that fail.

use azekura::{Db, Durability, Error, Kind, Options};
use sim::disk::{Call, Disk, Effect, Fault};

fn database(name: &str) -> (Db, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("azekura-reading-{name}-{}.azk", std::process::id()));
    if path.exists() {
        std::fs::remove_file(&path).unwrap();
    }
    let db = Options::new().durability(Durability::Eventual).open(&path).unwrap();
    (db, path)
}

#[test]
fn a_closure_may_read_from_its_own_transaction() {
    let (db, path) = database("nested");
    let names = db.table("names", Kind::Ordered).unwrap();
    let ids = db.table("ids", Kind::Ordered).unwrap();
    let n = 5_000u64;
    ids.put_many((0..n).map(|i| (i.to_be_bytes(), (n - 1 - i).to_be_bytes()))).unwrap();
    names.put_many((0..n).map(|i| (i.to_be_bytes(), (i * 7).to_be_bytes()))).unwrap();
    db.settle().unwrap();
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
    let t = db.table("t", Kind::Hash).unwrap();
    for i in 0..40u64 {
        t.put(&i.to_be_bytes(), &vec![i as u8; 1 << 20]).unwrap();
    }
    for i in 0..40u64 {
        t.remove(&i.to_be_bytes()).unwrap();
    }
    let report = db.compact(|_| {}).unwrap();
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
        let t = db.create_table("t", Kind::Ordered).unwrap();
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
            disk.set_fault(Some(Fault { call: Call::Read, nth: 1, forever: false, effect: Effect::Error(5) }));
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
                assert_eq!(cursor.next().unwrap(), Some((&i.to_be_bytes()[..], &(i * 3).to_be_bytes()[..])));
            }
            assert_eq!(cursor.next().unwrap(), None);
            drop((cursor, t));
            db.close().unwrap();
        }
    }
}
