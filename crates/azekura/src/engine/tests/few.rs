//! How much small tables may keep in the manifest, and what it costs that each checkpoint writes them again.

use crate::api::{Db, Options, Table};
use crate::base::key::TableKind;
use crate::base::sync::atomic::Ordering;
use crate::storage::MemStorage;

/// Somewhat more than have room.
const TABLES: usize = 4900;
const BOUND: u64 = 2 << 20;

fn options() -> Options {
    Options::new().memory_bytes(4 * BOUND).background_merges(false).threads(false)
}

fn make(db: &Db, names: &[String]) -> Vec<Table> {
    let wanted: Vec<(&str, TableKind)> = names.iter().map(|n| (n.as_str(), TableKind::Ordered)).collect();
    db.create_tables(&wanted).unwrap()
}

/// One commit to all, and a flush.
fn put(db: &Db, tables: &[Table], value: &[u8]) {
    let mut txn = db.write();
    tables.iter().for_each(|table| txn.put(table, b"the key", value).unwrap());
    txn.commit().unwrap();
    db.flush().unwrap();
}

/// What is counted, and the tables that have runs.
fn counted(db: &Db) -> (u64, usize) {
    let state = db.engine.state.load_full();
    let few = db.engine.memory.few_bytes.load(Ordering::Relaxed);
    let sum: usize = state.tables.iter().filter_map(|t| t.few.as_ref()).map(|few| few.bytes().len()).sum();
    assert_eq!(few, sum as u64);
    (few, state.tables.with_runs().count())
}

/// Of so many small tables at once that there is no room for their records, the others get runs.
#[test]
fn one_flush_of_many_small_tables_keeps_within_the_bound() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, "few.azk", options()).unwrap();
    let names: Vec<String> = (0..TABLES).map(|i| format!("table {i}")).collect();
    let tables = make(&db, &names);
    put(&db, &tables, &[1; 440]);
    let (few, in_runs) = counted(&db);
    assert!((BOUND - 1000..=BOUND).contains(&few) && (300..500).contains(&in_runs), "{few}, {in_runs}");
    // What becomes shorter makes room for others.
    put(&db, &tables[..100], b"short");
    let more = make(&db, &["one more".into(), "and another".into()]);
    put(&db, &more, &[1; 440]);
    let (few, still_in_runs) = counted(&db);
    assert!(few < BOUND - 30_000 && still_in_runs == in_runs, "{few}, {still_in_runs}");
    drop((tables, more));
    db.close().unwrap();
    let db = Db::open_on(&storage, "few.azk", options()).unwrap();
    for (i, name) in names.iter().enumerate() {
        let expected = if i < 100 { b"short".to_vec() } else { vec![1; 440] };
        assert_eq!(db.open_table(name).unwrap().get(b"the key").unwrap().unwrap(), expected);
    }
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// Runs that are shorter than the manifest are moved by the dozen, not each with a checkpoint of its own.
#[test]
fn small_runs_are_not_moved_one_by_one_under_a_long_manifest() {
    let db = Db::open_on(&MemStorage::default(), "few.azk", options()).unwrap();
    let names = |what: &str, n: usize| (0..n).map(|i| format!("{what} {i}")).collect::<Vec<_>>();
    let early = make(&db, &names("early", 1));
    put(&db, &early, &[7; 1 << 20]);
    early[0].put_many((0..20_000u64).map(|i| (i.to_be_bytes(), [1; 100]))).unwrap();
    db.flush().unwrap();
    put(&db, &make(&db, &names("small", 2000)), &[2; 440]);
    put(&db, &make(&db, &names("larger", 200)), &[3; 700]);
    assert!(counted(&db).1 > 200);
    db.drop_table("early 0").unwrap();
    let (before, manifest) = (db.stats(), db.engine.checkpointer.manifest_bytes());
    assert!(manifest > 900_000, "{manifest}");
    db.shrink(|_| {}).unwrap();
    let (after, runs) = (db.stats(), 200);
    assert!(after.file_bytes < before.file_bytes, "{before:?} {after:?}");
    let written = after.written_bytes - before.written_bytes;
    assert!(
        written < runs * manifest / 10,
        "{written} bytes for {runs} small runs and a manifest of {manifest}"
    );
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}
