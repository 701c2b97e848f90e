//! What the source moves within its file, and what has a number or a place that something else had.

use super::*;

/// A mirror goes on while the writer is closed and opened, which gives a value segment the number, and the
/// place, of one that is gone.
#[test]
fn a_value_segment_with_the_number_and_place_of_another_is_shipped() {
    let disk = MemStorage::default();
    let mut db = open(&disk);
    // The log and manifests find room where the first one stood, and leave that of the large value alone.
    for (name, count) in [("low", 4000u32), ("between", 1000)] {
        let table = db.table(name, TableKind::Ordered).unwrap();
        table.put_many((0..count).map(|n| (n.to_be_bytes(), noise(n)))).unwrap();
        db.flush().unwrap();
    }
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    for round in 0..4u8 {
        put(&db, b"large", &vec![round; 1 << 20]);
        put(&db, b"small", b"record");
        level(&mut mirror);
        put(&db, b"large", b"small");
        if round == 0 {
            db.drop_table("low").unwrap();
        }
        for n in 0..3u8 {
            put(&db, b"other", &[n]);
            db.flush().unwrap();
            level(&mut mirror);
        }
        db.close().unwrap();
        level(&mut mirror);
        db = open(&disk);
        level(&mut mirror);
    }
    put(&db, b"large", &vec![9; 1 << 20]);
    put(&db, b"small", b"record");
    level(&mut mirror);
    assert_eq!(mirror.status().built, 1);
    assert!(followed(&disk) == contents(&db));
}

/// A file with a hole before all that it has, of which the mirror is level. `value` is in all values.
fn with_hole(disk: &MemStorage, value: &[u8]) -> Db {
    let db = open(disk);
    let (first, second) = (db.table("first", TableKind::Ordered), db.table("second", TableKind::Hash));
    let (first, second) = (first.unwrap(), second.unwrap());
    first.put_many((0..20_000u32).map(|n| (n.to_be_bytes(), noise(n)))).unwrap();
    db.flush().unwrap();
    second.put_many((0..5000u32).map(|n| (n.to_be_bytes(), [value, &noise(n)].concat()))).unwrap();
    second.put_many((0..200u32).map(|n| ((n << 16).to_be_bytes(), vec![n as u8; 3000]))).unwrap();
    db.flush().unwrap();
    db
}

/// Bytes that cannot be packed.
fn noise(n: u32) -> Vec<u8> {
    (1..17u32).flat_map(|i| (n * 16 + i).wrapping_mul(0x9e37_79b9).to_be_bytes()).collect()
}

/// Moves what stands behind the hole into it.
fn move_down(db: &Db, mut level: impl FnMut()) {
    level();
    db.drop_table("first").unwrap();
    for n in 0..3u8 {
        put(db, b"n", &[n]);
        db.flush().unwrap();
        level();
    }
    db.shrink(|_| {}).unwrap();
    level();
}

#[test]
fn what_was_moved_is_not_shipped_again() {
    let disk = MemStorage::default();
    let db = with_hole(&disk, b"value");
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let before = mirror.status();
    move_down(&db, || level(&mut mirror));
    let status = mirror.status();
    assert!(status.moved_bytes > 800_000, "the run, and the large values: {status:?}");
    assert!(status.copied_bytes - before.copied_bytes < 150_000, "{before:?} {status:?}");
    assert_eq!((status.behind_bytes, status.built), (0, 1));
    assert_eq!(followed(&disk), contents(&db));
    // What it reads when it is opened it has not compared with anything.
    drop(mirror);
    level(&mut super::mirror(&disk));
    assert_eq!(followed(&disk), contents(&db));
}

/// Bytes of the mirror have changed on its disk. The place that it has left is not believed.
#[test]
fn what_has_changed_on_the_disk_is_shipped_and_not_moved() {
    let disk = MemStorage::default();
    let mark = *b"to be found on the disk";
    let db = with_hole(&disk, &mark);
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let file = disk.open(Path::new(COPY), OpenMode::ReadWrite).unwrap();
    for (at, there) in bytes_of(&disk, COPY).windows(mark.len()).enumerate() {
        if there == mark {
            // In the run, or in a log that is needed no more.
            file.write_at(b"X", at as u64 + 3).unwrap();
        }
    }
    let before = mirror.status();
    move_down(&db, || level(&mut mirror));
    let status = mirror.status();
    assert!(status.copied_bytes - before.copied_bytes > 300_000, "the run was asked for: {status:?}");
    assert!(status.moved_bytes > 500_000, "the values were not: {status:?}");
    assert_eq!(followed(&disk), contents(&db));
}

/// A mirror that was opened since then has no digests.
#[test]
fn a_mirror_that_was_opened_anew_ships_what_was_moved() {
    let disk = MemStorage::default();
    let db = with_hole(&disk, b"value");
    level(&mut mirror(&disk));
    let mut mirror = mirror(&disk);
    move_down(&db, || level(&mut mirror));
    assert_eq!((mirror.status().moved_bytes, mirror.status().built), (0, 0));
    assert_eq!(followed(&disk), contents(&db));
}
