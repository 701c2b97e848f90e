//! How much small tables may keep in the manifest.

use crate::api::{Db, Options, Table};
use crate::base::key::Kind;
use crate::base::sync::atomic::Ordering;
use crate::storage::MemStorage;

/// Somewhat more than have room.
const TABLES: usize = 4900;
const BOUND: u64 = 2 << 20;

fn options() -> Options {
    Options::new().memory_bytes(4 * BOUND).background_merges(false).threads(false)
}

fn make(db: &Db, names: &[String]) -> Vec<Table> {
    let wanted: Vec<(&str, Kind)> = names.iter().map(|n| (n.as_str(), Kind::Ordered)).collect();
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
    let few = db.engine.few_bytes.load(Ordering::Relaxed);
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
