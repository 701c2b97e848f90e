//! How expiry meets the rest: the feed of changes, followers, copies, conflicts, and clocks that jump.

use super::{Time, copy_of, ms, open, options};
use azekura::storage::MemStorage;
use azekura::{ChangeKind, Db, Error, FeedContent, Freshness, Lifetime, TableKind, TypedTable};
use std::time::{Duration, UNIX_EPOCH};

/// What the feed has after a commit: the key, the length of the value, and when the record expires, in
/// milliseconds since 1970.
fn fed(db: &Db, after: u64) -> Vec<(String, Option<usize>, Option<u64>)> {
    let (mut feed, mut out) = (db.feed(after).unwrap(), Vec::new());
    while let Some(change) = feed.next().unwrap() {
        let until = change.expires.map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64);
        out.push(match change.kind {
            ChangeKind::Put { key, value, .. } => {
                (String::from_utf8(key.to_vec()).unwrap(), value.map(<[u8]>::len), until)
            }
            other => (format!("{other:?}"), None, until),
        });
    }
    out
}

fn newest(db: &Db) -> u64 {
    db.feed_info().unwrap().unwrap().newest
}

#[test]
fn the_feed_says_when_a_record_expires_and_nothing_when_it_has() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    let cache = db.expiring_table("cache", TableKind::Ordered, ms(70)).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    cache.set_feed(Some(FeedContent::Keys)).unwrap();
    let (begin, now) = (newest(&db), time.ms());
    t.put("stays", "1").unwrap();
    t.put_for("goes", "22", ms(50)).unwrap();
    t.put_for("large", vec![7; 9_000], ms(60)).unwrap();
    t.expire("stays", ms(80)).unwrap();
    t.persist("stays").unwrap();
    cache.put("a", "333").unwrap();
    cache.put_for("b", "333", Duration::MAX).unwrap();
    let named = |key: &str, len, until| (key.to_owned(), len, until);
    let wanted = vec![
        named("stays", Some(1), None),
        named("goes", Some(2), Some(now + 50)),
        named("large", Some(9_000), Some(now + 60)),
        named("stays", Some(1), Some(now + 80)),
        named("stays", Some(1), None),
        named("a", None, Some(now + 70)),
        named("b", None, None),
    ];
    assert_eq!(fed(&db, begin), wanted);
    // Time is no commit, and neither is what merges do of it.
    let told = newest(&db);
    time.go_on(1_000);
    assert_eq!((t.count().unwrap(), cache.count().unwrap()), (1, 1));
    db.compact().unwrap();
    assert_eq!((newest(&db), fed(&db, told)), (told, Vec::new()));
    // The past is told as it was, also of what has gone, and after a crash.
    let crashed = copy_of(&storage);
    let again = open(&crashed, &time);
    assert_eq!(fed(&again, begin), wanted);
    // A put over it is told like any other. (There is nothing to be told of the record that had gone.)
    t.add("goes", "4444").unwrap();
    assert_eq!(fed(&db, told), [named("goes", Some(4), None)]);
}

#[test]
fn followers_go_by_the_clock_of_the_file() {
    for freshness in [Freshness::Checkpoint, Freshness::Log] {
        let name = format!("azekura-expiry-follow-{}-{freshness:?}.azk", std::process::id());
        let path = std::env::temp_dir().join(name);
        let (time, other) = (Time::new(), Time::new());
        crate::common::watch(Duration::from_secs(120));
        let db = options(&time).threads(false).open(&path).unwrap();
        let t = db.table("t", TableKind::Hash).unwrap();
        t.put_for("short", "1", ms(10_000)).unwrap();
        t.put_for("long", "1", ms(50_000)).unwrap();
        t.put("stays", "1").unwrap();
        db.flush().unwrap();
        // The follower's machine is an hour behind.
        other.go_back(3_600_000);
        let follower = options(&other).freshness(freshness).open(&path).unwrap();
        let seen = |db: &Db| db.open_table("t").unwrap().count().unwrap();
        assert_eq!((seen(&db), seen(&follower)), (3, 3));
        // Time passes for it, too, although nothing is written.
        other.go_on(10_000);
        assert_eq!((seen(&db), seen(&follower)), (3, 2));
        time.go_on(10_000);
        assert_eq!(seen(&db), 2);
        let held = follower.read();
        let theirs = follower.open_table("t").unwrap();
        assert_eq!(held.count(&theirs).unwrap(), 2);
        // What the writer has seen expire, and said so in the file, is gone for followers, by whatever clock.
        time.go_on(40_000);
        t.put("more", "1").unwrap();
        db.compact().unwrap();
        db.flush().unwrap();
        assert_eq!((seen(&db), seen(&follower)), (2, 2));
        assert!(theirs.contains("more").unwrap() && !theirs.contains("long").unwrap());
        assert_eq!(held.count(&theirs).unwrap(), 2, "a snapshot stays as it was, in time as well");
        assert!(held.contains(&theirs, "long").unwrap());
        drop((held, theirs, t));
        follower.close().unwrap();
        db.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn copies_and_what_salvage_finds_expire_when_the_original_does() {
    let dir = std::env::temp_dir().join(format!("azekura-expiry-copies-{}", std::process::id()));
    let _gone = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let at = |name: &str| dir.join(name);
    crate::common::watch(Duration::from_secs(120));
    let time = Time::new();
    let db = options(&time).open(at("db")).unwrap();
    let t = db.expiring_table("t", TableKind::Ordered, ms(5_000)).unwrap();
    let by = t.create_index("by", "v[0..1] unique").unwrap();
    t.put("a", "1").unwrap();
    t.put_for("b", vec![2; 3_000], ms(90_000)).unwrap();
    t.put_for("c", "3", Duration::MAX).unwrap();
    drop(by);
    db.flush().unwrap();
    db.copy_to(at("copy"), |_| {}).unwrap();
    let mut stream = Vec::new();
    db.backup_to(&mut stream, |_| {}).unwrap();
    azekura::restore_stream(&mut stream.as_slice(), at("restored"), |_| {}).unwrap();
    let saved = options(&time).open(at("saved")).unwrap();
    azekura::salvage(at("copy"), &saved, |_| {}).unwrap();
    saved.close().unwrap();
    let names = ["db", "copy", "restored", "saved"];
    drop(t);
    db.close().unwrap();
    let counts = |time: &Time| {
        names.map(|name| {
            let db = options(time).open(at(name)).unwrap();
            let t = db.open_table("t").unwrap();
            let n = t.count().unwrap();
            assert_eq!(t.index("by").unwrap().count(&[]).unwrap(), n, "{name}");
            assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new(), "{name}");
            if name != "saved" {
                assert_eq!(t.usual_ttl(), Some(ms(5_000)), "{name}");
            }
            drop(t);
            db.close().unwrap();
            n
        })
    };
    assert_eq!(counts(&time), [3; 4]);
    time.go_on(5_000);
    assert_eq!(counts(&time), [2; 4]);
    time.go_on(90_000);
    assert_eq!(counts(&time), [1; 4]);
    // And nothing comes back with a clock that is set back.
    time.go_back(90_000);
    assert_eq!(counts(&time), [1; 4]);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// What is put into a table lives so long.
fn lives(db: &Db, lives_ms: Option<u64>) {
    let t = db.open_table("t").unwrap();
    assert_eq!(t.usual_ttl(), lives_ms.map(ms));
    t.put("probe", "1").unwrap();
    let lifetime = lives_ms.map_or(Lifetime::Unlimited, |n| Lifetime::Left(ms(n)));
    assert_eq!(t.ttl("probe").unwrap(), Some(lifetime));
    t.remove("probe").unwrap();
}

#[test]
fn a_table_may_get_another_time_and_what_is_there_keeps_its_own() {
    let dir = std::env::temp_dir().join(format!("azekura-expiry-usual-{}", std::process::id()));
    let _gone = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let at = |name: String| dir.join(name);
    crate::common::watch(Duration::from_secs(120));
    let time = Time::new();
    let path = at("db".into());
    let mut db = options(&time).open(&path).unwrap();
    db.table("t", TableKind::Ordered).unwrap().put("first", "1").unwrap();
    let follower = options(&time).freshness(Freshness::Log).open(&path).unwrap();
    let theirs = follower.open_table("t").unwrap();
    let mut left = vec![("first".to_owned(), Lifetime::Unlimited)];
    for (i, usual) in [Some(50_000), Some(90_000), None, Some(70_000)].into_iter().enumerate() {
        let t = db.open_table("t").unwrap();
        t.set_usual_ttl(usual.map(ms)).unwrap();
        let key = format!("after {i}");
        t.put(&key, "1").unwrap();
        left.push((key, usual.map_or(Lifetime::Unlimited, |n| Lifetime::Left(ms(n)))));
        lives(&db, usual);
        let found = |t: &azekura::Table| {
            left.iter().for_each(|(key, lifetime)| assert_eq!(t.ttl(key).unwrap(), Some(*lifetime), "{key}"));
            assert_eq!(t.count().unwrap(), left.len() as u64);
        };
        found(&t);
        db.sync().unwrap();
        assert_eq!(theirs.usual_ttl(), usual.map(ms), "a follower has it from the log");
        found(&theirs);
        // What is copied of the log, of a checkpoint, and by a backup.
        let copies = [at(format!("copy {i}")), at(format!("restored {i}")), at(format!("saved {i}"))];
        db.copy_to(&copies[0], |_| {}).unwrap();
        let mut stream = Vec::new();
        db.backup_to(&mut stream, |_| {}).unwrap();
        azekura::restore_stream(&mut stream.as_slice(), &copies[1], |_| {}).unwrap();
        db.backup(at("repository".into()), |_| {}).unwrap();
        let repository = azekura::Repository::open(at("repository".into())).unwrap();
        repository.restore(azekura::Which::Newest, &copies[2], |_| {}).unwrap();
        for copy in copies {
            let copied = options(&time).open(&copy).unwrap();
            lives(&copied, usual);
            found(&copied.open_table("t").unwrap());
            copied.close().unwrap();
        }
        db.flush().unwrap();
        assert_eq!(theirs.usual_ttl(), usual.map(ms), "and from a checkpoint");
        drop(t);
        db.close().unwrap();
        db = options(&time).open(&path).unwrap();
        lives(&db, usual);
    }
    time.go_on(70_000);
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 3, "two have gone");
    drop(theirs);
    follower.close().unwrap();
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_time_of_a_table_is_changed_with_its_transaction_or_not_at_all() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    let (minute, hour) = (ms(60_000), ms(3_600_000));
    for wrong in [Duration::ZERO, Duration::MAX, Duration::from_micros(999)] {
        assert!(matches!(t.set_usual_ttl(Some(wrong)), Err(Error::Invalid { .. })), "{wrong:?}");
    }
    let mut w = db.write();
    w.put(&t, "before", "1").unwrap();
    w.set_usual_ttl(&t, Some(minute)).unwrap();
    w.put(&t, "after", "2").unwrap();
    assert_eq!((w.usual_ttl(&t), t.usual_ttl()), (Some(minute), None));
    t.put("by another", "3").unwrap();
    let ttl = |w: &azekura::WriteTxn, key: &str| w.ttl(&t, key).unwrap();
    assert_eq!(ttl(&w, "before"), Some(Lifetime::Unlimited));
    assert_eq!(ttl(&w, "after"), Some(Lifetime::Left(minute)));
    w.rollback();
    assert_eq!(t.usual_ttl(), None);
    // A typed table and a made one; one that is dropped takes its time along.
    let typed: TypedTable<str, str> = TypedTable::over(t.clone());
    typed.set_usual_ttl(Some(hour)).unwrap();
    assert_eq!(typed.usual_ttl(), Some(hour));
    let mut w = db.write();
    typed.write_in(&mut w).set_usual_ttl(Some(minute)).unwrap();
    let made = w.create_table("made", TableKind::Ordered).unwrap();
    w.set_usual_ttl(&made, Some(hour)).unwrap();
    w.put(&made, "k", "v").unwrap();
    assert_eq!(w.usual_ttl(&made), Some(hour));
    w.rename_table("made", "other").unwrap();
    w.commit().unwrap();
    assert_eq!((t.usual_ttl(), made.usual_ttl()), (Some(minute), Some(hour)));
    assert_eq!(made.ttl("k").unwrap(), Some(Lifetime::Left(hour)));
    let mut w = db.write();
    w.set_usual_ttl(&made, None).unwrap();
    w.drop_table("other").unwrap();
    assert_eq!(w.usual_ttl(&made), None);
    assert!(matches!(w.set_usual_ttl(&made, None), Err(Error::NoSuchTable { .. })));
    w.commit().unwrap();
    // Two at once: the last to be committed counts. Who has dropped the table meanwhile is first.
    let (mut one, mut two) = (db.write(), db.write());
    one.set_usual_ttl(&t, Some(hour)).unwrap();
    two.set_usual_ttl(&t, None).unwrap();
    two.put(&t, "two", "2").unwrap();
    two.commit().unwrap();
    one.put(&t, "one", "1").unwrap();
    one.commit().unwrap();
    assert_eq!(t.usual_ttl(), Some(hour));
    assert_eq!(t.ttl("two").unwrap(), Some(Lifetime::Unlimited));
    let mut late = db.write();
    late.set_usual_ttl(&t, None).unwrap();
    db.drop_table("t").unwrap();
    assert!(matches!(late.commit(), Err(Error::NoSuchTable { name }) if name == "t"));
}

#[test]
fn the_feed_goes_on_when_a_table_gets_another_time_and_says_nothing_of_it() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Both)).unwrap();
    let begun = newest(&db);
    t.set_usual_ttl(Some(ms(500))).unwrap();
    t.put("a", "1").unwrap();
    db.transact(|w| {
        w.set_usual_ttl(&t, None)?;
        w.put(&t, "b", "22")
    })
    .unwrap();
    let gone = Some(time.ms() + 500);
    assert_eq!(fed(&db, begun), [("a".into(), Some(1), gone), ("b".into(), Some(2), None)]);
}

#[test]
fn nobody_conflicts_with_time_but_with_other_writers_as_ever() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Ordered).unwrap();
    t.put_for("k", "1", ms(100)).unwrap();
    t.put("other", "1").unwrap();
    // A transaction that has seen the record may commit after it has gone.
    let mut w = db.write();
    assert_eq!(w.get(&t, "k").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(w.cursor(&t).unwrap().owned().count(), 2);
    w.put(&t, "seen", "k").unwrap();
    time.go_on(100);
    w.commit().unwrap();
    // Two that both find it gone and set it: one of them is told.
    let (mut a, mut b) = (db.write(), db.write());
    assert!(a.add(&t, "k", "a").unwrap() && b.add(&t, "k", "b").unwrap());
    a.commit().unwrap();
    assert!(matches!(b.commit(), Err(Error::Conflict { .. })));
    // One still sees the record that another one has found gone, and has set anew.
    t.put_for("k", "1", ms(100)).unwrap();
    let mut early = db.write();
    assert!(early.expire(&t, "k", ms(1_000)).unwrap());
    time.go_on(100);
    assert!(t.add("k", "2").unwrap());
    assert!(matches!(early.commit(), Err(Error::Conflict { .. })));
    assert_eq!(t.get("k").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_snapshot_keeps_what_was_there_and_a_transaction_what_it_has_written() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Ordered).unwrap();
    for i in 0..100u64 {
        t.put_for(i.to_be_bytes(), "v", ms(100)).unwrap();
    }
    // The one looks only later.
    let (read, mut write) = (db.read(), db.write());
    assert_eq!(write.count(&t).unwrap(), 100);
    write.put_for(&t, "own", "v", ms(50)).unwrap();
    time.go_on(10_000);
    db.compact().unwrap();
    db.flush().unwrap();
    assert_eq!((t.count().unwrap(), read.count(&t).unwrap()), (0, 100));
    // In it no time passes: its own record is there, with all of its time left.
    assert_eq!(
        (write.count(&t).unwrap(), write.ttl(&t, "own").unwrap()),
        (101, Some(Lifetime::Left(ms(50))))
    );
    assert_eq!(write.iter(&t).unwrap().rev().count(), 101);
    write.commit().unwrap();
    assert_eq!(t.count().unwrap(), 0, "its record has expired by the time that it comes");
}

#[test]
fn a_clock_that_jumps_shortens_no_life_that_begins_later_and_brings_nothing_back() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let mut db = open(&storage, &time);
    db.table("t", TableKind::Hash).unwrap().put_for("k", "1", ms(60_000)).unwrap();
    for round in 0..6u64 {
        // A day ahead for a moment, as a wrong server of times sets it; then back.
        time.go_on(86_400_000);
        let t = db.open_table("t").unwrap();
        assert_eq!(t.ttl("k").unwrap(), None);
        t.put_for("k", "2", ms(60_000)).unwrap();
        time.go_back(86_400_000);
        assert_eq!(t.ttl("k").unwrap(), Some(Lifetime::Left(ms(60_000))));
        drop(t);
        if round % 2 == 0 {
            db.close().unwrap();
            db = open(&storage, &time);
        } else {
            let crashed = copy_of(&storage);
            let lost = open(&crashed, &time);
            let t = lost.open_table("t").unwrap();
            let left = t.ttl("k").unwrap();
            // (The log has seconds, rounded up.)
            assert!(matches!(left, Some(Lifetime::Left(left)) if left > ms(58_000) && left <= ms(60_000)));
            time.go_on(60_000);
            assert_eq!(t.ttl("k").unwrap(), None, "it goes on from there");
            drop(t);
            lost.close().unwrap();
            continue;
        }
        let t = db.open_table("t").unwrap();
        assert!(t.contains("k").unwrap());
        time.go_on(60_000);
        assert_eq!(t.ttl("k").unwrap(), None);
    }
}

#[test]
fn tables_with_types_have_records_that_expire() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t: TypedTable<u64, str> = TypedTable::over(db.table("t", TableKind::Ordered).unwrap());
    t.put_for(1, "one", ms(100)).unwrap();
    t.put(2, "two").unwrap();
    assert_eq!(t.ttl(1).unwrap(), Some(Lifetime::Left(ms(100))));
    let read = db.read();
    assert_eq!(t.read_in(&read).ttl(2).unwrap(), Some(Lifetime::Unlimited));
    let mut write = db.write();
    let mut seen = t.write_in(&mut write);
    assert!(seen.expire(2, ms(300)).unwrap() && !seen.expire(3, ms(300)).unwrap());
    seen.put_for(4, "four", ms(50)).unwrap();
    assert!(seen.persist(1).unwrap());
    assert_eq!(seen.ttl(4).unwrap(), Some(Lifetime::Left(ms(50))));
    write.commit().unwrap();
    time.go_on(100);
    let all: Vec<_> = t.iter().unwrap().map(|record| record.unwrap().0).collect();
    assert_eq!(all, [1, 2]);
    assert!(t.expire(1, ms(0)).unwrap());
    assert_eq!((t.get(1).unwrap(), t.persist(1).unwrap()), (None, false));
}
