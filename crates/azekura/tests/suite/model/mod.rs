//! A model beside the engine: random operations under random options, with a `BTreeMap` for each
//! table that says what must come back. Snapshots, cursors and references are held across flushes,
//! merges and compactions and compared with what the model was when they were taken.
//!
//! `AZEKURA_SEED=n` runs that round alone, `AZEKURA_ROUNDS=n` that many, `AZEKURA_TRACE=1` prints
//! each operation.

mod data;
mod typed;
mod walk;
mod write;

use crate::common::Rng;
use azekura::storage::{MemStorage, Storage};
use azekura::{
    Cursor, Db, Durability, Error, Isolation, Options, ReadTxn, Repository, Table, TableKind, ValueRef,
    Which, WriteOptions, WriteTxn, restore_stream_on,
};
use data::Family;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use walk::{Map, Reader};
use write::Writer;

/// Rounds that are run if nothing is said: about half a minute on two busy cores.
const ROUNDS: u64 = 160;

/// A table and what should be in it.
#[derive(Clone)]
struct Modelled {
    name: String,
    family: Family,
    table: Table,
    map: Arc<Map>,
}

/// A snapshot, what it must show, and a cursor over one of its tables.
struct Held {
    read: ReadTxn,
    tables: Vec<(Table, Family, Arc<Map>)>,
    cursor: Cursor,
    of: usize,
}

struct World {
    rng: Rng,
    storage: MemStorage,
    options: Options,
    db: Option<Db>,
    tables: Vec<Modelled>,
    held: Vec<Held>,
    values: Vec<(ValueRef<'static>, Arc<[u8]>)>,
    names: u64,
    trace: Vec<String>,
}

const PATH: &str = "/model.azk";

fn random_options(rng: &mut Rng) -> Options {
    let memtable = [64, 64, 200, 1024][rng.below(4) as usize] << 10;
    let durability = if rng.one_in(2) { Durability::Sync } else { Durability::Eventual };
    Options::new()
        .memory_bytes([8, 8, 16][rng.below(3) as usize] << 20)
        .memtable_bytes(memtable)
        .durability(durability)
        .eventual_delay(Duration::from_millis([5, 1000][rng.below(2) as usize]))
        .large_value_bytes([64, 101, 1024, 4096, 8192][rng.below(5) as usize])
        .background_merges(!rng.one_in(3))
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let options = random_options(&mut rng);
        let mut world = World {
            rng,
            storage: MemStorage::default(),
            options,
            db: None,
            tables: Vec::new(),
            held: Vec::new(),
            values: Vec::new(),
            names: 0,
            trace: Vec::new(),
        };
        world.open();
        for _ in 0..1 + world.rng.below(3) {
            world.create();
        }
        world
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    fn open(&mut self) {
        let db = Db::open_on(&self.storage, PATH, self.options.clone()).unwrap();
        write::DB.with_borrow_mut(|slot| *slot = Some(db.clone()));
        self.db = Some(db);
    }

    fn create(&mut self) {
        self.names += 1;
        let name = format!("table {}", self.names);
        let kind = if self.rng.one_in(3) { TableKind::Hash } else { TableKind::Ordered };
        let family = Family::random(&mut self.rng);
        let table = self.db().create_table(&name, kind).unwrap();
        self.trace.push(format!("create {name} {kind:?} {family:?}"));
        self.tables.push(Modelled { name, family, table, map: Arc::default() });
    }

    /// One random step; says what it was.
    fn step(&mut self) -> String {
        match self.rng.below(100) {
            0..=34 => self.write_one(),
            35..=49 => self.transaction(),
            50..=69 => self.read_one(),
            70..=77 => self.hold(),
            78..=86 => self.look_at_held(),
            87..=89 => {
                self.db().flush().unwrap();
                "flush".into()
            }
            90 => {
                self.db().compact().unwrap();
                "compact".into()
            }
            91 => {
                let report = self.db().shrink(|_| {}).unwrap();
                format!("compact {report:?}")
            }
            92 => {
                self.db().sync().unwrap();
                "sync".into()
            }
            93 | 94 => self.reopen(),
            95 | 96 => self.tables_come_and_go(),
            97 => {
                self.check(false);
                "check".into()
            }
            98 => self.copied(),
            _ => {
                std::thread::sleep(Duration::from_millis(self.rng.below(4)));
                "sleep".into()
            }
        }
    }

    fn any_table(&mut self) -> usize {
        self.rng.below(self.tables.len() as u64) as usize
    }

    fn write_one(&mut self) -> String {
        let i = self.any_table();
        let m = &mut self.tables[i];
        let what =
            write::write(Writer::Table, &m.table, &mut m.family, Arc::make_mut(&mut m.map), &mut self.rng);
        format!("{}: {what}", m.name)
    }

    /// Several writes and reads in one transaction, with savepoints, committed or not.
    fn transaction(&mut self) -> String {
        let isolation = if self.rng.one_in(2) { Isolation::Snapshot } else { Isolation::Serializable };
        let durability =
            [None, Some(Durability::Sync), Some(Durability::Eventual)][self.rng.below(3) as usize];
        let mut txn = self.db().write_with(WriteOptions { durability, isolation });
        // As the transaction sees them.
        let mut tables = self.tables.clone();
        let mut points = Vec::new();
        let mut said = String::from("transaction:");
        for _ in 0..1 + self.rng.below(8) {
            let i = self.rng.below(tables.len() as u64) as usize;
            let m = &mut tables[i];
            match self.rng.below(13) {
                0 | 1 => {
                    points.push((txn.savepoint(), tables.clone()));
                    said += " savepoint";
                }
                12 => said += &self.change_tables(&mut txn, &mut tables, i),
                2 if !points.is_empty() => {
                    let at = self.rng.below(points.len() as u64) as usize;
                    points.truncate(at + 1);
                    txn.rollback_to(&points[at].0).unwrap();
                    tables.clone_from(&points[at].1);
                    said += &format!(" back to {at}");
                }
                3..=8 => {
                    let map = Arc::make_mut(&mut m.map);
                    let what =
                        write::write(Writer::Txn(&mut txn), &m.table, &mut m.family, map, &mut self.rng);
                    said += &format!(" {}: {what}", m.name);
                }
                _ => {
                    said += &format!(" read {}", m.name);
                    read(Reader::Write(&mut txn), &m.table, &m.family, &m.map, &mut self.rng);
                }
            }
            crate::common::doing(format!("{} {said}", crate::common::was_doing()));
            self.trace.push(said.clone());
        }
        if self.rng.one_in(5) {
            txn.rollback();
            return said + " rollback";
        }
        txn.commit().unwrap();
        self.tables = tables;
        for m in &self.tables {
            assert_eq!(m.table.name(), m.name);
        }
        said
    }

    /// Makes, renames or drops a table in a transaction.
    fn change_tables(&mut self, txn: &mut WriteTxn, tables: &mut Vec<Modelled>, i: usize) -> String {
        self.names += 1;
        let name = format!("table {}", self.names);
        match self.rng.below(3) {
            0 if tables.len() > 1 => {
                let gone = tables.swap_remove(i);
                txn.drop_table(&gone.name).unwrap();
                let read = txn.get(&gone.table, b"k");
                assert!(matches!(read, Err(Error::NoSuchTable { .. })), "a dropped table gave {read:?}");
                // Another one may have its name.
                if self.rng.one_in(2) {
                    let table = txn.create_table(&gone.name, TableKind::Ordered).unwrap();
                    tables.push(Modelled { table, map: Arc::default(), ..gone });
                }
                " drop".into()
            }
            1 if tables.len() < 5 => {
                let kind = if self.rng.one_in(3) { TableKind::Hash } else { TableKind::Ordered };
                let family = Family::random(&mut self.rng);
                let table = txn.create_table(&name, kind).unwrap();
                let said = format!(" create {name} {kind:?} {family:?}");
                tables.push(Modelled { name, family, table, map: Arc::default() });
                said
            }
            _ => {
                txn.rename_table(&tables[i].name, &name).unwrap();
                tables[i].name = name;
                " rename".into()
            }
        }
    }

    fn read_one(&mut self) -> String {
        let i = self.any_table();
        let m = &self.tables[i];
        if self.rng.one_in(2) {
            read(Reader::Table, &m.table, &m.family, &m.map, &mut self.rng);
            return format!("read {}", m.name);
        }
        let snapshot = self.db().read();
        read(Reader::Read(&snapshot), &m.table, &m.family, &m.map, &mut self.rng);
        format!("read {} by a snapshot", m.name)
    }

    /// Takes a snapshot, or a reference to a value, to be looked at later.
    fn hold(&mut self) -> String {
        let i = self.any_table();
        if self.rng.one_in(2) {
            let m = &self.tables[i];
            let key = m.family.random_key(&mut self.rng);
            let found = m.table.get_ref(&key).unwrap();
            let model = m.map.get(&key).cloned();
            assert_eq!(found.as_deref(), model.as_deref(), "get_ref({})", walk::short(&key));
            self.values.extend(found.zip(model));
            return "hold a value".into();
        }
        if self.held.len() == 4 {
            self.held.remove(0);
        }
        let read = self.db().read();
        let tables: Vec<_> =
            self.tables.iter().map(|m| (m.table.clone(), m.family.clone(), m.map.clone())).collect();
        let cursor = read.cursor(&tables[i].0).unwrap();
        self.held.push(Held { read, tables, cursor, of: i });
        "hold a snapshot".into()
    }

    fn look_at_held(&mut self) -> String {
        for (value, model) in &self.values {
            assert_eq!(value[..], model[..], "a value that was held");
        }
        if self.rng.one_in(4) {
            self.values.clear();
        }
        if self.held.is_empty() {
            return "look at values".into();
        }
        let i = self.rng.below(self.held.len() as u64) as usize;
        let rng = &mut self.rng;
        let held = &mut self.held[i];
        let (table, family, map) = &held.tables[held.of];
        match rng.below(3) {
            0 => walk::whole_of(
                replaced(&mut held.cursor, &held.read, table),
                table.kind(),
                map,
                rng.one_in(2),
            ),
            1 if table.kind() == TableKind::Ordered => {
                let order: Vec<_> = map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                held.cursor.seek_first();
                walk::walk(&mut held.cursor, &order, 0, Some(family), rng);
            }
            _ => {
                let at = rng.below(held.tables.len() as u64) as usize;
                let (table, family, map) = &held.tables[at];
                read(Reader::Read(&held.read), table, family, map, rng);
            }
        }
        if rng.one_in(3) {
            self.held.remove(i);
        }
        format!("look at snapshot {i}")
    }

    fn reopen(&mut self) -> String {
        let close = self.rng.one_in(2);
        let db = self.db.take().expect("the database is open");
        write::DB.with_borrow_mut(|slot| *slot = None);
        if !close {
            drop(db);
        } else {
            db.close().unwrap();
            for m in &self.tables {
                let calls = [
                    m.table.put(b"k", b"v"),
                    m.table.contains(b"k").map(|_| ()),
                    m.table.count().map(|_| ()),
                ];
                assert!(calls.iter().all(|c| matches!(c, Err(Error::Closed))), "after the close: {calls:?}");
            }
        }
        self.held.clear();
        self.values.clear();
        // Without a close the last handle goes with the tables, and with it the lock of the file.
        let tables = std::mem::take(&mut self.tables);
        let kept: Vec<_> = tables.into_iter().map(|m| (m.name, m.family, m.map)).collect();
        if self.rng.one_in(3) {
            self.options = random_options(&mut self.rng);
        }
        if self.rng.one_in(2) {
            let read_only = Db::open_on(&self.storage, PATH, Options::new().read_only(true)).unwrap();
            let problems = read_only.check(|_| {}).unwrap().problems;
            assert!(problems.is_empty(), "check of a closed database: {problems:?}");
        }
        self.open();
        for (name, family, map) in kept {
            let table = self.db().open_table(&name).unwrap();
            self.tables.push(Modelled { name, family, table, map });
        }
        self.check(true);
        format!("reopen (closed: {close})")
    }

    fn tables_come_and_go(&mut self) -> String {
        let i = self.any_table();
        match self.rng.below(3) {
            0 if self.tables.len() > 1 => {
                let gone = self.tables.swap_remove(i);
                self.db().drop_table(&gone.name).unwrap();
                let read = gone.table.get(b"k");
                assert!(matches!(read, Err(Error::NoSuchTable { .. })), "a dropped table gave {read:?}");
                let written = gone.table.put(b"k", b"v");
                assert!(
                    matches!(written, Err(Error::NoSuchTable { .. })),
                    "a dropped table gave {written:?}"
                );
                format!("drop {}", gone.name)
            }
            1 if self.tables.len() < 5 => {
                self.create();
                "create".into()
            }
            _ => {
                self.names += 1;
                let to = format!("table {}", self.names);
                self.db().rename_table(&self.tables[i].name, &to).unwrap();
                self.tables[i].name = to;
                assert_eq!(self.tables[i].table.name(), self.tables[i].name);
                "rename".into()
            }
        }
    }

    /// What a copy, a stream or a point of the repository holds is what there is.
    fn copied(&mut self) -> String {
        const COPY: &str = "copy.azk";
        let how = ["copy", "stream", "backup"][self.rng.below(3) as usize];
        let backward = self.rng.one_in(2);
        let (db, storage) = (self.db(), &self.storage);
        match how {
            "copy" => db.copy_to_on(storage, COPY, |_| {}).unwrap(),
            "stream" => {
                let mut stream = Vec::new();
                db.backup_to(&mut stream, |_| {}).unwrap();
                restore_stream_on(storage, &mut stream.as_slice(), COPY, |_| {}).unwrap();
            }
            _ => {
                let point = db.backup_on(storage, "saved", |_| {}).unwrap().point;
                let saved = Repository::open_on(storage, "saved").unwrap();
                saved.restore(Which::Point(point), COPY, |_| {}).unwrap();
            }
        }
        let copy = Db::open_on(storage, COPY, self.options.clone()).unwrap();
        assert_eq!(copy.tables(), db.tables());
        assert!(copy.check(|_| {}).unwrap().problems.is_empty(), "check of a {how}");
        for m in &self.tables {
            walk::whole(Reader::Table, &copy.open_table(&m.name).unwrap(), &m.map, backward);
        }
        copy.close().unwrap();
        self.storage.remove(Path::new(COPY)).unwrap();
        how.into()
    }

    fn check(&mut self, contents: bool) {
        let report = self.db().check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "check: {:?}", report.problems);
        assert_eq!(
            report.records,
            self.tables.iter().map(|m| m.map.len() as u64).sum::<u64>(),
            "records of the check"
        );
        let mut names: Vec<_> = self.tables.iter().map(|m| m.name.clone()).collect();
        names.sort();
        assert_eq!(self.db().tables().into_iter().map(|t| t.name).collect::<Vec<_>>(), names);
        for m in self.tables.iter().filter(|_| contents) {
            walk::whole(Reader::Table, &m.table, &m.map, self.rng.one_in(2));
        }
    }
}

/// A fresh cursor in the place of a used one, half of the time the used one itself.
fn replaced(slot: &mut Cursor, read: &ReadTxn, table: &Table) -> Cursor {
    std::mem::replace(slot, read.cursor(table).unwrap())
}

/// A random way of reading.
fn read(reader: Reader<'_>, t: &Table, family: &Family, map: &Map, rng: &mut Rng) {
    match rng.below(7) {
        6 => walk::both_ends(reader, t, family, map, rng),
        0 => walk::whole(reader, t, map, rng.one_in(2)),
        1 | 2 => walk::random_walk(reader, t, family, map, rng),
        3 => walk::gets_in_order(reader, t, map, rng),
        _ => walk::some_gets(reader, t, family, map, rng),
    }
}

fn round(seed: u64, trace: bool) {
    let mut world = World::new(seed);
    let most = [160, 160, 160, 900][world.rng.below(4) as usize];
    let steps = 40 + world.rng.below(most);
    if trace {
        eprintln!("options {:?}", world.options);
    }
    for n in 0..steps {
        crate::common::doing(format!("round {seed}, step {n}"));
        let said = world.step();
        if trace {
            eprintln!("{n}: {said}");
        }
        world.trace.push(said);
    }
    crate::common::doing(format!("round {seed}, end"));
    for _ in 0..world.held.len() {
        world.look_at_held();
    }
    world.reopen();
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn the_engine_does_what_a_map_does() {
    crate::common::watch(Duration::from_secs(60));
    let (seed, rounds) = (number("AZEKURA_SEED"), number("AZEKURA_ROUNDS"));
    let first = seed.unwrap_or(1);
    let trace = std::env::var_os("AZEKURA_TRACE").is_some();
    for seed in first..first + rounds.unwrap_or(if seed.is_some() { 1 } else { ROUNDS }) {
        let result = std::panic::catch_unwind(|| round(seed, trace));
        if let Err(panic) = result {
            eprintln!("failed: AZEKURA_SEED={seed}, while {}", crate::common::was_doing());
            std::panic::resume_unwind(panic);
        }
    }
}
