//! Records that expire: a mirror has the clock of its source, and the version of its file.

use super::*;
use crate::promote_on;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const SECOND: Duration = Duration::from_secs(1);
/// Some day of 2024.
const BEGIN_S: u64 = 1_720_000_000;

/// A clock that a test sets.
#[derive(Clone)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn new() -> Time {
        Time(Arc::new(AtomicU64::new(BEGIN_S)))
    }

    fn set(&self, seconds: u64) {
        self.0.store(BEGIN_S + seconds, Ordering::Relaxed);
    }

    fn options(&self) -> Options {
        let seconds = self.0.clone();
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Ordering::Relaxed));
        options().clock(now)
    }
}

fn version_and_role(disk: &MemStorage) -> [u16; 2] {
    let bytes = bytes_of(disk, COPY);
    assert_eq!(bytes[12..16], bytes[4096 + 12..4096 + 16], "both copies");
    [12, 14].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn keys(disk: &MemStorage, options: Options) -> Vec<Vec<u8>> {
    let db = Db::open_on(disk, COPY, options).unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    db.open_table("small").unwrap().cursor().unwrap().owned().map(|record| record.unwrap().0).collect()
}

/// What has expired in the source stays so in its mirror, although the machine of the mirror believes in an
/// earlier time: in its log, in its runs, and when it has become a database.
#[test]
fn time_does_not_run_backwards_in_a_mirror() {
    for is_flushed in [false, true] {
        let (disk, time) = (MemStorage::default(), Time::new());
        let db = Db::open_on(&disk, DB, time.options()).unwrap();
        put(&db, b"for good", b"1");
        db.flush().unwrap();
        let mut mirror = mirror(&disk);
        level(&mut mirror);
        assert_eq!(version_and_role(&disk), [1, 1], "nothing expires");
        let table = db.open_table("small").unwrap();
        table.put_for(b"short", b"2", 10 * SECOND).unwrap();
        table.put_for(b"long", vec![3; 9000], 3600 * SECOND).unwrap();
        db.flush().unwrap();
        level(&mut mirror);
        assert_eq!(version_and_role(&disk), [2, 1], "something does");
        let early = || time.options().freshness(Freshness::Log);
        assert_eq!(keys(&disk, early()), [&b"for good"[..], b"long", b"short"]);

        time.set(20);
        assert!(table.get(b"short").unwrap().is_none());
        // The last frame waits for one that vouches for it.
        (0..3).for_each(|n| put(&db, b"now", &[n]));
        if is_flushed {
            db.flush().unwrap();
        }
        level(&mut mirror);
        let gone = [&b"for good"[..], b"long", b"now"];
        time.set(0);
        assert_eq!(keys(&disk, early()), gone, "followed, flushed: {is_flushed}");
        drop(mirror);
        // Who takes it up again says nothing else.
        drop(super::mirror(&disk));
        promote_on(&disk, COPY).unwrap();
        assert_eq!(version_and_role(&disk), [2, 0]);
        assert_eq!(keys(&disk, time.options()), gone, "promoted, flushed: {is_flushed}");
    }
}

/// A frame that only vouches says the time that those before it say, also where these were found in the file.
#[test]
fn a_vouching_frame_has_the_time_of_those_before_it() {
    let (disk, time) = (MemStorage::default(), Time::new());
    let db = Db::open_on(&disk, DB, time.options()).unwrap();
    let table = db.table("small", TableKind::Ordered).unwrap();
    table.put_for(b"short", b"1", 10 * SECOND).unwrap();
    db.flush().unwrap();
    (0..4).for_each(|n| put(&db, b"now", &[n]));
    let mut first = mirror(&disk);
    level(&mut first);
    drop(first);
    let mut again = mirror(&disk);
    time.set(30);
    (4..8).for_each(|n| put(&db, b"now", &[n]));
    level(&mut again);
    let number = |block: &[u8], at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
    let bytes = bytes_of(&disk, COPY);
    let vouching = |block: &&[u8]| block[4..8] == *b"AZLF" && number(block, 32) == 0;
    let clocks: Vec<_> = bytes.chunks_exact(4096).filter(vouching).map(|block| number(block, 44)).collect();
    assert_eq!(clocks, [u32::try_from(BEGIN_S).unwrap() + 30]);
}
