//! What a reader of the mirrors has found.

use super::hooked::{Call, Hooked};
use super::*;
use parking_lot::Mutex;

fn hooked_mirror(disk: &Hooked) -> Mirror {
    let shared = || Arc::new(disk.clone());
    Mirror::open_on(shared(), DB, shared(), COPY, CopyOptions::default()).unwrap()
}

/// A manifest says what was durable when its checkpoint was begun. Until that is there the log goes on, and
/// so does the mirror.
#[test]
fn a_checkpoint_that_was_begun_before_later_frames_is_taken() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, DB, options()).unwrap();
    put(&db, b"first", b"1");
    db.flush().unwrap();
    put(&db, b"second", b"2");
    let mirror = Arc::new(Mutex::new(hooked_mirror(&disk)));
    level(&mut mirror.lock());
    let (writer, shared) = (db.clone(), mirror.clone());
    disk.hook_once(DB, Call::First, move || {
        // Not by the thread that writes the checkpoint: this one holds its lock.
        let others = std::thread::spawn(move || {
            let before = shared.lock().status().commit;
            for n in 0..5u8 {
                put(&writer, b"meanwhile", &[n]);
                put(&writer, b"large", &vec![n; 9000]);
            }
            while shared.lock().step().unwrap() {}
            assert!(shared.lock().status().commit > before + 5, "the log goes on");
        });
        others.join().unwrap();
    });
    db.flush().unwrap();
    level(&mut mirror.lock());
    put(&db, b"last", b"3");
    put(&db, b"last", b"4");
    db.flush().unwrap();
    level(&mut mirror.lock());
    assert_eq!(mirror.lock().status().built, 1);
    assert!(followed(&disk.files) == contents(&db));
}

/// A writer was killed between the two superblocks.
#[test]
fn a_checkpoint_that_waits_is_not_passed_over_as_if_there_were_none() {
    let disk = MemStorage::default();
    let db = open(&disk);
    put(&db, b"a", b"1");
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let second = bytes_of(&disk, DB)[4096..8192].to_vec();
    put(&db, b"b", b"2");
    db.flush().unwrap();
    let file = disk.open(Path::new(DB), OpenMode::ReadWrite).unwrap();
    file.write_at(&second, 4096).unwrap();
    assert!(!mirror.step().unwrap());
    assert!(!mirror.status().is_level(), "{:?}", mirror.status());
    // Its process has gone: nobody will write the second one.
    let expected = contents(&db);
    let image = MemStorage::default();
    for (path, bytes) in [(DB, bytes_of(&disk, DB)), (COPY, bytes_of(&disk, COPY))] {
        image.open(Path::new(path), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    }
    let mut mirror = super::mirror(&image);
    let goes_on = |status: &MirrorStatus| !status.is_level();
    mirror.run(goes_on).unwrap();
    assert!(followed(&image) == expected);
}

/// What has come to have the mirror's name since it was opened is not written over.
#[test]
fn a_file_that_took_the_name_of_a_mirror_stays() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 20_000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    for round in 0..6 {
        fill(&db, 0, 20_000, round);
        db.compact().unwrap();
    }
    let mut again = mirror(&disk);
    disk.remove(Path::new(COPY)).unwrap();
    disk.open(Path::new(COPY), OpenMode::CreateNew).unwrap().write_at(b"a diary", 0).unwrap();
    let refused = loop {
        match again.step() {
            Ok(true) => {}
            done => break done,
        }
    };
    assert!(bytes_of(&disk, COPY) == b"a diary", "{refused:?}");
    assert!(matches!(refused, Err(Error::Open { .. })), "{refused:?}");
    drop(again);
    assert!(bytes_of(&disk, COPY) == b"a diary");
    // It was removed, and nothing took its name.
    disk.remove(Path::new(COPY)).unwrap();
    let mut third = mirror(&disk);
    level(&mut third);
    assert!(followed(&disk) == contents(&db));
}

/// Between opening and locking, another file gets the name.
#[test]
fn the_file_that_is_locked_has_the_name() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, DB, options()).unwrap();
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    level(&mut hooked_mirror(&disk));
    let files = disk.files.clone();
    let swap = move || {
        let bytes = bytes_of(&files, COPY);
        files.rename(Path::new(COPY), Path::new("old.azk"), false).unwrap();
        files.open(Path::new(COPY), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    };
    disk.hook_once(COPY, Call::Lock, swap);
    let mut mirror = hooked_mirror(&disk);
    fill(&db, 0, 1000, 2);
    db.flush().unwrap();
    level(&mut mirror);
    assert!(followed(&disk.files) == contents(&db));
    let old = Db::open_on(&disk.files, "old.azk", options().read_only(true)).unwrap();
    assert!(contents(&old) != contents(&db), "nothing was written there");
}

/// A mirror that was cut has lost what stood there.
#[test]
fn a_truncated_mirror_is_built_anew_and_not_promoted() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 20_000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    let whole = bytes_of(&disk, COPY);
    let file = disk.open(Path::new(COPY), OpenMode::ReadWrite).unwrap();
    file.set_len(whole.len() as u64 / 2 / 4096 * 4096).unwrap();
    drop(file);
    let refused = promote_on(&disk, COPY);
    assert!(matches!(refused, Err(Error::Truncated { .. })), "{refused:?}");
    put(&db, b"more", b"of it");
    put(&db, b"more", b"of that");
    db.flush().unwrap();
    let mut again = mirror(&disk);
    level(&mut again);
    assert_eq!(again.status().built, 1);
    assert!(followed(&disk) == contents(&db));
}

/// Values of a segment stand where those of another one stood, whose number it has. A pin that was revoked
/// does not say that they are the same.
#[test]
fn what_a_revoked_pin_has_kept_is_copied_again() {
    let disk = MemStorage::default();
    let limited = || options().pinned_bytes_max(1);
    let db = Db::open_on(&disk, DB, limited()).unwrap();
    let value = |round: u8| vec![round; 100_000];
    put(&db, b"large", &value(0));
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    for round in 1..8 {
        put(&db, b"large", &value(round));
        db.compact().unwrap();
        db.shrink(|_| {}).unwrap();
    }
    db.close().unwrap();
    // This one says nothing of limits.
    let db = open(&disk);
    for round in 8..20 {
        put(&db, b"large", &value(round));
        db.compact().unwrap();
        db.shrink(|_| {}).unwrap();
        if round % 4 == 0 {
            level(&mut mirror);
            assert!(followed(&disk) == contents(&db), "round {round}");
        }
    }
    level(&mut mirror);
    assert!(followed(&disk) == contents(&db));
}

/// The mirror's own manifest, which closes a log, is not in the way of what comes.
#[test]
fn a_manifest_of_the_mirrors_own_is_in_nobodys_way() {
    let disk = MemStorage::default();
    let db = open(&disk);
    let many: Vec<String> = (0..200).map(|n| format!("a table with a long name, number {n}")).collect();
    let tables: Vec<_> = many.iter().map(|name| (name.as_str(), TableKind::Ordered)).collect();
    db.create_tables(&tables).unwrap();
    put(&db, b"first", b"1");
    db.flush().unwrap();
    put(&db, b"second", b"2");
    put(&db, b"second", b"3");
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    for round in 0..8u8 {
        // A checkpoint that the mirror does not see, frames that know of it and fill segments, and another
        // one.
        db.rename_table(&many[usize::from(round)], &format!("renamed {round}")).unwrap();
        for n in 0..200u32 {
            put(&db, &n.to_be_bytes(), &[round; 400]);
        }
        db.rename_table(&many[usize::from(round) + 100], &format!("renamed too {round}")).unwrap();
        level(&mut mirror);
    }
    db.flush().unwrap();
    level(&mut mirror);
    assert!(followed(&disk) == contents(&db));
    assert_eq!(mirror.status().built, 1);
}

/// A mirror whose building was cut off does not copy again what it has.
#[test]
fn building_goes_on_where_it_ended() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 100_000, 1);
    db.flush().unwrap();
    let beside = format!("{COPY}.mirror-new");
    let mut first = mirror(&disk);
    let mut copied = 0;
    let goes_on = |status: &MirrorStatus| {
        copied = status.copied_bytes;
        copied < 2 << 20
    };
    first.run(goes_on).unwrap();
    assert!(copied >= 2 << 20, "{copied}");
    // Its process is killed.
    let image = MemStorage::default();
    for path in [DB, &beside] {
        let bytes = bytes_of(&disk, path);
        image.open(Path::new(path), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    }
    let db = Db::open_on(&image, DB, options()).unwrap();
    let mut second = mirror(&image);
    level(&mut second);
    let other = || Arc::new(image.clone());
    let mut whole = Mirror::open_on(other(), DB, other(), "other.azk", CopyOptions::default()).unwrap();
    level(&mut whole);
    let (rest, whole) = (second.status().copied_bytes, whole.status().copied_bytes);
    assert!(rest + (1 << 20) < whole, "{rest} of {whole}");
    assert!(followed(&image) == contents(&db));
}

/// A mirror whose name is a link stands where that leads.
#[test]
#[cfg(unix)]
fn a_link_to_a_mirror_stays_one() {
    let dir = std::env::temp_dir().join(format!("azekura-mirror-link-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("elsewhere")).unwrap();
    let (source, link, real) = (dir.join("db.azk"), dir.join("m.azk"), dir.join("elsewhere/m.azk"));
    let db = options().open(&source).unwrap();
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let dangling = Mirror::open(&source, &link, CopyOptions::default()).map(drop);
    assert!(matches!(dangling, Err(Error::Open { .. })), "{dangling:?}");
    level(&mut Mirror::open(&source, &real, CopyOptions::default()).unwrap());
    for round in 0..6 {
        fill(&db, 0, 20_000, round);
        db.compact().unwrap();
    }
    let mut again = Mirror::open(&source, &link, CopyOptions::default()).unwrap();
    level(&mut again);
    assert_eq!(again.status().built, 1, "built anew");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    drop(again);
    promote(&link).unwrap();
    let own = options().open(&real).unwrap();
    assert!(contents(&own) == contents(&db));
    drop((own, db));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Large values that expire are referred to in another way.
#[test]
fn what_expires_is_mirrored_by_its_log() {
    let disk = MemStorage::default();
    let db = open(&disk);
    let table = db.table("small", TableKind::Ordered).unwrap();
    let day = std::time::Duration::from_secs(86_400);
    table.put_for(b"first", vec![1; 9000], day).unwrap();
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let checkpoint = mirror.status().checkpoint;
    table.put_for(b"large", vec![7; 50_000], day).unwrap();
    table.put(b"last", b"of all").unwrap();
    table.put(b"last", b"of all").unwrap();
    level(&mut mirror);
    assert_eq!(mirror.status().checkpoint, checkpoint, "by the log");
    let copy = Db::open_on(&disk, COPY, options().freshness(Freshness::Log)).unwrap();
    assert_eq!(copy.check(|_| {}).unwrap().problems, Vec::<String>::new());
    assert!(copy.open_table("small").unwrap().get(b"large").unwrap() == Some(vec![7; 50_000]));
}

/// A log that refers to values where nothing can stand.
#[test]
fn a_value_at_an_impossible_place_is_damage() {
    use crate::format::frame::{Frame, HEADER_BYTES};
    let disk = MemStorage::default();
    let db = open(&disk);
    put(&db, b"first", b"1");
    db.flush().unwrap();
    let mut mirror = mirror(&disk);
    level(&mut mirror);
    let before = bytes_of(&disk, COPY);
    put(&db, b"large", &vec![1; 9000]);
    put(&db, b"second", b"2");
    put(&db, b"third", b"3");
    let mut bytes = bytes_of(&disk, DB);
    // The record begins with its length, number and parts; the part with its table and a segment's number.
    let place = HEADER_BYTES + 32;
    let has_value = |block: &[u8]| {
        let frame =
            Frame::parse(block).filter(|frame| frame.len > 40 && frame.first_record == 0 && !frame.jump);
        frame.is_some_and(|frame| frame.verify(block)) && block[place - 8..place - 4] == [1, 0, 0, 0]
    };
    let at = bytes.chunks(4096).rposition(has_value).unwrap() * 4096;
    for offset in [0, 4096, 8193, u64::MAX - 4095] {
        let block = &mut bytes[at..at + 4096];
        block[place..place + 8].copy_from_slice(&offset.to_le_bytes());
        Frame::parse(block).unwrap().seal(block);
        let file = disk.open(Path::new(DB), OpenMode::ReadWrite).unwrap();
        file.write_at(block, at as u64).unwrap();
        let refused = loop {
            match mirror.step() {
                Ok(true) => {}
                done => break done,
            }
        };
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{offset}: {refused:?}");
        assert!(bytes_of(&disk, COPY)[..8192] == before[..8192], "{offset}");
    }
}

/// A mirror that was replaced, and whose name could not be removed, stands where the next one is to be built.
#[test]
fn what_was_replaced_and_stayed_is_built_in() {
    let disk = MemStorage::default();
    let db = open(&disk);
    fill(&db, 0, 1000, 1);
    db.flush().unwrap();
    level(&mut mirror(&disk));
    let beside = format!("{COPY}.mirror-new");
    let (path, beside) = (Path::new(COPY), Path::new(&beside));
    for is_read in [false, true] {
        disk.rename(path, beside, false).unwrap();
        let reader = is_read.then(|| {
            let options = options().freshness(Freshness::Checkpoint);
            Db::open_on(&disk, beside, options).unwrap()
        });
        if !is_read {
            names::mark_replaced(beside, disk.open(beside, OpenMode::ReadWrite).unwrap().as_ref()).unwrap();
        }
        let before = reader.as_ref().map(contents);
        fill(&db, 0, 30_000, 2);
        db.compact().unwrap();
        level(&mut mirror(&disk));
        assert!(followed(&disk) == contents(&db));
        assert!(!disk.exists(beside).unwrap());
        // Who reads it still does not see what is built.
        if let Some(reader) = reader {
            assert!(Some(contents(&reader)) == before);
        }
    }
}

/// What was built has its name, and nobody knows whether it has it after a crash.
#[test]
fn a_mirror_whose_name_may_be_lost_is_not_acknowledged() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, DB, options()).unwrap();
    put(&db, b"first", b"1");
    db.flush().unwrap();
    let mut mirror = hooked_mirror(&disk);
    disk.fail_once(Call::SyncDir);
    let refused = loop {
        match mirror.step() {
            Ok(_) => assert!(!mirror.status().is_level(), "the sync of the directory has failed"),
            Err(e) => break e,
        }
    };
    assert!(refused.to_string().contains("giving the mirror its name"), "{refused}");
    assert_eq!((mirror.status().checkpoint, mirror.status().commit), (0, 0));
    let refused = mirror.step().unwrap_err();
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    drop(mirror);
    // It has the name here, and the next one makes that durable and goes on.
    let mut mirror = hooked_mirror(&disk);
    level(&mut mirror);
    assert_eq!(mirror.status().built, 0);
    assert!(mirror.status().checkpoint > 0);
    assert!(followed(&disk.files) == contents(&db));
}
