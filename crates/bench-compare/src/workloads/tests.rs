//! Each workload runs small on every peer that is here, and no lie goes unnoticed.

use super::bench::Bench;
use super::{Case, Workload, durable, mixed, random, sequential};
use crate::failure::{Failure, Result};
use crate::measure::Measured;
use crate::peers::memory::{Lie, MemoryPeer};
use crate::peers::tests::TestDir;
use crate::peers::{Peer, all};

fn case(workload: Workload) -> Case {
    Case {
        workload,
        records: 3000,
        batch: 100,
        value_bytes: 44,
        gets: 1000,
        seconds: 0.05,
        threads: 2,
        budget_bytes: 64 << 20,
        settle: true,
    }
}

fn run(peer: &dyn Peer, workload: Workload, dir: &TestDir) -> Result<Measured> {
    let case = case(workload);
    match workload {
        Workload::Sequential | Workload::Large => sequential::run(peer, &case, &dir.0),
        Workload::Mixed => mixed::run(peer, &case, &dir.0),
        Workload::Durable => durable::run(peer, &case, &dir.0),
        _ => random::run(peer, &case, &dir.0),
    }
}

const ALL: [Workload; 6] =
    [Workload::Sequential, Workload::Random, Workload::Ordinary16, Workload::Text, Workload::Mixed, Workload::Durable];

#[test]
fn every_workload_runs_on_every_peer() {
    for (about, peer) in all() {
        let Some(peer) = peer else {
            eprintln!("{} is skipped: {}", about.title, about.get);
            continue;
        };
        for workload in ALL.into_iter().filter(|_| !about.numbers_only) {
            let dir = TestDir::new(&format!("run-{}-{workload:?}", about.name));
            let measured = run(peer.as_ref(), workload, &dir)
                .unwrap_or_else(|failure| panic!("{workload:?} on {}: {failure}", about.name));
            assert!(!measured.numbers.is_empty());
        }
    }
}

fn lied(lie: Lie, workload: Workload) -> Option<Failure> {
    let dir = TestDir::new(&format!("lie-{lie:?}-{workload:?}"));
    run(&MemoryPeer::new(lie), workload, &dir).err()
}

#[test]
fn a_wrong_value_is_noticed_by_every_workload() {
    for workload in ALL {
        assert!(lied(Lie::None, workload).is_none(), "{workload:?}");
        for lie in [Lie::FlippedBit, Lie::Forgotten] {
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
    let failure = lied(Lie::Invented, Workload::Random);
    assert!(matches!(failure, Some(Failure::Unexpected { index: 3000, .. })), "{failure:?}");
    for workload in [Workload::Sequential, Workload::Text] {
        let failure = lied(Lie::ShortScan, workload);
        assert!(matches!(failure, Some(Failure::WrongScan { .. })), "{failure:?}");
    }
}

#[test]
fn a_wrong_value_is_told_with_what_was_expected() {
    let case = case(Workload::Random);
    let peer = MemoryPeer::new(Lie::None);
    let dir = TestDir::new("told");
    let bench = Bench::new(&peer, &case, &dir.0);
    let text = bench.wrong(7, bench.records.value(7), None).to_string();
    assert!(text.contains("record 7") && text.contains("44 bytes") && text.contains("nothing"));
}
