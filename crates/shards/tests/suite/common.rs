//! Sets for tests.

use azekura_shards::{Draft, Result, ShardFile, Spec, TABLE, hash_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Records, by their keys.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A folder that goes with the test.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    pub fn set(&self) -> PathBuf {
        self.path("t.azs")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A sequence of numbers below a limit, from a seed.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut x = seed;
    move |below| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % below
    }
}

/// Records with keys of all lengths, many of eight bytes.
pub fn some_records(count: u64, seed: u64) -> Records {
    let mut random = random(seed);
    (0..count)
        .map(|i| {
            let key = match random(4) {
                0 => format!("key {i} {}", "k".repeat(usize::try_from(random(40)).unwrap())).into_bytes(),
                1 if i == 1 => Vec::new(),
                _ => (i << 20 | random(1 << 20)).to_be_bytes().to_vec(),
            };
            let len = if random(50) == 0 { 3000 } else { random(30) };
            let value = (0..len).map(|_| u8::try_from(random(256)).unwrap()).collect();
            (key, value)
        })
        .collect()
}

/// The records of each shard, in its order.
pub fn divided<'a>(spec: &Spec, records: &'a Records) -> Vec<Vec<(&'a [u8], &'a [u8])>> {
    let mut shards = vec![Vec::new(); usize::try_from(spec.shards).unwrap()];
    let each = records.len().div_ceil(shards.len()).max(1);
    for (i, (key, value)) in records.iter().enumerate() {
        let shard = spec.shard_of(key).map_or(i / each, |shard| usize::try_from(shard).unwrap());
        shards[shard].push((key.as_slice(), value.as_slice()));
    }
    if spec.kind == azekura::TableKind::Hash {
        shards.iter_mut().for_each(|shard| shard.sort_by_key(|(key, _)| hash_of(key, spec.hash_seed)));
    }
    shards
}

/// Writes all shards of a draft under one attempt's name.
pub fn write_all(draft: &Draft, records: &Records, attempt: &str) -> Result<Vec<ShardFile>> {
    let mut files = Vec::new();
    for (shard, own) in (0..).zip(divided(draft.spec(), records)) {
        let mut writer = draft.writer(shard, attempt)?;
        own.iter().try_for_each(|(key, value)| writer.put(key, value))?;
        files.push(writer.finish()?);
    }
    Ok(files)
}

/// Writes a version.
pub fn write_version(root: &Path, spec: &Spec, records: &Records) -> u32 {
    let draft = Draft::begin(root, spec).expect("a draft");
    let files = write_all(&draft, records, "a").expect("shards");
    draft.commit(&files).expect("a version")
}

/// The names in a folder, in order. The file that is locked stays in every set.
pub fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).expect("a folder");
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "set.lock");
    names.sort();
    names
}

/// The records of a database that was made by hand.
pub fn single(path: &Path) -> Records {
    let db = azekura::Options::new().read_only(true).open(path).expect("a shard");
    db.open_table(TABLE).unwrap().iter().unwrap().map(|record| record.unwrap()).collect()
}
