//! A random but reproducible sequence of steps against a database, and the state after each commit.
//!
//! A digest of all tables identifies a state. So what a database holds after a crash can be compared with
//! every state that it might be in. `run` runs the script from any state on.
mod names;
mod sums;
mod write;

use crate::fed;
use crate::rng::Rng;
use azekura::{Db, Durability, Error, FeedContent, Table, TableKind, WriteOptions, WriteTxn};
pub use names::{INDEXES, TABLES};
use names::{MERGED, SMALL, kind_of, name_of, small};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;
pub use write::{LIST, NUMBER, SET, Stamp, Write};

/// Longer than any run.
const LONG: Duration = Duration::from_secs(10 << 25);
/// The record that says how long what is put into its table lives, as `Write::Lives` says.
const LIVES: &[u8] = b"lives!";

/// For each table's name, whether it is a hash table, and its records.
pub type Model = BTreeMap<String, (bool, BTreeMap<Vec<u8>, Stamp>)>;

/// A step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// A transaction.
    Commit(Durability, Vec<Write>),
    /// A transaction that stores a large value and is rolled back.
    Abandon,
    /// Makes a table.
    Create(&'static str, TableKind),
    /// Makes this many small tables at once.
    CreateSmall(usize),
    /// Drops a table.
    Drop(&'static str),
    /// Feeds a table from then on: its number, what is fed, and how many bytes of that are kept.
    Feed(usize, FeedContent, u64),
    /// Makes an index of a table, by its number in `INDEXES`, or goes on building it.
    Index(usize),
    /// Drops one, if it is there.
    DropIndex(usize),
    /// Makes everything durable.
    Sync,
    /// Writes the memtables to runs.
    Flush,
    /// Merges everything.
    Settle,
    /// Gives space back.
    Compact,
}

/// A workload and its states.
pub struct Script {
    /// Each step, and the state after it.
    pub steps: Vec<(Step, usize)>,
    /// The digest of each state. State 0 is the empty database.
    pub digests: Vec<u64>,
    /// The contents of each state.
    pub models: Vec<Model>,
}

/// How far a run has come.
#[derive(Default, Clone, Copy, Debug)]
pub struct Ack {
    /// The newest state that was acknowledged as durable.
    pub durable: usize,
    /// The newest state that was begun.
    pub begun: usize,
    /// The newest state that was completed.
    pub done: usize,
    /// How many steps were begun.
    pub steps: usize,
}

/// The bytes of a stamp.
pub fn bytes_of((from, len): Stamp) -> Vec<u8> {
    match len {
        NUMBER => return u64::from(from).to_le_bytes().to_vec(),
        LIST => return vec![0x5a; from as usize],
        SET => return sums::elements(from),
        _ => {}
    }
    let mut rng = Rng(u64::from(from));
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len as usize).collect()
}

fn hash_of(x: impl Hash) -> u64 {
    let mut h = std::hash::DefaultHasher::new();
    x.hash(&mut h);
    h.finish()
}

fn digest(model: &Model) -> u64 {
    let tables = model.iter().map(|(name, (hash, records))| {
        // A sum, since hash tables have no useful order.
        let sum = records.iter().fold(0u64, |s, (k, v)| s.wrapping_add(hash_of((k, bytes_of(*v)))));
        let lives = records.get(LIVES).map_or(0, |v| u64::from(v.0));
        (name.clone(), *hash, records.len(), sum, lives)
    });
    hash_of(tables.collect::<Vec<_>>())
}

/// The digest of a database's contents. Also looks records up by their keys.
pub fn digest_of(db: &Db) -> Result<u64, Error> {
    let mut tables = Vec::new();
    for info in db.tables() {
        let table = db.open_table(&info.name)?;
        let (mut sum, mut n) = (0u64, 0usize);
        for record in table.cursor()?.owned() {
            let (k, v) = record?;
            if n % 7 == 0 {
                assert_eq!(table.get(&k)?.as_ref(), Some(&v), "get and scan differ");
            }
            sum = sum.wrapping_add(hash_of((&k, v)));
            n += 1;
        }
        let lives = table.usual_ttl().map_or(0, |ttl| ttl.as_secs() / LONG.as_secs());
        tables.push((info.name, info.kind == TableKind::Hash, n, sum, lives));
    }
    Ok(hash_of(tables))
}

fn key(rng: &mut Rng, table: usize) -> Vec<u8> {
    let n = rng.below(160);
    match (table, n % 3) {
        (1, _) | (_, 0) => n.to_be_bytes().to_vec(),
        (_, 1) => format!("key-{n:04}").into_bytes(),
        _ => format!("a-much-longer-key-with-a-common-prefix-{n:06}").into_bytes(),
    }
}

/// Writes to some of so many small tables: mostly a record or two, sometimes more than the manifest takes.
fn small_writes(rng: &mut Rng, tables: u64, stamp: impl Fn(&mut Rng, u32) -> Stamp) -> Vec<Write> {
    let one = |rng: &mut Rng, n: u32| {
        let table = SMALL + rng.below(tables) as usize;
        let k = rng.below(3).to_be_bytes().to_vec();
        match rng.below(6) {
            0 => Write::Remove(table, k),
            _ => Write::Put(table, k, stamp(rng, 1900 + n)),
        }
    };
    (0..if tables > 0 { rng.below(5) as u32 } else { 0 }).map(|n| one(rng, n)).collect()
}

impl Script {
    /// The script of these steps.
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Script {
        let mut s = Script { steps: Vec::new(), digests: Vec::new(), models: Vec::new() };
        let mut model = Model::new();
        s.push(&model, None);
        for step in steps {
            apply(&mut model, &step);
            s.push(&model, Some(step));
        }
        s
    }

    /// A random script. `rich`: with batches and large values that span frames and segments.
    pub fn new(seed: u64, length: usize, rich: bool) -> Script {
        let mut rng = Rng(seed);
        let mut s = Script { steps: Vec::new(), digests: Vec::new(), models: Vec::new() };
        let mut model = Model::new();
        s.push(&model, None);
        for (name, kind) in &TABLES[..2] {
            model.insert((*name).into(), (*kind == TableKind::Hash, BTreeMap::new()));
            s.push(&model, Some(Step::Create(name, *kind)));
        }
        for (_, name, kind) in MERGED {
            model.insert(name.into(), (kind == TableKind::Hash, BTreeMap::new()));
            s.push(&model, Some(Step::Create(name, kind)));
        }
        for (t, content, kept) in fed::plan(seed) {
            s.push(&model, Some(Step::Feed(t, content, kept)));
        }
        for i in 0..length {
            let step = match rng.below(60) {
                0..=1 if i > 3 => Step::Flush,
                2 => Step::Settle,
                3 => Step::Compact,
                4..=7 => Step::Sync,
                8..=9 => Step::Abandon,
                10..=13 => match model.contains_key("extra") {
                    true => Step::Drop("extra"),
                    false => Step::Create("extra", TableKind::Ordered),
                },
                15..=16 => Step::Index(rng.below(INDEXES.len() as u64) as usize),
                17 => Step::DropIndex(rng.below(INDEXES.len() as u64) as usize),
                18..=20 => s.change_tables(&mut rng, &model, u32::try_from(i).unwrap() + 1, rich),
                14 if !model.contains_key(&name_of(SMALL)) => Step::CreateSmall(5 + rng.below(40) as usize),
                _ => s.commit(&mut rng, &model, u32::try_from(i).unwrap() + 1, rich),
            };
            apply(&mut model, &step);
            s.push(&model, Some(step));
        }
        s
    }

    fn push(&mut self, model: &Model, step: Option<Step>) {
        let changes = matches!(
            step,
            None | Some(Step::Commit(..) | Step::Create(..) | Step::CreateSmall(_) | Step::Drop(..))
        );
        if changes {
            self.digests.push(digest(model));
            self.models.push(model.clone());
        }
        self.steps.extend(step.map(|s| (s, self.digests.len() - 1)));
    }

    fn commit(&self, rng: &mut Rng, model: &Model, i: u32, rich: bool) -> Step {
        let durability = if rng.below(3) == 0 { Durability::Sync } else { Durability::Eventual };
        let mut writes = Vec::new();
        // Every commit changes every table, so that no two states are alike.
        let tables = TABLES.iter().filter(|t| model.contains_key(t.0)).count();
        let stamp = |rng: &mut Rng, n: u32| {
            let len = match rng.below(24) {
                0 => 1024 + rng.below(3000),
                1 if rich => {
                    let most = if rng.below(8) == 0 { 900_000 } else { 60_000 };
                    20_000 + rng.below(most)
                }
                2..=8 => 8,
                9..=14 => rng.below(40),
                _ => 100 + rng.below(500),
            };
            (i * 2000 + n, u32::try_from(len).unwrap())
        };
        for table in 0..tables {
            writes.push(Write::Put(table, b"counter!".to_vec(), (i * 2000 + 1999, 8)));
        }
        match rng.below(if rich { 40 } else { 14 }) {
            0 => {
                let (a, b) = (key(rng, 0), key(rng, 0));
                writes.insert(0, Write::Range(0, a.clone().min(b.clone()), a.max(b)));
            }
            1 if rng.below(3) == 0 => writes.insert(0, Write::Clear(rng.below(tables as u64) as usize)),
            2..=3 => {
                // A batch of fixed-width records, large enough to be a chunk.
                let table = rng.below(2) as usize;
                let n = if rich && rng.below(2) == 0 { 1300 } else { 80 };
                let len = if n > 80 { 900 } else { 8 };
                let expire = rng.below(2) == 0;
                writes.extend((0..n).map(|n| {
                    let k = (u64::from(n) * 3 + 1000).to_be_bytes().to_vec();
                    let stamp = (i * 2000 + n, len);
                    if expire { Write::PutFor(table, k, stamp) } else { Write::Put(table, k, stamp) }
                }));
            }
            _ => {}
        }
        for n in 0..1 + rng.below(12) as u32 {
            let table = rng.below(tables as u64) as usize;
            let k = key(rng, table);
            writes.push(match rng.below(12) {
                0 => Write::Remove(table, k),
                1 => Write::Expired(table, k),
                2..=4 => Write::PutFor(table, k, stamp(rng, 1500 + n)),
                _ => Write::Put(table, k, stamp(rng, 1500 + n)),
            });
        }
        writes.extend(sums::writes(rng, rich));
        let merged = MERGED.iter().filter(|(_, name, _)| model.contains_key(*name)).count();
        let small_tables = (model.len() - tables - merged) as u64;
        writes.extend(small_writes(rng, small_tables, stamp));
        Step::Commit(durability, writes)
    }

    /// A commit that also makes, renames or drops tables.
    fn change_tables(&self, rng: &mut Rng, model: &Model, i: u32, rich: bool) -> Step {
        let Step::Commit(durability, mut writes) = self.commit(rng, model, i, rich) else { unreachable!() };
        let any_place = rng.below(writes.len() as u64 + 1) as usize;
        let has_extra = model.contains_key("extra");
        match rng.below(4) {
            3 => {
                let table = rng.below(2 + u64::from(has_extra)) as usize;
                writes.insert(any_place, Write::Lives(table, rng.below(4) as u32));
            }
            0 if has_extra => writes.push(Write::Toggle(2)),
            0 => {
                writes.insert(0, Write::Toggle(2));
                let put = |n| Write::Put(2, key(rng, 2), (i * 2000 + 1800 + n, 300));
                writes.extend((0..3).map(put));
            }
            1 if has_extra => writes.insert(any_place, Write::Exchange(0, 2)),
            _ => writes.insert(any_place, Write::Replace(rng.below(2 + u64::from(has_extra)) as usize)),
        }
        Step::Commit(durability, writes)
    }

    /// Which state, from `low` to `high`, a database is in. Otherwise describes what it holds.
    pub fn state_of(&self, db: &Db, low: usize, high: usize) -> Result<usize, String> {
        let found = digest_of(db).map_err(|e| format!("reading everything: {e}"))?;
        if let Some(k) = (low..=high).find(|&k| self.digests[k] == found) {
            return Ok(k);
        }
        let other = self.digests.iter().position(|&d| d == found);
        let mut text = format!("state {other:?}, expected {low}..={high}");
        for info in db.tables() {
            let stamp = db.open_table(&info.name).and_then(|t| t.get(b"counter!")).ok().flatten();
            let is = |k: &usize| {
                let model = self.models[*k].get(&info.name).and_then(|m| m.1.get(&b"counter!"[..]));
                model.map(|v| bytes_of(*v)) == stamp
            };
            let k = (0..self.models.len()).find(is);
            text += &format!("; table {:?} has the counter of state {k:?}", info.name);
            if let Some(k) = k {
                text += &self.difference(db, &info.name, k);
            }
        }
        Err(text)
    }

    fn difference(&self, db: &Db, name: &str, k: usize) -> String {
        let Some((_, records)) = self.models[k].get(name) else { return String::new() };
        let Ok(cursor) = db.open_table(name).and_then(|t| t.cursor()) else { return String::new() };
        let there: BTreeMap<_, _> = cursor.owned().filter_map(Result::ok).collect();
        let mut text = String::new();
        for (key, v) in records.iter().filter(|(k, v)| there.get(*k) != Some(&bytes_of(**v))).take(3) {
            text += &format!(" wrong {key:02x?}: {:?} not {v:?}", there.get(key).map(Vec::len));
        }
        let more = there.keys().filter(|k| !records.contains_key(*k)).take(3);
        more.for_each(|key| text += &format!(" unexpected {key:02x?}"));
        text
    }

    /// The newest state.
    pub fn last(&self) -> usize {
        self.digests.len() - 1
    }

    /// Runs the steps after state `from`, until one fails. Calls `note` before each step and after its
    /// acknowledgement.
    pub fn run(&self, db: &Db, from: usize, ack: &mut Ack, note: &dyn Fn(&Ack)) -> Result<(), Error> {
        *ack = Ack { durable: ack.durable.min(from), begun: from, done: from, steps: 0 };
        for (step, state) in self.steps.iter().skip_while(|(_, state)| *state <= from) {
            ack.begun = ack.begun.max(*state);
            ack.steps += 1;
            note(ack);
            take(db, step)?;
            ack.done = *state;
            if !matches!(step, Step::Commit(Durability::Eventual, _) | Step::Abandon) {
                ack.durable = *state;
            }
            note(ack);
        }
        Ok(())
    }
}

fn apply(model: &mut Model, step: &Step) {
    let Step::Commit(_, writes) = step else {
        match step {
            Step::Create(name, kind) => {
                drop(model.insert((*name).into(), (*kind == TableKind::Hash, BTreeMap::new())))
            }
            Step::CreateSmall(n) => model.extend((SMALL..SMALL + n).map(|table| {
                let (name, kind) = small(table);
                (name, (kind == TableKind::Hash, BTreeMap::new()))
            })),
            Step::Drop(name) => drop(model.remove(*name)),
            _ => {}
        }
        return;
    };
    for write in writes {
        match write {
            Write::Put(t, k, v) | Write::PutFor(t, k, v) => {
                records_of(model, *t).insert(k.clone(), *v);
            }
            Write::Merge(t, k, n) => {
                sums::merge(*t, records_of(model, *t).entry(k.clone()), *n);
            }
            Write::Remove(t, k) | Write::Expired(t, k) => drop(records_of(model, *t).remove(k)),
            Write::Range(t, a, b) => records_of(model, *t).retain(|k, _| k < a || k >= b),
            Write::Clear(t) => records_of(model, *t).clear(),
            Write::Toggle(t) if model.contains_key(&name_of(*t)) => drop(model.remove(&name_of(*t))),
            Write::Toggle(t) | Write::Replace(t) => {
                let new = (kind_of(*t) == TableKind::Hash, BTreeMap::new());
                model.insert(name_of(*t), new);
            }
            Write::Lives(t, n) => drop(records_of(model, *t).insert(LIVES.to_vec(), (*n, NUMBER))),
            Write::Exchange(a, b) => {
                let (one, two) = (model.remove(&name_of(*a)).unwrap(), model.remove(&name_of(*b)).unwrap());
                model.extend([(name_of(*a), two), (name_of(*b), one)]);
            }
        }
    }
}

fn records_of(model: &mut Model, table: usize) -> &mut BTreeMap<Vec<u8>, Stamp> {
    &mut model.get_mut(&name_of(table)).unwrap().1
}

fn take(db: &Db, step: &Step) -> Result<(), Error> {
    match step {
        Step::Commit(durability, writes) => {
            let mut tables: BTreeMap<usize, Table> = BTreeMap::new();
            let mut txn =
                db.write_with(WriteOptions { durability: Some(*durability), ..WriteOptions::default() });
            let changes_tables = writes.iter().any(|write| write.table().is_none());
            for write in writes {
                if let Some(t) = write.table()
                    && !tables.contains_key(&t)
                {
                    // Who changes no tables opens them as most programs do.
                    let name = name_of(t);
                    let table = if changes_tables { txn.open_table(&name) } else { db.open_table(&name) };
                    tables.insert(t, table?);
                }
                match write {
                    Write::Toggle(_) | Write::Replace(_) | Write::Exchange(..) | Write::Lives(..) => {
                        change(&mut txn, write)?;
                        tables.clear();
                    }
                    Write::Put(t, k, v) => txn.put(&tables[t], k, &bytes_of(*v))?,
                    Write::PutFor(t, k, v) => txn.put_for(&tables[t], k, &bytes_of(*v), LONG)?,
                    Write::Expired(t, k) => txn.put_for(&tables[t], k, b"gone", Duration::ZERO)?,
                    Write::Merge(t, k, n) => sums::take(&mut txn, *t, &tables[t], k, *n)?,
                    Write::Remove(t, k) => txn.remove(&tables[t], k)?,
                    Write::Range(t, a, b) => txn.remove_range(&tables[t], a..b)?,
                    Write::Clear(t) => clear(&mut txn, &tables[t])?,
                }
            }
            txn.commit()
        }
        Step::Abandon => {
            let table = db.open_table("ordered")?;
            let mut txn = db.write();
            txn.put(&table, b"abandoned", &[7; 5000])
        }
        Step::Create(name, kind) => db.create_table(name, *kind).map(drop),
        Step::CreateSmall(n) => {
            let names: Vec<(String, TableKind)> = (SMALL..SMALL + n).map(small).collect();
            let wanted: Vec<(&str, TableKind)> =
                names.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
            db.create_tables(&wanted).map(drop)
        }
        Step::Drop(name) => db.drop_table(name),
        Step::Feed(t, content, kept) => fed::begin(db, TABLES[*t].0, *content, *kept),
        Step::Index(n) => {
            let (table, spec) = INDEXES[*n];
            db.open_table(table)?.create_index(&n.to_string(), spec)?;
            // If it was there, nothing was written.
            db.sync()
        }
        Step::DropIndex(n) => match db.open_table(INDEXES[*n].0)?.drop_index(&n.to_string()) {
            Err(Error::NoSuchIndex { .. }) => db.sync(),
            done => done,
        },
        Step::Sync => db.sync(),
        Step::Flush => db.flush(),
        Step::Settle => db.compact(),
        Step::Compact => db.shrink(|_| {}).map(drop),
    }
}

/// Removes all records, also the one that says how long what is put lives.
fn clear(txn: &mut WriteTxn, table: &Table) -> Result<(), Error> {
    txn.clear(table)?;
    if txn.usual_ttl(table).is_some() { txn.set_usual_ttl(table, None) } else { Ok(()) }
}

/// Changes tables themselves in a transaction.
fn change(txn: &mut WriteTxn, write: &Write) -> Result<(), Error> {
    const BETWEEN: &str = "for a moment";
    match write {
        Write::Toggle(t) => match txn.open_table(&name_of(*t)) {
            Err(Error::NoSuchTable { .. }) => txn.create_table(&name_of(*t), kind_of(*t)).map(drop),
            found => found.and_then(|_| txn.drop_table(&name_of(*t))),
        },
        Write::Replace(t) => {
            txn.create_table(BETWEEN, kind_of(*t))?;
            txn.drop_table(&name_of(*t))?;
            txn.rename_table(BETWEEN, &name_of(*t))
        }
        Write::Exchange(a, b) => {
            txn.rename_table(&name_of(*a), BETWEEN)?;
            txn.rename_table(&name_of(*b), &name_of(*a))?;
            txn.rename_table(BETWEEN, &name_of(*b))
        }
        Write::Lives(t, n) => {
            let table = txn.open_table(&name_of(*t))?;
            txn.set_usual_ttl(&table, (*n > 0).then(|| LONG * *n))?;
            txn.put_for(&table, LIVES, bytes_of((*n, NUMBER)), Duration::MAX)
        }
        _ => Ok(()),
    }
}

/// The problems that `check` finds.
pub fn problems(db: &Db) -> Vec<String> {
    match db.check(|_| {}) {
        Ok(report) => report.problems,
        Err(e) => vec![e.to_string()],
    }
}
