//! A check finds an index that does not agree with its table.

use crate::base::key::TableKind;
use crate::engine::{Db, Table};
use crate::format::hidden::{IndexState, STATE_KEY, name_of};
use crate::storage::MemStorage;
use crate::{Error, Options};

/// A table with an index, and the table of that index.
fn world(spec: &str) -> (Db, Table, Table) {
    let options = Options::new().memory_bytes(8 << 20);
    let db = Db::open_on(&MemStorage::default(), "/c.azk", options).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.create_index("i", spec).unwrap();
    t.put_many([("a", "1"), ("b", "2"), ("c", "3")]).unwrap();
    let state = db.engine.state.load_full();
    let id = state.table(t.id).unwrap().indexes.as_ref().unwrap()[0].id;
    let entries = Table { db: db.clone(), id, kind: TableKind::Ordered, name: name_of(t.id, "i").into() };
    (db, t, entries)
}

fn entry(t: &Table, value: &str, key: &str) -> Vec<u8> {
    [t.index("i").unwrap().spec().encode(&[value.into()]).unwrap(), key.into()].concat()
}

fn finds(db: &Db, said: &[&str]) {
    for _ in 0..2 {
        let problems = db.check(|_| {}).unwrap().problems;
        assert_eq!(problems.len(), said.len(), "{problems:?}");
        problems.iter().zip(said).for_each(|(found, said)| assert!(found.contains(said), "{found}"));
        // In memory, and in runs.
        db.flush().unwrap();
    }
}

#[test]
fn an_entry_that_is_missing() {
    let (db, t, entries) = world("v");
    finds(&db, &[]);
    entries.remove(entry(&t, "2", "b")).unwrap();
    finds(
        &db,
        &[
            r#"index "i" of table "t": key "b": it has no entry"#,
            "has 2 entries, and the table's records have 3",
        ],
    );
}

#[test]
fn an_entry_too_many() {
    let (db, t, entries) = world("v");
    entries.put(entry(&t, "9", "b"), "").unwrap();
    finds(&db, &["has 4 entries, and the table's records have 3"]);
    // Whoever reads by it may find that the record is not there.
    t.remove("b").unwrap();
    let found = t.index("i").unwrap().get(&["9".into()]).unwrap().next();
    assert!(matches!(found, Some(Err(Error::Corrupt { what: "index", .. }))));
}

#[test]
fn an_entry_in_the_place_of_another() {
    let (db, t, entries) = world("v unique");
    entries.remove(entry(&t, "2", "b")).unwrap();
    entries.put(entry(&t, "1", "b"), "").unwrap();
    finds(&db, &["it has no entry", "is unique, and key \"b\" has the values of another"]);
}

#[test]
fn an_entry_that_is_none_and_a_state_that_is_none() {
    let (db, t, entries) = world("v");
    entries.put([7, 7], "").unwrap();
    finds(&db, &[r#"index "i" of table "t""#]);
    entries.remove([7, 7]).unwrap();
    entries.put(STATE_KEY, [1, 2, 3]).unwrap();
    finds(&db, &[r#"index "i" of table "t""#]);
    assert!(matches!(t.index("i"), Err(Error::Corrupt { .. })));
    entries.remove(STATE_KEY).unwrap();
    finds(&db, &[r#"index "i" of table "t" has lost its state"#]);
    assert!(matches!(t.index("i"), Err(Error::NoSuchIndex { .. })));
    t.drop_index("i").unwrap();
    finds(&db, &[]);
}

#[test]
fn an_index_that_has_lost_its_state_is_in_nobodys_way() {
    let (db, t, entries) = world("v");
    entries.remove(STATE_KEY).unwrap();
    t.put("d", "1").unwrap();
    assert_eq!(t.indexes().unwrap(), []);
    let index = t.create_index("i", "v").unwrap();
    assert_eq!(index.count(&["1".into()]).unwrap(), 2);
    finds(&db, &[]);
}

#[test]
fn one_that_is_being_built_is_compared_as_far_as_it_is() {
    let (db, t, entries) = world("v");
    entries.remove(entry(&t, "2", "b")).unwrap();
    let building = |next: &[u8]| IndexState { next: Some(next.to_vec()), spec: "v".into() }.encode();
    entries.put(STATE_KEY, building(b"")).unwrap();
    finds(&db, &[]);
    entries.put(STATE_KEY, building(&[0xff; 80])).unwrap();
    finds(&db, &["it has no entry"]);
    t.create_index("i", "v").unwrap();
    finds(&db, &["it has no entry", "has 2 entries"]);
}

#[test]
fn a_hidden_table_of_no_table() {
    let (db, _t, _entries) = world("v");
    db.engine.table_changer().create_index(1, "x", &"v".parse().unwrap()).unwrap();
    finds(&db, &[]);
    let state = db.engine.state.load_full();
    let stray = state.tables.iter().last().unwrap().as_ref().clone();
    let mut next = state.copy();
    next.detach_indexes([(stray.id, &*stray.name)]);
    db.engine.state.store(std::sync::Arc::new(next));
    finds(&db, &["is the index of no table"]);
}
