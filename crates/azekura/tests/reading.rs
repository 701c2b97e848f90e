//! Reads inside reads, and reads in order: what a position hint must not get wrong.

use azekura::{Db, Durability, Kind, Options};

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
