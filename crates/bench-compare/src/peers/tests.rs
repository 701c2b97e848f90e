//! The tests that every adapter must pass. A peer whose library is missing says so and is skipped.

use super::memory::{Lie, MemoryPeer};
use super::{Open, Peer, Reader, Store, Way, all};
use crate::records::ScanSum;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

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

/// How many peers are tested at a time.
const AT_ONCE: usize = 8;

/// Does something with every available peer, several at a time. They mostly wait, for syncs and for servers
/// to start.
pub fn with_peers(test: impl Fn(&dyn Peer) + Sync) {
    let peers = Mutex::new(all().into_iter());
    let next = || peers.lock().expect("nobody panics under the lock").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((about, peer)) = next() {
                    match peer {
                        Some(peer) => test(peer.as_ref()),
                        None => eprintln!("{} is skipped: {}", about.title, about.get),
                    }
                }
            });
        }
    });
}

fn each_peer(test: impl Fn(&dyn Peer, &str) + Sync) {
    test(&MemoryPeer::new(Lie::None), "memory");
    with_peers(|peer| test(peer, peer.about().name));
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
        indexed: false,
        lives: None,
        fed: false,
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

type Record = (Vec<u8>, Vec<u8>);

/// Records that the peer accepts: keys of several lengths with values from nothing to some thousands of
/// bytes, or numbers.
fn sample(peer: &dyn Peer) -> Vec<Record> {
    if peer.about().numbers_only {
        return (0u64..1500).map(|n| number(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), n)).collect();
    }
    (0u32..1500)
        .map(|number| {
            let key = format!("{:0width$}", number * 7919 % 65_536, width = 5 + number as usize % 9);
            let length = [0, 1, 8, 44, 3000][number as usize % 5];
            (format!("{key}/{number}").into_bytes(), vec![number.to_le_bytes()[0]; length])
        })
        .collect()
}

fn number(key: u64, value: u64) -> Record {
    (key.to_be_bytes().to_vec(), value.to_le_bytes().to_vec())
}

/// Another value for a record. It has the same length where the peer accepts only one.
fn change(peer: &dyn Peer, value: &mut Vec<u8>) {
    if peer.about().numbers_only {
        value.reverse();
    } else {
        value.extend_from_slice(b"changed");
    }
}

fn check(store: &dyn Store, records: &[Record], name: &str) {
    let mut reader = store.reader().expect("reader");
    let mut expected = ScanSum::default();
    for (key, value) in records {
        assert_eq!(reader.get(key).expect("get"), Some(value.as_slice()), "{name} {key:?}");
        expected.add(key, value);
    }
    assert_eq!(reader.get(b"absent--").expect("get"), None, "{name}");
    assert_eq!(reader.scan().expect("scan"), expected, "{name}");
    check_many(reader.as_mut(), records, name);
}

/// Many gets in one call, of existing keys and of one absent key.
fn check_many(reader: &mut dyn Reader, records: &[Record], name: &str) {
    let mut keys: Vec<&[u8]> = records.iter().map(|(key, _)| key.as_slice()).collect();
    keys.push(b"absent--");
    let expected = |at: usize| records.get(at).map(|(_, value)| value.as_slice());
    let mut answers = 0;
    reader
        .get_each(&keys, &mut |at, value| {
            assert_eq!((at, value), (answers, expected(answers)), "{name}");
            answers += 1;
        })
        .expect("get_each");
    assert_eq!(answers, keys.len(), "{name}");
    let mut answered = vec![false; keys.len()];
    let supported = reader
        .get_many(&keys, &mut |at, value| {
            assert_eq!(value, expected(at), "{name}");
            assert!(!std::mem::replace(&mut answered[at], true), "{name}: twice");
        })
        .expect("get_many");
    assert!(answered.iter().all(|answered| *answered == supported), "{name}");
}

#[test]
fn records_are_there_before_and_after_reopening() {
    each_peer(put_and_reopen);
}

fn put_and_reopen(peer: &dyn Peer, name: &str) {
    let dir = TestDir::new(&format!("reopen-{name}"));
    let mut records = sample(peer);
    let store = peer.open(&how(&dir)).expect("open");
    put_all(store.as_ref(), &records);
    check(store.as_ref(), &records, name);
    store.sync().expect("sync");
    store.close().expect("close");

    let store = peer.open(&Open { create: false, ..how(&dir) }).expect("reopen");
    check(store.as_ref(), &records, name);
    for (_, value) in records.iter_mut().step_by(3) {
        change(peer, value);
    }
    put_all(store.as_ref(), &records);
    check(store.as_ref(), &records, name);
    store.settle().expect("settle");
    check(store.as_ref(), &records, name);
    store.close().expect("close");
}

#[test]
fn ascending_and_durable_records_are_there() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("ascending-{name}"));
        let records: Vec<_> = (0u64..900).map(|n| number(n, n)).collect();
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
        put_all(store.as_ref(), &[number(7, 1)]);
        store.sync().expect("sync");
        let key = number(7, 0).0;
        let mut reader = store.reader().expect("reader");
        assert_eq!(reader.get(&key).expect("get"), Some(number(7, 1).1.as_slice()), "{name}");
        put_all(store.as_ref(), &[number(7, 2)]);
        reader.refresh().expect("refresh");
        assert_eq!(reader.get(&key).expect("get"), Some(number(7, 2).1.as_slice()), "{name}");
        drop(reader);
        store.close().expect("close");
    });
}

#[test]
fn removed_records_are_gone() {
    each_peer(put_and_remove);
}

fn put_and_remove(peer: &dyn Peer, name: &str) {
    let dir = TestDir::new(&format!("remove-{name}"));
    let mut records = sample(peer);
    let store = peer.open(&how(&dir)).expect("open");
    put_all(store.as_ref(), &records);
    store.sync().expect("sync");
    let removed: Vec<_> = records.iter().step_by(2).map(|(key, _)| key.clone()).collect();
    let mut writer = store.writer().expect("writer");
    writer.begin().expect("begin");
    for key in &removed {
        writer.remove(key).expect("remove");
    }
    // An absent record may be removed too. A removed one may be put again in the same transaction.
    writer.remove(b"absent--").expect("remove");
    writer.put(&records[0].0, &records[0].1).expect("put");
    writer.commit().expect("commit");
    drop(writer);
    records =
        records.into_iter().enumerate().filter(|(at, _)| at % 2 == 1 || *at == 0).map(|(_, r)| r).collect();
    check(store.as_ref(), &records, name);
    store.close().expect("close");

    let store = peer.open(&Open { create: false, ..how(&dir) }).expect("reopen");
    check(store.as_ref(), &records, name);
    let mut reader = store.reader().expect("reader");
    for key in &removed[1..] {
        assert_eq!(reader.get(key).expect("get"), None, "{name}");
    }
    drop(reader);
    store.close().expect("close");
}

/// The sums over the first 0, 1, 2 and so on records of an iterator.
fn sums<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<ScanSum> {
    let mut seen = ScanSum::default();
    std::iter::once(seen)
        .chain(records.map(|(key, value)| {
            seen.add(key, value);
            seen
        }))
        .collect()
}

/// Growing limits show the order: each sum has one record more than the one before.
fn check_ranges(reader: &mut dyn Reader, sorted: &[Record], name: &str) {
    let mut range = |from, limit, way| reader.range(from, limit, way).expect("range");
    if range(None, 1, Way::Up).is_none() {
        assert_eq!(range(None, 1, Way::Down), None, "{name}");
        return;
    }
    // Not every peer can go backwards. One that can must do it right.
    let goes_down = range(None, 1, Way::Down).is_some();
    let expect_down = |expected: Option<ScanSum>| expected.filter(|_| goes_down);
    for (from, to) in [(0, 1), (0, 40), (700, 730), (sorted.len() - 20, sorted.len())] {
        let up = sums(sorted[from..to].iter());
        let down = sums(sorted[from..to].iter().rev());
        let (first, last) = (sorted[from].0.as_slice(), sorted[to - 1].0.as_slice());
        for (limit, (up, down)) in (0u64..).zip(up.into_iter().zip(down)) {
            assert_eq!(range(Some(first), limit, Way::Up), Some(up), "{name} from {from} up {limit}");
            assert_eq!(
                range(Some(last), limit, Way::Down),
                expect_down(Some(down)),
                "{name} from {to} down {limit}"
            );
        }
    }
    let all = sums(sorted.iter()).last().copied();
    assert_eq!(range(None, u64::MAX, Way::Up), all, "{name}");
    assert_eq!(range(None, u64::MAX, Way::Down), expect_down(all), "{name}");
    assert_eq!(range(None, 10, Way::Up), sums(sorted.iter()).get(10).copied(), "{name}");
    assert_eq!(range(None, 10, Way::Down), expect_down(sums(sorted.iter().rev()).get(10).copied()), "{name}");
    // Between two records, below the first and above the last.
    let mut between = sorted[500].0.clone();
    *between.last_mut().expect("a byte") -= 1;
    assert_eq!(range(Some(&between), 3, Way::Up), sums(sorted[500..].iter()).get(3).copied(), "{name}");
    assert_eq!(
        range(Some(&between), 3, Way::Down),
        expect_down(sums(sorted[..500].iter().rev()).get(3).copied()),
        "{name}"
    );
    assert_eq!(range(Some(&[0; 8]), 3, Way::Down), expect_down(Some(ScanSum::default())), "{name}");
    assert_eq!(range(Some(&[255; 8]), 3, Way::Up), Some(ScanSum::default()), "{name}");
    assert_eq!(
        range(Some(&[255; 8]), 3, Way::Down),
        expect_down(sums(sorted.iter().rev()).get(3).copied()),
        "{name}"
    );
}

#[test]
fn ranges_go_both_ways_in_order() {
    each_peer(put_and_range);
}

fn put_and_range(peer: &dyn Peer, name: &str) {
    let dir = TestDir::new(&format!("range-{name}"));
    let mut records: Vec<Record> = (1u64..1200).map(|n| number(n * 16 + n * n * 1024, n)).collect();
    let store = peer.open(&how(&dir)).expect("open");
    // Every other record first, so that no peer gets the keys in their order.
    let (odd, even): (Vec<_>, Vec<_>) = records.iter().cloned().partition(|(key, _)| key[7] & 16 != 0);
    put_all(store.as_ref(), &odd);
    put_all(store.as_ref(), &even);
    store.sync().expect("sync");
    records.sort_unstable();
    let mut reader = store.reader().expect("reader");
    assert_eq!(reader.range(None, 0, Way::Up).expect("range").is_some(), peer.about().ordered, "{name}");
    check_ranges(reader.as_mut(), &records, name);
    drop(reader);
    assert!(peer.file_bytes(&dir.0) > 0 || peer.about().name == "memory", "{name}");
    store.close().expect("close");
}

#[test]
fn a_transaction_that_is_abandoned_leaves_nothing() {
    each_peer(|peer, name| {
        if !peer.about().transactions {
            return;
        }
        let dir = TestDir::new(&format!("abandon-{name}"));
        let records: Vec<_> = (0u64..100).map(|n| number(n, n)).collect();
        let store = peer.open(&how(&dir)).expect("open");
        put_all(store.as_ref(), &records);
        let mut writer = store.writer().expect("writer");
        writer.begin().expect("begin");
        let (key, value) = number(3, 4);
        writer.put(&key, &value).expect("put");
        writer.remove(&number(5, 0).0).expect("remove");
        drop(writer);
        check(store.as_ref(), &records, name);
        store.close().expect("close");
    });
}

#[test]
fn names_are_unique_and_missing_peers_say_how_to_get_them() {
    let all = all();
    for (at, (about, peer)) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|(other, _)| other.name != about.name), "{}", about.name);
        assert!(peer.is_some() || !about.get.is_empty(), "{}", about.name);
    }
}

#[test]
fn the_suite_notices_lies() {
    let noticed = |lie, test: fn(&dyn Peer, &str)| {
        assert!(
            std::panic::catch_unwind(|| test(&MemoryPeer::new(lie), &format!("{lie:?}"))).is_err(),
            "{lie:?}"
        );
        test(&MemoryPeer::new(Lie::None), "no lie");
    };
    noticed(Lie::FlippedBit, put_and_reopen);
    noticed(Lie::Forgotten, put_and_reopen);
    noticed(Lie::ShortScan, put_and_reopen);
    noticed(Lie::ShortScan, put_and_range);
    noticed(Lie::Kept, put_and_remove);
}

#[test]
fn a_failed_open_names_the_call() {
    each_peer(|peer, name| {
        let dir = TestDir::new(&format!("fail-{name}"));
        let open = Open { create: false, dir: dir.0.join("nowhere"), ..how(&dir) };
        let failure = peer.open(&open).err().expect("there is nothing to open").to_string();
        assert!(
            failure.starts_with(name) && failure.contains("open") || failure.contains("Open"),
            "{failure}"
        );
    });
}
