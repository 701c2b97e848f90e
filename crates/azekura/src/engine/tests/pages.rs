//! Pages in the file's mapping and in the page cache: small ones, which are read and not written, and parted
//! ones.

use super::*;
use crate::base::key::SortKey;
use crate::format::block::{Block, Tag};
use crate::format::manifest::RunInfo;
use crate::format::ranges::Ranges;
use crate::run::label::Origin;
use crate::run::writer::RunWriter;
use crate::run::{Guides, PageSource, Run, find_held};
use crate::space::Extent;

fn key(i: u32) -> Vec<u8> {
    format!("{:>width$}", i, width = 10 + (i % 7) as usize).into_bytes()
}

fn value(i: u32) -> Vec<u8> {
    vec![i as u8; (i % 90) as usize]
}

/// A run of text keys, in small pages or in those that the engine writes.
fn run_of(db: &Db, keys: &[Vec<u8>], small: bool) -> RunInfo {
    let engine = &db.engine;
    let origin = Origin { table: 1, kind: TableKind::Ordered, name: "t".into(), newest: 0, oldest: true };
    let mut writer = RunWriter::new(&engine.store, engine.ids.next(), origin, 0);
    if small {
        writer = writer.of_small_pages();
    }
    let mut block = Block::new(None);
    for (i, key) in (0..).zip(keys) {
        block.push(key, Tag::Put, &value(i));
    }
    writer.append(&block).unwrap();
    writer.finish(&Ranges::default(), None, true).unwrap().unwrap()
}

fn sorted_keys(n: u32) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..n).map(key).collect();
    keys.sort_unstable();
    keys
}

/// Every record is found, when its page is read and later. (Without guides a page is checked more than once.)
fn expect_all(run: &Run, keys: &[Vec<u8>], what: &str) {
    for round in 0..3 {
        for (i, key) in (0..).zip(keys) {
            let page = run.meta().unwrap().page_of(SortKey::new(key)).unwrap();
            let (handle, sought) = (run.page(page).unwrap(), SortKey::new(key));
            let guess = handle.prefetch_key(sought, true);
            let found = find_held(page, handle, guess, sought, |hit| hit.page[hit.value.clone()].to_vec());
            assert_eq!(found.as_deref(), Some(&value(i)[..]), "key {i}, round {round}, {what}");
        }
    }
}

/// Calls `test` with databases that are read by a mapping, by one without memory for guides, and by a cache.
fn all(name: &str, test: impl Fn(&Db, &str)) {
    let path = std::env::temp_dir().join(format!("azekura-{name}-{}.azk", std::process::id()));
    for how in ["mapped", "without guides", "cached"] {
        let db = Db::open(&path, Options::new().mapped(how != "cached").background_merges(false)).unwrap();
        test(&db, how);
        db.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

fn open(db: &Db, how: &str, info: RunInfo) -> Run {
    let mut store = db.engine.store.clone();
    if let (PageSource::Mapped { guides, .. }, "without guides") = (&mut store.pages, how) {
        *guides = Guides::new(0);
    }
    Run::new(info, &store, Vec::new())
}

#[test]
fn a_handle_that_writes_enters_less_into_the_mapping_at_a_time() {
    let path = std::env::temp_dir().join(format!("azekura-entered-{}.azk", std::process::id()));
    let entered = |db: &Db| match &db.engine.store.pages {
        PageSource::Mapped { mapping, .. } => mapping.stretch_of(0, u64::MAX).end,
        PageSource::Cached(_) => 0,
    };
    let db = Db::open(&path, Options::new()).unwrap();
    let before = entered(&db);
    db.table("t", TableKind::Ordered).unwrap().put(b"key", b"value").unwrap();
    // (Not every system maps files.)
    assert!(before == 0 || entered(&db) < before);
    db.close().unwrap();
    let db = Db::open(&path, Options::new().create(false)).unwrap();
    assert_eq!(db.open_table("t").unwrap().get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(entered(&db), before, "it only reads");
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn pages_of_all_shapes_are_read() {
    all("shapes", |db, how| {
        let long = |i: u32| [key(i), vec![b'x'; 20_000 * usize::from(i.is_multiple_of(400))]].concat();
        let fixed = |i: u32| (u64::from(i) * 0x0123_4567_89ab).to_be_bytes().to_vec();
        let shapes: [&dyn Fn(u32) -> Vec<u8>; 2] = [&long, &fixed];
        for (n, shape) in shapes.into_iter().enumerate() {
            let mut keys: Vec<Vec<u8>> = (0..3_000).map(shape).collect();
            keys.sort_unstable();
            let run = open(db, how, run_of(db, &keys, false));
            expect_all(&run, &keys, &format!("{how}, shape {n}"));
            run.free_on_drop();
        }
    });
}

#[test]
fn small_pages_are_read() {
    all("small-pages", |db, how| {
        let keys = sorted_keys(3_000);
        let info = run_of(db, &keys, true);
        assert!(info.page_bytes == 4096 && info.units > 20, "{} units", info.units);
        let run = open(db, how, info);
        expect_all(&run, &keys, how);
        run.free_on_drop();
    });
}

/// A move may part a page. What stands together then has all columns, or not, and all of the heap, or not.
#[test]
fn parted_pages_are_read_whole() {
    all("parted-pages", |db, how| {
        let keys = sorted_keys(1_000);
        let whole = run_of(db, &keys, false);
        let [extent] = whole.extents[..] else { panic!("{:?}", whole.extents) };
        assert!(whole.units >= 3, "{} units", whole.units);
        for at in (4096..extent.len).step_by(4096) {
            let mut info = whole.clone();
            let (first, second) =
                (Extent { len: at, ..extent }, Extent { offset: extent.offset + at, len: extent.len - at });
            info.extents = vec![first, second];
            expect_all(&open(db, how, info), &keys, &format!("{how}, parted at {at}"));
        }
        open(db, how, whole).free_on_drop();
    });
}

/// The last page is cut behind what is used of it: what is used may end with zeroes.
#[test]
fn values_of_zeroes_at_the_end_of_a_run_are_read() {
    all("zeroes", |db, how| {
        let t = db.table("t", TableKind::Hash).unwrap();
        for n in 1..40usize {
            t.clear().unwrap();
            t.put_many((0..n as u32).map(|i| (i.to_be_bytes(), vec![0; 300 + i as usize % 2]))).unwrap();
            db.compact().unwrap();
            for i in 0..n as u32 {
                let value = t.get(&i.to_be_bytes()).unwrap();
                assert_eq!(value, Some(vec![0; 300 + i as usize % 2]), "key {i} of {n}, {how}");
            }
        }
    });
}
