//! The fuzz targets: hostile bytes go in, and only values and errors may come out. `sim fuzz` and the
//! coverage-guided `sim-fuzz` both run these.
//!
//! In builds with `--cfg fuzzing` checksums are ignored, so that damage gets past them, and the readers of
//! single parts of the file can be called alone. Builds with `--cfg azekura_canary` have all of this too;
//! they ignore checksums if `AZEKURA_CANARY` is `fuzzing`. Other builds have fewer targets.

mod mutate;
mod seeds;
mod stored;

pub use mutate::mutate;
pub use seeds::seeds;
pub use stored::{contents, holding, options};

use crate::disk::Disk;
use crate::memory;
use azekura::storage::{MemStorage, Storage};
use azekura::{Db, Error, IndexSpec, TableKind};
use stored::PATH;

/// A target: its name, and what it does with an input.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, which is also that of its folder in the corpus.
    pub name: &'static str,
    /// Takes any bytes. `Err`, or a panic, means a broken promise.
    pub run: fn(&[u8]) -> Result<(), String>,
}

/// What a target may allocate at once, beyond eight times its input: buffers and caches of fixed size.
const ALLOWANCE_BYTES: usize = 9 << 20;

impl Target {
    /// Takes one input, and watches the allocations.
    ///
    /// # Errors
    /// The broken promise. A panic passes through.
    pub fn trial(&self, input: &[u8]) -> Result<(), String> {
        memory::forget_largest();
        (self.run)(input)?;
        let largest = memory::largest();
        if largest > 8 * input.len() + ALLOWANCE_BYTES {
            return Err(format!("{largest} bytes were allocated at once for {} of input", input.len()));
        }
        Ok(())
    }
}

/// All targets of this build.
pub const TARGETS: &[Target] = &[
    Target { name: "open", run: open },
    Target { name: "salvage", run: salvage },
    Target { name: "import", run: import },
    Target { name: "restore", run: restore },
    Target { name: "index", run: index },
    #[cfg(any(fuzzing, azekura_canary))]
    Target { name: "log", run: |b| whole(azekura::fuzzing::log, b) },
    #[cfg(any(fuzzing, azekura_canary))]
    Target { name: "page", run: |b| whole(azekura::fuzzing::page, b) },
    #[cfg(any(fuzzing, azekura_canary))]
    Target { name: "manifest", run: |b| whole(azekura::fuzzing::manifest, b) },
    #[cfg(any(fuzzing, azekura_canary))]
    Target { name: "parts", run: |b| whole(azekura::fuzzing::parts, b) },
];

#[cfg(any(fuzzing, azekura_canary))]
fn whole(take: fn(&[u8]), input: &[u8]) -> Result<(), String> {
    take(input);
    Ok(())
}

/// How many records of a table are read: a forged count must not keep a fuzzer busy.
const RECORDS_MAX: usize = 20_000;

/// The stream of a backup is hostile: restored, and what comes of it is looked at.
fn restore(bytes: &[u8]) -> Result<(), String> {
    let storage = MemStorage::default();
    let restored = azekura::restore_stream_on(&storage, &mut &bytes[..], PATH, |_| {});
    match restored.and_then(|_| Db::open_on(&storage, PATH, options().create(false).read_only(true))) {
        Ok(db) => look(&db),
        Err(e) => expected(&e),
    }
}

/// The whole file is hostile. It is opened to read (also by a mapping) and to write, checked, scanned in both
/// directions, looked up in, written to, and merged.
fn open(bytes: &[u8]) -> Result<(), String> {
    let mapped = Disk::with_file(PATH, bytes);
    mapped.set_mapping();
    let [reading, writing] = [holding(bytes), holding(bytes)];
    let ways: [(Box<dyn Storage>, bool); 3] = [
        (Box::new(reading.map_err(|e| e.to_string())?), true),
        (Box::new(writing.map_err(|e| e.to_string())?), false),
        (Box::new(mapped), true),
    ];
    for (storage, read_only) in ways {
        let db = match Db::open_on(&*storage, PATH, options().create(false).read_only(read_only)) {
            Ok(db) => db,
            Err(e) => {
                expected(&e)?;
                continue;
            }
        };
        look(&db)?;
        if !read_only {
            change(&db)?;
        }
    }
    Ok(())
}

/// Whether a hostile file may give this error.
fn expected(error: &Error) -> Result<(), String> {
    match error {
        Error::Corrupt { .. }
        | Error::NotADatabase { .. }
        | Error::NewerVersion { .. }
        | Error::Truncated { .. } => Ok(()),
        // Its superblock says that it is a mirror, or was replaced.
        Error::Open { kind: std::io::ErrorKind::Other, .. } => Ok(()),
        // An operand on what is no number.
        Error::WrongType { .. } => Ok(()),
        // Lengths and offsets near the limits of their types reach the storage, which refuses them.
        Error::Io { .. } | Error::NoSpace { .. } | Error::Invalid { .. } | Error::Poisoned { .. } => Ok(()),
        e => Err(format!("a hostile file gives {e:?}")),
    }
}

fn look(db: &Db) -> Result<(), String> {
    if let Err(e) = db.check(|_| {}) {
        expected(&e)?;
    }
    for info in db.tables() {
        let Ok(table) = db.open_table(&info.name) else { continue };
        let mut keys = Vec::new();
        if let Ok(mut cursor) = table.cursor() {
            for _ in 0..RECORDS_MAX {
                match cursor.next() {
                    Ok(Some((key, value))) => {
                        if keys.len() < 50 {
                            keys.push(key.to_vec());
                        }
                        let len = value.len();
                        match value.bytes() {
                            Ok(bytes) if bytes.len() == len => {}
                            Ok(bytes) => return Err(format!("a value of {len} bytes has {}", bytes.len())),
                            Err(e) => expected(&e)?,
                        }
                    }
                    Ok(None) => break,
                    Err(e) => {
                        expected(&e)?;
                        break;
                    }
                }
            }
            for _ in 0..RECORDS_MAX {
                match cursor.prev().and_then(|r| r.map(|(_, value)| value.bytes().map(|_| ())).transpose()) {
                    Ok(Some(())) => {}
                    Ok(None) => break,
                    Err(e) => {
                        expected(&e)?;
                        break;
                    }
                }
            }
        }
        keys.push(b"absent".to_vec());
        for key in &keys {
            if let Err(e) = table.get(key) {
                expected(&e)?;
            }
        }
        if let Err(e) = table.get_many(&keys) {
            expected(&e)?;
        }
    }
    Ok(())
}

fn change(db: &Db) -> Result<(), String> {
    let changed = || -> azekura::Result<()> {
        for info in db.tables() {
            db.open_table(&info.name)?.put(b"new", &[7; 2000])?;
        }
        db.compact()?;
        db.shrink(|_| {}).map(|_| ())
    };
    if let Err(e) = changed() {
        expected(&e)?;
    }
    Ok(())
}

/// The bytes are a damaged file. What can be saved goes to a new database, which must be sound.
fn salvage(bytes: &[u8]) -> Result<(), String> {
    let (storage, fresh) = (holding(bytes).map_err(|e| e.to_string())?, MemStorage::default());
    let out = Db::open_on(&fresh, PATH, options()).map_err(|e| e.to_string())?;
    match azekura::salvage_on(&storage, PATH, &out, |_| {}) {
        Ok(report) => {
            let checked = out.check(|_| {}).map_err(|e| format!("the new database: {e}"))?;
            if let Some(problem) = checked.problems.first() {
                return Err(format!("the new database is not sound: {problem}"));
            }
            let records: u64 = report.tables.iter().map(|t| t.records).sum();
            if records != checked.records {
                return Err(format!("{records} records are reported, {} are there", checked.records));
            }
            Ok(())
        }
        Err(e) => expected(&e),
    }
}

/// A hostile TSV stream: what is imported before a bad line is there, and exported lines can be read back.
fn import(bytes: &[u8]) -> Result<(), String> {
    let storage = MemStorage::default();
    let failed = |e: Error| e.to_string();
    let db = Db::open_on(&storage, PATH, options()).map_err(failed)?;
    let table = db.table("t", TableKind::Ordered).map_err(failed)?;
    let (rows, bad) = azekura_cli::import_from(&db, &table, &mut &bytes[..]).map_err(failed)?;
    let lines = bytes.iter().filter(|&&b| b == b'\n').count() as u64 + u64::from(!bytes.ends_with(b"\n"));
    let count = table.count().map_err(failed)?;
    if rows > lines || count > rows || (bad.is_none() && rows + u64::from(bytes.is_empty()) < lines) {
        return Err(format!("{lines} lines, {rows} imported, {count} there, {bad:?}"));
    }
    Ok(())
}

/// A specification of an index, a key and a value, with line feeds between them. The fields of that record
/// are found, and read back from an entry that may be damaged.
fn index(bytes: &[u8]) -> Result<(), String> {
    let mut lines = bytes.splitn(3, |&b| b == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (text, key, value) = (String::from_utf8_lossy(line()), line(), line());
    let Ok(spec) = IndexSpec::parse(&text) else { return Ok(()) };
    let canonical = spec.to_string();
    if IndexSpec::parse(&canonical).ok().as_ref() != Some(&spec) {
        return Err(format!("{text:?} is written as {canonical:?}, which is another specification"));
    }
    let mut fields = Vec::new();
    match spec.fields(key, value, &mut fields) {
        Ok(true) => {
            let len =
                spec.fields_len(&fields).map_err(|e| format!("{text:?} makes an entry that is none: {e}"))?;
            if len != fields.len() {
                return Err(format!("{text:?} makes {} bytes, and reads {len}", fields.len()));
            }
        }
        Ok(false) if fields.is_empty() => {}
        Ok(false) => return Err(format!("{text:?} has no entry, and makes {} bytes", fields.len())),
        Err(Error::TooLarge { .. }) => {}
        Err(e) => return Err(format!("{text:?} gives {e:?}")),
    }
    std::hint::black_box(spec.is_checked(value));
    match spec.fields_len(value) {
        Ok(len) if len > value.len() => Err(format!("{text:?} finds {len} of {} bytes", value.len())),
        Ok(_) | Err(Error::Corrupt { .. }) => Ok(()),
        Err(e) => Err(format!("a damaged entry gives {e:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_stands_them() {
        for target in TARGETS {
            let seeds = seeds(target.name);
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                (target.run)(&seed).unwrap();
            }
        }
    }
}
