//! Every bit of a closed database of about 1 MiB, one after the other, judged as fast as possible.
//!
//! A handle that only reads, without threads of the engine, computes its answers only from the bytes that it
//! reads. There are several looks: opening, `check`, the scan of a table, the lookup of a key. Each is first
//! taken on the whole file, by a handle of its own, with a list of what it reads. If a flipped bit is not on
//! that list, then all that the look reads is unchanged, and so is its answer: the look need not be repeated.
//! All other looks are repeated, one after the other on one handle, from an empty cache. Opening decides
//! about everything, so after a flip in what it reads all looks are taken. If more than eight lookups are
//! affected, one in eight is made, and others for the next bit of the byte. So all of them have met the
//! damaged byte.
//!
//! To control this argument, one in [`CONTROL_EVERY`] flips is judged by all looks, as for random damage, and
//! must give the same.

use super::bit::flip;
use super::sample::{Outcome, Sample, guarded, is_refusal};
use super::view::{Reads, View};
use crate::disk::Disk;
use crate::judge::{PATH, Setting};
use crate::script::problems;
use azekura::{Db, Error, LazyValue, Table};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lookups are spread over this many bits.
const TURNS: u64 = 8;
/// A prime, so that the controls cover every bit of a byte.
const CONTROL_EVERY: u64 = 4999;
/// Absent keys of each table, between those that are present.
const ABSENT: usize = 200;
/// The block size of the index of lookups.
const BLOCK: u64 = 4096;

/// The database, and what each look at it reads.
pub(super) struct Every {
    pub(super) sample: Sample,
    bytes: Arc<[u8]>,
    opening: Reads,
    check: Reads,
    tables: Vec<Whole>,
    lookups: Vec<Lookup>,
    /// For each block of the file, which lookups read something of it.
    lookups_of: BTreeMap<u64, Vec<usize>>,
}

/// An undamaged table.
struct Whole {
    name: String,
    scan: Reads,
    /// In the order of a scan.
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A key, and its value.
struct Lookup {
    table: usize,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    reads: Reads,
}

impl Every {
    /// Takes each look at the undamaged database, and notes what it reads.
    pub(super) fn new() -> Result<Every, String> {
        let sample = Sample::of_a_mebibyte();
        let bytes: Arc<[u8]> = sample.disk.bytes(PATH).into();
        let view = View::watched(&bytes);
        let names: Vec<String> = open(&view).map_err(before)?.tables().into_iter().map(|t| t.name).collect();
        let opening = view.reads();
        let (check, wrong) = watch(&bytes, |db| Ok(problems(db)))?;
        if !wrong.is_empty() {
            return Err(before(format!("check says {wrong:?}")));
        }
        let (mut tables, mut lookups) = (Vec::new(), Vec::new());
        for name in names {
            let read = |db: &Db| db.open_table(&name)?.cursor()?.owned().collect::<Result<Vec<_>, Error>>();
            let (scan, records) = watch(&bytes, read)?;
            if !sample.holds(&name, &records) {
                return Err(before(format!("table {name:?} is not what was stored")));
            }
            lookups.extend(watch_lookups(&bytes, tables.len(), &name, &records)?);
            tables.push(Whole { name, scan, records });
        }
        let lookups_of = index(&lookups);
        Ok(Every { sample, bytes, opening, check, tables, lookups, lookups_of })
    }

    /// How many bits the database has.
    pub(super) fn bits(&self) -> u64 {
        self.bytes.len() as u64 * 8
    }

    /// Flips a bit, and takes the looks. `Err`: a look gave something wrong.
    pub(super) fn flip(&self, bit: u64) -> Result<Outcome, String> {
        let out = guarded(self.bytes.len() as u64, || self.look(bit))?;
        if bit.is_multiple_of(CONTROL_EVERY) {
            self.control(bit, &out)?;
        }
        Ok(out)
    }

    fn look(&self, bit: u64) -> Result<Outcome, String> {
        let at = bit / 8;
        let everything = self.opening.include(at);
        let lookups = self.lookups_at(at, everything);
        let scans: Vec<&Whole> = self.tables.iter().filter(|t| everything || t.scan.include(at)).collect();
        let checks = everything || self.check.include(at);
        let mut out = Outcome { state: Some(self.sample.last), ..Outcome::default() };
        if !checks && scans.is_empty() && lookups.is_empty() {
            return Ok(Outcome { unread: true, ..out });
        }
        let db = match open(&View::flipped(&self.bytes, bit)) {
            Ok(db) => db,
            Err(e) if is_refusal(&e) => return Ok(Outcome { refused: true, ..Outcome::default() }),
            Err(e) => return Err(format!("opening gives {e}")),
        };
        if checks {
            out.problems = problems(&db).len();
        }
        if !db.tables().iter().map(|t| &t.name).eq(self.tables.iter().map(|t| &t.name)) {
            return Err(format!("the tables {:?} were never together", db.tables()));
        }
        for whole in scans {
            let table = db.open_table(&whole.name).map_err(|e| e.to_string())?;
            whole.compare(&table, &mut out)?;
        }
        let tables: Vec<Table> = self
            .tables
            .iter()
            .map(|t| db.open_table(&t.name))
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let all = lookups.len() as u64 <= TURNS;
        let turn = |n: &u64| all || n % TURNS == bit % TURNS;
        for (_, &lookup) in (0..).zip(&lookups).filter(|(n, _)| turn(n)) {
            let lookup = &self.lookups[lookup];
            lookup.compare(&tables[lookup.table], &mut out)?;
        }
        if out.errors > 0 && out.problems == 0 {
            return Err(format!("check is silent, but {} reads failed", out.errors));
        }
        Ok(out)
    }

    /// The lookups that read a byte of the file, or all lookups.
    fn lookups_at(&self, at: u64, everything: bool) -> Vec<usize> {
        if everything {
            return (0..self.lookups.len()).collect();
        }
        let near = self.lookups_of.get(&(at / BLOCK)).into_iter().flatten();
        near.copied().filter(|&n| self.lookups[n].reads.include(at)).collect()
    }

    /// Takes every look, and checks that the few looks gave the same result.
    fn control(&self, bit: u64, out: &Outcome) -> Result<(), String> {
        let disk = Disk::with_file(PATH, &self.bytes);
        flip(&disk, bit);
        let all = self.sample.look(&disk, true)?;
        let same = out.refused == all.refused && (out.problems > 0) == (all.problems > 0);
        if same && (out.errors == 0 || all.errors > 0) && (!out.unread || all.is_whole()) {
            return Ok(());
        }
        Err(format!("the looks that read this bit find {out:?}, all looks {all:?}"))
    }
}

/// A cursor's record, with the bytes of its value.
fn read<'a>((key, value): (&'a [u8], LazyValue<'a>)) -> Result<(&'a [u8], &'a [u8]), Error> {
    Ok((key, value.bytes()?))
}

impl Whole {
    /// Scans the table to its end or the first error.
    fn compare(&self, table: &Table, out: &mut Outcome) -> Result<(), String> {
        let mut cursor = table.cursor().map_err(|e| format!("cursor gives {e}"))?;
        for n in 0..=self.records.len() {
            let expected = self.records.get(n);
            match cursor.next().and_then(|record| record.map(read).transpose()) {
                Ok(found) if found == expected.map(|(key, value)| (key.as_slice(), value.as_slice())) => {}
                Ok(found) => {
                    let key = expected.map(|e| &e.0);
                    return Err(format!(
                        "record {n} of table {:?} is {found:02x?}, not that of {key:02x?}",
                        self.name
                    ));
                }
                Err(Error::Corrupt { .. }) => {
                    out.errors += 1;
                    return Ok(());
                }
                Err(e) => return Err(format!("a scan gives {e}")),
            }
        }
        Ok(())
    }
}

impl Lookup {
    fn compare(&self, table: &Table, out: &mut Outcome) -> Result<(), String> {
        match table.get(&self.key) {
            Ok(found) if found == self.value => {}
            Ok(found) => {
                return Err(format!("key {:02x?} gives {found:02x?}, not {:02x?}", self.key, self.value));
            }
            Err(Error::Corrupt { .. }) => out.errors += 1,
            Err(e) => return Err(format!("get gives {e}")),
        }
        Ok(())
    }
}

/// The error of a failure without any damage.
fn before(error: impl std::fmt::Display) -> String {
    format!("before any damage: {error}")
}

fn open(view: &View) -> Result<Db, Error> {
    Db::open_on(view, PATH, Setting::QUIET.options().read_only(true))
}

/// Takes a look by a handle of its own, and notes what it reads beyond what opening reads.
fn watch<T>(bytes: &Arc<[u8]>, look: impl FnOnce(&Db) -> Result<T, Error>) -> Result<(Reads, T), String> {
    let view = View::watched(bytes);
    let db = open(&view).map_err(before)?;
    let _opening = view.reads();
    let found = look(&db).map_err(before)?;
    Ok((view.reads(), found))
}

/// Lookups of all keys of a table, and of some absent ones.
fn watch_lookups(
    bytes: &Arc<[u8]>,
    table: usize,
    name: &str,
    records: &[(Vec<u8>, Vec<u8>)],
) -> Result<Vec<Lookup>, String> {
    let one_in = records.len().div_ceil(ABSENT).max(1);
    let absent = records.iter().step_by(one_in).map(|(key, _)| ([key.as_slice(), b"?"].concat(), None));
    let there = records.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    let lookup = |(key, value): (Vec<u8>, Option<Vec<u8>>)| {
        let (reads, found) = watch(bytes, |db| db.open_table(name)?.get(&key))?;
        match found == value {
            true => Ok(Lookup { table, key, value, reads }),
            false => Err(before(format!("key {key:02x?} of table {name:?} gives {found:02x?}"))),
        }
    };
    there.chain(absent).map(lookup).collect()
}

fn index(lookups: &[Lookup]) -> BTreeMap<u64, Vec<usize>> {
    let mut of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (n, lookup) in lookups.iter().enumerate() {
        for block in lookup.reads.blocks(BLOCK) {
            let there = of.entry(block).or_default();
            if there.last() != Some(&n) {
                there.push(n);
            }
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_that_read_a_bit_find_what_all_looks_find() {
        let every = Every::new().unwrap();
        // A prime: all bits of bytes, all over the file.
        let (mut read, mut unread) = (0, 0);
        for bit in (0..every.bits()).step_by(99_991) {
            let out = guarded(every.bits() / 8, || every.look(bit)).unwrap();
            every.control(bit, &out).unwrap_or_else(|e| panic!("bit {bit}: {e}"));
            *(if out.unread { &mut unread } else { &mut read }) += 1;
        }
        println!("{read} bits that are read, {unread} that nobody reads, of {}", every.bits());
        assert!(read >= 20, "{read} bits are read, {unread} are not");
    }
}
