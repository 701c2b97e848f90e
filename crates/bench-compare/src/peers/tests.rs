//! The suite that every adapter passes. A peer whose library is missing says so and is skipped.

use super::memory::{Lie, MemoryPeer};
use super::{Open, Peer, Store, all};
use crate::records::ScanSum;
use std::fs;
use std::path::PathBuf;

/// A new directory, removed at the end.
pub struct TestDir(pub PathBuf);

impl TestDir {
    /// Named after the test and the peer.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bench-compare-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn each_peer(test: impl Fn(&dyn Peer, &str)) {
    test(&MemoryPeer::new(Lie::None), "memory");
    for (about, peer) in all() {
        match peer {
            Some(peer) => test(peer.as_ref(), about.name),
            None => eprintln!("{} is skipped: apt install {}", about.title, about.package),
        }
    }
}

fn how(dir: &TestDir) -> Open {
    Open {
        dir: dir.0.clone(),
        budget_bytes: 64 << 20,
        records: 2000,
        raw_bytes: 2000 * 200,
        create: true,
        durable: false,
        ascending: false,
    }
}

fn put_all(store: &dyn Store, records: &[(Vec<u8>, Vec<u8>)]) {
    let mut writer = store.writer().expect("writer");
    for batch in records.chunks(300) {
        writer.begin().expect("begin");
        for (key, value) in batch {
            writer.put(key, value).expect("put");
        }
        writer.commit().expect("commit");
    }
}

/// Keys of several lengths, values from none to some thousands of bytes.
fn sample() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0u32..1500)
        .map(|number| {
            let key = format!("{:0width$}", number * 7919 % 65_536, width = 5 + number as usize % 9);
            let length = [0, 1, 8, 44, 3000][number as usize % 5];
            (format!("{key}/{number}").into_bytes(), vec![number.to_le_bytes()[0]; length])
        })
        .collect()
}

fn check(store: &dyn Store, records: &[(Vec<u8>, Vec<u8>)], name: &str) {
    let mut reader = store.reader().expect("reader");
    let mut expected = ScanSum::default();
    for (key, value) in records {
        assert_eq!(reader.get(key).expect("get"), Some(value.as_slice()), "{name} {key:?}");
        expected.add(key, value);
    }
    assert_eq!(reader.get(b"absent").expect("get"), None, "{name}");
    assert_eq!(reader.scan().expect("scan"), expected, "{name}");
    let keys: Vec<&[u8]> = records.iter().map(|(key, _)| key.as_slice()).collect();
    let mut answers = 0;
    let supported = reader
        .get_many(&keys, &mut |at, value| {
            assert_eq!(value, Some(records[at].1.as_slice()), "{name}");
            answers += 1;
        })
        .expect("get_many");
    assert_eq!(answers, if supported { records.len() } else { 0 }, "{name}");
}

#[test]
fn records_are_there_before_and_after_reopening() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("reopen-{name}"));
        let mut records = sample();
        let store = peer.open(&how(&dir)).expect("open");
        put_all(store.as_ref(), &records);
        check(store.as_ref(), &records, name);
        store.sync().expect("sync");
        store.close().expect("close");

        let store = peer.open(&Open { create: false, ..how(&dir) }).expect("reopen");
        check(store.as_ref(), &records, name);
        for (_, value) in records.iter_mut().step_by(3) {
            value.extend_from_slice(b"changed");
        }
        put_all(store.as_ref(), &records);
        check(store.as_ref(), &records, name);
        store.settle().expect("settle");
        check(store.as_ref(), &records, name);
        store.close().expect("close");
    });
}

#[test]
fn ascending_and_durable_records_are_there() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("ascending-{name}"));
        let records: Vec<_> = (0u64..900).map(|n| (n.to_be_bytes().to_vec(), n.to_le_bytes().to_vec())).collect();
        let open = Open { durable: true, ascending: true, ..how(&dir) };
        let store = peer.open(&open).expect("open");
        put_all(store.as_ref(), &records);
        check(store.as_ref(), &records, name);
        store.close().expect("close");
    });
}

#[test]
fn a_refreshed_reader_sees_what_was_committed_since() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("refresh-{name}"));
        let store = peer.open(&how(&dir)).expect("open");
        put_all(store.as_ref(), &[(b"key".to_vec(), b"old".to_vec())]);
        let mut reader = store.reader().expect("reader");
        assert_eq!(reader.get(b"key").expect("get"), Some(b"old".as_slice()), "{name}");
        put_all(store.as_ref(), &[(b"key".to_vec(), b"new".to_vec())]);
        reader.refresh().expect("refresh");
        assert_eq!(reader.get(b"key").expect("get"), Some(b"new".as_slice()), "{name}");
        drop(reader);
        store.close().expect("close");
    });
}

#[test]
fn a_failed_open_names_the_call() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("fail-{name}"));
        let open = Open { create: false, dir: dir.0.join("nowhere"), ..how(&dir) };
        let failure = peer.open(&open).err().expect("there is nothing to open").to_string();
        assert!(failure.starts_with(name) && failure.contains("open") || failure.contains("Open"), "{failure}");
    });
}
