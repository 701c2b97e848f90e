//! What every storage must do, tested on the operating system's and on the one in memory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::cached::has_dirty;
use super::*;

/// A directory that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("azekura-storage-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a test on each storage, with a directory to work in.
fn on_each(test: impl Fn(&dyn Storage, &Path)) {
    let scratch = Scratch::new();
    test(&OsStorage, &scratch.0);
    test(&MemStorage::default(), Path::new("dir"));
}

fn failure<T>(result: io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("succeeded"),
        Err(error) => error.kind(),
    }
}

#[test]
fn what_is_written_is_read() {
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        assert!(file.is_empty().unwrap());
        let long: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        file.write_at(&long, 1000).unwrap();
        file.write_durable_at(b"durable", 5).unwrap();
        file.write_durable_at(b"", 5).unwrap();
        file.write_back(0, 4096);
        file.wait_written(0, 1 << 20);
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        assert_eq!(file.len().unwrap(), 301_000);

        let file = storage.open(&dir.join("a"), OpenMode::ReadOnly).unwrap();
        let mut back = vec![1; 301_000];
        file.read_at(&mut back, 0).unwrap();
        assert_eq!(&back[..5], &[0; 5]);
        assert_eq!(&back[5..12], b"durable");
        assert_eq!(back[1000..], long);
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(0).is_err());
    });
}

#[test]
fn what_is_written_to_stay_is_read_also_where_it_was_mapped() {
    const WHOLE: usize = 7 << 20;
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let mut model = vec![1; WHOLE];
        file.write_at(&model, 0).unwrap();
        let mapping = file.mapping();
        let first = mapping.as_ref().and_then(|m| m.at(0, WHOLE));
        // SAFETY: the file has these bytes, and nobody writes to it while they are compared.
        let mapped = || first.map(|first| unsafe { std::slice::from_raw_parts(first.as_ptr(), WHOLE) });
        // In a block of 2 MiB; all of one, and some before and behind it; two; two, and parts of their
        // neighbours.
        for (fill, at, len) in [
            (2u8, 5, 70_000),
            (3, (2 << 20) - 4096, (2 << 20) + 8192),
            (4, 2 << 20, 4 << 20),
            (5, 4096, 5 << 20),
        ] {
            assert!(mapped().is_none_or(|bytes| bytes == model), "touched before");
            let bytes: Vec<u8> = (0..len).map(|i| fill.wrapping_add((i / 4096) as u8)).collect();
            // What is not on the disk is not dropped.
            file.sync_data().unwrap();
            file.write_settled_at(&bytes, at as u64).unwrap();
            model[at..at + len].copy_from_slice(&bytes);
            let mut back = vec![0; WHOLE];
            file.read_at(&mut back, 0).unwrap();
            assert!(back == model && mapped().is_none_or(|bytes| bytes == model), "{len} bytes at {at}");
        }
        file.sync_data().unwrap();
        assert!(failure(file.write_settled_at(&[0; 2], OFFSET_MAX - 1)) == ErrorKind::InvalidInput);
    });
}

#[test]
fn what_is_forgotten_goes_from_memory_and_its_neighbours_keep_their_bytes() {
    const PART: usize = 2 << 20;
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let model: Vec<u8> = (0..3 * PART).map(|i| (i / 4096 % 251) as u8 + 1).collect();
        file.write_at(&model, 0).unwrap();
        let mapping = file.mapping();
        if mapping.is_some() {
            // What is not on the disk is not lost.
            file.forget(0, model.len() as u64);
            let mut all = vec![0; model.len()];
            file.read_at(&mut all, 0).unwrap();
            assert!(all == model);
        }
        file.sync_data().unwrap();
        // Whether the system has it in memory, as far as it says so.
        let has = |part: usize| mapping.as_ref().is_some_and(|m| m.enter((part * PART) as u64, PART as u64));
        let before = [has(0), has(1), has(2)];
        if is_on_ext4(dir) && before[1] {
            // With one page that is not on the disk a block stays as a whole.
            let same = std::fs::File::open(dir.join("a")).unwrap();
            // The system may write it at any time; then the block goes.
            let stays = (0..10).any(|_| {
                file.write_at(&model[PART..PART + 1], PART as u64).unwrap();
                let is_dirty = has_dirty(&same, PART as u64, PART as u64);
                file.forget(PART as u64, PART as u64);
                let stays = has(1);
                file.read_at(&mut vec![0; PART], PART as u64).unwrap();
                is_dirty && stays
            });
            assert!(stays);
            file.sync_data().unwrap();
            assert!(!has_dirty(&same, PART as u64, PART as u64));
        }
        file.forget(PART as u64, PART as u64);
        let mut back = vec![0; PART];
        match mapping {
            // A file system in memory drops nothing. Of others only this one is known to.
            Some(_) if is_on_ext4(dir) && before[1] => assert!(!has(1), "it is still in memory"),
            Some(_) => eprintln!("whether the system drops anything cannot be seen here"),
            None => {
                file.read_at(&mut back, PART as u64).unwrap();
                assert!(back == [0; PART], "a file in memory zeroes it");
            }
        }
        for part in [0, 2] {
            file.read_at(&mut back, (part * PART) as u64).unwrap();
            assert!(back == model[part * PART..(part + 1) * PART]);
        }
        file.forget(u64::MAX - 1, 1);
        file.forget(OFFSET_MAX - 4096, 4096);
        file.forget(0, 0);
        assert_eq!(file.len().unwrap(), 3 * PART as u64);
        assert!(file.read_at(&mut back, 0).is_ok() && back == model[..PART]);
    });
}

#[cfg(target_os = "linux")]
fn is_on_ext4(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|found| found.f_type == 0xef53)
}

#[cfg(not(target_os = "linux"))]
fn is_on_ext4(_: &Path) -> bool {
    false
}

#[test]
fn reading_past_the_end_is_an_unexpected_eof() {
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(b"abc", 0).unwrap();
        let eof = ErrorKind::UnexpectedEof;
        assert_eq!(failure(file.read_at(&mut [0; 4], 0)), eof);
        assert_eq!(failure(file.read_at(&mut [0; 1], 3)), eof);
        assert_eq!(failure(file.read_at(&mut [0; 1], 1 << 40)), eof);
        file.read_at(&mut [], 1 << 40).unwrap();
    });
}

#[test]
fn ranges_that_overflow_are_refused() {
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        for offset in [u64::MAX, OFFSET_MAX, u64::MAX - 1] {
            let invalid = ErrorKind::InvalidInput;
            assert_eq!(failure(file.read_at(&mut [0; 2], offset)), invalid);
            assert_eq!(failure(file.write_at(&[0; 2], offset)), invalid);
            assert_eq!(failure(file.write_durable_at(&[0; 2], offset)), invalid);
            assert_eq!(failure(file.allocate(offset, 2)), invalid);
            assert_eq!(failure(file.punch(offset, 2)), invalid);
            file.write_back(offset, 2);
            file.wait_written(offset, 2);
        }
        assert_eq!(failure(file.set_len(u64::MAX)), ErrorKind::InvalidInput);
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), 0);
    });
}

#[test]
fn lengths_grow_with_zeros_and_cut_for_good() {
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 100_000], 0).unwrap();
        file.set_len(70_000).unwrap();
        file.set_len(200_000).unwrap();
        let mut back = vec![1; 200_000];
        file.read_at(&mut back, 0).unwrap();
        assert!(back[..70_000].iter().all(|&b| b == 7));
        assert!(back[70_000..].iter().all(|&b| b == 0));

        file.allocate(150_000, 100_000).unwrap();
        assert_eq!(file.len().unwrap(), 250_000);
        file.allocate(0, 1000).unwrap();
        assert_eq!(file.len().unwrap(), 250_000);
        file.read_at(&mut back[..70_000], 0).unwrap();
        assert!(back[..70_000].iter().all(|&b| b == 7));
    });
}

#[test]
fn a_punched_range_reads_as_zeros_and_its_neighbours_stay() {
    on_each(|storage, dir| {
        let file = storage.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let len = 400_000;
        for (from, to) in [(4096, 8192), (65_536, 262_144), (60_000, 330_001), (1, 2)] {
            file.write_at(&vec![9; len], 0).unwrap();
            file.punch(from, to - from).unwrap();
            let mut back = vec![1; len];
            file.read_at(&mut back, 0).unwrap();
            for (i, &byte) in (0..).zip(&back) {
                let expected = if (from..to).contains(&i) { 0 } else { 9 };
                assert_eq!(byte, expected, "byte {i} of hole {from}..{to}");
            }
        }
        file.punch(399_000, 1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 400_000);
    });
}

#[test]
fn locks_exclude_other_handles() {
    on_each(|storage, dir| {
        let path = dir.join("a");
        let first = storage.open(&path, OpenMode::CreateNew).unwrap();
        let second = storage.open(&path, OpenMode::ReadWrite).unwrap();
        let third = storage.open(&path, OpenMode::ReadOnly).unwrap();
        assert!(first.try_lock(true).unwrap());
        assert!(first.try_lock(true).unwrap());
        assert!(!second.try_lock(true).unwrap());
        assert!(!second.try_lock(false).unwrap());
        assert!(first.try_lock(false).unwrap());
        assert!(second.try_lock(false).unwrap());
        assert!(third.try_lock(false).unwrap());
        drop(first);
        assert!(!second.try_lock(true).unwrap());
        drop(third);
        assert!(second.try_lock(true).unwrap());
        drop(second);
        let fourth = storage.open(&path, OpenMode::ReadWrite).unwrap();
        assert!(fourth.try_lock(true).unwrap());
    });
}

#[test]
fn names_are_created_renamed_and_removed() {
    on_each(|storage, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        let missing = ErrorKind::NotFound;
        assert_eq!(failure(storage.open(&a, OpenMode::ReadWrite)), missing);
        assert_eq!(failure(storage.open(&a, OpenMode::ReadOnly)), missing);
        assert_eq!(failure(storage.remove(&a)), missing);
        assert_eq!(failure(storage.rename(&a, &b, true)), missing);
        assert_eq!(failure(storage.rename(&a, &b, false)), missing);

        let file = storage.open(&a, OpenMode::CreateNew).unwrap();
        file.write_at(b"first", 0).unwrap();
        let there = ErrorKind::AlreadyExists;
        assert_eq!(failure(storage.open(&a, OpenMode::CreateNew)), there);
        storage.rename(&a, &b, false).unwrap();
        assert!(!storage.exists(&a).unwrap());
        assert!(storage.exists(&b).unwrap());

        storage.open(&a, OpenMode::CreateNew).unwrap();
        assert_eq!(failure(storage.rename(&b, &a, false)), there);
        assert!(storage.exists(&b).unwrap());
        storage.rename(&b, &a, true).unwrap();
        storage.sync_dir_of(&a).unwrap();
        let again = storage.open(&a, OpenMode::ReadOnly).unwrap();
        storage.remove(&a).unwrap();
        assert!(!storage.exists(&a).unwrap());
        let mut back = [0; 5];
        again.read_at(&mut back, 0).unwrap();
        assert_eq!(&back, b"first");
    });
}

#[test]
fn the_rename_fallback_refuses_to_replace() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.0.join("a"), scratch.0.join("b"));
    std::fs::write(&a, "a").unwrap();
    std::fs::write(&b, "b").unwrap();
    let refused = super::os::link_then_unlink(&a, &b);
    assert_eq!(failure(refused), ErrorKind::AlreadyExists);
    std::fs::remove_file(&b).unwrap();
    super::os::link_then_unlink(&a, &b).unwrap();
    assert_eq!(std::fs::read(&b).unwrap(), b"a");
    assert!(!a.exists());
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let scratch = Scratch::new();
    for mode in [OpenMode::ReadOnly, OpenMode::ReadWrite] {
        let refused = OsStorage.open(&scratch.0, mode);
        assert_eq!(failure(refused), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_bare_name_lies_in_the_current_directory() {
    OsStorage.sync_dir_of(Path::new("some-name")).unwrap();
}

#[test]
fn clones_of_a_storage_in_memory_share_its_files() {
    let storage = MemStorage::default();
    let path = Path::new("a");
    let file = storage.clone().open(path, OpenMode::CreateNew).unwrap();
    file.write_at(b"x", OFFSET_MAX - 1).unwrap();
    let same = storage.open(path, OpenMode::ReadOnly).unwrap();
    assert_eq!(same.len().unwrap(), OFFSET_MAX);
}

#[test]
fn counters_see_what_succeeded() {
    let counters = Arc::new(IoCounters::default());
    let file = MemStorage::default().open(Path::new("a"), OpenMode::CreateNew).unwrap();
    let file = Metered::new(file, Arc::clone(&counters));
    file.write_at(&[0; 10], 0).unwrap();
    file.write_durable_at(&[0; 5], 10).unwrap();
    file.sync_data().unwrap();
    file.read_at(&mut [0; 15], 0).unwrap();
    assert!(file.read_at(&mut [0; 16], 0).is_err());
    let seen = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(seen(&counters.written_bytes), 15);
    assert_eq!(seen(&counters.write_calls), 2);
    assert_eq!(seen(&counters.read_bytes), 15);
    assert_eq!(seen(&counters.read_calls), 1);
    assert_eq!(seen(&counters.syncs), 2);
}
