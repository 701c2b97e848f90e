//! Files that end before what they name: refused for writing and left as they are, read as far as they go.

use azekura::{Db, Error, Options, TableKind};
use sim::disk::Disk;
use sim::judge::{PATH, Setting};
use std::collections::BTreeMap;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Setting::QUIET.options()
}

fn key(i: u32) -> Vec<u8> {
    format!("a key with a good deal of text in front of its number {i:06}").into_bytes()
}

/// A database with runs, large values in several segments, and a manifest that its superblock cannot hold.
fn sample(closed: bool) -> (Vec<u8>, Records) {
    let disk = Disk::seeded(3);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let mut model = Records::new();
    for n in 0..40 {
        drop(db.create_table(&format!("{n:03} {}", "long name ".repeat(20)), TableKind::Ordered).unwrap());
    }
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let put = |i: u32, bytes: usize, model: &mut Records| {
        t.put(&key(i), &vec![i as u8; bytes]).unwrap();
        model.insert(key(i), vec![i as u8; bytes]);
    };
    (0..1500).for_each(|i| put(i, i as usize % 300, &mut model));
    (2000..2020).for_each(|i| put(i, 100_000, &mut model));
    db.flush().unwrap();
    (1000..1200).for_each(|i| put(i, 70, &mut model));
    if closed {
        drop(t);
        db.close().unwrap();
    }
    (disk.bytes(PATH), model)
}

/// What a cut file gives: each record is right, or an error says that it cannot be read.
fn read_what_is_there(bytes: &[u8], model: &Records, is_cut: bool) -> usize {
    let db = match Db::open_on(&Disk::with_file(PATH, bytes), PATH, options().read_only(true)) {
        Ok(db) => db,
        Err(Error::Corrupt { .. } | Error::NotADatabase { .. }) => return 0,
        Err(e) => panic!("{} bytes, read-only: {e}", bytes.len()),
    };
    let t = db.open_table("t").unwrap();
    let right = |(key, value): (&Vec<u8>, &Vec<u8>)| match t.get(key) {
        Ok(found) => {
            assert_eq!(found.as_ref(), Some(value), "{} bytes", bytes.len());
            true
        }
        Err(Error::Corrupt { .. }) => false,
        Err(e) => panic!("{} bytes: {e}", bytes.len()),
    };
    let found = model.iter().filter(|record| right(*record)).count();
    let problems = db.check(|_| {}).unwrap().problems;
    assert_eq!(
        problems.iter().any(|p| p.contains("the file was cut")),
        is_cut,
        "{} bytes: {problems:?}",
        bytes.len()
    );
    found
}

fn refused(bytes: &[u8]) -> Error {
    let disk = Disk::with_file(PATH, bytes);
    let Err(error) = Db::open_on(&disk, PATH, options()) else { panic!("{} bytes are opened", bytes.len()) };
    assert!(disk.bytes(PATH) == bytes, "{} bytes: something was written", bytes.len());
    error
}

#[test]
fn a_closed_file_that_was_cut_anywhere_is_refused_for_writing_and_read() {
    let (whole, model) = sample(true);
    assert_eq!(read_what_is_there(&whole, &model, false), model.len());
    let mut part = 0;
    let cuts =
        (4096..whole.len()).step_by(36_864).chain([4097, 8191, 8192, whole.len() - 4096, whole.len() - 1]);
    for len in cuts {
        let error = refused(&whole[..len]);
        let Error::Truncated { path, file_bytes, least_bytes } = &error else {
            panic!("{len} bytes: {error}")
        };
        assert_eq!((path.as_str(), *file_bytes), (PATH, len as u64));
        assert!((*file_bytes + 1..=whole.len() as u64).contains(least_bytes), "{error}");
        assert_eq!(error.code(), 18);
        let found = read_what_is_there(&whole[..len], &model, true);
        part += usize::from(found > 0 && found < model.len());
    }
    assert!(part > 5, "files of which a part can be read: {part}");
    for len in [8, 100, 4095] {
        assert!(matches!(refused(&whole[..len]), Error::Truncated { least_bytes: 8192, .. }), "{len} bytes");
        assert_eq!(read_what_is_there(&whole[..len], &model, true), 0);
    }
    assert!(matches!(refused(&whole[..7]), Error::NotADatabase { .. }));
}

/// The log ends the file; its first segment was in the file before a checkpoint named it.
#[test]
fn a_file_that_was_cut_within_its_log_is_refused_for_writing() {
    let (whole, _) = sample(false);
    let is_frame = |block: &[u8]| block[4..8] == *b"AZLF";
    let frames: Vec<usize> =
        (0..whole.len() / 4096).filter(|i| is_frame(&whole[i * 4096..][..4096])).collect();
    assert!(frames.len() > 150);
    for at in [frames[0], frames[1], frames[9]] {
        for len in [at * 4096, at * 4096 + 5, (at + 1) * 4096 - 1] {
            assert!(matches!(refused(&whole[..len]), Error::Truncated { .. }), "{len} of {}", whole.len());
        }
    }
}

/// What a file had beyond what it names may go.
#[test]
fn a_file_that_was_cut_of_nothing_opens() {
    let (whole, model) = sample(true);
    let longer = [&whole[..], &[0x5a; 50_000]].concat();
    for bytes in [&longer[..], &longer[..whole.len() + 1], &whole] {
        let db = Db::open_on(&Disk::with_file(PATH, bytes), PATH, options()).unwrap();
        assert_eq!(db.open_table("t").unwrap().count().unwrap(), model.len() as u64);
    }
}
