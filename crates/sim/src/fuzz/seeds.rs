//! What fuzzing begins with: valid inputs that the engine itself makes, so that they always have the current
//! format, and the finds of the coverage-guided fuzzer in `corpus/`.

use super::stored::{contents, holding, options};
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Merge, TableKind, WriteOptions};
use std::path::Path;

const PATH: &str = "fuzz.azk";

/// The seeds of a target, and its corpus.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = match target {
        "index" => RECORDS.iter().map(|record| record.to_vec()).collect(),
        "import" => TSV.iter().map(|text| text.as_bytes().to_vec()).collect(),
        "open" => databases(),
        "salvage" => databases().into_iter().flat_map(with_parts_gone).collect(),
        "restore" => databases().into_iter().filter_map(stream).collect(),
        "log" => logs(),
        "page" => pages(),
        "manifest" => manifests(),
        "parts" => parts(),
        _ => Vec::new(),
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    seeds.extend(files.iter().filter_map(|path| std::fs::read(path).ok()));
    seeds
}

const TSV: [&str; 4] =
    ["apple\tred\nbanana\tyellow\r\n", "a\\t\\n\\r\\\\\\0\\x41\t\\xff\n", "no tab\n", "a\tb\tc"];

/// Specifications of indexes, each with a key and a value.
const RECORDS: [&[u8]; 7] = [
    b"k[0..4], v[0..8]:u64le unique\nabcdef\n\x01\0\0\0\0\0\0\0more",
    b"v.split('\\t', 1):lower, v.split('\\t', 2):f64 where present\nk\nada\tLovelace\t-1.5e3",
    b"v./user/email:lower, v./tags/1\nk\n{\"tags\": [\"a\\u00e9\\ud83d\\ude00\", \"b\"], \"user\": {\"email\": \"A\"}}",
    b"v.'/a b':bool, v.json./n:i64\nk\n{\"x\": [{}, [null, true, -1.0e+2]], \"a b\": false, \"n\": -7}",
    b"v.msgpack./a/1:bytes, v.msgpack./b:f64\nk\n\x82\xa1a\x92\xc0\xc4\x02\0\xff\xa1b\xcb\x3f\xf0\0\0\0\0\0\0",
    b"v:text, v[1..]:u64\nk\n\x02a\0\xffb\0\x01\x03\0\0\0\0\0\0\0\x07",
    b"v:f32be, v[0..2]:i16le\nk\n\x3f\x80\0\0",
];

/// Small databases of different kinds: closed, or killed with a log to replay; with ranges and large values.
fn databases() -> Vec<Vec<u8>> {
    let make = |writes: fn(&Db) -> azekura::Result<()>, close: bool| -> Option<Vec<u8>> {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options()).ok()?;
        writes(&db).ok()?;
        if close {
            db.close().ok()?;
            return contents(&storage).ok();
        }
        let bytes = contents(&storage).ok();
        drop(db);
        bytes
    };
    let kinds: [fn(&Db) -> azekura::Result<()>; 3] = [few, many, mixed];
    let all = kinds.into_iter().flat_map(|writes| [make(writes, true), make(writes, false)]);
    all.flatten().collect()
}

fn few(db: &Db) -> azekura::Result<()> {
    let table = db.table("few", TableKind::Ordered)?;
    table.put(b"apple", b"red")?;
    db.table("none", TableKind::Hash)?;
    table.put(b"banana", b"yellow")
}

/// Records of one width, in more than one run.
fn many(db: &Db) -> azekura::Result<()> {
    let table = db.table("many", TableKind::Hash)?;
    for round in 0..2u64 {
        let mut txn = db.write();
        for i in 0..700u64 {
            txn.put(&table, &(i * 3 + round).to_be_bytes(), &i.to_le_bytes())?;
        }
        txn.commit()?;
        db.flush()?;
    }
    let sums = db.table("sums", TableKind::Ordered)?;
    for _ in 0..2 {
        sums.merge_many((0..300u64).map(|i| (i.to_be_bytes(), Merge::AddU64(i))))?;
        sums.put(b"text", b"no number")?;
        db.flush()?;
        sums.merge(b"text", Merge::AddU64(1))?;
    }
    let (lists, sets) = (db.table("lists", TableKind::Ordered)?, db.table("sets", TableKind::Hash)?);
    for _ in 0..2 {
        lists.merge_many((0..300u64).map(|i| (i.to_be_bytes(), Merge::Append(b"more"))))?;
        lists.merge(b"apart", Merge::Append(&[7; 10_000]))?;
        sets.merge_many(
            (0..300u64).map(|i| (i.to_be_bytes(), Merge::Union { width: 2, elements: b"bbaa" })),
        )?;
        sets.put(b"odd", b"odd")?;
        db.flush()?;
        sets.merge(b"odd", Merge::Union { width: 2, elements: b"cc" })?;
    }
    table.put(b"in the log", b"only")
}

/// Records of all widths, deletes, a range delete, large values, and a transaction over two tables.
fn mixed(db: &Db) -> azekura::Result<()> {
    let tables = [db.table("ordered", TableKind::Ordered)?, db.table("hash", TableKind::Hash)?];
    for round in 0..3u64 {
        let mut txn =
            db.write_with(WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() });
        for i in 0..40u64 {
            let key = format!("key {i}{}", "+".repeat(usize::try_from(i % 23).unwrap_or(0)));
            let len = if i == 7 { 3000 } else { i * 3 + round };
            txn.put(
                &tables[usize::from(i % 3 == 0)],
                key.as_bytes(),
                &vec![b'v'; usize::try_from(len).unwrap_or(0)],
            )?;
        }
        txn.remove(&tables[1], b"key 3+++")?;
        txn.remove_range(&tables[0], "key 31".."key 34")?;
        txn.commit()?;
        if round < 2 {
            db.flush()?;
        }
    }
    Ok(())
}

/// A database, and the same without both superblocks, without one of them, and without its end.
fn with_parts_gone(file: Vec<u8>) -> [Vec<u8>; 4] {
    let zeroed = |range: std::ops::Range<usize>| {
        let mut bytes = file.clone();
        bytes[range].fill(0);
        bytes
    };
    [zeroed(0..8192), zeroed(0..4096), file[..file.len() * 3 / 4].to_vec(), file]
}

/// The stream of a backup of a database.
fn stream(file: Vec<u8>) -> Option<Vec<u8>> {
    let storage = holding(&file).ok()?;
    let db = Db::open_on(&storage, PATH, options()).ok()?;
    let mut stream = Vec::new();
    db.backup_to(&mut stream, |_| {}).ok()?;
    Some(stream)
}

/// The log of each database, from its first frame on.
fn logs() -> Vec<Vec<u8>> {
    let log_of = |file: Vec<u8>| {
        let at = (8192..file.len()).step_by(4096).find(|&at| file[at + 4..].starts_with(b"AZLF"))?;
        let end = file.len().min(at + (64 << 10));
        Some(file[at..end].to_vec())
    };
    databases().into_iter().filter_map(log_of).collect()
}

/// Blocks that may be pages: the fifth byte is a page type.
fn pages() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for file in databases() {
        for at in (8192..file.len()).step_by(4096) {
            let page = &file[at..file.len().min(at + 16_384)];
            if page.len() > 64 && page[4] == 1 && page[6] != 0 {
                out.push(page.to_vec());
            }
        }
    }
    out
}

#[cfg(any(fuzzing, azekura_canary))]
fn manifests() -> Vec<Vec<u8>> {
    databases().iter().filter_map(|file| azekura::fuzzing::manifest_of(file)).collect()
}

#[cfg(not(any(fuzzing, azekura_canary)))]
fn manifests() -> Vec<Vec<u8>> {
    Vec::new()
}

/// Superblocks, and the first records of logs.
fn parts() -> Vec<Vec<u8>> {
    let superblocks = databases().into_iter().map(|file| file[..file.len().min(4096)].to_vec());
    let records = logs().into_iter().filter_map(|log| {
        let len = u64::from_le_bytes(log.get(64..72)?.try_into().ok()?);
        Some(log.get(72..72 + usize::try_from(len).ok()?)?.to_vec())
    });
    superblocks.chain(records).collect()
}
