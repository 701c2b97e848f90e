//! Each workload runs small on every available peer, and no lie goes unnoticed.

use super::bench::Bench;
use super::measure;
use crate::case::{Case, Workload};
use crate::failure::{Failure, Result};
use crate::job::{Job, Part};
use crate::measure::Measured;
use crate::peers::memory::{Lie, MemoryPeer};
use crate::peers::tests::{TestDir, with_peers};
use crate::peers::{Peer, all};
use crate::report::columns;

fn case(workload: Workload) -> Case {
    Case {
        workload,
        records: if workload == Workload::Pairs { 300 } else { 3000 },
        batch: if workload == Workload::Small { 1 } else { 100 },
        value_bytes: if matches!(workload, Workload::Lookup | Workload::Counters) { 8 } else { 44 },
        gets: 1000,
        // A writer beside readers may have to wait for a lock that they take in turns.
        seconds: if workload == Workload::Mixed { 0.5 } else { 0.05 },
        threads: 1,
        rate_per_s: None,
        budget_bytes: 64 << 20,
        phase_s: None,
        settle: true,
        before_reads: None,
    }
}

fn run_case(peer: &dyn Peer, case: Case, dir: &TestDir) -> Result<Measured> {
    let job = Job { case, peer: peer.about().name.to_owned(), run: 0, dir: dir.0.clone(), part: Part::Whole };
    measure(peer, &job)
}

fn run(peer: &dyn Peer, workload: Workload, dir: &TestDir) -> Result<Measured> {
    run_case(peer, case(workload), dir)
}

#[test]
fn a_command_is_run_before_the_reads() {
    let dir = TestDir::new("before-reads");
    let noted = dir.0.join("noted");
    let with = |command: String| Case { before_reads: Some(command), ..case(Workload::Lookup) };
    let (_, peer) =
        all().into_iter().find(|(about, _)| about.name == "azekura-ordered").expect("it is a peer");
    let peer = peer.expect("it is always there");
    run_case(peer.as_ref(), with(format!("echo $PEER_PID > {}", noted.display())), &dir).expect("it runs");
    let pid = std::fs::read_to_string(&noted).expect("the command has run");
    assert_eq!(pid.trim(), std::process::id().to_string());
    let dir = TestDir::new("before-reads-failed");
    let failed = run_case(peer.as_ref(), with("exit 7".to_owned()), &dir).expect_err("it fails");
    assert!(failed.to_string().contains("`exit 7` ended with"), "{failed}");
}

/// Each life is a twentieth of a second.
fn cache() -> Case {
    Case { seconds: 0.5, value_bytes: 24, ..case(Workload::Ttl) }
}

#[test]
fn a_cache_runs_on_every_peer() {
    with_peers(|peer| {
        let about = peer.about();
        if !cache().suits(about) {
            return;
        }
        let dir = TestDir::new(&format!("cache-{}", about.name));
        let measured = run_case(peer, cache(), &dir).unwrap_or_else(|e| panic!("{}: {e}", about.name));
        assert!(measured.get("records").is_some_and(|put| put > 0.0), "{}", about.name);
    });
}

#[test]
fn a_cache_that_lies_is_noticed() {
    // It goes on for a time, whatever it gets done in that.
    for lie in [Lie::FlippedBit, Lie::Forgotten, Lie::Kept] {
        let dir = TestDir::new(&format!("cache-{lie:?}"));
        let once = |_| run_case(&MemoryPeer::new(lie), cache(), &dir).is_err();
        assert!((0..50).any(once), "{lie:?}");
    }
}

#[test]
fn counters_are_right_on_every_peer() {
    with_peers(|peer| {
        let (about, case) = (peer.about(), Case { seconds: 0.1, ..case(Workload::Counters) });
        if !case.suits(about) {
            return;
        }
        let dir = TestDir::new(&format!("counters-{}", about.name));
        let measured = run_case(peer, case, &dir).unwrap_or_else(|e| panic!("{}: {e}", about.name));
        assert!(measured.get("one_adds_per_s").is_some_and(|adds| adds > 0.0), "{}", about.name);
    });
}

#[test]
fn counters_that_lie_are_noticed() {
    for lie in [Lie::FlippedBit, Lie::Forgotten] {
        let case = Case { seconds: 0.1, ..case(Workload::Counters) };
        let dir = TestDir::new(&format!("counters-{lie:?}"));
        let failure = run_case(&MemoryPeer::new(lie), case, &dir).err();
        assert!(matches!(failure, Some(Failure::WrongValue { .. })), "{lie:?}: {failure:?}");
    }
}

#[test]
fn changes_are_told_by_every_peer_that_keeps_them() {
    let peers = std::sync::atomic::AtomicU64::new(0);
    with_peers(|peer| {
        let about = peer.about();
        if !case(Workload::Feed).suits(about) {
            return;
        }
        peers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // One a transaction, and some.
        for batch in [1, 100] {
            let dir = TestDir::new(&format!("feed-{}-{batch}", about.name));
            let case = Case { batch, ..case(Workload::Feed) };
            let measured = run_case(peer, case, &dir).unwrap_or_else(|e| panic!("{}: {e}", about.name));
            for column in columns::of(Workload::Feed).iter().filter(|column| column.headline) {
                let there = measured.get(column.name).is_some_and(|figure| figure > 0.0);
                assert!(there, "{}: {}", about.name, column.name);
            }
            assert!(measured.stopped.is_empty(), "{}", about.name);
        }
    });
    // Both kinds of ours, and the memory peer is not among them.
    assert!(peers.into_inner() >= 2);
}

#[test]
fn changes_that_are_not_told_or_are_wrong_are_noticed() {
    for lie in [Lie::Untold, Lie::FlippedBit] {
        let dir = TestDir::new(&format!("feed-{lie:?}"));
        let failure = run_case(&MemoryPeer::new(lie), case(Workload::Feed), &dir).err();
        assert!(matches!(failure, Some(Failure::WrongScan { .. })), "{lie:?}: {failure:?}");
    }
    let dir = TestDir::new("feed-honest");
    run_case(&MemoryPeer::new(Lie::None), case(Workload::Feed), &dir).expect("no lie");
}

#[test]
fn backups_have_everything_on_every_peer_that_makes_them() {
    let peers = std::sync::atomic::AtomicU64::new(0);
    with_peers(|peer| {
        let (about, case) = (peer.about(), Case { seconds: 0.2, ..case(Workload::Backup) });
        if !case.suits(about) {
            return;
        }
        peers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = TestDir::new(&format!("backup-{}", about.name));
        let measured = run_case(peer, case, &dir).unwrap_or_else(|e| panic!("{}: {e}", about.name));
        for column in columns::of(Workload::Backup).iter().filter(|column| column.headline) {
            let there = measured.get(column.name).is_some_and(|figure| figure > 0.0);
            assert!(there, "{}: {}", about.name, column.name);
        }
    });
    assert!(peers.into_inner() >= 2);
}

#[test]
fn a_backup_that_lacks_something_is_noticed() {
    for lie in [Lie::OldBackup, Lie::ShortScan] {
        let dir = TestDir::new(&format!("backup-{lie:?}"));
        let case = Case { seconds: 0.1, ..case(Workload::Backup) };
        let failure = run_case(&MemoryPeer::new(lie), case, &dir).err();
        assert!(matches!(failure, Some(Failure::WrongScan { .. })), "{lie:?}: {failure:?}");
    }
    let dir = TestDir::new("backup-honest");
    run_case(&MemoryPeer::new(Lie::None), case(Workload::Backup), &dir).expect("no lie");
}

/// All except those that need a second process (tests/command.rs has them), and those with tests of their own
/// above.
const ALL: [Workload; 12] = [
    Workload::Sequential,
    Workload::Lookup,
    Workload::Huge,
    Workload::Index,
    Workload::Pairs,
    Workload::Text,
    Workload::Small,
    Workload::Ycsb,
    Workload::Mixed,
    Workload::Durable,
    Workload::Scan,
    Workload::Delete,
];

#[test]
fn every_workload_runs_on_every_peer() {
    with_peers(|peer| {
        let about = peer.about();
        for workload in ALL {
            let case = Case { threads: if workload == Workload::Durable { 2 } else { 1 }, ..case(workload) };
            if !case.suits(about) {
                continue;
            }
            let dir = TestDir::new(&format!("run-{}-{workload:?}", about.name));
            let measured = run_case(peer, case, &dir)
                .unwrap_or_else(|failure| panic!("{workload:?} on {}: {failure}", about.name));
            assert!(measured.stopped.is_empty(), "{workload:?} on {}: {:?}", about.name, measured.stopped);
            for column in columns::of(workload).iter().filter(|column| column.headline) {
                let optional = ["many_gets_per_s", "ranges_per_s", "reverse_per_s", "e_ops_per_s"];
                let there = measured.get(column.name).is_some_and(|figure| figure > 0.0);
                assert!(
                    there || optional.contains(&column.name),
                    "{workload:?} on {}: {}",
                    about.name,
                    column.name
                );
            }
        }
    });
}

fn lied(lie: Lie, workload: Workload) -> Option<Failure> {
    let dir = TestDir::new(&format!("lie-{lie:?}-{workload:?}"));
    run(&MemoryPeer::new(lie), workload, &dir).err()
}

#[test]
fn a_wrong_value_is_noticed_by_every_workload() {
    for workload in ALL {
        assert!(lied(Lie::None, workload).is_none(), "{workload:?}");
        // A workload that only scans does not get.
        for lie in [Lie::FlippedBit, Lie::Forgotten].into_iter().filter(|_| workload != Workload::Scan) {
            let failure = lied(lie, workload);
            assert!(
                matches!(failure, Some(Failure::WrongValue { peer: "memory", .. })),
                "{workload:?} {lie:?}: {failure:?}"
            );
        }
    }
}

#[test]
fn an_invented_record_and_a_short_scan_are_noticed() {
    let failure = lied(Lie::Invented, Workload::Lookup);
    assert!(matches!(failure, Some(Failure::Unexpected { index: 3000, .. })), "{failure:?}");
    for workload in [Workload::Sequential, Workload::Text, Workload::Scan] {
        let failure = lied(Lie::ShortScan, workload);
        assert!(matches!(failure, Some(Failure::WrongScan { .. })), "{failure:?}");
    }
    assert!(matches!(lied(Lie::ShortScan, Workload::Ycsb), Some(Failure::Peer { .. })));
    let failure = lied(Lie::Kept, Workload::Delete);
    assert!(matches!(failure, Some(Failure::Unexpected { .. })), "{failure:?}");
}

#[test]
fn a_wrong_value_is_told_with_what_was_expected() {
    let case = case(Workload::Lookup);
    let peer = MemoryPeer::new(Lie::None);
    let dir = TestDir::new("told");
    let bench = Bench::new(&peer, &case, &dir.0);
    let text = bench.wrong(7, bench.records.value(7), None).to_string();
    assert!(text.contains("record 7") && text.contains("8 bytes") && text.contains("nothing"));
}

#[test]
fn a_phase_that_is_over_stops_what_it_does_and_says_so() {
    let all = ALL.into_iter().chain([Workload::Counters, Workload::Feed, Workload::Backup]);
    for workload in all.filter(|workload| *workload != Workload::Durable) {
        let dir = TestDir::new(&format!("stopped-{workload:?}"));
        let case = Case { records: 20_000, batch: 5000, phase_s: Some(0.0), ..case(workload) };
        let measured = run_case(&MemoryPeer::new(Lie::None), case, &dir)
            .unwrap_or_else(|failure| panic!("{workload:?}: {failure}"));
        let records = measured.get("records").unwrap_or(0.0);
        assert!(records > 0.0 && records < 20_000.0, "{workload:?}: {records}");
        assert!(measured.stopped.iter().any(|note| note.contains(" of 20,000")), "{:?}", measured.stopped);
    }
}

#[test]
fn operations_that_are_due_count_from_then() {
    let dir = TestDir::new("due");
    let case = Case { rate_per_s: Some(2000), threads: 2, seconds: 0.2, ..case(Workload::Ycsb) };
    let measured = run_case(&MemoryPeer::new(Lie::None), case, &dir).expect("no lie");
    let figure = |name| measured.get(name).unwrap_or(0.0);
    // Each operation is made however late it is, and none before it is due. The last one of each thread is
    // due after 199 ms.
    let operations = figure("c_ops_per_s") * figure("c_ops_s");
    assert!((operations - 400.0).abs() < 0.5, "{operations}");
    assert!(figure("c_ops_s") >= 0.199, "{}", figure("c_ops_s"));
}
