//! A random database: the bytes of its file, and everything that was ever written to it.

use super::lists::Lists;
use super::values::{Id, value_of};
use crate::fuzz::{contents, options};
use crate::rng::Rng;
use crate::script::Stamp;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Result, Table, TableKind, WriteOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A random database.
pub(super) struct World {
    pub(super) bytes: Vec<u8>,
    /// The name of each table, and whether it is a hash table.
    pub(super) tables: Vec<(String, bool)>,
    /// All values that a key ever had.
    pub(super) history: BTreeMap<Id, Vec<Stamp>>,
    /// Keys that were deleted at some time.
    pub(super) deleted: BTreeSet<Id>,
    /// The keys of each commit that is only in the log. (Commits that make tables have none.)
    pub(super) logged: Vec<Vec<Id>>,
    /// Tables whose records are in the manifest.
    pub(super) small: BTreeSet<usize>,
    pub(super) lists: Lists,
}

/// The form of a table's records.
struct Shape {
    keys: u64,
    fixed_keys: bool,
    /// One record in so many expires, long after the run; 0: none does.
    expires: u64,
    /// The least length of values, and how many lengths there are.
    value_min: u64,
    value_span: u64,
}

/// Longer than any run.
const LONG: Duration = Duration::from_secs(10 << 25);
const NAME: &str = "fuzz.azk";

impl World {
    pub(super) fn new(rng: &mut Rng) -> Result<World> {
        let storage = MemStorage::default();
        let memtable_bytes = *rng.pick(&[64 << 10, 4 << 20]);
        let options = options().memory_bytes(32 << 20).memtable_bytes(memtable_bytes);
        let db = Db::open_on(&storage, NAME, options.background_merges(false))?;
        let mut world = World {
            bytes: Vec::new(),
            tables: Vec::new(),
            history: BTreeMap::new(),
            deleted: BTreeSet::new(),
            logged: Vec::new(),
            small: BTreeSet::new(),
            lists: Lists::default(),
        };
        let mut made = Vec::new();
        for _ in 0..1 + rng.below(4) {
            made.push(world.table(&db, rng)?);
        }
        let mut serial = 0;
        for round in 0..1 + rng.below(6) {
            world.round(&db, &made, rng, &mut serial, round == 0)?;
            match rng.below(6) {
                0 => db.compact()?,
                1 => db.shrink(|_| {}).map(|_| ())?,
                2..=4 => db.flush()?,
                _ => {}
            }
        }
        db.flush()?;
        let levels = db.stats().levels;
        let is_small = |n: &usize| levels.iter().all(|level| level.table != world.tables[*n].0);
        world.small = (0..world.tables.len()).filter(is_small).collect();
        if rng.one_in(2) {
            drop(made);
            db.close()?;
            world.bytes = contents_of(&storage);
            return Ok(world);
        }
        world.log_commits(&db, &mut made, rng, &mut serial, memtable_bytes)?;
        world.bytes = contents_of(&storage);
        Ok(world)
    }

    /// Makes commits that are only in the log.
    fn log_commits(
        &mut self,
        db: &Db,
        made: &mut Vec<(Table, Shape)>,
        rng: &mut Rng,
        serial: &mut u32,
        memtable_bytes: u64,
    ) -> Result<()> {
        for _ in 0..rng.below(40) {
            // A commit has up to 24 KiB of values that go to the log. No flush is to come between.
            if db.stats().memtable_bytes + (24 << 10) >= memtable_bytes {
                break;
            }
            if rng.one_in(8) {
                made.push(self.table(db, rng)?);
                self.logged.push(Vec::new());
            }
            if rng.one_in(8) {
                // A frame vouches for the last one.
                db.sync()?;
            }
            let n = rng.below(made.len() as u64) as usize;
            let mut ids = Vec::new();
            let mut w =
                db.write_with(WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() });
            for _ in 0..1 + rng.below(3) {
                ids.push(self.put(&mut w, &made[n], n, rng, serial)?);
            }
            w.commit()?;
            self.logged.push(ids);
        }
        Ok(())
    }

    /// Makes a table.
    fn table(&mut self, db: &Db, rng: &mut Rng) -> Result<(Table, Shape)> {
        let is_hash = rng.one_in(2);
        let kind = if is_hash { TableKind::Hash } else { TableKind::Ordered };
        let name = format!("table {} \u{e9}", self.tables.len());
        let table = db.create_table(&name, kind)?;
        self.tables.push((name, is_hash));
        let fixed_keys = rng.one_in(2);
        if rng.one_in(4) {
            // Short enough that no flush comes between the commits that are to be in the log only.
            let len = *rng.pick(&[24, 40, 900]);
            let keys = if len > 500 { 10 + rng.below(60) } else { 50 + rng.below(2000) };
            self.lists.tables.insert(self.tables.len() - 1, len as usize);
            return Ok((table, Shape { keys, fixed_keys, expires: 0, value_min: len, value_span: 1 }));
        }
        let expires = *rng.pick(&[0, 0, 1, 3]);
        if rng.one_in(3) {
            // Its records fit the manifest.
            let keys = 1 + rng.below(4);
            return Ok((table, Shape { keys, fixed_keys, expires, value_min: 0, value_span: 16 }));
        }
        let (value_min, value_span) =
            *rng.pick(&[(8, 1), (0, 90), (0, 3), (1500, 9000), (400, 1200), (3000, 90_000)]);
        let keys = if value_span > 4000 { 10 + rng.below(40) } else { 50 + rng.below(3000) };
        Ok((table, Shape { keys, fixed_keys, expires, value_min, value_span }))
    }

    /// Commits a transaction over all tables: many records, and some deletes.
    fn round(
        &mut self,
        db: &Db,
        made: &[(Table, Shape)],
        rng: &mut Rng,
        serial: &mut u32,
        all: bool,
    ) -> Result<()> {
        for (n, table) in made.iter().enumerate() {
            if rng.one_in(4) && !all {
                continue;
            }
            // The log does not get this commit: a flush makes that needless.
            let mut w = db.write_with(WriteOptions {
                durability: Some(Durability::Eventual),
                ..WriteOptions::default()
            });
            let count = if all { table.1.keys } else { 1 + rng.below(table.1.keys) };
            for _ in 0..count {
                self.put(&mut w, table, n, rng, serial)?;
            }
            for _ in 0..rng.below(table.1.keys / 4 + 1) {
                let key = key_of(&table.1, rng);
                w.remove(&table.0, &key)?;
                self.lists.remove(&(n, key.clone()));
                self.deleted.insert((n, key));
            }
            if rng.one_in(3) && table.0.kind() == TableKind::Ordered {
                let (a, b) = (key_of(&table.1, rng), key_of(&table.1, rng));
                let (from, to) = if a < b { (a, b) } else { (b, a) };
                w.remove_range(&table.0, &from..&to)?;
                let inside = self.history.range((n, from)..(n, to)).map(|(id, _)| id.clone());
                let inside: Vec<Id> = inside.collect();
                inside.iter().for_each(|id| self.lists.remove(id));
                self.deleted.extend(inside);
            }
            w.commit()?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        w: &mut azekura::WriteTxn,
        (table, shape): &(Table, Shape),
        n: usize,
        rng: &mut Rng,
        serial: &mut u32,
    ) -> Result<Id> {
        *serial += 1;
        let stamp = (*serial, (shape.value_min + rng.below(shape.value_span)) as u32);
        let id = (n, key_of(shape, rng));
        if self.lists.tables.contains_key(&n) {
            self.lists.write(w, table, &id, stamp, rng)?;
        } else if shape.expires > 0 && rng.one_in(shape.expires) {
            w.put_for(table, &id.1, value_of(stamp), LONG)?;
        } else {
            w.put(table, &id.1, &value_of(stamp))?;
        }
        self.history.entry(id.clone()).or_default().push(stamp);
        Ok(id)
    }
}

fn key_of(shape: &Shape, rng: &mut Rng) -> Vec<u8> {
    let i = rng.below(shape.keys);
    match i % 5 {
        _ if shape.fixed_keys => (i * i * 97).to_be_bytes().to_vec(),
        0 => (i * 31).to_be_bytes().to_vec(),
        1 => format!("{i}").into_bytes(),
        _ => format!("a key of some length, number {i:06}").into_bytes(),
    }
}

fn contents_of(storage: &MemStorage) -> Vec<u8> {
    let mut bytes = contents(storage).unwrap_or_default();
    bytes.resize(bytes.len().next_multiple_of(super::BLOCK), 0);
    bytes
}
