//! Writes that depend on nothing that was read: they never end with a conflict, whatever comes between.

use super::rules::open;
use azekura::{Db, Error, Table, TableDefinition, TableKind};

/// Of every tenth record large.
fn value(n: u64) -> Vec<u8> {
    vec![n as u8; if n.is_multiple_of(10) { 100 } else { 1 + n as usize % 40 }]
}

fn agrees(db: &Db, t: &Table, records: u64) {
    assert_eq!(t.count().unwrap(), records);
    assert_eq!(t.index("i").unwrap().count(&[]).unwrap(), records);
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
}

#[test]
fn many_records_do_not_mind_an_index_that_comes_or_goes_meanwhile() {
    let db = open();
    for (name, kind) in [("ordered", TableKind::Ordered), ("hash", TableKind::Hash)] {
        let t = db.create_table(name, kind).unwrap();
        t.put_many((0..300u64).map(|n| (n.to_be_bytes(), value(n + 7)))).unwrap();
        let change = |at: u64, n: u64, change: &dyn Fn()| {
            if n == at {
                change();
            }
            (n.to_be_bytes(), value(n))
        };
        let make = || _ = t.create_index("i", "v[0..1], k unique").unwrap();
        t.put_many((0..500u64).map(|n| change(250, n, &make))).unwrap();
        agrees(&db, &t, 500);
        t.put_many((100..800u64).map(|n| change(799, n, &|| t.drop_index("i").unwrap()))).unwrap();
        assert!(t.indexes().unwrap().is_empty());
        make();
        agrees(&db, &t, 800);
        // Others change the same records, and an index comes too.
        let other = || {
            t.put(400u64.to_be_bytes(), "other").unwrap();
            t.create_index("j", "v[..3]").unwrap();
        };
        t.put_many((300..900u64).map(|n| change(600, n, &other))).unwrap();
        agrees(&db, &t, 900);
        for n in 0..900u64 {
            assert_eq!(t.get(n.to_be_bytes()).unwrap(), Some(value(n)), "{n}");
        }
    }
}

#[test]
fn typed_records_do_not_mind_it_either() {
    const TYPED: TableDefinition<u64, str> = TableDefinition::ordered("typed");
    let db = open();
    let t = db.typed_table(&TYPED).unwrap();
    let plain = db.open_table("typed").unwrap();
    let made = |n| {
        if n == 5 {
            plain.create_index("i", "v").unwrap();
        }
        (n, if n % 2 == 0 { "even" } else { "odd" })
    };
    t.put_many((0..10).map(made)).unwrap();
    assert_eq!(plain.index("i").unwrap().count(&["even".into()]).unwrap(), 5);
    let changed = |n| {
        plain.put(0u64.to_be_bytes(), "other").unwrap();
        (n, "changed")
    };
    t.put_many((0..4).map(changed)).unwrap();
    assert_eq!(plain.index("i").unwrap().count(&["changed".into()]).unwrap(), 4);
    agrees(&db, &plain, 10);
}

#[test]
fn all_that_a_transaction_has_written_is_written_again() {
    let db = open();
    let (t, u) =
        (db.create_table("t", TableKind::Ordered).unwrap(), db.create_table("u", TableKind::Hash).unwrap());
    t.put_many((0..100u64).map(|n| (n.to_be_bytes(), value(n)))).unwrap();
    u.put("gone", "1").unwrap();
    let mut txn = db.write();
    txn.put(&t, 15u64.to_be_bytes(), "goes with the range").unwrap();
    txn.remove_range(&t, &10u64.to_be_bytes()[..]..&20u64.to_be_bytes()[..]).unwrap();
    txn.put(&t, 12u64.to_be_bytes(), value(0)).unwrap();
    txn.remove(&t, 30u64.to_be_bytes()).unwrap();
    txn.clear(&u).unwrap();
    txn.put(&u, "here", "2").unwrap();
    t.create_index("i", "v[0..1]").unwrap();
    u.put("later", "3").unwrap();
    u.create_index("i", "v").unwrap();
    t.put(11u64.to_be_bytes(), "later").unwrap();
    txn.commit_blind().unwrap();
    assert_eq!(t.get(12u64.to_be_bytes()).unwrap(), Some(value(0)));
    assert_eq!(t.get(11u64.to_be_bytes()).unwrap(), None);
    agrees(&db, &t, 90);
    agrees(&db, &u, 1);
    let mut txn = db.write();
    txn.put(&t, "a", "1").unwrap();
    txn.put(&t, "b", "1").unwrap();
    t.drop_index("i").unwrap();
    t.create_index("i", "v unique where present").unwrap_err();
    t.clear().unwrap();
    t.create_index("i", "v unique where present").unwrap();
    assert!(matches!(txn.commit_blind(), Err(Error::NotUnique { .. })));
    agrees(&db, &t, 0);
    let mut txn = db.write();
    txn.put(&t, "a", "1").unwrap();
    db.drop_table("t").unwrap();
    assert!(matches!(txn.commit_blind(), Err(Error::NoSuchTable { name }) if name == "t"));
}
