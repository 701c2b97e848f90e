//! Segments of the log that are made before they are needed.

use super::hooked::{Call, Hooked};
use super::{copy_of, leaked, wait_until};
use crate::api::{Db, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Small durable commits, each a frame of one block.
fn commit(db: &Db, from: u64, n: u64) {
    let table = db.table("t", TableKind::Ordered).unwrap();
    for i in from..from + n {
        table.put(i.to_be_bytes(), i.to_le_bytes()).unwrap();
    }
}

fn database(disk: &Hooked) -> Db {
    // Else the log's own thread might be quicker than the test.
    let db = Db::open_on(disk, "segments.azk", Options::new().threads(false)).unwrap();
    db.engine.log.make_ahead();
    db
}

#[test]
fn a_segment_that_is_soon_full_is_followed_by_one_that_was_made() {
    let disk = Hooked::default();
    let db = database(&disk);
    let log = &db.engine.log;
    commit(&db, 0, 4);
    assert_eq!(log.extents().len(), 1, "of 64 KiB little is full");
    log.want_now();
    assert!(log.must_tell() && !log.must_tell(), "once");
    let made = log.extents();
    assert_eq!(made.len(), 2);
    log.prepare_segment();
    assert!(!log.wants_segment());
    log.want_now();
    log.prepare_segment();
    assert_eq!(log.extents(), made, "one is enough");
    commit(&db, 4, 12);
    assert_eq!(log.extents(), made, "it is what follows");
    assert_eq!(leaked(&db.engine), 0);
    let other = database(&copy_of(&disk, "segments.azk"));
    assert_eq!(other.open_table("t").unwrap().count().unwrap(), 16);
    db.close().unwrap();
}

#[test]
fn commits_that_come_fast_want_a_segment() {
    let disk = Hooked::default();
    let db = database(&disk);
    // At once, unless this machine is slow.
    let mut records = 0;
    while !db.engine.log.wants_segment() {
        commit(&db, records, 1);
        records += 1;
        assert!(records < 20_000);
    }
    assert!(records >= 4, "a log of few records wants none");
    db.close().unwrap();
}

#[test]
fn a_segment_that_cannot_be_made_is_left_to_the_commit_that_needs_it() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 4);
    db.engine.log.want_now();
    disk.fail_all(Call::Write);
    db.engine.log.prepare_segment();
    disk.heal();
    assert_eq!(db.engine.log.extents().len(), 1);
    assert_eq!(leaked(&db.engine), 0, "what was taken for it is free again");
    commit(&db, 10, 10);
    assert_eq!(db.engine.log.extents().len(), 2);
    db.close().unwrap();
}

#[test]
fn a_log_that_fills_slowly_has_no_segment_in_reserve() {
    let disk = Hooked::default();
    let db = database(&disk);
    let log = &db.engine.log;
    // A block for each: half of 64 KiB comes in 0.8 seconds.
    for i in 0..8 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        commit(&db, i, 1);
        log.prepare_segment();
        assert_eq!(log.extents().len(), 1);
    }
    assert!(!log.wants_segment());
    db.close().unwrap();
}

#[test]
fn a_segment_for_a_log_that_has_gone_on_elsewhere_is_given_back() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 4);
    db.engine.log.want_now();
    let (other, moved) = (db.clone(), Arc::new(AtomicBool::new(false)));
    let once = moved.clone();
    disk.hook(move |call| {
        // The first write fills the new segment with zeros.
        if call == Call::Write && !once.swap(true, Ordering::Relaxed) {
            assert!(other.engine.log.rest(true).unwrap());
        }
        Ok(())
    });
    db.engine.log.prepare_segment();
    disk.heal();
    assert!(moved.load(Ordering::Relaxed));
    assert_eq!(db.engine.log.extents().len(), 2, "the first, and the short one");
    assert_eq!(leaked(&db.engine), 0);
    db.close().unwrap();
}

/// Else idle time would free it, and the log's thread would make it again, for ever.
#[test]
fn a_log_that_rests_has_no_segment_in_reserve() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 4);
    let log = &db.engine.log;
    log.want_now();
    assert!(log.rest(true).unwrap());
    let resting = log.extents();
    log.prepare_segment();
    assert_eq!(log.extents(), resting);
    assert_eq!(leaked(&db.engine), 0);
    commit(&db, 10, 4);
    db.close().unwrap();
}

/// Who waits for a segment is told if the handle is poisoned, and its maker does not come back.
#[test]
fn who_waits_for_a_segment_is_told_of_a_poisoned_handle() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 4);
    db.engine.log.want_now();
    disk.hook(|call| if call == Call::Write { panic!("as this test wants it") } else { Ok(()) });
    let log = &db.engine.log;
    let poisoned = db.engine.poison.catch("making a segment", || {
        log.prepare_segment();
        Ok(())
    });
    assert!(matches!(poisoned, Err(Error::Poisoned { .. })));
    disk.heal();
    assert!(matches!(log.wait_for_making(), Err(Error::Poisoned { .. })));
}

/// Without the log's thread nobody would make it.
#[test]
fn where_nobody_makes_segments_none_is_wanted() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "segments.azk", Options::new().threads(false)).unwrap();
    commit(&db, 0, 10);
    assert!(!db.engine.log.wants_segment());
    assert_eq!(db.engine.log.extents().len(), 1);
    db.close().unwrap();
}

/// Else the file would end with a segment that nobody wants.
#[test]
fn who_shrinks_waits_for_the_segment_that_is_made() {
    let disk = Hooked::default();
    let db = database(&disk);
    // Into the third segment, of 1 MiB.
    commit(&db, 0, 200);
    db.engine.log.want_now();
    let (tell, told) = std::sync::mpsc::channel();
    let maker = std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            let (me, other) = (std::thread::current().id(), db.clone());
            disk.hook(move |call| {
                if call == Call::Write && std::thread::current().id() == me {
                    let _ = tell.send(());
                    wait_until(|| other.engine.log.has_given_up());
                    // So long that who does not wait has ended.
                    std::thread::sleep(std::time::Duration::from_millis(300));
                }
                Ok(())
            });
            db.engine.log.prepare_segment();
        });
        told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        db.shrink(|_| {}).unwrap();
        let (bytes, extents) = (db.stats().file_bytes, db.engine.log.extents());
        assert_eq!(extents.len(), 1, "{extents:?}");
        assert!(bytes < 512 << 10, "{bytes} bytes for 200 small records");
        making.join()
    });
    maker.unwrap();
    disk.heal();
    assert!(told.try_iter().count() < 4, "what is not wanted is not made to its end");
    assert_eq!(leaked(&db.engine), 0);
    db.close().unwrap();
}
