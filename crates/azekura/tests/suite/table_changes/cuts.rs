//! What a power cut, a follower and a copy see of tables that a transaction has changed.

use super::{KINDS, check, is_missing, names};
use azekura::storage::{MemStorage, OpenMode, Storage};
use azekura::{Db, Durability, Error, Freshness, Options, TableKind};
use sim::disk::{Disk, Keep};
use sim::rng::Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATH: &str = "tables.azk";

/// Without threads, so that nothing is written but when a test says so.
fn quiet() -> Options {
    crate::common::watch(Duration::from_secs(120));
    Options::new().memory_bytes(8 << 20).threads(false)
}

fn cut(disk: &Disk) -> Disk {
    disk.after_cut(Keep::None, &mut Rng(1))
}

/// A place for a database, and for others beside it. They go with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        crate::common::watch(Duration::from_secs(60));
        let folder = std::env::temp_dir().join(format!("azekura-tables-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        Place(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn value(db: &Db, table: &str, key: &str) -> Option<String> {
    db.open_table(table).unwrap().get(key).unwrap().map(|v| String::from_utf8(v).unwrap())
}

#[test]
fn a_commit_that_changes_tables_is_durable_with_all_its_records() {
    for flushed in [false, true] {
        for twice in [false, true] {
            let disk = Disk::new();
            let options = || quiet().durability(Durability::Eventual).eventual_delay(Duration::from_secs(60));
            let db = Db::open_on(&disk, PATH, options()).unwrap();
            for name in ["kept", "gone", "old"] {
                db.create_table(name, TableKind::Ordered).unwrap().put(name, vec![b'v'; 9000]).unwrap();
            }
            db.open_table("gone").unwrap().create_index("i", "v").unwrap();
            if flushed {
                db.flush().unwrap();
            }
            let mut txn = db.write();
            let new = txn.create_table("new", TableKind::Hash).unwrap();
            for i in 0..1000u64 {
                txn.put(&new, i.to_be_bytes(), "1").unwrap();
            }
            txn.put(&new, "large", vec![b'1'; 200_000]).unwrap();
            txn.rename_table("old", "renamed").unwrap();
            txn.commit().unwrap();
            if !twice {
                // A checkpoint between the two, which knows of the first one's tables.
                let mut txn = db.write();
                txn.drop_table("gone").unwrap();
                let kept = txn.open_table("kept").unwrap();
                txn.put(&kept, "k", "2").unwrap();
                txn.commit().unwrap();
            }
            let disk = cut(&disk);
            for again in 0..3 {
                let db = Db::open_on(&disk, PATH, options()).unwrap();
                check(&db);
                assert_eq!(
                    names(&db),
                    if twice {
                        vec!["gone", "kept", "new", "renamed"]
                    } else {
                        vec!["kept", "new", "renamed"]
                    }
                );
                assert_eq!(db.open_table("new").unwrap().count().unwrap(), 1001);
                assert_eq!(value(&db, "new", "large").unwrap().len(), 200_000);
                assert_eq!(value(&db, "renamed", "old").unwrap().len(), 9000);
                assert_eq!(value(&db, "kept", "k").as_deref(), (!twice).then_some("2"));
                // What the next handle makes has other ids, and what it renames is renamed once more.
                let mut txn = db.write();
                let name = format!("of opening {again}");
                let more = txn.create_table(&name, TableKind::Ordered).unwrap();
                txn.put(&more, "k", "v").unwrap();
                txn.commit().unwrap();
                assert_eq!(value(&db, &name, "k").as_deref(), Some("v"));
                let mut txn = db.write();
                txn.drop_table(&name).unwrap();
                txn.commit().unwrap();
                if again == 1 {
                    db.close().unwrap();
                }
            }
        }
    }
}

/// Names go round, and checkpoints come at any time: what one knows is not done again.
#[test]
fn names_that_went_round_are_right_after_a_cut() {
    for checkpoint_after in 0..6 {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, quiet()).unwrap();
        for name in ["a", "b"] {
            db.create_table(name, TableKind::Ordered).unwrap().put("was", name).unwrap();
        }
        let scratch = db.create_table("scratch", TableKind::Ordered).unwrap();
        for i in 0..5 {
            if i == checkpoint_after {
                // A checkpoint, and no flush.
                db.drop_table("scratch").unwrap();
            }
            let mut txn = db.write();
            txn.rename_table("a", "c").unwrap();
            txn.rename_table("b", "a").unwrap();
            txn.rename_table("c", "b").unwrap();
            if i == 3 {
                txn.drop_table("a").unwrap();
                let new = txn.create_table("a", TableKind::Hash).unwrap();
                txn.put(&new, "was", "new").unwrap();
            }
            txn.commit().unwrap();
        }
        let expected: Vec<_> = ["a", "b"].map(|name| value(&db, name, "was")).into();
        let tables = names(&db);
        drop(scratch);
        let disk = cut(&disk);
        for _ in 0..2 {
            let db = Db::open_on(&disk, PATH, quiet()).unwrap();
            assert_eq!(names(&db), tables);
            let found: Vec<_> = ["a", "b"].map(|name| value(&db, name, "was")).into();
            assert_eq!(found, expected, "a checkpoint after {checkpoint_after}");
            check(&db);
        }
    }
}

/// What a dropped table has in the file is not used again before a checkpoint knows that it is dropped.
#[test]
fn a_full_life_of_dropped_tables_is_cut_anywhere() {
    let disk = Disk::new();
    let options = || quiet().memtable_bytes(64 << 10).background_merges(false);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let (mut bytes, mut rng) = (Vec::new(), Rng(7));
    for round in 0..12u64 {
        let name = format!("table {}", round % 3);
        db.transact(|txn| {
            if round >= 3 {
                txn.drop_table(&name)?;
            }
            let t = txn.create_table(&name, TableKind::Ordered)?;
            for i in 0..400u64 {
                txn.put(&t, i.to_be_bytes(), vec![round as u8; 600])?;
            }
            txn.put(&t, "large", vec![round as u8; 300_000])
        })
        .unwrap();
        if round % 2 == 0 {
            db.flush().unwrap();
        }
        bytes.push(db.stats().file_bytes);
        let cut = disk.after_cut(Keep::None, &mut rng);
        let after = Db::open_on(&cut, PATH, options()).unwrap();
        check(&after);
        let (t, last) = (after.open_table(&name).unwrap(), [round as u8]);
        assert_eq!(t.count().unwrap(), 401);
        assert_eq!(t.get("large").unwrap().unwrap(), last.repeat(300_000));
        assert_eq!(t.get(399u64.to_be_bytes()).unwrap().unwrap(), last.repeat(600));
    }
    // Three tables are alive at a time, so the space of those that were dropped is used again.
    assert!(bytes[11] < bytes[5] * 2, "the file grows: {bytes:?}");
}

/// A commit that finds no room leaves no trace, also of the table that it was to drop.
#[test]
fn a_full_disk_refuses_all_of_a_commit() {
    for seed in 0..4 {
        let (disk, mut rng) = (Disk::new(), Rng(seed));
        let options = || quiet().memtable_bytes(128 << 10).background_merges(false);
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        disk.set_bytes_max(1_500_000 + rng.below(500_000));
        let mut model: BTreeMap<String, u64> = BTreeMap::new();
        let (mut refused, mut dropped) = (0, 0);
        for i in 0..150 {
            let (name, records) = (format!("table {i}"), rng.below(40));
            let old = model.keys().next().filter(|_| model.len() > 3 && rng.one_in(2)).cloned();
            let committed = db.transact(|txn| {
                old.iter().try_for_each(|old| txn.drop_table(old))?;
                let t = txn.create_table(&name, KINDS[i % 2])?;
                txn.put(&t, "large", vec![i as u8; 9000])?;
                (0..records).try_for_each(|n| txn.put(&t, n.to_be_bytes(), vec![n as u8; 900]))
            });
            match committed {
                Ok(()) => {
                    model.retain(|name, _| Some(name) != old.as_ref());
                    model.insert(name, records + 1);
                }
                Err(Error::NoSpace { .. }) => refused += 1,
                Err(e) => panic!("seed {seed}: {e}"),
            }
            assert!(names(&db).iter().eq(model.keys()), "seed {seed}");
            // What only drops finds the room that is kept for it.
            if refused % 8 == 7
                && let Some(name) = model.keys().next().cloned()
            {
                match db.transact(|txn| txn.drop_table(&name)) {
                    Ok(()) => (dropped, _) = (dropped + 1, model.remove(&name)),
                    Err(Error::NoSpace { .. }) => {}
                    Err(e) => panic!("seed {seed}: {e}"),
                }
                assert!(names(&db).iter().eq(model.keys()), "seed {seed}");
            }
        }
        println!("seed {seed}: {refused} of 150 were refused, {dropped} dropped alone");
        assert!(
            refused > 0 && refused < 150 && dropped > 0,
            "{refused} refused, {dropped} dropped, seed {seed}"
        );
        disk.set_bytes_max(u64::MAX);
        let again = Db::open_on(&cut(&disk), PATH, options()).unwrap();
        for db in [&db, &again] {
            assert!(names(db).iter().eq(model.keys()), "seed {seed}");
            for (name, records) in &model {
                assert_eq!(db.open_table(name).unwrap().count().unwrap(), *records, "{name}, seed {seed}");
            }
            check(db);
        }
    }
}

#[test]
fn followers_see_a_commit_that_changes_tables_whole() {
    let place = Place::new("follow");
    let (path, copy) = (place.file("db"), place.file("copy"));
    let db = quiet().open(&path).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("k", "1").unwrap();
    db.create_table("scratch", TableKind::Ordered).unwrap();
    db.flush().unwrap();
    let follow = |freshness| Options::new().memory_bytes(8 << 20).freshness(freshness).open(&path).unwrap();
    let followers = [follow(Freshness::Checkpoint), follow(Freshness::Log)];
    let mut txn = db.write();
    let new = txn.create_table("new", TableKind::Ordered).unwrap();
    txn.put(&new, "k", vec![b'2'; 3000]).unwrap();
    txn.put(&t, "k", "2").unwrap();
    txn.commit().unwrap();
    t.put("later", "3").unwrap();
    is_missing(followers[0].open_table("new"), "new");
    assert_eq!(value(&followers[1], "new", "k").unwrap().len(), 3000);
    // A checkpoint without a flush: it has the table, and the log the records.
    db.drop_table("scratch").unwrap();
    for (i, follower) in followers.iter().enumerate() {
        assert_eq!(names(follower), ["new", "t"]);
        assert_eq!(value(follower, "new", "k").unwrap().len(), 3000);
        assert_eq!(value(follower, "t", "k").as_deref(), Some("2"));
        assert_eq!(value(follower, "t", "later").is_some(), i == 1);
        check(follower);
    }
    // A copy has the log, or needs none.
    for is_flushed in [false, true] {
        if is_flushed {
            db.flush().unwrap();
        }
        followers[0].copy_to(&copy, |_| {}).unwrap();
        let copied = Options::new().open(&copy).unwrap();
        assert_eq!((names(&copied), value(&copied, "t", "later")), (names(&db), Some("3".into())));
        assert_eq!(value(&copied, "new", "k").unwrap().len(), 3000);
        check(&copied);
        copied.close().unwrap();
        std::fs::remove_file(&copy).unwrap();
    }
    // One that drops.
    let mut txn = db.write();
    txn.drop_table("new").unwrap();
    txn.rename_table("t", "u").unwrap();
    txn.put(&t, "k", "4").unwrap();
    txn.commit().unwrap();
    for follower in &followers {
        assert_eq!(names(follower), ["u"]);
        assert_eq!(value(follower, "u", "k").as_deref(), Some("4"));
        check(follower);
    }
}

/// Tables without records need no log. Their commits have higher numbers than the newest record of the copy,
/// which its own commits get anew.
#[test]
fn what_a_copy_makes_is_new_though_its_tables_were_ahead_of_its_runs() {
    let place = Place::new("ahead");
    let (path, copy, image) = (place.file("db"), place.file("copy"), place.file("image"));
    let db = quiet().open(&path).unwrap();
    db.create_table("scratch", TableKind::Ordered).unwrap();
    db.flush().unwrap();
    for name in ["a", "b", "c"] {
        db.transact(|txn| txn.create_table(name, TableKind::Ordered).map(drop)).unwrap();
    }
    // A checkpoint without a flush.
    db.drop_table("scratch").unwrap();
    let follower = Options::new().memory_bytes(8 << 20).freshness(Freshness::Checkpoint).open(&path).unwrap();
    follower.copy_to(&copy, |_| {}).unwrap();
    let copied = quiet().open(&copy).unwrap();
    assert_eq!(names(&copied), ["a", "b", "c"]);
    copied
        .transact(|txn| {
            let new = txn.create_table("new", TableKind::Ordered)?;
            txn.put(&new, "k", "v")
        })
        .unwrap();
    // As a power cut leaves it: the log alone has it.
    std::fs::copy(&copy, &image).unwrap();
    let after = quiet().open(&image).unwrap();
    assert_eq!((names(&after), value(&after, "new", "k")), (names(&copied), Some("v".into())));
    check(&after);
}

#[test]
fn a_writer_flushes_such_a_commit_soon_for_copies_by_others() {
    let place = Place::new("soon");
    let (path, copy) = (place.file("db"), place.file("copy"));
    let db = Options::new().memory_bytes(8 << 20).open(&path).unwrap();
    db.create_table("scratch", TableKind::Ordered).unwrap();
    let mut txn = db.write();
    let new = txn.create_table("new", TableKind::Ordered).unwrap();
    txn.put(&new, "k", "v").unwrap();
    txn.commit().unwrap();
    db.drop_table("scratch").unwrap();
    let follower = Options::new().memory_bytes(8 << 20).freshness(Freshness::Checkpoint).open(&path).unwrap();
    follower.copy_to(&copy, |_| {}).unwrap();
    let copied = Options::new().open(&copy).unwrap();
    assert_eq!((names(&copied), value(&copied, "new", "k")), (names(&db), Some("v".into())));
}

/// Changes the manifest in both superblocks.
fn edit_manifest(file: &mut [u8], edit: impl Fn(&mut Vec<u8>)) {
    for copy in [0, 4096] {
        let block = &mut file[copy..copy + 4096];
        assert_eq!(block[40..48], [0; 8], "the manifest stands in the superblock");
        let length = u32::from_le_bytes(block[48..52].try_into().unwrap()) as usize;
        let mut manifest = block[64..64 + length].to_vec();
        edit(&mut manifest);
        block[48..52].copy_from_slice(&(manifest.len() as u32).to_le_bytes());
        block[64..].fill(0);
        block[64..64 + manifest.len()].copy_from_slice(&manifest);
        let sum = crc32c::crc32c(&block[12..]);
        block[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A manifest cannot know of tables what the log does not say, and no run has.
#[test]
fn a_manifest_that_is_ahead_of_its_log_is_damaged() {
    crate::common::watch(Duration::from_secs(60));
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, quiet()).unwrap();
    for name in ["scratch", "a"] {
        db.create_table(name, TableKind::Ordered).unwrap().put("was", name).unwrap();
    }
    // A checkpoint and no flush.
    db.drop_table("scratch").unwrap();
    let bytes_of = |storage: &MemStorage| {
        let file = storage.open(Path::new(PATH), OpenMode::ReadWrite).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    };
    let with_log = bytes_of(&storage);
    db.close().unwrap();
    for bytes in [with_log, bytes_of(&storage)] {
        for ahead in [0, 1, 1000] {
            let mut bytes = bytes.clone();
            edit_manifest(&mut bytes, |manifest| {
                let at = manifest.len() - 8;
                let known = u64::from_le_bytes(manifest[at..].try_into().unwrap());
                // Four commits came, of which two made tables.
                let newest = if ahead == 0 { known } else { 4 + ahead };
                manifest[at..].copy_from_slice(&newest.to_le_bytes());
            });
            let storage = MemStorage::default();
            storage.open(Path::new(PATH), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
            let followers = [Freshness::Checkpoint, Freshness::Log].map(|fresh| quiet().freshness(fresh));
            for options in [quiet().read_only(true)].into_iter().chain(followers).chain([quiet()]) {
                match Db::open_on(&storage, PATH, options) {
                    Ok(db) if ahead == 0 => assert_eq!(names(&db), ["a"]),
                    Err(Error::Corrupt { .. }) if ahead > 0 => {}
                    other => panic!("{ahead} ahead: {:?}", other.map(|db| names(&db))),
                }
            }
        }
    }
}

/// A file whose manifest ends before it says which commits its tables show is read by the ids of tables.
#[test]
fn files_of_before_are_opened() {
    let place = Place::new("old");
    let (path, older) = (place.file("db"), place.file("older"));
    for checkpoint in [false, true] {
        let _ = std::fs::remove_file(&path);
        let db = quiet().open(&path).unwrap();
        for name in ["scratch", "a"] {
            db.create_table(name, TableKind::Ordered).unwrap().put("was", name).unwrap();
        }
        if checkpoint {
            db.drop_table("scratch").unwrap();
        }
        let expected = names(&db);
        let mut bytes = std::fs::read(&path).unwrap();
        edit_manifest(&mut bytes, |manifest| manifest.truncate(manifest.len() - 8));
        std::fs::write(&older, &bytes).unwrap();
        for again in 0..3 {
            let db = quiet().open(&older).unwrap();
            check(&db);
            assert_eq!(names(&db), expected);
            assert_eq!(value(&db, "a", "was").as_deref(), Some("a"));
            let mut txn = db.write();
            let new = txn.create_table("new", TableKind::Ordered).unwrap();
            txn.put(&new, "k", "v").unwrap();
            if again == 2 {
                txn.rollback();
            } else {
                txn.commit().unwrap();
                // Not closed: the log has it.
                let image = std::fs::read(&older).unwrap();
                drop(new);
                db.transact(|txn| txn.drop_table("new")).unwrap();
                drop(db);
                std::fs::write(&older, image).unwrap();
                let db = quiet().open(&older).unwrap();
                assert_eq!(value(&db, "new", "k").as_deref(), Some("v"));
                db.transact(|txn| txn.drop_table("new")).unwrap();
                check(&db);
            }
        }
    }
}
