//! Salvage: files damaged at random give back every record of every whole page.
//!
//! A trial makes a random database: tables, widths and sizes, with merges, holes, moved tails and large
//! values, lists that grow by merges, and some tables small enough for the manifest. It is closed, or its
//! last commits and tables are in the log only. Copies of it are damaged. The engine says what must come
//! back: it reads, key by key, a copy in which all is mended except pages, values and log frames. A key that
//! it can read must be there with that value. A key that it knows to be absent must be absent, if the
//! manifest is whole. Whatever else comes back must have been written at some time. Each frame of the log
//! has one commit, so the commits of damaged frames are known.

mod blocks;
mod lists;
mod values;
mod world;

use crate::fuzz::{holding, options};
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use azekura::storage::MemStorage;
use azekura::{Db, SalvageReport, Table, TableKind, salvage_on};
use blocks::{BLOCK, Blocks, What};
use lists::has_all;
use std::collections::{BTreeMap, BTreeSet};
use values::value_of;
use world::World;

const HANG_SECONDS: u64 = 300;
/// Damaged copies of each database.
const COPIES: u64 = 4;
/// The file name that the fuzz targets use.
const PATH: &str = "fuzz.azk";

/// Damages databases and salvages them.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "damaged files");
    let watchdog = Watchdog::start(HANG_SECONDS);
    run.on_all_processors(|n| {
        watchdog.at(format!("database {n}"));
        let mut rng = Rng::of(run.seed, n);
        let world = match World::new(&mut rng) {
            Ok(world) => world,
            Err(e) => return run.outcome(format!("database {n}"), Err(format!("making it: {e}"))),
        };
        let blocks = Blocks::of(&world.bytes);
        for copy in 0..COPIES {
            if run.goes_on() {
                let (damaged, what) = damage(&world, &blocks, &mut rng);
                let name = format!("database {n}, copy {copy}, {} bytes, {what}", world.bytes.len());
                run.outcome(name, trial(&world, &blocks, &damaged));
            }
        }
    });
    run.verdict()
}

/// Damages a copy, and says how.
fn damage(world: &World, blocks: &Blocks, rng: &mut Rng) -> (Vec<u8>, String) {
    let mut bytes = world.bytes.clone();
    let mut what = Vec::new();
    if rng.one_in(2) {
        let which = rng.below(3);
        for copy in [0, 1].into_iter().filter(|copy| which == 2 || which == *copy) {
            let garbage = if rng.one_in(2) { rng.bytes(BLOCK) } else { vec![0; BLOCK] };
            bytes[copy as usize * BLOCK..][..BLOCK].copy_from_slice(&garbage);
        }
        what.push(format!("superblock {}", ["A", "B", "A and B"][which as usize]));
    }
    for (kind, name) in [(What::Manifest, "manifest"), (What::Meta, "meta blocks")] {
        let those = blocks.all(kind);
        if rng.one_in(4) && !those.is_empty() {
            let n = 1 + rng.below(3);
            (0..n).for_each(|_| flip(&mut bytes, *rng.clone().pick(&those), rng));
            what.push(format!("{n} flips in {name}"));
        }
    }
    for _ in 0..rng.below(4) {
        let at = (2 + rng.below((bytes.len() / BLOCK) as u64 - 2)) as usize;
        let n = (1 + rng.below(1 << rng.clone().below(6))) as usize;
        let end = (at + n).min(bytes.len() / BLOCK);
        match rng.below(4) {
            0 => (at..end).for_each(|block| flip(&mut bytes, block, rng)),
            1 => bytes[at * BLOCK..end * BLOCK].fill(0),
            2 => bytes[at * BLOCK..end * BLOCK].copy_from_slice(&rng.bytes((end - at) * BLOCK)),
            _ => {
                let from = (2 + rng.below((bytes.len() / BLOCK - (end - at)) as u64 - 2)) as usize;
                bytes.copy_within(from * BLOCK..(from + end - at) * BLOCK, at * BLOCK);
            }
        }
        what.push(format!("blocks {at} to {}", end - 1));
    }
    if rng.one_in(4) {
        let len = bytes.len() as u64 - rng.below(bytes.len() as u64 / 2);
        bytes.truncate(len as usize);
        what.push(format!("cut to {len}"));
    }
    (bytes, what.join(", "))
}

fn flip(bytes: &mut [u8], block: usize, rng: &mut Rng) {
    let at = block * BLOCK + rng.below(BLOCK as u64) as usize;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << rng.below(8);
    }
}

/// What to expect of a copy.
struct Expected {
    /// For each table and key, what the engine reads where all except pages, values and log is whole.
    readable: BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>>,
    /// Keys of commits in damaged frames.
    in_doubt: BTreeSet<(usize, Vec<u8>)>,
}

fn trial(world: &World, blocks: &Blocks, damaged: &[u8]) -> Result<(), String> {
    let expected = expected(world, blocks, damaged)?;
    let (storage, fresh) = (holding(damaged).map_err(|e| e.to_string())?, MemStorage::default());
    let failed = |e: azekura::Error| format!("salvage: {e}");
    let out = Db::open_on(&fresh, "out", options()).map_err(failed)?;
    let report = match salvage_on(&storage, PATH, &out, |_| {}) {
        Ok(report) => report,
        // No page or frame may be whole then.
        Err(azekura::Error::NotADatabase { .. }) if blocks.whole_ones(&world.bytes, damaged) < 2 => {
            return Ok(());
        }
        Err(e) => return Err(failed(e)),
    };
    let compared = compare(world, blocks, damaged, &expected, &out, &report);
    compared.map_err(|e| format!("{e}\n{report:?}"))
}

/// Reads what the engine can read.
fn expected(world: &World, blocks: &Blocks, damaged: &[u8]) -> Result<Expected, String> {
    let mended = blocks.mended(&world.bytes, damaged);
    let storage = holding(&mended).map_err(|e| e.to_string())?;
    let db = Db::open_on(&storage, PATH, options().create(false).read_only(true))
        .map_err(|e| format!("the engine does not open the copy to compare with: {e}"))?;
    let mut readable = BTreeMap::new();
    for key in world.history.keys() {
        let table = db.open_table(&world.tables[key.0].0).map_err(|e| e.to_string())?;
        if let Ok(found) = table.get(&key.1) {
            readable.insert(key.clone(), found);
        }
    }
    let lost = blocks.frames_lost(&world.bytes, damaged);
    let logged = world.logged.iter().zip(&lost).filter(|(_, lost)| **lost);
    let in_doubt = logged.flat_map(|(keys, _)| keys.iter().cloned()).collect();
    if lost.len() != world.logged.len() {
        return Err(format!("{} frames for {} commits", lost.len(), world.logged.len()));
    }
    Ok(Expected { readable, in_doubt })
}

/// What is left of the parts of a damaged file that describe the rest.
struct Intact {
    /// At least one superblock.
    has_root: bool,
    /// At least one label of a run.
    has_label: bool,
    /// All labels.
    labelled: bool,
}

impl Intact {
    fn of(world: &World, blocks: &Blocks, damaged: &[u8], report: &SalvageReport) -> Result<Intact, String> {
        let same = |range: std::ops::Range<usize>| damaged.get(range.clone()) == Some(&world.bytes[range]);
        let has_root = same(0..BLOCK) || same(BLOCK..2 * BLOCK);
        let labels = blocks.all(What::Label);
        let has_label = labels.iter().any(|b| same(b * BLOCK..(b + 1) * BLOCK));
        let labelled = blocks.all(What::Meta).iter().all(|b| same(b * BLOCK..(b + 1) * BLOCK));
        if !report.manifest
            && has_root
            && blocks.all(What::Manifest).iter().all(|b| same(b * BLOCK..(b + 1) * BLOCK))
        {
            return Err("the manifest is whole, but was not used".into());
        }
        Ok(Intact { has_root, has_label, labelled })
    }
}

/// What a record of the new database is held against.
struct Judge<'a> {
    world: &'a World,
    damaged: &'a [u8],
    report: &'a SalvageReport,
    intact: Intact,
    /// The keys that commits in the log have.
    logged: BTreeSet<&'a (usize, Vec<u8>)>,
}

impl Judge<'_> {
    /// Whether `found` may stand where `wanted` stood.
    fn is_right(&self, id: &(usize, Vec<u8>), found: &Option<Vec<u8>>, wanted: &Option<Vec<u8>>) -> bool {
        let Judge { world, report, intact, .. } = self;
        let (n, key) = id;
        // Without the hash seed a key of eight bytes cannot be recovered.
        let is_hash = world.tables[*n].1;
        let is_unknown =
            is_hash && key.len() == 8 && !intact.has_root && !intact.has_label && found.is_none();
        // Records in the manifest are lost with it, except those that the log has.
        let is_gone = !report.manifest && world.small.contains(n) && !self.logged.contains(id);
        // With damaged labels it is not known what is newer, and range deletes may be lost.
        let may_be_older = !intact.labelled && (found.is_some() || world.deleted.contains(id));
        // What lost range deletes hid may come back: a record, or what stands before what was merged later.
        let may_be_back = !report.manifest || report.losses.iter().any(|loss| loss.contains("range deletes"));
        let has_more = |v: &[u8]| match (world.lists.tables.get(n), found) {
            (Some(len), Some(found)) => has_all(found, v, *len),
            _ => false,
        };
        match wanted {
            _ if found == wanted || is_unknown || is_gone => true,
            // Records in free space may come back, too.
            None => may_be_back,
            Some(v) if may_be_back && has_more(v) => true,
            // A value that was moved in parts may not be found. That is reported.
            Some(v) => {
                !report.manifest
                    && (may_be_older || (report.values_lost > 0 && !stands_whole(self.damaged, v)))
            }
        }
    }
}

fn compare(
    world: &World,
    blocks: &Blocks,
    damaged: &[u8],
    expected: &Expected,
    out: &Db,
    report: &SalvageReport,
) -> Result<(), String> {
    let failed = |e: azekura::Error| e.to_string();
    if let Some(problem) = out.check(|_| {}).map_err(failed)?.problems.first() {
        return Err(format!("the new database is not sound: {problem}"));
    }
    let intact = Intact::of(world, blocks, damaged, report)?;
    let logged = world.logged.iter().flatten().collect();
    let judge = Judge { world, damaged, report, intact, logged };
    for (n, (name, is_hash)) in world.tables.iter().enumerate() {
        let table = match out.open_table(name) {
            Ok(table) => Some(table),
            Err(_) => out.open_table(&format!("table-{}", n + 1)).ok(),
        };
        // If only commits of a table are left, its keys may not show that they are hashes.
        if *is_hash && table.as_ref().is_some_and(|t| t.kind() == TableKind::Ordered) {
            let text = format!("table {}: of which kind", n + 1);
            if !report.losses.iter().any(|loss| loss.starts_with(&text)) {
                return Err(format!("{name} is of another kind, and nobody says so"));
            }
            continue;
        }
        for ((_, key), written) in world.history.range((n, Vec::new())..(n + 1, Vec::new())) {
            let id = (n, key.clone());
            let found = table.as_ref().map_or(Ok(None), |t| t.get(key)).map_err(failed)?;
            let is_value =
                |v: &Vec<u8>| written.iter().any(|w| w.1 as usize == v.len() && value_of(*w) == *v);
            let is_list = |v: &Vec<u8>| world.lists.is_of_pieces(&id, v, written);
            if !found.as_ref().is_none_or(|v| is_value(v) || is_list(v)) {
                return Err(format!("{name}: {key:02x?} has a value that was never written"));
            }
            if expected.in_doubt.contains(&id) {
                continue;
            }
            let readable = expected.readable.get(&id);
            let wrong = found.as_ref().and_then(|v| world.lists.wrong(&id, v, readable, written, report));
            if let Some(wrong) = wrong {
                return Err(format!("{name}: {key:02x?} has {wrong}"));
            }
            let Some(wanted) = readable else { continue };
            if !judge.is_right(&id, &found, wanted) {
                return Err(format!(
                    "{name}: {key:02x?} has {}, should have {}",
                    len_of(&found),
                    len_of(wanted)
                ));
            }
        }
        if let Some(table) = table {
            knows_all_keys(world, n, &table)?;
        }
    }
    Ok(())
}

/// How long a value is, in words.
fn len_of(value: &Option<Vec<u8>>) -> String {
    value.as_ref().map_or("nothing".into(), |v| format!("{} bytes", v.len()))
}

/// Checks that every key of a table was put at some time.
fn knows_all_keys(world: &World, n: usize, table: &Table) -> Result<(), String> {
    let failed = |e: azekura::Error| e.to_string();
    let known = |key: &[u8]| world.history.contains_key(&(n, key.to_vec()));
    for record in table.cursor().map_err(failed)?.owned() {
        let (key, _) = record.map_err(failed)?;
        if !known(&key) {
            return Err(format!("{}: {key:02x?} was never written", table.name()));
        }
    }
    Ok(())
}

/// Whether a large value is somewhere in one piece.
fn stands_whole(bytes: &[u8], value: &[u8]) -> bool {
    let begins = |window: &&[u8]| **window == value[..value.len().min(32)];
    value.len() < 1024
        || bytes.windows(value.len().min(32)).filter(begins).any(|w| {
            let at = w.as_ptr() as usize - bytes.as_ptr() as usize;
            bytes[at..].starts_with(value)
        })
}
