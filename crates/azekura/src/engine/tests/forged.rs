//! Records that no call can make.

use super::copy_of;
use super::hooked::Hooked;
use crate::api::{Db, Options};
use crate::base::hash::hash_bytes;
use crate::base::key::TableKind;
use crate::engine::Freshness;
use crate::engine::{Batch, BatchPart, TableChanges};
use crate::format::block::Tag;
use crate::format::frame::{NewTable, TableChange};
use crate::format::hidden::name_of;
use crate::storage::MemStorage;

/// `check` knows a record of a hash table that stands under what is no key's mix, in memory and in a run. No
/// lookup finds such a record, while a scan shows it.
#[test]
fn a_record_under_what_is_no_keys_mix_is_reported() {
    let empty = |seed: u64| [&hash_bytes(&[], seed).to_be_bytes()[..], &[0; 8]].concat();
    let forged: [fn(u64) -> Vec<u8>; 6] = [
        |_| b"as it is".to_vec()[..5].to_vec(),
        |_| b"an ordered table's key".to_vec(),
        |seed| [&hash_bytes(b"key", seed ^ 1).to_be_bytes()[..], b"key"].concat(),
        |seed| [&hash_bytes(b"key", seed).to_be_bytes()[..], b"kez"].concat(),
        |_| [[1; 8], [0; 8]].concat(),
        |seed| [&hash_bytes(&[], seed).to_be_bytes()[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat(),
    ];
    let right: [fn(u64) -> Vec<u8>; 2] =
        [|_| b"8 bytes.".to_vec(), |seed| [&hash_bytes(b"key", seed).to_be_bytes()[..], b"key"].concat()];
    let problems = |key: &dyn Fn(u64) -> Vec<u8>, flushed: bool| {
        let db = Db::open_on(&MemStorage::default(), "forged.azk", Options::new()).unwrap();
        let t = db.create_table("h", TableKind::Hash).unwrap();
        t.put(b"sound", b"1").unwrap();
        let part = BatchPart::single(t.id, &key(db.engine.store.hash_seed), Tag::Put, b"v");
        db.engine.commit(Batch { parts: vec![part], durable: true, ..Batch::default() }).unwrap();
        if flushed {
            db.flush().unwrap();
        }
        db.check(|_| {}).unwrap().problems
    };
    for flushed in [false, true] {
        for (n, key) in forged.iter().enumerate() {
            let found = problems(key, flushed);
            assert!(
                found.iter().any(|p| p.contains("the mix of no key")),
                "{n}, flushed: {flushed}: {found:?}"
            );
        }
        for key in right.iter().map(|f| f as &dyn Fn(u64) -> Vec<u8>).chain([&empty as _]) {
            assert_eq!(problems(key, flushed), [""; 0]);
        }
    }
}

/// A log can call any number of tables indexes of one, and drop them again. Opening takes no longer for them
/// than for other tables, nor does dropping the table.
#[test]
fn very_many_indexes_of_one_table_in_a_log_are_no_trouble() {
    let took = |name: fn(u32, u32) -> String| {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, "forged.azk", Options::new().threads(false)).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        for from in (t.id + 1..t.id + 100_001).step_by(1000) {
            let made = |id| {
                TableChange::Made(NewTable {
                    id,
                    kind: TableKind::Ordered,
                    name: name(t.id, id).into(),
                    ttl_ms: 0,
                })
            };
            let tables = TableChanges::of((from..from + 1000).map(made).collect());
            db.engine.commit(Batch { tables, durable: true, ..Batch::default() }).unwrap();
        }
        for from in (t.id + 1..t.id + 50_001).step_by(1000) {
            let tables = TableChanges::of((from..from + 1000).map(TableChange::Dropped).collect());
            db.engine.commit(Batch { tables, durable: true, ..Batch::default() }).unwrap();
        }
        let began = std::time::Instant::now();
        // It finds what the log has in the same way as who opens the file after a crash.
        let follower = Options::new().freshness(Freshness::Log);
        let state = Db::open_on(&storage, "forged.azk", follower).unwrap().engine.state.load_full();
        assert_eq!(state.tables.len(), 50_001);
        let indexes = state.table(t.id).unwrap().indexes.as_ref().map_or(0, |list| list.len());
        db.drop_table("t").unwrap();
        (began.elapsed(), indexes)
    };
    let (plain, none) = took(|_, id| format!("table {id}"));
    let (hidden, all) = took(|table, id| name_of(table, &id.to_string()));
    assert_eq!((none, all), (0, 50_000));
    assert!(hidden < plain * 20, "{hidden:?}, and {plain:?} for as many tables");
}

/// Of what a log makes and drops nothing stays in memory but what the file needs until a checkpoint: the
/// places of large values.
#[test]
fn very_many_tables_that_a_log_drops_leave_nothing_behind() {
    const TABLES: usize = 300;
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "forged.azk", Options::new().threads(false)).unwrap();
    let names: Vec<String> = (0..TABLES).map(|n| format!("table {n}")).collect();
    let wanted: Vec<_> = names.iter().map(|name| (&**name, TableKind::Ordered)).collect();
    for (n, table) in db.create_tables(&wanted).unwrap().into_iter().enumerate() {
        table.put("k", "v").unwrap();
        if n % 100 == 0 {
            table.put("large", vec![7; 50_000]).unwrap();
        }
        let tables = TableChanges::of(vec![TableChange::Dropped(table.id)]);
        db.engine.commit(Batch { tables, durable: true, ..Batch::default() }).unwrap();
    }
    let copy = copy_of(&disk, "forged.azk");
    let again = Db::open_on(&copy, "forged.azk", Options::new().read_only(true)).unwrap();
    assert!(again.tables().is_empty());
    let segments = again.engine.values.segments();
    assert!(!segments.is_empty());
    assert_eq!(again.engine.checkpointer.take_pending().len(), TABLES / 100);
    assert!(segments.iter().all(|segment| std::sync::Arc::strong_count(segment) == 1));
    // What is dropped is free once a checkpoint knows it.
    drop((again, segments));
    let again = Db::open_on(&copy, "forged.azk", Options::new().threads(false)).unwrap();
    again.create_table("t", TableKind::Ordered).unwrap().put("large", vec![8; 50_000]).unwrap();
    again.flush().unwrap();
    assert_eq!(again.engine.values.segments().len(), 1);
    assert!(again.check(|_| {}).unwrap().problems.is_empty());
}
