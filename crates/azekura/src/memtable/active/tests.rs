//! The buffer compared with a model, with hard keys, when it is full, and while it is read and written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        usize_of64(self.next() >> 16) % n
    }
}

/// The seed of a test's random choices: `AZEKURA_SEED` if set, else the time. It is printed.
fn seed(test: &str) -> u64 {
    let seed = match std::env::var("AZEKURA_SEED") {
        Ok(text) => text.parse().expect("AZEKURA_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_secs() << 20 | u64::from(now.subsec_micros())
        }
    };
    println!("{test}: AZEKURA_SEED={seed}");
    seed | 1
}

fn put(list: &Active, key: &[u8], seq: u64, value: &[u8]) -> bool {
    // SAFETY: each test inserts from one thread only.
    unsafe { list.insert(key, seq, value.len().to_le_bytes()[0], value) }.is_some()
}

/// A key that collides with others in all the ways that heads, padding and lengths allow.
fn hard_key(rng: &mut Rng) -> Vec<u8> {
    let fill = *[0u8, 0, 1, b'a', 255].get(rng.below(5)).unwrap();
    let len = match rng.below(20) {
        0 => 0,
        1 => 65_544,
        2 => rng.below(3_000),
        3..=8 => 8,
        9..=12 => 7 + rng.below(3),
        _ => rng.below(24),
    };
    let mut key = vec![fill; len];
    for _ in 0..rng.below(3) {
        if !key.is_empty() {
            let at = key.len() - 1 - rng.below(key.len().min(12));
            key[at] = *[0u8, 1, b'a', 255].get(rng.below(4)).unwrap();
        }
    }
    key
}

type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Vec<u8>>;

fn pair<'a>((key, value): (&'a (Vec<u8>, Reverse<u64>), &'a Vec<u8>)) -> (&'a [u8], u64, &'a [u8]) {
    (&key.0, key.1.0, value)
}

fn seen<'a>(entry: Option<Entry<'a>>) -> Option<(&'a [u8], u64, &'a [u8])> {
    entry.map(|e| {
        assert_eq!(e.kind, e.value.len().to_le_bytes()[0]);
        (e.key, e.seq, e.value)
    })
}

fn compare_at(list: &Active, model: &Model, key: &[u8], seq: u64) {
    let from = (key.to_vec(), Reverse(seq));
    let found = model.range(&from..).next().map(pair).filter(|e| e.0 == key);
    assert_eq!(seen(list.get(key, seq)), found, "get {key:?} at {seq}");

    let newest = (key.to_vec(), Reverse(u64::MAX));
    let mut cursor = list.cursor();
    cursor.seek_ge(key);
    assert_eq!(seen(cursor.entry()), model.range(&newest..).next().map(pair), "seek_ge {key:?}");
    cursor.seek_lt(key);
    let before = (Bound::Unbounded, Bound::Excluded(&newest));
    assert_eq!(seen(cursor.entry()), model.range(before).next_back().map(pair), "seek_lt {key:?}");
}

fn compare_walks(list: &Active, model: &Model) {
    let mut cursor = list.cursor();
    assert_eq!(cursor.entry(), None);
    cursor.next();
    cursor.prev();
    assert_eq!(cursor.entry(), None);
    cursor.seek_first();
    for entry in model.iter().map(pair) {
        assert_eq!(seen(cursor.entry()), Some(entry));
        cursor.next();
    }
    assert_eq!(cursor.entry(), None);
    cursor.seek_last();
    for entry in model.iter().rev().map(pair) {
        assert_eq!(seen(cursor.entry()), Some(entry));
        cursor.prev();
    }
    assert_eq!(cursor.entry(), None);
}

#[test]
fn it_agrees_with_a_model_on_hard_keys() {
    let mut rng = Rng(seed("it_agrees_with_a_model_on_hard_keys"));
    for _ in 0..20 {
        let (list, mut model) = (Active::new(8 << 20), Model::new());
        let mut seq = 0;
        for _ in 0..1 + rng.below(1_500) {
            seq += u64::from(rng.below(4) == 0);
            // Mostly rising, as in commits. Sometimes any number, which the order must bear too.
            let seq = if rng.below(10) == 0 { rng.next() } else { seq };
            let key = match rng.below(4) {
                0 if !model.is_empty() => list.get_some(&mut rng),
                _ => hard_key(&mut rng),
            };
            let value = vec![7; rng.below(40)];
            if model.contains_key(&(key.clone(), Reverse(seq))) {
                continue;
            }
            if put(&list, &key, seq, &value) {
                model.insert((key, Reverse(seq)), value);
            }
        }
        assert_eq!(list.len(), model.len());
        for _ in 0..400 {
            let key = if rng.below(2) == 0 { hard_key(&mut rng) } else { list.get_some(&mut rng) };
            let at = match rng.below(3) {
                0 => u64::MAX,
                1 => rng.next(),
                _ => u64::from(u32_of(rng.below(400))),
            };
            compare_at(&list, &model, &key, at);
        }
        compare_walks(&list, &model);
    }
}

impl Active {
    /// The key of an entry near a random key, or that random key.
    fn get_some(&self, rng: &mut Rng) -> Vec<u8> {
        let key = hard_key(rng);
        let mut cursor = self.cursor();
        cursor.seek_ge(&key);
        cursor.entry().map_or(key, |e| e.key.to_vec())
    }
}

#[test]
fn padding_does_not_confuse_keys() {
    let list = Active::new(1 << 20);
    let long: Vec<u8> = vec![0; 65_536];
    let keys: [&[u8]; 9] =
        [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0", &long, b"a", b"a\0", b"a\0\0"];
    for i in [4, 0, 8, 2, 6, 1, 5, 3, 7] {
        assert_eq!(list.get(keys[i], 9), None);
        assert!(put(&list, keys[i], 5, &[i.to_le_bytes()[0]]));
    }
    let mut cursor = list.cursor();
    cursor.seek_first();
    for (i, &key) in keys.iter().enumerate() {
        let entry = cursor.entry().unwrap();
        assert_eq!((entry.key, entry.value), (key, &[i.to_le_bytes()[0]][..]));
        assert_eq!(list.get(key, 5), Some(entry));
        assert_eq!(list.get(key, 4), None);
        cursor.next();
    }
}

#[test]
fn the_later_of_two_equal_versions_wins() {
    let list = Active::new(1 << 16);
    for key in [&b"k"[..], b"a key with a tail"] {
        for value in [b"1", b"2", b"3"] {
            assert!(put(&list, key, 4, value));
        }
        assert_eq!(list.get(key, 4).unwrap().value, b"3");
    }
    let mut cursor = list.cursor();
    cursor.seek_ge(b"k");
    let mut values = Vec::new();
    while let Some(entry) = cursor.entry() {
        values.push(entry.value[0]);
        cursor.next();
    }
    assert_eq!(values, b"321");
    cursor.seek_last();
    let mut values = Vec::new();
    while let Some(entry) = cursor.entry() {
        values.push(entry.value[0]);
        cursor.prev();
    }
    assert_eq!(values, b"123123");
}

#[test]
fn the_largest_head_is_not_the_end() {
    let list = Active::new(1 << 16);
    for key in [&[255; 8][..], &[255; 20], &[255; 7]] {
        assert!(put(&list, key, u64::MAX, b"v"));
        assert!(put(&list, key, 0, b"w"));
    }
    assert_eq!(list.get(&[255; 20], 1).unwrap().value, b"w");
    let mut cursor = list.cursor();
    cursor.seek_last();
    assert_eq!(cursor.entry().unwrap().key.len(), 20);
    cursor.seek_ge(&[255; 21]);
    assert_eq!(cursor.entry(), None);
}

#[test]
fn an_insert_that_does_not_fit_changes_nothing() {
    let mut rng = Rng(seed("an_insert_that_does_not_fit_changes_nothing"));
    assert!(!put(&Active::new(0), b"", 1, b""));
    let (list, mut model) = (Active::new(50_000), Model::new());
    let mut refused = 0;
    while refused < 200 {
        let (key, value) = (rng.next().to_be_bytes().to_vec(), vec![1; rng.below(300)]);
        let before = (list.len(), list.used_bytes());
        if put(&list, &key, 1, &value) {
            model.insert((key, Reverse(1)), value);
        } else {
            assert!(!list.fits(1, 8 + value.len()));
            assert_eq!((list.len(), list.used_bytes()), before);
            assert_eq!(list.get(&key, 1), None);
            refused += 1;
        }
    }
    assert!(list.used_bytes() > 49_900);
    compare_walks(&list, &model);
}

#[test]
fn what_is_said_to_fit_fits() {
    let mut rng = Rng(seed("what_is_said_to_fit_fits"));
    for _ in 0..300 {
        let list = Active::new(2_000 + rng.below(20_000));
        let (key_bytes, value_bytes) = (rng.below(12), rng.below(30));
        for _ in 0..rng.below(100) {
            put(&list, &rng.next().to_be_bytes(), 1, b"some");
        }
        let mut n = 0;
        while list.fits(n + 1, (n + 1) * (key_bytes + value_bytes)) {
            n += 1;
        }
        for _ in 0..n {
            let key = [rng.next().to_be_bytes(), rng.next().to_be_bytes()].concat();
            assert!(put(&list, &key[..key_bytes], 1, &vec![0; value_bytes]));
        }
    }
}

#[test]
fn a_reset_buffer_is_as_new() {
    let mut list = Active::new(1 << 16);
    for round in 0..3u8 {
        assert_eq!((list.len(), list.get(b"short", 9), list.get(&[round; 40], 9)), (0, None, None));
        compare_walks(&list, &Model::new());
        let mut n = 0u64;
        while put(&list, &vec![255; usize_of64(n % 40)], n, &[255; 30]) {
            n += 1;
        }
        list.reset();
        // The padding has to be zeros again.
        assert!(put(&list, b"b", 1, b"1") && put(&list, b"b\0", 1, b"2") && put(&list, b"a\0\0", 1, b"0"));
        let mut cursor = list.cursor();
        cursor.seek_first();
        for value in [b"0", b"1", b"2"] {
            assert_eq!(cursor.entry().unwrap().value, value);
            cursor.next();
        }
        assert_eq!(cursor.entry(), None);
        assert_eq!(list.len(), 3);
        list.reset();
    }
}

#[test]
fn absent_keys_seldom_pass_the_filter() {
    let list = Active::new(2 << 20);
    let mut n = 0u64;
    while put(&list, &(n * 3).to_be_bytes(), 1, &[0; 100]) {
        n += 1;
    }
    assert!((0..n).all(|i| list.may_contain(key_hash(&(i * 3).to_be_bytes()))));
    let passed = (0..n).filter(|i| list.may_contain(key_hash(&(i * 3 + 1).to_be_bytes()))).count();
    assert!(usize_of64(n) > 15_000 && passed * 200 < usize_of64(n), "{passed} of {n}");
}

/// Inserts keys and compares with a model. Gives the list back.
fn filled(keys: impl Iterator<Item = u64>) -> (Active, Vec<u64>) {
    let (list, mut model, mut heads) = (Active::new(1 << 20), Model::new(), Vec::new());
    for key in keys {
        if !put(&list, &key.to_be_bytes(), 1, &key.to_le_bytes()) {
            break;
        }
        model.insert((key.to_be_bytes().to_vec(), Reverse(1)), key.to_le_bytes().to_vec());
        heads.push(key);
    }
    assert_eq!(list.len(), model.len());
    compare_walks(&list, &model);
    for &key in &heads {
        assert_eq!(list.get(&key.to_be_bytes(), 1).unwrap().value, key.to_le_bytes());
        assert_eq!(list.get(&key.to_be_bytes(), 0), None);
    }
    (list, heads)
}

/// How many of the searches for some keys a finger leads to their places.
fn led(list: &Active, heads: &[u64]) -> usize {
    let leads = |&&head: &&u64| {
        let key = head.to_be_bytes();
        let place = SearchKey::new(&key, 1);
        list.search_near(&place).inspect(|&found| assert_eq!(found, list.search_from_top(&place))).is_some()
    };
    heads.iter().filter(leads).count()
}

#[test]
fn fingers_lead_to_scattered_keys() {
    let mut rng = Rng(seed("fingers_lead_to_scattered_keys"));
    let (mut list, heads) = filled(std::iter::repeat_with(|| rng.next()).take(20_000));
    assert!(led(&list, &heads) * 100 > heads.len() * 95);
    assert_eq!(list.side.writer.get_mut().aims, 0);
    list.reset();
    assert_eq!(led(&list, &heads), 0);
}

#[test]
fn fingers_are_aimed_at_the_keys_that_there_are() {
    let mut rng = Rng(seed("fingers_are_aimed_at_the_keys_that_there_are"));
    // 20,000 numbers in some order: all of them are in one slot at first.
    let (mut list, heads) = filled((0..20_000).map(|i| (1 << 40) + i * 7_919 % 20_011));
    assert!((1..=4).contains(&list.side.writer.get_mut().aims));
    assert!(led(&list, &heads) * 100 > heads.len() * 95);
    // Scattered ones come to the same list once it is used again.
    list.reset();
    assert!((0..2_000).all(|_| put(&list, &rng.next().to_be_bytes(), 1, b"again")));
    assert_eq!(list.side.writer.get_mut().aims, 0);
}

#[test]
fn fingers_that_lead_nowhere_are_given_up() {
    // Four heaps of numbers, each far narrower than a slot.
    let keys = (0..20_000u64).map(|i| (i % 4) << 60 | i * 7_919 % 20_011);
    let (mut list, heads) = filled(keys);
    assert_eq!(led(&list, &heads), 0);
    assert!(list.side.writer.get_mut().aims >= 2);
    // Many versions of a key stand before its neighbour.
    let (mut list, mut model) = (Active::new(1 << 20), Model::new());
    for seq in 1..=8_000u64 {
        for key in [b"hot", if seq % 100 == 0 { b"hou" } else { b"hos" }] {
            assert!(put(&list, key, seq, &seq.to_le_bytes()));
            model.insert((key.to_vec(), Reverse(seq)), seq.to_le_bytes().to_vec());
        }
    }
    compare_walks(&list, &model);
    for seq in [1, 99, 100, 4_000, 8_000] {
        compare_at(&list, &model, b"hou", seq);
        compare_at(&list, &model, b"hot", seq);
    }
    assert!(list.side.writer.get_mut().nested <= HEIGHT_MAX);
}

/// The writer's n-th commit has two entries: a key of its own, and a counter that all commits write.
fn shuffled_key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn read_while_written(list: &Active, visible: &AtomicU64, done: &AtomicBool, mut rng: Rng) {
    let mut rounds = 0;
    while !done.load(Ordering::Acquire) || rounds < 10 {
        rounds += 1;
        let seq = visible.load(Ordering::Acquire);
        if seq == 0 {
            continue;
        }
        assert_eq!(list.get(b"counter", seq).unwrap().value, seq.to_le_bytes());
        for _ in 0..50 {
            let n = 1 + rng.next() % seq;
            let entry = list.get(&shuffled_key(n), seq).expect("it was promised");
            assert_eq!((entry.seq, entry.value), (n, &n.to_le_bytes()[..]));
            assert_eq!(list.get(&shuffled_key(n), n - 1), None);
            let counted = list.get(b"counter", n).unwrap();
            assert_eq!(counted.value, n.to_le_bytes());
        }
        let mut cursor = list.cursor();
        cursor.seek_first();
        let (mut last, mut promised) = (None, 0);
        while let Some(entry) = cursor.entry() {
            let place = (entry.key, Reverse(entry.seq));
            assert!(last.is_none_or(|last| last < place), "out of order");
            assert_eq!(entry.value, entry.seq.to_le_bytes());
            promised += u64::from(entry.seq <= seq);
            last = Some(place);
            cursor.next();
        }
        assert_eq!(promised, 2 * seq);
        cursor.seek_lt(&rng.next().to_be_bytes());
        for _ in 0..20 {
            let Some(entry) = cursor.entry() else { break };
            cursor.prev();
            assert!(cursor.entry().is_none_or(|e| (e.key, Reverse(e.seq)) < (entry.key, Reverse(entry.seq))));
        }
    }
}

#[test]
fn readers_see_what_a_sequence_number_promises() {
    let seed = seed("readers_see_what_a_sequence_number_promises");
    let list = Active::new(1 << 20);
    let (visible, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 1..=3 {
            let (list, visible, done) = (&list, &visible, &done);
            scope.spawn(move || read_while_written(list, visible, done, Rng(seed ^ reader << 40)));
        }
        let mut n = 1;
        while list.fits(2, 40) {
            assert!(put(&list, &shuffled_key(n), n, &n.to_le_bytes()));
            assert!(put(&list, b"counter", n, &n.to_le_bytes()));
            visible.store(n, Ordering::Release);
            n += 1;
        }
        done.store(true, Ordering::Release);
        assert!(n > 10_000);
    });
}
