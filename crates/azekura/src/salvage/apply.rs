//! Writes what was found to the new database: table by table, from the oldest version to the newest.

use super::doubt::Doubt;
use super::indexes;
use super::input::Input;
use super::plan::{Group, Plan, TablePlan, UNKNOWN_AGE};
use super::report::{SalvageReport, SalvagedTable};
use super::runs::RunPlan;
use super::values::Values;
use crate::base::error::{Error, Result, shown};
use crate::base::key::TableKind;
use crate::base::limits::NAME_BYTES_MAX;
use crate::engine::Progress;
use crate::engine::{Db, Durability, Table};
use crate::format::block::{Block, Tag};
use crate::format::expiry::{Content, Expiry};
use crate::format::hidden::is_hidden;
use crate::format::operand::{Gathered, reference, whole};
use crate::format::ranges::Ranges;
use crate::txn::{WriteOptions, WriteTxn};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The size at which a transaction of the new database is committed.
const BATCH_BYTES: usize = 4 << 20;

/// The table that is being written.
struct Target<'a> {
    out: &'a Db,
    table: Table,
    name: String,
    kind: TableKind,
    hash_seed: Option<u64>,
    txn: Option<WriteTxn>,
    bytes: usize,
    /// Whether records are put only where there is none, and nothing is deleted.
    only_absent: bool,
    /// Whether it was said that operands may count twice.
    is_unsure: bool,
    /// Keys that may lack what a lost page had.
    doubt: Doubt,
    /// Whether some of its records expire.
    has_times: bool,
    /// The user's key of the current record.
    key: Vec<u8>,
    /// Keys of a hash table that cannot be recovered, since the hash seed is lost.
    unknown_keys: u64,
}

/// What large values are looked for in, and where it is said what was found.
struct Finds<'a, 'v> {
    values: &'a mut Values<'v>,
    report: &'a mut SalvageReport,
}

impl Finds<'_, '_> {
    /// An operand that stands apart, with its bytes.
    fn operand(&mut self, stored: &[u8]) -> Option<Vec<u8>> {
        let found = self.values.read(reference(stored)?)?;
        self.report.values += 1;
        match whole(stored, |_| Ok(&found[..])) {
            Ok(Gathered::Operand(operand)) => Some(operand),
            _ => None,
        }
    }
}

/// Writes all tables.
pub(super) fn apply(
    input: &Input,
    plan: &Plan,
    values: &mut Values<'_>,
    hash_seed: Option<u64>,
    out: &Db,
    report: &mut SalvageReport,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let total = plan.len() as u64;
    let mut tables = BTreeMap::new();
    for (done, (id, table)) in plan.iter().filter(|(_, table)| !is_hidden(&table.name)).enumerate() {
        let made = create(out, *id, table)?;
        tables.insert(*id, made.clone());
        let (name, kind) = (made.name(), table.kind);
        if name != table.name {
            report.notes.push(format!("table {:?} is {name:?} in the new database", table.name));
        }
        let mut target = Target {
            out,
            table: made,
            name: name.clone(),
            kind,
            hash_seed,
            txn: None,
            bytes: 0,
            only_absent: false,
            key: Vec::new(),
            unknown_keys: 0,
            is_unsure: false,
            doubt: Doubt::default(),
            has_times: false,
        };
        for (age, group) in &table.ages {
            target.only_absent = *age == UNKNOWN_AGE;
            target.write(input, group, &mut Finds { values, report })?;
        }
        target.commit()?;
        target.doubt.named().for_each(|key| target.name_doubtful(key, report));
        if target.unknown_keys > 0 {
            let n = target.unknown_keys;
            report.lose(format!(
                "table {name:?}: {n} keys of eight bytes, for the seed of their hashes is lost"
            ));
        }
        let (ttl, records) = (target.set_ttl(table.ttl_ms, report)?, target.table.count()?);
        report.tables.push(SalvagedTable { name, kind, records, ttl });
        progress(Progress { done: done as u64 + 1, total });
    }
    // An index that was dropped may have been made again: then the table with the higher id is newer.
    let hidden = plan.values().filter(|table| is_hidden(&table.name));
    let newest: BTreeMap<&str, &TablePlan> = hidden.map(|table| (&*table.name, table)).collect();
    for table in newest.into_values() {
        indexes::rebuild(input, table, &tables, report)?;
    }
    progress(Progress { done: total, total });
    Ok(())
}

/// Looks for all large values that are not where they should be. A value in two parts is found later, when
/// its neighbours have been found.
pub(super) fn find_large(input: &Input, plan: &Plan, values: &mut Values<'_>) -> Result<()> {
    let mut look = |block: &Block| {
        for reference in (0..block.len()).filter_map(|i| block.reference(i)) {
            values.want(reference);
        }
    };
    // Losses are reported by the later, real reads.
    let mut unreported = SalvageReport::default();
    for group in plan.values().flat_map(|t| t.ages.values()) {
        group.parts.iter().for_each(|part| look(&part.block));
        for run in &group.runs {
            run.read(input, "", &mut unreported, |block, _| {
                look(block);
                Ok(())
            })?;
        }
    }
    values.find_wanted();
    Ok(())
}

/// Makes a table with the plan's name, or with a similar one.
fn create(out: &Db, id: u32, table: &TablePlan) -> Result<Table> {
    let is_good = !table.name.is_empty() && table.name.len() <= NAME_BYTES_MAX;
    let name = if is_good { table.name.clone() } else { format!("table-{id}") };
    let mut tried = out.create_table(&name, table.kind);
    for n in 0.. {
        match tried {
            Err(Error::TableExists { .. }) if n < 1000 => {
                let end = if n == 0 { format!("-{id}") } else { format!("-{id}-{n}") };
                let mut cut = NAME_BYTES_MAX - end.len();
                while !name.is_char_boundary(cut.min(name.len())) {
                    cut -= 1;
                }
                tried = out.create_table(&format!("{}{end}", &name[..cut.min(name.len())]), table.kind);
            }
            other => return other,
        }
    }
    tried
}

impl Target<'_> {
    fn txn(&mut self) -> &mut WriteTxn {
        let out = self.out;
        self.txn.get_or_insert_with(|| {
            out.write_with(WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() })
        })
    }

    fn commit(&mut self) -> Result<()> {
        self.bytes = 0;
        self.txn.take().map_or(Ok(()), WriteTxn::commit)
    }

    /// Says how long records live that are put without a time, once all that was found is there.
    fn set_ttl(&mut self, ttl_ms: Option<u64>, report: &mut SalvageReport) -> Result<Option<Duration>> {
        let lost = format!("table {:?}: how long its records live if nothing else is said", self.name);
        let Some(ttl_ms) = ttl_ms else {
            // Others hardly had such a time.
            if self.has_times {
                report.lose(lost);
            }
            return Ok(None);
        };
        if ttl_ms == 0 {
            return Ok(None);
        }
        let (table, ttl) = (self.table.clone(), Duration::from_millis(ttl_ms));
        match self.txn().set_usual_ttl(&table, Some(ttl)) {
            Err(error @ Error::Invalid { .. }) => {
                report.lose(format!("{lost}: {error}"));
                self.commit().map(|()| None)
            }
            done => done.and_then(|()| self.commit()).map(|()| Some(ttl)),
        }
    }

    fn note(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes + 64;
        if self.bytes >= BATCH_BYTES { self.commit() } else { Ok(()) }
    }

    /// Writes what has one age.
    fn write(&mut self, input: &Input, group: &Group, finds: &mut Finds<'_, '_>) -> Result<()> {
        let ranges = group.runs.iter().map(RunPlan::ranges).chain(group.parts.iter().map(|p| &p.ranges));
        ranges.into_iter().try_for_each(|r| self.remove_ranges(r))?;
        for part in &group.parts {
            self.take(&part.block, &Ranges::none(), finds)?;
        }
        // Within one age the larger id is newer. If nothing is overwritten, the newer run must come first.
        let mut runs: Vec<&RunPlan> = group.runs.iter().collect();
        if self.only_absent {
            runs.reverse();
        }
        let (name, mut lost) = (self.name.clone(), Ranges::default());
        for run in runs {
            if self.only_absent {
                self.commit()?;
            }
            let missing = run.read(input, &name, finds.report, |block, report| {
                self.take(block, &run.hidden, &mut Finds { values: finds.values, report })
            })?;
            lost.add_all(&missing);
        }
        self.doubt.lose(&lost);
        Ok(())
    }

    /// Deletes these keys from the table.
    fn remove_ranges(&mut self, ranges: &Ranges) -> Result<()> {
        for range in ranges.iter() {
            let table = self.table.clone();
            let txn = self.txn();
            match &range.end {
                None if range.start.is_empty() => {
                    txn.clear(&table)?;
                    self.doubt.settle_all();
                }
                // Behind the longest key stands one that is longer, and may be the end of a range.
                _ if table.kind() == TableKind::Ordered => txn.remove_keys(&table, range.clone())?,
                // Hash tables are only cleared as a whole.
                _ => {}
            }
            self.note(range.start.len())?;
        }
        Ok(())
    }

    /// Takes the records of a block, except those whose keys are hidden.
    fn take(&mut self, block: &Block, hidden: &Ranges, finds: &mut Finds<'_, '_>) -> Result<()> {
        let mut tmp = [0; 8];
        for i in 0..block.len() {
            let sort_key = block.key(i, &mut tmp);
            if hidden.covers(sort_key) || !self.set_key(sort_key) {
                continue;
            }
            let content = block.content(i);
            if !self.only_absent {
                self.note_doubt(sort_key, content.tag, finds.report);
            }
            self.put(content, finds)?;
        }
        Ok(())
    }

    /// Turns a sort key into the user's key. False if that is impossible.
    fn set_key(&mut self, sort_key: &[u8]) -> bool {
        let is_unknown = self.kind == TableKind::Hash && self.hash_seed.is_none() && sort_key.len() == 8;
        self.unknown_keys += u64::from(is_unknown);
        let mut key = std::mem::take(&mut self.key);
        let known =
            !is_unknown && self.kind.user_key(sort_key, self.hash_seed.unwrap_or(0), &mut key).is_ok();
        self.key = key;
        known
    }

    /// Notes what is merged into a key that a lost page may have had.
    fn note_doubt(&mut self, sort_key: &[u8], tag: Tag, report: &mut SalvageReport) {
        if tag != Tag::Operand {
            self.doubt.settle(sort_key);
        } else if let Some(key) = self.doubt.merge(sort_key, || shown(&self.key)) {
            self.name_doubtful(&key, report);
        }
    }

    fn name_doubtful(&self, key: &str, report: &mut SalvageReport) {
        report.lose(format!(
            "table {:?}: what {key} had before, if a lost page had it; what was merged into it since is there",
            self.name
        ));
    }

    /// Without the manifest it is not known which operands are in other runs, too.
    fn note_operand(&mut self, report: &mut SalvageReport) {
        if !report.manifest && !self.is_unsure {
            self.is_unsure = true;
            report.lose(format!(
                "table {:?}: what was merged into numbers may count twice, for which runs had it is not known",
                self.name
            ));
        }
    }

    /// Writes one record, whose key was set.
    fn put(&mut self, Content { tag, value, expiry }: Content<'_>, finds: &mut Finds<'_, '_>) -> Result<()> {
        if self.only_absent && (tag == Tag::Tombstone || self.table.has_record(&self.key)?) {
            return Ok(());
        }
        if tag == Tag::Operand {
            self.note_operand(finds.report);
        }
        let (table, key) = (self.table.clone(), std::mem::take(&mut self.key));
        let mut bytes = key.len() + value.len();
        let is_apart = tag == Tag::Operand && reference(value).is_some();
        let operand =
            if is_apart { finds.operand(value).map(Cow::Owned) } else { Some(Cow::Borrowed(value)) };
        self.has_times |= expiry != Expiry::NEVER;
        let txn = self.txn();
        let done = match tag {
            Tag::Put | Tag::Expiring => txn.put_expiring(&table, &key, value, expiry),
            Tag::Tombstone => txn.remove(&table, &key),
            Tag::Operand => match operand {
                Some(operand) => match txn.merge_stored(&table, &key, &operand) {
                    Err(error @ (Error::WrongType { .. } | Error::TooLarge { .. })) => {
                        finds.report.lose(error.to_string());
                        txn.remove(&table, &key)
                    }
                    done => done,
                },
                None => {
                    finds.report.values_lost += 1;
                    finds.report.lose(format!("table {:?}: what was merged into {}", self.name, shown(&key)));
                    self.txn().remove(&table, &key)
                }
            },
            Tag::Large => match finds.values.read(value) {
                Some(large) => {
                    finds.report.values += 1;
                    bytes += large.len();
                    txn.put_expiring(&table, &key, &large, expiry)
                }
                None => {
                    finds.report.values_lost += 1;
                    finds.report.lose(format!("table {:?}: the value of {}", self.name, shown(&key)));
                    // An older version would be wrong.
                    self.txn().remove(&table, &key)
                }
            },
        };
        self.key = key;
        done?;
        self.note(bytes)
    }
}
