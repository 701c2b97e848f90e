//! Calls that fail: no panic, no hang, no false acknowledgement. After the fault the file is opened
//! anew, after a power cut as well, and nothing acknowledged is missing.

use azekura::{Db, Durability, Error, Kind, WriteOptions};
use sim::disk::{Call, Disk, Fault, Keep};
use sim::rng::Rng;
use sim::script::{Ack, Script, options, problems};
use sim::watchdog::Watchdog;
use std::time::{Duration, Instant};

const PATH: &str = "faults.azk";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const HANG_SECONDS: u64 = 30;

/// Runs the script with a fault; then without, from whatever state it left. True: the fault came.
fn trial(script: &Script, fault: Fault, merges: bool) -> Result<bool, String> {
    let disk = Disk::new();
    let mut ack = Ack::default();
    // The first open is without faults in half of the trials, so that counts begin in the script.
    if fault.nth.is_multiple_of(2) {
        let db = Db::open_on(&disk, PATH, options(merges, 20)).map_err(|e| format!("opening: {e}"))?;
        db.close().map_err(|e| format!("closing: {e}"))?;
    }
    disk.set_fault(Some(fault));
    if let Ok(db) = Db::open_on(&disk, PATH, options(merges, 20)) {
        if script.run(&db, 0, &mut ack).is_err() {
            // What can still be read is right: memory and file together hold some state.
            let _ = script.state_of(&db, 0, script.digests.len() - 1);
            after_failure(&db)?;
        }
        let _ = db.close();
    }
    let came = disk.faults_hit() > 0;
    disk.set_fault(None);
    let mut rng = Rng(fault.nth);
    for (name, disk) in [("a cut", disk.after_cut(Keep::None, &mut rng)), ("reopening", disk)] {
        recover(script, &disk, ack, merges).map_err(|e| format!("after {name}, {ack:?}: {e}"))?;
    }
    Ok(came)
}

/// Once poisoned, always poisoned; and a handle that is not goes on.
fn after_failure(db: &Db) -> Result<(), String> {
    let Ok(table) = db.open_table("ordered") else { return Ok(()) };
    let first = table.put(b"after", b"a failure");
    let second = table.put(b"after", b"a failure");
    match (&first, &second) {
        (Err(Error::Poisoned { .. }), Ok(())) => Err("a poisoned handle acknowledged a commit".into()),
        _ => {
            // Whether or not this was committed, the script must not meet it.
            let _ = table.remove(b"after");
            Ok(())
        }
    }
}

fn recover(script: &Script, disk: &Disk, ack: Ack, merges: bool) -> Result<(), String> {
    let db = Db::open_on(disk, PATH, options(merges, 20)).map_err(|e| format!("does not open: {e}"))?;
    if let Ok(table) = db.open_table("ordered")
        && table.contains(b"after").map_err(|e| e.to_string())?
    {
        table.remove(b"after").map_err(|e| e.to_string())?;
    }
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {k}, but check says {wrong:?}"));
    }
    let mut ack = Ack::default();
    script.run(&db, k, &mut ack).map_err(|e| format!("going on from state {k}: {e}"))?;
    db.close().map_err(|e| format!("closing: {e}"))
}

fn all_faults(calls: &[Call], seconds: u64) {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut failures = Vec::new();
    let mut trials = 0;
    'all: for seed in 40.. {
        let merges = seed % 3 == 2;
        let script = Script::new(seed, 40, seed % 2 == 1);
        for &call in calls {
            for (forever, errno) in [(false, EIO), (true, EIO), (false, ENOSPC), (true, ENOSPC)] {
                // Every call at first, then with growing steps.
                let mut nth = 1 + seed % 2;
                loop {
                    let fault = Fault { call, nth, forever, errno };
                    watchdog.at(format!("seed {seed}, {fault:?}"));
                    trials += 1;
                    match trial(&script, fault, merges) {
                        Ok(true) => nth += 1 + nth / 6,
                        Ok(false) => break,
                        Err(e) => {
                            eprintln!("seed {seed}, {fault:?}: {e}");
                            failures.push(e);
                            nth += 1 + nth / 2;
                        }
                    }
                    if failures.len() > 6 || Instant::now() > until {
                        break 'all;
                    }
                }
            }
        }
    }
    println!("{trials} trials");
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
}

fn seconds() -> u64 {
    std::env::var("AZEKURA_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(12)
}

#[test]
fn writes_that_fail() {
    all_faults(&[Call::Write], seconds());
}

#[test]
fn syncs_that_fail() {
    all_faults(&[Call::Sync], seconds());
}

#[test]
fn reads_that_fail() {
    all_faults(&[Call::Read], seconds());
}

#[test]
fn lengths_holes_and_names_that_fail() {
    all_faults(&[Call::Allocate, Call::SetLen, Call::Punch, Call::Name], seconds());
}

/// Another thread's sync fails while a durable commit waits for its turn.
#[test]
fn a_failed_log_write_poisons_the_handle() {
    for call in [Call::Write, Call::Sync] {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options(false, 60_000)).unwrap();
        let table = db.create_table("t", Kind::Ordered).unwrap();
        table.put(b"a", b"1").unwrap();
        disk.set_fault(Some(Fault { call, nth: 1, forever: false, errno: EIO }));
        let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
        let mut txn = db.write_with(eventual);
        // Two frames, so that the log is synced and not only written through.
        txn.put(&table, b"b", b"2").unwrap();
        for i in 0..1500u32 {
            txn.put(&table, &i.to_be_bytes(), &[7; 900]).unwrap();
        }
        let committed = txn.commit();
        let synced = db.sync();
        assert!(committed.is_err() || synced.is_err(), "{call:?}");
        assert!(matches!(table.put(b"c", b"3"), Err(Error::Poisoned { .. })), "{call:?}");
        assert!(db.sync().is_err() && db.flush().is_err(), "{call:?}");
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"1"[..]), "reads go on");
        assert!(db.close().is_err());
        drop(table);
        let disk = disk.after_cut(Keep::None, &mut Rng(1));
        let db = Db::open_on(&disk, PATH, options(false, 60_000)).unwrap();
        let table = db.open_table("t").unwrap();
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(table.get(b"c").unwrap(), None);
    }
}

#[test]
fn a_full_disk() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds());
    for seed in 0.. {
        let mut rng = Rng(seed);
        let script = Script::new(seed + 500, 80, seed % 2 == 1);
        let merges = seed % 3 == 0;
        let disk = Disk::new();
        let room = [30_000, 200_000, 1 << 20, 66 << 20, 70 << 20][rng.below(5) as usize] + rng.below(200_000);
        let name = format!("seed {seed}, room for {room} bytes, merges {merges}");
        watchdog.at(name.clone());
        disk.set_bytes_max(room);
        let mut ack = Ack::default();
        if let Ok(db) = Db::open_on(&disk, PATH, options(merges, 20)) {
            if let Err(e) = script.run(&db, 0, &mut ack) {
                let full = matches!(e, Error::NoSpace { .. } | Error::Poisoned { .. });
                assert!(full, "{name}: {e}");
                let k = script.state_of(&db, ack.durable, ack.begun);
                // Half of a commit was never visible, and what is there can be read.
                assert!(k.is_ok(), "{name}, {ack:?}: reading on a full disk: {k:?}");
            }
            let _ = db.close();
        }
        disk.set_bytes_max(u64::MAX);
        for (how, disk) in [("a cut", disk.after_cut(Keep::None, &mut rng)), ("reopening", disk)] {
            let done = recover(&script, &disk, ack, merges);
            assert!(done.is_ok(), "{name}, {ack:?}, after {how}: {done:?}");
        }
        if Instant::now() > until {
            break;
        }
    }
}
