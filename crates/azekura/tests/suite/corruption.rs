//! Files that are no databases, and databases of a later version, are refused and left alone. (Damage of
//! every kind is the `flips` command of the crate `sim`.)

use azekura::{Db, Error, Options, TableKind};
use sim::disk::Disk;
use sim::judge::{PATH, Setting};
use sim::rng::Rng;

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut crc, b| {
        crc ^= u32::from(*b);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
        crc
    })
}

#[test]
fn files_that_are_no_databases() {
    let open = |bytes: &[u8]| {
        let disk = Disk::with_file(PATH, bytes);
        let read = Db::open_on(&disk, PATH, Setting::STEADY.options().read_only(true)).err();
        let write = Db::open_on(&disk, PATH, Setting::STEADY.options()).err();
        assert_eq!(disk.bytes(PATH) == bytes, write.is_some(), "a refused file is left alone");
        (read, write)
    };
    let refused = |e: &Option<Error>| {
        matches!(e, Some(Error::NotADatabase { .. } | Error::Corrupt { .. } | Error::Truncated { .. }))
    };
    let mut rng = Rng(3);
    let mut files: Vec<Vec<u8>> = vec![
        b"SQLite format 3\0".repeat(1000),
        b"\x89PNG\r\n\x1a\n".to_vec(),
        b"KC\n\0\x10\x0e\x06\xb4".repeat(2000),
        b"plain text\n".repeat(5000),
        b"AZEKURA\0".to_vec(),
        b"AZEKURA\0".repeat(2000),
        vec![0; 4095],
        vec![0; 100_000],
        vec![255; 8192],
    ];
    files.extend((0..200).map(|_| (0..1 + rng.below(30_000)).map(|_| rng.number() as u8).collect()));
    for (i, file) in files.iter().enumerate() {
        let (read, write) = open(file);
        assert!(refused(&read) && refused(&write), "file {i}: {read:?}, {write:?}");
    }
    let (read, write) = open(b"");
    assert!(refused(&read) && write.is_none(), "an empty file is a new database: {write:?}");

    let sample = Disk::new();
    let db = Db::open_on(&sample, PATH, Setting::STEADY.options()).unwrap();
    db.create_table("t", TableKind::Hash).unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    for copies in [vec![0u64], vec![4096], vec![0, 4096]] {
        let disk = sample.after_kill();
        for &at in &copies {
            let mut block = disk.peek(PATH, at, 4096);
            block[12..16].copy_from_slice(&4u32.to_le_bytes());
            let sum = crc32c(&block[12..]);
            block[8..12].copy_from_slice(&sum.to_le_bytes());
            disk.patch(PATH, at, &block);
        }
        let opened = Db::open_on(&disk, PATH, Setting::STEADY.options()).err();
        assert!(matches!(opened, Some(Error::NewerVersion { found: 4, .. })), "{copies:?}: {opened:?}");
    }

    let dir = std::env::temp_dir();
    let opened = Options::new().open(&dir).err();
    assert!(opened.is_some() && dir.is_dir(), "a directory: {opened:?}");
}

/// What a file was cut of, as forged files are: another makes it as long again while it is open. The sample
/// is made without the engine's threads, so that it is the same file each time, and it is cut all along.
#[test]
fn what_a_file_was_cut_of_is_not_believed_once_it_has_grown_again() {
    let sample = Disk::seeded(1);
    let db = Db::open_on(&sample, PATH, Setting::QUIET.options()).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    // What is removed leaves a hole for the run, so that a value segment ends the file.
    table.put(b"gone", &vec![7; 1 << 20]).unwrap();
    table.put(b"large", &vec![7; 3 << 20]).unwrap();
    db.flush().unwrap();
    table.remove(b"gone").unwrap();
    table.put_many((0..5000u32).map(|i| (i.to_be_bytes(), [1; 100]))).unwrap();
    drop(table);
    db.shrink(|_| {}).unwrap();
    db.close().unwrap();
    let whole = sample.bytes(PATH);

    let is_cut = |db: &Db, key: &[u8]| {
        let found = db.table("t", TableKind::Ordered).unwrap().get(key);
        let Err(Error::Corrupt { detail, .. }) = &found else { return false };
        detail.contains("the file ends before this place")
    };
    let mut met = Vec::new();
    for part in 0..32 {
        let len = (64 << 10) + (whole.len() - (64 << 10)) / 32 * part;
        let disk = Disk::with_file(PATH, &whole[..len]);
        let db = Db::open_on(&disk, PATH, Setting::QUIET.options().read_only(true)).unwrap();
        let look = || [is_cut(&db, b"large"), is_cut(&db, &9u32.to_be_bytes())];
        let before = look();
        disk.cut_file(PATH, whole.len() as u64);
        assert_eq!(look(), before, "cut at {len} of {}", whole.len());
        met.push(before);
    }
    let runs_and_segments = met.contains(&[true, true]) && met.contains(&[true, false]);
    assert!(
        runs_and_segments,
        "the sample has a run that is cut, and a segment behind one that is not: {met:?}"
    );
}
