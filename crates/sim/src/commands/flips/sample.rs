//! Databases to damage, and the judge of what can be read from them.

use crate::disk::{Disk, Moment};
use crate::judge::{PATH, Setting};
use crate::memory;
use crate::report;
use crate::script::{Ack, Script, Stamp, Step, Write, bytes_of, problems};
use azekura::{Durability, Error, Table, TableKind};
use std::collections::{BTreeMap, BTreeSet};

/// How much larger than the file an allocation may be.
const ALLOCATION_SLACK: usize = 8 << 20;

/// A database and what it holds.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) disk: Disk,
    script: Script,
    /// Its state when it was undamaged. Below, the oldest state that damage at the log's end may lead to.
    pub(super) last: usize,
    oldest: usize,
    /// The bytes of every value, since they are compared again and again.
    values: BTreeMap<Stamp, Vec<u8>>,
    /// The disk at earlier times, for stale pages.
    pub(super) earlier: Vec<Moment>,
}

/// The result of looking at a damaged database.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) refused: bool,
    pub(super) errors: usize,
    pub(super) problems: usize,
    pub(super) state: Option<usize>,
    /// Whether nobody reads the damaged bytes.
    pub(super) unread: bool,
}

impl Outcome {
    /// Whether nothing is wrong.
    pub(super) fn is_whole(&self) -> bool {
        !self.refused && self.errors == 0 && self.problems == 0 && self.state.is_some()
    }
}

/// Looks at a damaged file of `len` bytes. A panic is an error, and so is an allocation that is too large.
pub(super) fn guarded<T>(len: u64, look: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    memory::forget_largest();
    let looked = report::catch(look)?;
    let largest = memory::largest();
    if largest > usize::try_from(len).unwrap_or(usize::MAX).saturating_add(ALLOCATION_SLACK) {
        return Err(format!("{largest} bytes were allocated at once for a file of {len}"));
    }
    looked
}

/// Whether opening may give this error for a damaged file.
pub(super) fn is_refusal(error: &Error) -> bool {
    use Error::{Corrupt, NewerVersion, NotADatabase, Truncated};
    matches!(error, Corrupt { .. } | NotADatabase { .. } | NewerVersion { .. } | Truncated { .. })
}

/// Databases that were closed or left open, with small records only, or with large values and batches.
pub(super) fn all() -> Vec<Sample> {
    let script = |seed, rich| Script::new(seed, 60, rich);
    vec![
        Sample::new("closed", script(11, false), true),
        Sample::new("closed, rich", script(12, true), true),
        Sample::new("left open", script(13, false), false),
        Sample::new("left open, rich", script(14, true), false),
    ]
}

impl Sample {
    fn new(name: &'static str, script: Script, closed: bool) -> Sample {
        let disk = Disk::seeded(1);
        disk.record(5, 1);
        let last = script.last();
        // The disk is good. A failure here shows in the comparison before any damage.
        let ran = Setting::QUIET.open(&disk).and_then(|db| {
            script.run(&db, 0, &mut Ack::default(), &|_| {})?;
            if closed { db.close() } else { db.sync().map(|()| disk.stop()) }
        });
        if let Err(e) = ran {
            eprintln!("{name}: {e}");
        }
        let earlier = disk.moments();
        let oldest = if closed { last } else { 0 };
        let stamps = script.models.iter().flat_map(|m| m.values()).flat_map(|t| t.1.values());
        let values = stamps.map(|s| (*s, bytes_of(*s))).collect();
        Sample { name, disk: disk.after_kill(), script, last, oldest, values, earlier }
    }

    /// A closed database of about 1 MiB with everything in it.
    pub(super) fn of_a_mebibyte() -> Sample {
        const MANY: u32 = 1500;
        let tables = [Step::Create("ordered", TableKind::Ordered), Step::Create("hash", TableKind::Hash)];
        let put = |i: u32, records: u32| {
            let write = move |n: u32| {
                let table = usize::from(!n.is_multiple_of(2));
                let key = if n.is_multiple_of(3) {
                    (u64::from(n) << 8).to_be_bytes().to_vec()
                } else {
                    format!("key {n:05}").into()
                };
                let len = if n.is_multiple_of(25) && records == MANY { 1500 } else { n % 90 };
                Write::Put(table, key, (i * 5000 + n, len))
            };
            Step::Commit(Durability::Eventual, (i * 600..i * 600 + records).map(write).collect())
        };
        // Compacted, so that little is free. Then some small records are flushed, so that each table has two
        // runs.
        let steps = (0..9).flat_map(|i| [put(i, MANY), if i == 8 { Step::Compact } else { Step::Flush }]);
        let steps = tables.into_iter().chain(steps).chain([put(9, 400), Step::Flush]);
        Sample::new("1 MiB", Script::of(steps), true)
    }

    /// Whether these are a table's records in its last state. They must be in key order, unless it is a hash
    /// table.
    pub(super) fn holds(&self, table: &str, records: &[(Vec<u8>, Vec<u8>)]) -> bool {
        let Some((hash, model)) = self.script.models[self.last].get(table) else { return false };
        let right = |(key, value): &(Vec<u8>, Vec<u8>)| self.value(self.last, table, key) == Some(value);
        records.len() == model.len()
            && records.iter().all(right)
            && (records.iter().map(|r| &r.0).eq(model.keys())
                || *hash && records.iter().map(|r| &r.0).collect::<BTreeSet<_>>().len() == model.len())
    }

    /// Looks at a damaged copy in every way, with a read-only handle or another. `Err`: it gave something
    /// wrong.
    pub(super) fn look(&self, disk: &Disk, read_only: bool) -> Result<Outcome, String> {
        let (len, _) = disk.used_blocks(PATH);
        guarded(len, || self.look_inside(disk, read_only))
    }

    fn look_inside(&self, disk: &Disk, read_only: bool) -> Result<Outcome, String> {
        let options = Setting::QUIET.options().read_only(read_only);
        let db = match azekura::Db::open_on(disk, PATH, options) {
            Ok(db) => db,
            Err(e) if is_refusal(&e) => return Ok(Outcome { refused: true, ..Outcome::default() }),
            Err(e) => return Err(format!("opening gives {e}")),
        };
        let mut out = Outcome { problems: problems(&db).len(), ..Outcome::default() };
        let mut states: Vec<usize> = (self.oldest..=self.last).collect();
        let names: Vec<String> = db.tables().into_iter().map(|t| t.name).collect();
        states.retain(|&k| self.script.models[k].keys().eq(&names));
        for name in &names {
            let table = db.open_table(name).map_err(|e| e.to_string())?;
            let read = self.scan(&table, name, &mut states, &mut out)?;
            let keys = self.script.models[self.last].get(name).into_iter().flat_map(|m| m.1.keys());
            for key in keys {
                match table.get(key) {
                    Ok(found) => states.retain(|&k| self.value(k, name, key) == found.as_ref()),
                    Err(Error::Corrupt { .. }) => out.errors += 1,
                    Err(e) => return Err(format!("get gives {e}")),
                }
            }
            if states.is_empty() {
                return Err(format!(
                    "table {name:?}: what can be read was never together ({read} records scanned)"
                ));
            }
        }
        if out.errors > 0 && out.problems == 0 {
            return Err(format!("check is silent, but {} reads failed", out.errors));
        }
        out.state = states.last().copied();
        // What is left in memory must not be written.
        disk.stop();
        if out.state.is_none() { Err(format!("the tables {names:?} were never together")) } else { Ok(out) }
    }

    /// Reads a table to its end or to the first error.
    fn scan(
        &self,
        table: &Table,
        name: &str,
        states: &mut Vec<usize>,
        out: &mut Outcome,
    ) -> Result<usize, String> {
        let mut found = BTreeMap::new();
        let mut whole = true;
        let cursor = table.cursor().map_err(|e| format!("cursor gives {e}"))?;
        for record in cursor.owned() {
            match record {
                Ok((k, v)) => drop(found.insert(k, v)),
                Err(Error::Corrupt { .. }) => {
                    out.errors += 1;
                    whole = false;
                }
                Err(e) => return Err(format!("a scan gives {e}")),
            }
        }
        if whole
            && let [k] = states[..]
            && found.len() == self.script.models[k].get(name).map_or(0, |t| t.1.len())
        {
            // The usual case: only one state is possible.
            let records = self.script.models[k].get(name).into_iter().flat_map(|t| t.1.iter());
            let same =
                found.iter().zip(records).all(|(f, r)| f.0 == r.0 && self.values.get(r.1) == Some(f.1));
            if !same {
                states.clear();
            }
            return Ok(found.len());
        }
        let ordered = table.kind() == TableKind::Ordered;
        states.retain(|&k| {
            let Some((_, records)) = self.script.models[k].get(name) else { return false };
            // An ordered scan that ended early has given all records up to that place.
            let expected = if ordered { found.len() } else { records.len() };
            let expected = if whole { records.len() } else { expected.min(records.len()) };
            (!whole && !ordered || expected == found.len())
                && found
                    .iter()
                    .all(|(key, v)| records.get(key).is_some_and(|s| self.values.get(s) == Some(v)))
                && (!ordered || found.keys().eq(records.keys().take(expected)))
        });
        Ok(found.len())
    }

    fn value(&self, k: usize, table: &str, key: &[u8]) -> Option<&Vec<u8>> {
        self.script.models[k].get(table).and_then(|m| m.1.get(key)).and_then(|s| self.values.get(s))
    }
}
