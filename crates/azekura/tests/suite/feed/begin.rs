//! Tables that come to the feed and go from it: readers are told, in the stream itself.

use super::{newest, options};
use azekura::storage::MemStorage;
use azekura::{ChangeKind, Db, Error, FeedContent, Options, Repository, TableKind, Which};
use sim::disk::Disk;
use std::sync::atomic::{AtomicBool, Ordering};

const PATH: &str = "/feed.azk";

/// What is told after a commit, as text.
fn told(db: &Db, after: u64) -> Vec<String> {
    let (mut feed, mut all) = (db.feed(after).unwrap(), Vec::new());
    while let Some(change) = feed.next().unwrap() {
        all.push(match change.kind {
            ChangeKind::Put { key, .. } => format!("{} put {}", change.table, String::from_utf8_lossy(key)),
            other => format!("{} {other:?}", change.table),
        });
    }
    all
}

#[test]
fn what_was_done_while_a_table_was_not_fed_is_no_silent_hole() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let begin = newest(&db);
    t.put("a", "1").unwrap();
    t.set_feed(None).unwrap();
    t.put("missed", "2").unwrap();
    t.set_feed(Some(FeedContent::Keys)).unwrap();
    t.put("b", "3").unwrap();
    t.set_feed(Some(FeedContent::Both)).unwrap();
    // Nothing changes.
    t.set_feed(Some(FeedContent::Both)).unwrap();
    db.set_feed_limits(1 << 20, None).unwrap();
    db.close().unwrap();
    drop(t);
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    assert_eq!(
        told(&db, begin),
        ["t put a", "t Stop", "t Begin { content: Keys }", "t put b", "t Begin { content: Both }"]
    );
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

#[test]
fn more_tables_than_fit_a_page_are_fed_and_what_is_dropped_is_forgotten() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options().large_value_bytes(8192)).unwrap();
    let names: Vec<String> = (0..700).map(|i| format!("table {i}")).collect();
    let wanted: Vec<_> = names.iter().map(|name| (&**name, TableKind::Hash)).collect();
    for table in db.create_tables(&wanted).unwrap() {
        table.set_feed(Some(FeedContent::Keys)).unwrap();
    }
    let begin = newest(&db);
    db.flush().unwrap();
    let mut txn = db.write();
    names[1..].iter().for_each(|name| txn.drop_table(name).unwrap());
    txn.commit().unwrap();
    assert_eq!(told(&db, begin).len(), 699);
    db.close().unwrap();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    assert_eq!(db.feed_info().unwrap().unwrap().tables.len(), 1);
    let before = db.feed_info().unwrap().unwrap().bytes;
    db.set_feed_limits(1 << 20, None).unwrap();
    db.compact().unwrap();
    let after = db.feed_info().unwrap().unwrap().bytes;
    assert!(after + 8000 < before, "{before} bytes, then {after}");
    let begin = newest(&db);
    db.open_table(&names[0]).unwrap().put("a", "1").unwrap();
    assert_eq!(told(&db, begin), ["table 0 put a"]);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

#[test]
fn whoever_read_the_file_that_was_copied_is_told_so_by_the_copy() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, "a.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    t.put("a", "1").unwrap();
    let before = newest(&db);
    db.set_feed_cursor("reader", Some(before)).unwrap();
    db.backup_on(&disk, "repository", |_| {}).unwrap();
    (0..50).for_each(|i| t.put(format!("b{i}"), "2").unwrap());
    let after = newest(&db);
    db.close().unwrap();
    drop(t);
    let mut lives = Vec::new();
    for name in ["b.azk", "c.azk"] {
        let repository = Repository::open_on(&disk, "repository").unwrap();
        repository.restore(Which::Newest, name, |_| {}).unwrap();
        let reading = Db::open_on(&disk, name, options().read_only(true)).unwrap();
        let resumed = reading.feed_info().unwrap().unwrap().newest;
        assert_eq!(told(&reading, resumed), [""; 0]);
        drop(reading);
        let db = Db::open_on(&disk, name, options()).unwrap();
        let t = db.open_table("t").unwrap();
        // As many commits as the other life has had, and more.
        (0..100).for_each(|i| t.put(format!("c{i}"), "3").unwrap());
        for position in [before, before + 1, after, db.feed_cursor("reader").unwrap().unwrap()] {
            let gap = db.feed(position).err();
            let Some(Error::FeedGap { resume_at, .. }) = gap else { panic!("{gap:?}") };
            assert!(resume_at >= resumed, "{resume_at}, {resumed}");
            assert_eq!(told(&db, resume_at).len(), 100);
        }
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
        lives.push((newest(&db), newest(&db) - 110));
        db.close().unwrap();
        drop(t);
        let db = Db::open_on(&disk, name, options()).unwrap();
        assert_eq!(told(&db, newest(&db) - 1).len(), 1, "it goes on in its own life");
    }
    assert!(
        !(lives[1].1..=lives[1].0).contains(&lives[0].0),
        "two copies have numbers of their own: {lives:?}"
    );
}

#[test]
fn names_and_changes_agree_while_tables_are_renamed_and_come_to_the_feed() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, Options::new().memory_bytes(8 << 20)).unwrap();
    let t = db.create_table("t0", TableKind::Hash).unwrap();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3u64 {
            let (t, ends) = (&t, &ends);
            scope.spawn(move || {
                let mut i = 0u64;
                while !ends.load(Ordering::Relaxed) {
                    i += 1;
                    t.put(writer.to_be_bytes(), i.to_be_bytes()).unwrap();
                }
            });
        }
        let (mut name, mut begin) = ("t0".to_owned(), None);
        for round in 1..60 {
            let next = format!("t{round}");
            std::thread::scope(|scope| {
                // A rename beside the table's coming to the feed, or its going.
                scope.spawn(|| t.set_feed((round % 3 > 0).then_some(FeedContent::Values)).unwrap());
                db.rename_table(&name, &next).unwrap();
            });
            name = next;
            begin = begin.or_else(|| db.feed_info().unwrap().map(|info| info.oldest));
        }
        ends.store(true, Ordering::Relaxed);
        // Each change is told by the name that the reader knows, unless the table was not fed meanwhile.
        let (mut known, mut feed) = (None, db.feed(begin.unwrap()).unwrap());
        while let Some(change) = feed.next().unwrap() {
            match change.kind {
                ChangeKind::Begin { .. } => known = Some(change.table.to_owned()),
                ChangeKind::Stop => known = None,
                ChangeKind::Rename { to } => {
                    assert!(known.as_deref().is_none_or(|known| known == change.table));
                    known = known.map(|_| to.to_owned());
                }
                _ => {
                    let is_known = known.as_deref().is_none_or(|known| known == change.table);
                    assert!(is_known, "{known:?} is told as {}", change.table);
                }
            }
        }
    });
}
