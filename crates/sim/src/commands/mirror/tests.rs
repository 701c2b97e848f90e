//! Steps of a mirror after which a power cut once left values that were not there.

use super::going::{catch_up, is_whole, open};
use super::kept::MIRROR;
use crate::disk::{Call, Disk, Effect, Fault, Keep};
use crate::judge::{PATH, Setting};
use crate::rng::Rng;
use azekura::storage::Storage;
use azekura::{Db, Durability, Mirror, MirrorStatus, Options, Table, TableKind};
use std::path::Path;

const LARGE: usize = 20_000;

struct Pair {
    source: Disk,
    dest: Disk,
    db: Db,
    table: Table,
    mirror: Mirror,
}

/// A database with a mirror that is level, and a log that goes on.
fn pair() -> Pair {
    let (source, dest) = (Disk::seeded(1), Disk::seeded(2));
    let options: Options = Setting::QUIET.options().durability(Durability::Sync);
    let db = Db::open_on(&source, PATH, options).unwrap();
    let table = db.table("table", TableKind::Ordered).unwrap();
    table.put(b"first", b"record").unwrap();
    db.flush().unwrap();
    table.put(b"second", b"record").unwrap();
    table.put(b"third", b"record").unwrap();
    let mut mirror = open(&source, &dest).unwrap();
    catch_up(&mut mirror).unwrap();
    dest.record(1, 1);
    Pair { source, dest, db, table, mirror }
}

/// Cuts the power at each call to the mirror's disk. Whatever is left is whole.
fn cut_everywhere(dest: &Disk) {
    let mut rng = Rng(7);
    for moment in dest.moments() {
        for keep in [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(4096), Keep::Wild] {
            let choice = moment.disk.choice(keep, &mut rng);
            let image = moment.disk.image(&choice);
            if image.exists(Path::new(MIRROR)).unwrap() {
                let options = Setting::QUIET.options().read_only(true);
                let opened = Db::open_on(&image, MIRROR, options).map_err(|e| e.to_string());
                let whole = opened.and_then(|db| is_whole(&db));
                whole.unwrap_or_else(|e| panic!("call {}, {choice:?}: {e}", moment.mark.calls));
            }
        }
    }
}

/// The log that a checkpoint names has commits which the checkpoint has in runs. The mirror's state before
/// shows them when their frames have come, with their values, even those to which no run refers.
#[test]
fn a_flush_leaves_commits_to_the_state_before() {
    let Pair { dest, db, table, mut mirror, source: _source } = pair();
    for round in 0..3u8 {
        table.put(b"short lived", vec![round; LARGE]).unwrap();
        table.put(b"long lived", vec![round; LARGE]).unwrap();
        table.put(b"short lived", b"small").unwrap();
        db.flush().unwrap();
        catch_up(&mut mirror).unwrap();
        table.put(b"fourth", [round]).unwrap();
        table.put(b"fifth", [round]).unwrap();
        catch_up(&mut mirror).unwrap();
    }
    cut_everywhere(&dest);
}

/// A checkpoint comes when the values of frames were copied, and not synced.
#[test]
fn a_step_is_overtaken_before_its_sync() {
    let Pair { dest, db, table, mut mirror, source: _source } = pair();
    for round in 0..3u8 {
        table.put(b"large", vec![round; LARGE]).unwrap();
        table.put(b"small", b"record").unwrap();
        table.put(b"small", b"again").unwrap();
        let mut looks = 0;
        // The first look is between the copy of a value and its sync.
        let goes_on = |_: &MirrorStatus| {
            looks += 1;
            if looks == 1 {
                db.flush().unwrap();
            }
            looks < 20
        };
        mirror.run(goes_on).unwrap();
        catch_up(&mut mirror).unwrap();
    }
    cut_everywhere(&dest);
}

/// Large values, some of which the log has shipped before the checkpoint that has them all.
fn grow(pair: &mut Pair) {
    for n in 0..3u8 {
        pair.table.put([b'l', n], vec![n; 1200]).unwrap();
        pair.table.put(b"small", [n]).unwrap();
    }
    catch_up(&mut pair.mirror).unwrap();
    for n in 3..6u8 {
        pair.table.put([b'l', n], vec![n; 1200]).unwrap();
    }
    pair.db.flush().unwrap();
}

/// What a failed sync has left in the system's memory is not believed by the mirror that is opened next.
#[test]
fn a_sync_fails() {
    let fault = |nth| Some(Fault { call: Call::Sync, nth, forever: false, effect: Effect::Error(5) });
    for nth in 1..8 {
        for meets in ["one that goes on", "one that is opened", "one that is built", "one that is built on"] {
            let mut pair = pair();
            grow(&mut pair);
            let Pair { source, dest, db: _db, table: _table, mirror } = pair;
            let mut mirror = Some(mirror).filter(|_| meets == "one that goes on");
            if meets.starts_with("one that is built") {
                dest.remove(Path::new(MIRROR)).unwrap();
            }
            if meets == "one that is built on" {
                open(&source, &dest).unwrap().run(|_| false).unwrap();
                assert!(!dest.exists(Path::new(MIRROR)).unwrap());
            }
            dest.set_fault(fault(nth));
            let opened = mirror.take().map_or_else(|| open(&source, &dest), Ok);
            let done = opened.map_err(|e| e.to_string()).and_then(|mut mirror| catch_up(&mut mirror));
            dest.set_fault(None);
            println!("{meets}, sync {nth}: {done:?}");
            assert!(done.is_err() || nth > 1);
            catch_up(&mut open(&source, &dest).unwrap()).unwrap();
            cut_everywhere(&dest);
        }
    }
}
