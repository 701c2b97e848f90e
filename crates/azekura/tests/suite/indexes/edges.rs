//! What indexes promise where something fails, or comes or goes meanwhile.

use super::options;
use super::rules::{keys, open, with_index};
use azekura::{Error, Freshness, Isolation, TableKind, WriteOptions};
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("azekura-indexes-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_range_that_cannot_all_be_read_is_not_half_removed() {
    let dir = folder("range");
    let path = dir.join("i.azk");
    let db = options().open(&path).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.create_index("i", "v[0..1]").unwrap();
    let large = [b'Q'; 100];
    t.put_many([("a", &b"1"[..]), ("b", &large), ("c", b"3")]).unwrap();
    db.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(large.len()).position(|w| w == large).unwrap();
    bytes[at + 50] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let db = options().open(&path).unwrap();
    let t = db.open_table("t").unwrap();
    for drains in [false, true] {
        let mut txn = db.write();
        let failed =
            if drains { txn.drain(&t, "a".."d").err() } else { txn.remove_range(&t, "a".."d").err() };
        assert!(matches!(failed, Some(Error::Corrupt { .. })), "{failed:?}");
        txn.put(&t, "z", "9").unwrap();
        assert!(matches!(txn.commit(), Err(Error::Corrupt { .. })));
        assert_eq!((t.count().unwrap(), t.index("i").unwrap().count(&[]).unwrap()), (3, 3));
    }
    drop(t);
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_lookup_by_an_index_that_is_gone_at_the_commit_conflicts() {
    let (db, t) = with_index("v");
    let u = db.create_table("u", TableKind::Ordered).unwrap();
    let index = t.index("i").unwrap();
    let mut txn = db.write();
    assert_eq!(index.read_in(&txn).count(&["x".into()]).unwrap(), 0);
    t.drop_index("i").unwrap();
    t.put("a", "x").unwrap();
    txn.put(&u, "flag", "1").unwrap();
    assert!(matches!(txn.commit(), Err(Error::Conflict { table }) if table == "t (index i, dropped)"));
    assert_eq!(u.count().unwrap(), 0);
    // So it is with a table that was only read.
    let txn = db.write();
    db.create_table("v", TableKind::Hash).unwrap();
    assert_eq!(txn.get(&db.open_table("v").unwrap(), "a").unwrap(), None);
    db.drop_table("v").unwrap();
    let mut txn = txn;
    txn.put(&u, "flag", "1").unwrap();
    assert!(matches!(txn.commit(), Err(Error::Conflict { table }) if table == "v (dropped)"));
    // What was dropped before the snapshot is no conflict.
    let mut txn = db.write();
    assert!(matches!(index.read_in(&txn).count(&[]), Err(Error::NoSuchIndex { .. })));
    txn.put(&u, "flag", "1").unwrap();
    txn.commit().unwrap();
}

/// Also while it is being given up by those who could not build it.
#[test]
fn an_index_that_is_gone_at_the_commit_refuses_nothing_for_its_own_sake() {
    let (db, t) = with_index("v unique");
    t.put("a", "1").unwrap();
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let mut txn = db.write_with(WriteOptions { isolation, ..WriteOptions::default() });
        txn.put(&t, "b", "1").unwrap();
        t.drop_index("i").unwrap();
        let refused = txn.commit();
        assert!(matches!(&refused, Err(Error::Conflict { table }) if table == "t"), "{refused:?}");
        t.create_index("i", "v unique").unwrap();
    }
    let mut tries = 0;
    db.transact(|txn| {
        tries += 1;
        txn.put(&t, "b", "1")?;
        if tries == 1 { t.drop_index("i") } else { Ok(()) }
    })
    .unwrap();
    assert_eq!((t.count().unwrap(), tries), (2, 2));
}

#[test]
fn who_has_not_kept_an_index_does_not_look_by_it() {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let mut txn = db.write();
    txn.remove(&t, "a").unwrap();
    let index = t.create_index("i", "v").unwrap();
    assert!(matches!(index.read_in(&txn).get(&[]), Err(Error::Conflict { table }) if table == "t"));
    let mut txn = db.write();
    txn.remove(&t, "a").unwrap();
    assert_eq!(index.read_in(&txn).count(&[]).unwrap(), 0);
}

#[test]
fn a_transaction_of_another_database_does_not_look_by_it() {
    let ((db, t), (_other, others)) = (with_index("v"), with_index("v"));
    let index = others.index("i").unwrap();
    let mut txn = db.write();
    assert!(matches!(index.read_in(&txn).get(&[]), Err(Error::Invalid { .. })));
    txn.put(&t, "a", "1").unwrap();
    assert!(matches!(index.read_in(&txn).get(&[]), Err(Error::Invalid { .. })));
}

/// A checkpoint that does not flush names the hidden table; its record is in the log. Followers read that
/// far, and copies have the rest of it, too.
#[test]
fn a_checkpoint_may_have_an_index_without_its_record() {
    let dir = folder("checkpoint");
    let (path, copy) = (dir.join("i.azk"), dir.join("copy.azk"));
    let db = options().threads(false).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    db.flush().unwrap();
    t.create_index("i", "v").unwrap();
    db.rename_table("t", "s").unwrap();

    let follower = options().freshness(Freshness::Checkpoint).open(&path).unwrap();
    let seen = follower.open_table("s").unwrap();
    assert!(seen.indexes().unwrap().iter().map(|i| (&*i.name, i.is_ready)).eq([("i", false)]));
    assert!(matches!(seen.index("i"), Err(Error::Invalid { .. })));
    assert_eq!(follower.check(|_| {}).unwrap().problems, [""; 0]);
    let mut stream = Vec::new();
    follower.backup_to(&mut stream, |_| {}).unwrap();
    azekura::restore_stream(&mut stream.as_slice(), &copy, |_| {}).unwrap();
    let of_log = options().freshness(Freshness::Log).open(&path).unwrap();
    assert_eq!(keys(&of_log.open_table("s").unwrap(), "1"), ["a"]);

    let copied = options().open(&copy).unwrap();
    let t = copied.open_table("s").unwrap();
    assert!(t.indexes().unwrap().iter().map(|i| (&*i.name, i.is_ready)).eq([("i", true)]));
    t.put("b", "1").unwrap();
    assert_eq!(keys(&t, "1"), ["a", "b"]);
    assert_eq!(copied.check(|_| {}).unwrap().problems, [""; 0]);
    drop((t, seen, copied, follower, of_log, db));
    std::fs::remove_dir_all(&dir).unwrap();
}
