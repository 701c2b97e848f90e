//! Very many tables of one record each: what they take of memory and file, and that a table more costs what
//! the first one cost. `AZEKURA_TABLES=100000 cargo test -p azekura --test many_tables -- --nocapture` prints
//! the figures for as many as that (and a tenth with indexes).

use azekura::{Db, Durability, Options, TableKind};
use std::path::Path;
use std::sync::Mutex;

/// The budget, which is also what all memory of the handle must stay within.
const MEMORY_BYTES: u64 = 64 << 20;
const FILE_BYTES_A_TABLE: u64 = 1000;
/// Tables made or written to in one call.
const BATCH: usize = 1000;
/// Tables whose making is measured.
const SAMPLES: usize = 20;

/// Held by the test that runs: each measures the memory of the process.
static TURN: Mutex<()> = Mutex::new(());

fn tables() -> usize {
    std::env::var("AZEKURA_TABLES").map_or(20_000, |n| n.parse().expect("AZEKURA_TABLES is a number"))
}

/// Memory of the process that is no file's.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")).map_or(0, |kib| kib.trim().parse::<u64>().unwrap() << 10)
}

/// The most memory that was seen beyond what there was at first.
struct Watch {
    first: u64,
    most: u64,
}

impl Watch {
    fn new() -> Watch {
        Watch { first: anonymous_bytes(), most: 0 }
    }

    fn look(&mut self) {
        self.most = self.most.max(anonymous_bytes().saturating_sub(self.first));
    }

    fn end(self, doing: &str) {
        println!("{doing}: at most {:.1} MiB more memory", self.most as f64 / f64::from(1 << 20));
        assert!(self.most <= MEMORY_BYTES, "{doing} took {} bytes of memory", self.most);
    }
}

fn open(path: &Path) -> Db {
    Options::new().memory_bytes(MEMORY_BYTES).durability(Durability::Eventual).open(path).unwrap()
}

fn name(i: usize) -> String {
    format!("table {i}")
}

fn kind(i: usize) -> TableKind {
    if i.is_multiple_of(2) { TableKind::Ordered } else { TableKind::Hash }
}

fn value(i: usize) -> [u8; 8] {
    (i as u64 * 31).to_be_bytes()
}

/// What making one table costs: bytes written and syncs, by the cheapest of some, beside whose making the
/// engine's threads have written nothing.
fn cost_of_a_table(db: &Db, name: &str) -> (u64, u64) {
    let cost = |n: usize| {
        let before = db.stats();
        db.create_table(&format!("{name} {n}"), TableKind::Ordered).unwrap();
        let after = db.stats();
        (after.written_bytes - before.written_bytes, after.syncs - before.syncs)
    };
    (0..SAMPLES).map(cost).min().unwrap()
}

#[test]
fn very_many_tables_take_little_and_one_more_costs_what_the_first_did() {
    let _turn = TURN.lock();
    let dir = std::env::temp_dir().join(format!("azekura-many-tables-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (path, n) = (dir.join("db"), tables());

    let mut watch = Watch::new();
    let db = open(&path);
    let first = cost_of_a_table(&db, "first");
    let began = std::time::Instant::now();
    for from in (0..n).step_by(BATCH) {
        let names: Vec<(String, TableKind)> =
            (from..n.min(from + BATCH)).map(|i| (name(i), kind(i))).collect();
        let wanted: Vec<(&str, TableKind)> =
            names.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        let made = db.create_tables(&wanted).unwrap();
        assert!(made.iter().zip(&names).all(|(t, (name, kind))| t.name() == *name && t.kind() == *kind));
        watch.look();
    }
    println!("{n} tables made in {:?}", began.elapsed());
    let last = cost_of_a_table(&db, "last");
    assert!(
        last.0 <= first.0 && last.1 <= first.1,
        "{last:?} bytes and syncs for the last, {first:?} for the first"
    );
    watch.end("making tables");

    let mut watch = Watch::new();
    let began = std::time::Instant::now();
    let mut txn = None;
    for i in 0..n {
        let table = db.open_table(&name(i)).unwrap();
        if i < n / 2 {
            table.put(b"the key", &value(i)).unwrap();
        } else {
            let w = txn.get_or_insert_with(|| db.write());
            w.put(&table, b"the key", &value(i)).unwrap();
        }
        if i.is_multiple_of(BATCH) || i + 1 == n {
            txn.take().map_or(Ok(()), azekura::WriteTxn::commit).unwrap();
            watch.look();
            let stats = db.stats();
            assert!(stats.memtable_bytes + stats.table_bytes <= MEMORY_BYTES);
        }
    }
    println!("{n} records put in {:?}, {} flushes", began.elapsed(), db.stats().flushes);
    watch.look();
    watch.end("putting a record into each");
    db.close().unwrap();
    let file_bytes = std::fs::metadata(&path).unwrap().len();
    println!("the file has {} bytes a table", file_bytes / n as u64);
    assert!(file_bytes <= n as u64 * FILE_BYTES_A_TABLE, "a file of {file_bytes} bytes");

    let mut watch = Watch::new();
    let began = std::time::Instant::now();
    let db = open(&path);
    println!("opened in {:?}", began.elapsed());
    watch.look();
    let began = std::time::Instant::now();
    for i in 0..n {
        let table = db.open_table(&name(i)).unwrap();
        assert_eq!(table.kind(), kind(i));
        assert_eq!(table.get(b"the key").unwrap().as_deref(), Some(&value(i)[..]));
        assert_eq!(table.get(b"another").unwrap(), None);
        if i.is_multiple_of(BATCH) {
            assert_eq!(table.count().unwrap(), 1);
            watch.look();
        }
    }
    println!("{n} records read in {:?}", began.elapsed());
    watch.look();
    assert_eq!(db.tables().len(), n + 2 * SAMPLES);
    watch.end("opening and reading");
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty() && report.records == n as u64, "{report:?}");
    db.shrink(|_| {}).unwrap();
    db.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() <= n as u64 * FILE_BYTES_A_TABLE);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Each index is a table more, and each is durable when it is made.
#[test]
fn very_many_tables_have_an_index_each() {
    let _turn = TURN.lock();
    let dir = std::env::temp_dir().join(format!("azekura-many-indexes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (path, n) = (dir.join("db"), tables() / 10);
    let mut watch = Watch::new();
    let db = open(&path);
    let names: Vec<String> = (0..n).map(name).collect();
    let wanted: Vec<(&str, TableKind)> = names.iter().map(|name| (&**name, TableKind::Ordered)).collect();
    let made = db.create_tables(&wanted).unwrap();
    let began = std::time::Instant::now();
    for (i, t) in made.iter().enumerate() {
        t.create_index("i", "v[0..8]:u64be unique").unwrap();
        t.put(b"the key", value(i)).unwrap();
        if i.is_multiple_of(BATCH) {
            watch.look();
        }
    }
    println!("{n} indexes made in {:?}", began.elapsed());
    watch.look();
    watch.end("making indexes");
    drop(made);
    db.close().unwrap();
    let file_bytes = std::fs::metadata(&path).unwrap().len();
    println!("the file has {} bytes a table with its index", file_bytes / n as u64);
    assert!(file_bytes <= n as u64 * FILE_BYTES_A_TABLE, "a file of {file_bytes} bytes");

    let mut watch = Watch::new();
    let began = std::time::Instant::now();
    let db = open(&path);
    println!("opened in {:?}", began.elapsed());
    assert_eq!(db.tables().len(), n);
    let mut txn = db.write();
    for (i, name) in names.iter().enumerate() {
        let t = db.open_table(name).unwrap();
        let found = t.index("i").unwrap().first(&[(i as u64 * 31).into()]).unwrap();
        assert_eq!(found, Some((b"the key".to_vec(), value(i).to_vec())));
        // One transaction over all of them.
        txn.put(&t, b"the key", value(i + 1)).unwrap();
    }
    watch.look();
    txn.commit().unwrap();
    watch.look();
    let t = db.open_table(&names[n - 1]).unwrap();
    assert_eq!(t.index("i").unwrap().count(&[(n as u64 * 31).into()]).unwrap(), 1);
    let began = std::time::Instant::now();
    t.drop_index("i").unwrap();
    t.create_index("i", "v").unwrap();
    println!("one dropped and made in {:?}", began.elapsed());
    watch.look();
    watch.end("opening, and one transaction over all");
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    drop(t);
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
