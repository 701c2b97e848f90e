//! A history for each anomaly, written by hand. A second judge, the crate `adya`, is an independent
//! implementation of Elle's method. It must agree on each of them, and on random histories of a store that
//! cheats.

use super::*;
use crate::rng::Rng;
use serde_json::{Value, json};

fn a(key: Key, element: Element) -> Op {
    Op::Append(key, element)
}

fn r(key: Key, list: &[Element]) -> Op {
    Op::Read(key, list.to_vec())
}

/// Transactions that all ran at the same time, and a later one that reads all lists.
fn concurrent(txns: &[&[Op]], last: &[Op]) -> History {
    let mut history = History::default();
    for ops in txns {
        history.txns.push(Txn { begun: 1, ended: 100, ops: ops.to_vec(), committed: true });
    }
    // Times must differ. All these transactions overlap.
    for (n, txn) in (0..).zip(&mut history.txns) {
        (txn.begun, txn.ended) = (1 + n, 100 + n);
    }
    history.txns.push(Txn { begun: 1000, ended: 1001, ops: last.to_vec(), committed: true });
    history
}

fn kinds(history: &History, level: Level) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = check(history, level).into_iter().map(|a| a.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Checks that the history shows `kind` at both levels, and that `adya` refuses it at both.
fn shows(history: &History, kind: Kind) {
    for level in [Level::Snapshot, Level::Serializable] {
        assert_eq!(kinds(history, level), [kind], "{level:?}");
        assert!(!adya_accepts(history, level), "adya accepts {kind:?} as {level:?}");
    }
}

/// Converts the history for `adya`: an invocation and a completion for each transaction.
fn adya_accepts(history: &History, level: Level) -> bool {
    let mut events: Vec<(u64, Value)> = Vec::new();
    for (process, txn) in history.txns.iter().enumerate() {
        let ops = |done: bool| -> Vec<Value> {
            let op = |op: &Op| match op {
                Op::Append(k, e) => json!(["append", k, e]),
                Op::Read(k, list) => json!(["r", k, if done { json!(list) } else { Value::Null }]),
            };
            txn.ops.iter().map(op).collect()
        };
        let end = if txn.committed { "ok" } else { "fail" };
        events.push((txn.begun, json!({"type": "invoke", "process": process, "value": ops(false)})));
        events.push((txn.ended, json!({"type": end, "process": process, "value": ops(txn.committed)})));
    }
    events.sort_by_key(|e| e.0);
    let lines: Vec<String> = events.iter().map(|e| e.1.to_string()).collect();
    let history = adya::History::from_json(&lines.join("\n")).unwrap();
    let model = match level {
        Level::Snapshot => "strong-snapshot-isolation",
        Level::Serializable => "strict-serializable",
    };
    let options = adya::Opts { models: vec![model.into()], ..adya::Opts::default() };
    adya::check(&history, adya::Workload::ListAppend, &options).valid == adya::Valid::True
}

#[test]
fn a_serial_history_is_accepted() {
    let mut history = concurrent(&[&[a(1, 1)], &[r(1, &[1]), a(1, 2), r(1, &[1, 2])], &[]], &[r(1, &[1, 2])]);
    for (n, txn) in (0..).zip(&mut history.txns) {
        (txn.begun, txn.ended) = (2 * n, 2 * n + 1);
    }
    for level in [Level::Snapshot, Level::Serializable] {
        assert_eq!(kinds(&history, level), []);
        assert!(adya_accepts(&history, level));
    }
}

#[test]
fn g0_writes_interleave() {
    shows(
        &concurrent(&[&[a(1, 1), a(2, 3)], &[a(1, 2), a(2, 4)]], &[r(1, &[1, 2]), r(2, &[4, 3])]),
        Kind::G0,
    );
}

#[test]
fn g1a_what_was_rolled_back_is_read() {
    let mut history = concurrent(&[&[a(1, 1)], &[r(1, &[1])]], &[r(1, &[1])]);
    history.txns[0].committed = false;
    shows(&history, Kind::G1a);
}

#[test]
fn g1b_what_was_not_finished_is_read() {
    let history = concurrent(&[&[a(1, 1), a(1, 2)], &[r(1, &[1])]], &[r(1, &[1, 2])]);
    // The reader follows the writer by what it saw, and precedes it by what it did not see.
    assert_eq!(kinds(&history, Level::Snapshot), [Kind::G1b, Kind::GSingle]);
    assert!(!adya_accepts(&history, Level::Snapshot));
}

#[test]
fn g1c_each_reads_the_other() {
    let history = concurrent(&[&[a(1, 1), r(2, &[2])], &[a(2, 2), r(1, &[1])]], &[r(1, &[1]), r(2, &[2])]);
    shows(&history, Kind::G1c);
}

#[test]
fn g_single_is_read_skew() {
    let history = concurrent(&[&[r(1, &[]), r(2, &[2])], &[a(1, 1), a(2, 2)]], &[r(1, &[1]), r(2, &[2])]);
    shows(&history, Kind::GSingle);
}

#[test]
fn g_single_is_a_lost_update() {
    let history = concurrent(&[&[r(1, &[]), a(1, 1)], &[r(1, &[]), a(1, 2)]], &[r(1, &[1, 2])]);
    shows(&history, Kind::GSingle);
}

#[test]
fn g_nonadjacent_is_a_long_fork() {
    let history = concurrent(
        &[&[a(1, 1)], &[a(2, 2)], &[r(1, &[1]), r(2, &[])], &[r(1, &[]), r(2, &[2])]],
        &[r(1, &[1]), r(2, &[2])],
    );
    shows(&history, Kind::GNonadjacent);
}

#[test]
fn g2_is_write_skew_and_snapshot_isolation_allows_it() {
    let history = concurrent(
        &[&[r(1, &[]), r(2, &[]), a(1, 1)], &[r(1, &[]), r(2, &[]), a(2, 2)]],
        &[r(1, &[1]), r(2, &[2])],
    );
    assert_eq!(kinds(&history, Level::Serializable), [Kind::G2]);
    assert_eq!(kinds(&history, Level::Snapshot), []);
    assert!(adya_accepts(&history, Level::Snapshot) && !adya_accepts(&history, Level::Serializable));
}

#[test]
fn a_stale_read_is_found_by_real_time() {
    let mut history = concurrent(&[&[a(1, 1)], &[r(1, &[])]], &[r(1, &[1])]);
    assert_eq!(kinds(&history, Level::Serializable), [], "while they overlap nothing is wrong");
    (history.txns[0].begun, history.txns[0].ended) = (1, 2);
    (history.txns[1].begun, history.txns[1].ended) = (3, 4);
    shows(&history, Kind::RealTime);
}

#[test]
fn a_transaction_that_does_not_see_itself_is_found() {
    let history = concurrent(&[&[a(1, 1), r(1, &[])]], &[r(1, &[1])]);
    assert!(kinds(&history, Level::Snapshot).contains(&Kind::Internal));
    let history = concurrent(&[&[r(1, &[]), a(2, 2), r(1, &[1])], &[a(1, 1)]], &[r(1, &[1]), r(2, &[2])]);
    assert!(kinds(&history, Level::Snapshot).contains(&Kind::Internal));
}

#[test]
fn lists_that_no_order_explains_are_found() {
    let txns: &[&[Op]] = &[&[a(1, 1)], &[a(1, 2)], &[r(1, &[2])]];
    assert_eq!(kinds(&concurrent(txns, &[r(1, &[1, 2])]), Level::Snapshot), [Kind::Incompatible]);
    let garbage = concurrent(&[&[a(1, 1)]], &[r(1, &[1, 7])]);
    assert_eq!(kinds(&garbage, Level::Snapshot), [Kind::Garbage]);
    let twice = concurrent(&[&[a(1, 1)]], &[r(1, &[1, 1])]);
    assert_eq!(kinds(&twice, Level::Snapshot), [Kind::Garbage]);
    let lost = concurrent(&[&[a(1, 1)], &[a(1, 2)]], &[r(1, &[2])]);
    assert_eq!(kinds(&lost, Level::Snapshot), [Kind::Lost]);
}

/// A history of a store that cheats. Its transactions may read `stale` commits behind, and commit without a
/// check of what others have written or (unless `blind`) read.
fn of_a_store_that_cheats(rng: &mut Rng, stale: u64, blind: bool) -> History {
    let mut states: Vec<HashMap<Key, Vec<Element>>> = vec![HashMap::new()];
    let mut history = History::default();
    for n in 1..=40u32 {
        let behind = rng.below(stale + 1).min(states.len() as u64 - 1);
        let seen = states.len() - 1 - usize::try_from(behind).unwrap();
        let (mut view, mut newest) = (states[seen].clone(), states[states.len() - 1].clone());
        let mut ops = Vec::new();
        let mut lost = false;
        for i in 0..1 + rng.below(3) {
            let key = rng.below(4) as Key;
            if rng.one_in(2) {
                ops.push(r(key, view.get(&key).map_or(&[], Vec::as_slice)));
            } else {
                let element = n * 10 + i as u32;
                lost |= view.get(&key) != newest.get(&key);
                view.entry(key).or_default().push(element);
                newest.entry(key).or_default().push(element);
                ops.push(a(key, element));
            }
        }
        let committed = blind || !lost;
        if committed {
            states.push(newest);
        }
        // It ran at the same time as all transactions whose commits it did not see.
        let now = 1000 * u64::from(n);
        history.txns.push(Txn { begun: now - 1000 * behind - 500, ended: now, ops, committed });
    }
    let last = states[states.len() - 1].iter().map(|(key, list)| r(*key, list)).collect();
    history.txns.push(Txn { begun: 1_000_000, ended: 1_000_001, ops: last, committed: true });
    for (n, txn) in (0..).zip(&mut history.txns) {
        txn.begun += n % 400;
    }
    history
}

#[test]
fn the_other_judge_agrees_on_random_histories() {
    let mut rng = Rng(11);
    let mut verdicts: HashMap<(Level, bool), u32> = HashMap::new();
    for n in 0..400 {
        let history = of_a_store_that_cheats(&mut rng, n % 4, n % 3 == 0);
        for level in [Level::Snapshot, Level::Serializable] {
            let found = check(&history, level);
            assert_eq!(found.is_empty(), adya_accepts(&history, level), "{level:?}, history {n}: {found:?}");
            *verdicts.entry((level, found.is_empty())).or_default() += 1;
        }
    }
    assert!(verdicts.len() == 4 && verdicts.values().all(|&n| n > 40), "{verdicts:?}");
}
