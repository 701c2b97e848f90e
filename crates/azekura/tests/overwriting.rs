//! A closed file is no larger than its records need, whatever came before, and one that is left alone comes
//! to that too: at most 1.3 times the bytes of the live keys and values, and 64 KiB.

use common::Rng;
mod common;

use azekura::storage::MemStorage;
use azekura::{Db, Durability, Options, Stats, Table, TableKind, WriteOptions, WriteTxn};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PATH: &str = "/overwriting.azk";
/// How long a file may take to come to rest: it is a matter of a second or two on a machine that has nothing
/// else to do.
const PATIENCE: Duration = Duration::from_secs(60);

fn bound(raw: u64) -> u64 {
    raw * 13 / 10 + (64 << 10)
}

fn open(storage: &MemStorage, options: Options) -> Db {
    common::watch(PATIENCE * 2);
    Db::open_on(storage, PATH, options).unwrap()
}

fn eventual() -> WriteOptions {
    WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() }
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

/// What the tables hold: by table and key, the seed and length of the value.
#[derive(Default)]
struct Model(BTreeMap<(usize, Vec<u8>), (u64, usize)>);

impl Model {
    fn raw(&self) -> u64 {
        self.0.iter().map(|((_, key), (_, len))| (key.len() + len) as u64).sum()
    }

    fn expect(&self, tables: &[Table]) {
        for (n, table) in tables.iter().enumerate() {
            let alive = self.0.keys().filter(|(t, _)| *t == n).count() as u64;
            assert_eq!(table.count().unwrap(), alive, "records of table {n}");
        }
        for ((n, key), &(seed, len)) in &self.0 {
            assert!(tables[*n].get(key).unwrap() == Some(noise(seed, len)), "table {n}, key {key:x?}");
        }
    }
}

/// Waits until the file is as small as it must become when nobody writes.
fn wait_until_small(db: &Db, raw: u64) {
    let until = Instant::now() + PATIENCE;
    while db.stats().file_bytes > bound(raw) {
        let stats = db.stats();
        assert!(Instant::now() < until, "{raw} bytes are alive, {} may be taken: {stats:?}", bound(raw));
        common::doing(format!("waiting for {stats:?}"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Closes the database, whose file must be small then, and sound.
fn close(storage: &MemStorage, db: Db, raw: u64) -> Stats {
    common::doing("closing".into());
    let before = db.stats();
    db.close().unwrap();
    let db = open(storage, Options::new().read_only(true));
    let stats = db.stats();
    let may = bound(raw);
    assert!(
        stats.file_bytes <= may,
        "{raw} bytes are alive, {may} may be taken: {stats:?}, before {before:?}"
    );
    let problems = db.check(|_| {}).unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
    stats
}

/// Durable transactions of a few large values each, over a few hundred keys.
fn large_values(db: &Db, rng: &mut Rng, transactions: u64) -> (Vec<Table>, Model) {
    let table = db.table("t", TableKind::Ordered).unwrap();
    let mut model = Model::default();
    for _ in 0..transactions {
        let mut txn = db.write();
        for _ in 0..1 + rng.below(3) {
            let (key, seed) = (rng.below(200).to_be_bytes().to_vec(), rng.number());
            let len = 1000 + rng.below(24_000) as usize;
            txn.put(&table, &key, &noise(seed, len)).unwrap();
            model.0.insert((0, key), (seed, len));
        }
        txn.commit().unwrap();
    }
    (vec![table], model)
}

/// Commits of many records each, over the same keys again and again.
fn records_over_and_over(
    db: &Db,
    kind: TableKind,
    records: u64,
    len: usize,
    rounds: u64,
) -> (Vec<Table>, Model) {
    let table = db.table("t", kind).unwrap();
    let mut model = Model::default();
    for round in 0..rounds {
        let mut txn = db.write_with(eventual());
        for i in 0..records {
            txn.put(&table, &i.to_be_bytes(), &noise(round << 32 | i, len)).unwrap();
        }
        txn.commit().unwrap();
    }
    let last = (rounds - 1) << 32;
    model.0.extend((0..records).map(|i| ((0, i.to_be_bytes().to_vec()), (last | i, len))));
    (vec![table], model)
}

/// A load, and then small updates all over it.
fn small_updates(db: &Db, rng: &mut Rng, updates: u64) -> (Vec<Table>, Model) {
    let table = db.table("t", TableKind::Hash).unwrap();
    let mut model = Model::default();
    let mut put = |txn: &mut WriteTxn, key: u64, seed: u64| {
        let key = format!("user{key:016}").into_bytes();
        txn.put(&table, &key, &noise(seed, 100)).unwrap();
        model.0.insert((0, key), (seed, 100));
    };
    let mut txn = db.write_with(eventual());
    (0..30_000).for_each(|key| put(&mut txn, key, key));
    txn.commit().unwrap();
    for _ in 0..updates / 20 {
        let mut txn = db.write_with(eventual());
        (0..20).for_each(|_| put(&mut txn, rng.below(30_000), rng.number()));
        txn.commit().unwrap();
    }
    (vec![table], model)
}

fn budget(mib: u64) -> Options {
    Options::new().memory_bytes(mib << 20)
}

#[test]
fn large_values_overwritten_in_many_transactions_leave_a_small_file() {
    let storage = MemStorage::default();
    let db = open(&storage, budget(64));
    let (tables, model) = large_values(&db, &mut Rng::new(1), 1500);
    drop(tables);
    close(&storage, db, model.raw());
}

#[test]
fn records_put_over_and_over_leave_a_small_file() {
    for (kind, mib) in [(TableKind::Ordered, 16), (TableKind::Hash, 64)] {
        let storage = MemStorage::default();
        let db = open(&storage, budget(mib));
        let (tables, model) = records_over_and_over(&db, kind, 3000, 1460, 40);
        drop(tables);
        close(&storage, db, model.raw());
    }
}

#[test]
fn small_updates_leave_a_small_file() {
    for mib in [8, 64] {
        let storage = MemStorage::default();
        let db = open(&storage, budget(mib));
        let (tables, model) = small_updates(&db, &mut Rng::new(2), 60_000);
        drop(tables);
        close(&storage, db, model.raw());
    }
}

#[test]
fn a_file_that_is_left_alone_becomes_small() {
    for work in 0..3 {
        let storage = MemStorage::default();
        let db = open(&storage, budget(32));
        let (tables, model) = match work {
            0 => large_values(&db, &mut Rng::new(3), 600),
            1 => records_over_and_over(&db, TableKind::Ordered, 2000, 1460, 20),
            _ => small_updates(&db, &mut Rng::new(4), 30_000),
        };
        wait_until_small(&db, model.raw());
        model.expect(&tables);
        // What follows is as durable as ever.
        tables[0].put(b"after", b"it").unwrap();
        assert_eq!(tables[0].get(b"after").unwrap().unwrap(), b"it");
        drop(tables);
        close(&storage, db, model.raw() + 7);
    }
}

/// A few durable commits of small records: neither their log nor what an open file keeps ready is more than
/// may be.
#[test]
fn a_few_small_commits_make_no_long_file() {
    let storage = MemStorage::default();
    let db = open(&storage, Options::new());
    let table = db.table("t", TableKind::Ordered).unwrap();
    for i in 0..3000u64 {
        table.put(&(i % 10).to_be_bytes(), &i.to_be_bytes()).unwrap();
    }
    table.put(b"large", &[7; 2000]).unwrap();
    wait_until_small(&db, 160 + 2005);
    drop(table);
    close(&storage, db, 160 + 2005);
}

/// Random operations of every kind on several tables, as one database of a seed has them.
struct Walk {
    rng: Rng,
    tables: Vec<Table>,
    /// The sizes that values of each table mostly have.
    sizes: Vec<u64>,
    keys: u64,
    model: Model,
}

impl Walk {
    fn new(db: &Db, mut rng: Rng) -> Walk {
        let kinds: Vec<TableKind> = (0..1 + rng.below(3))
            .map(|_| [TableKind::Ordered, TableKind::Hash][rng.below(2) as usize])
            .collect();
        let sizes = kinds.iter().map(|_| [60, 300, 900, 3000, 30_000][rng.below(5) as usize]).collect();
        let tables =
            kinds.iter().enumerate().map(|(n, &kind)| db.table(&format!("t{n}"), kind).unwrap()).collect();
        let keys = 50 + rng.below(3000);
        Walk { rng, tables, sizes, keys, model: Model::default() }
    }

    fn key(&mut self, table: usize) -> Vec<u8> {
        // Low keys come more often than high ones.
        let n = self.rng.below(self.keys).min(self.rng.below(self.keys));
        if table == 0 {
            n.to_be_bytes().to_vec()
        } else {
            format!("a key of some length {n:08}").into_bytes()
        }
    }

    fn len(&mut self, table: usize) -> usize {
        let usual = self.sizes[table] / 2 + self.rng.below(self.sizes[table]);
        let len = if self.rng.one_in(300) { 1000 + self.rng.below(200_000) } else { usual };
        len as usize
    }

    fn step(&mut self, db: &Db) {
        let table = self.rng.below(self.tables.len() as u64) as usize;
        match self.rng.below(100) {
            0..=1 => db.flush().unwrap(),
            2 => db.sync().unwrap(),
            3 => self.remove_range(db, table),
            4 if self.rng.one_in(4) => self.clear(db, table),
            _ => self.commit(db, table),
        }
    }

    fn commit(&mut self, db: &Db, table: usize) {
        let records = if self.rng.one_in(3) { 1 + self.rng.below(400_000 / self.sizes[table]) } else { 1 };
        let mut txn = if self.rng.one_in(2) { db.write() } else { db.write_with(eventual()) };
        for _ in 0..records {
            let (key, seed) = (self.key(table), self.rng.number());
            if self.rng.one_in(6) {
                txn.remove(&self.tables[table], &key).unwrap();
                self.model.0.remove(&(table, key));
            } else {
                let len = self.len(table);
                txn.put(&self.tables[table], &key, &noise(seed, len)).unwrap();
                self.model.0.insert((table, key), (seed, len));
            }
        }
        if self.rng.one_in(20) {
            // What was to be stored and was not leaves nothing behind.
            txn.put(&self.tables[table], b"never", &noise(1, 50_000)).unwrap();
            txn.remove(&self.tables[table], b"never").unwrap();
        }
        txn.commit().unwrap();
    }

    fn remove_range(&mut self, db: &Db, table: usize) {
        if self.tables[table].kind() == TableKind::Hash {
            return;
        }
        let (from, to) = (self.key(table), self.key(table));
        let (from, to) = if from <= to { (from, to) } else { (to, from) };
        let mut txn = db.write_with(eventual());
        txn.remove_range(&self.tables[table], &from..&to).unwrap();
        txn.commit().unwrap();
        self.model.0.retain(|(t, key), _| *t != table || *key < from || *key >= to);
    }

    fn clear(&mut self, db: &Db, table: usize) {
        let mut txn = db.write();
        txn.clear(&self.tables[table]).unwrap();
        txn.commit().unwrap();
        self.model.0.retain(|(t, _), _| *t != table);
    }
}

fn walk(seed: u64) {
    let storage = MemStorage::default();
    let mut rng = Rng::new(seed);
    let options = || Options::new().memory_bytes((8 << (seed % 4)) << 20);
    let mut db = open(&storage, options());
    let mut walk = Walk::new(&db, Rng::new(seed ^ 77));
    for round in 0..1 + rng.below(3) {
        common::doing(format!("seed {seed}, round {round}"));
        (0..rng.below(1500)).for_each(|_| walk.step(&db));
        let raw = walk.model.raw();
        if rng.one_in(3) {
            wait_until_small(&db, raw);
        }
        if rng.one_in(4) {
            db.shrink(|_| {}).unwrap();
            let stats = db.stats();
            assert!(stats.file_bytes <= bound(raw), "compacted, for {raw} bytes: {stats:?}");
        }
        let names: Vec<_> = (0..walk.tables.len()).map(|n| format!("t{n}")).collect();
        walk.tables.clear();
        let stats = close(&storage, db, raw);
        println!(
            "seed {seed}, round {round}: {} bytes for {raw}: {:.3}",
            stats.file_bytes,
            stats.file_bytes as f64 / raw as f64
        );
        db = open(&storage, options());
        walk.tables = names.iter().map(|name| db.open_table(name).unwrap()).collect();
        walk.model.expect(&walk.tables);
    }
}

#[test]
fn random_work_leaves_a_small_file() {
    let seeds = std::env::var("AZEKURA_SEEDS").map_or(0..12, |s| {
        let (from, to) = s.split_once("..").expect("AZEKURA_SEEDS is a range of seeds");
        from.parse().unwrap()..to.parse().unwrap()
    });
    seeds.for_each(walk);
}
