//! Segments of the log that are made before they are needed.

use super::hooked::{Call, Hooked};
use super::{copy_of, leaked};
use crate::api::{Db, Options};
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
    Db::open_on(disk, "segments.azk", Options::new().threads(false)).unwrap()
}

#[test]
fn a_segment_that_is_soon_full_has_its_successor_made() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 8);
    let log = &db.engine.log;
    assert_eq!(log.extents().len(), 1, "64 KiB are not full yet");
    log.prepare_segment(0);
    let made = log.extents();
    assert_eq!(made.len(), 2);
    log.prepare_segment(0);
    assert_eq!(log.extents(), made, "one is enough");
    commit(&db, 8, 12);
    assert_eq!(log.extents(), made, "it is what follows");
    assert_eq!(leaked(&db.engine), 0);
    let other = database(&copy_of(&disk, "segments.azk"));
    assert_eq!(other.open_table("t").unwrap().count().unwrap(), 20);
    db.close().unwrap();
}

#[test]
fn a_segment_that_cannot_be_made_is_left_to_the_commit_that_needs_it() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 8);
    let before = db.engine.log.extents();
    disk.fail_all(Call::Write);
    db.engine.log.prepare_segment(0);
    disk.heal();
    assert_eq!(db.engine.log.extents(), before);
    assert_eq!(leaked(&db.engine), 0, "what was taken for it is free again");
    commit(&db, 8, 12);
    assert_eq!(db.engine.log.extents().len(), 2);
    db.close().unwrap();
}

#[test]
fn a_log_that_fills_slowly_has_no_segment_in_reserve() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 4);
    let log = &db.engine.log;
    log.prepare_segment(log.vouch_at_rest(0));
    assert_eq!(log.extents().len(), 1);
    db.close().unwrap();
}

#[test]
fn a_segment_for_a_log_that_has_gone_on_elsewhere_is_given_back() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 8);
    let (other, moved) = (db.clone(), Arc::new(AtomicBool::new(false)));
    let once = moved.clone();
    disk.hook(move |call| {
        // The first write fills the new segment with zeros.
        if call == Call::Write && !once.swap(true, Ordering::Relaxed) {
            assert!(other.engine.log.rest(true).unwrap());
        }
        Ok(())
    });
    db.engine.log.prepare_segment(0);
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
    let before = log.vouch_at_rest(0);
    assert!(log.rest(true).unwrap());
    let resting = log.extents();
    // Since then there was the jump, or nothing.
    log.prepare_segment(before);
    log.prepare_segment(log.vouch_at_rest(0));
    assert_eq!(log.extents(), resting);
    assert_eq!(leaked(&db.engine), 0);
    commit(&db, 4, 4);
    db.close().unwrap();
}

/// Else the file would end with a segment that nobody wants.
#[test]
fn who_shrinks_waits_for_the_segment_that_is_made() {
    let disk = Hooked::default();
    let db = database(&disk);
    commit(&db, 0, 1500);
    let (tell, told) = std::sync::mpsc::channel();
    let maker = std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            let me = std::thread::current().id();
            disk.hook(move |call| {
                if call == Call::Write && std::thread::current().id() == me {
                    let _ = tell.send(());
                    std::thread::sleep(std::time::Duration::from_millis(300));
                }
                Ok(())
            });
            db.engine.log.prepare_segment(0);
        });
        told.recv().unwrap();
        db.shrink(|_| {}).unwrap();
        let (bytes, extents) = (db.stats().file_bytes, db.engine.log.extents());
        assert_eq!(extents.len(), 1, "{extents:?}");
        assert!(bytes < 512 << 10, "{bytes} bytes for 1500 small records");
        making.join()
    });
    maker.unwrap();
    assert!(told.try_recv().is_err(), "what is not wanted is not made to its end");
    disk.heal();
    assert_eq!(leaked(&db.engine), 0);
    db.close().unwrap();
}
