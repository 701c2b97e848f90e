//! The feed of changes: what is fed, and watching it.

use crate::common::{Place, signal};
use azekura::{Db, Options, TableKind};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn what_is_done_is_printed() {
    let place = Place::with_database();
    place.run(["feed", "info", "db.azk"]).fails(1, "azekura feed start");
    place.run(["watch", "db.azk"]).fails(1, "azekura feed start");
    place.run(["feed", "start", "db.azk", "none"]).fails(2, "no table named");
    let ran = place.run(["feed", "start", "db.azk", "main"]).succeeds();
    assert!(ran.stdout().starts_with("table \"main\" is fed after commit "), "{}", ran.stdout());
    place.run(["create", "db.azk", "--table", "other"]).succeeds();
    place.run(["watch", "db.azk", "--table", "other"]).fails(1, "table \"other\" is not fed");
    place.run(["set", "db.azk", "apple", "red\tand green"]).succeeds();
    place.run(["set", "db.azk", "pear", "green"]).succeeds();
    place.run(["remove", "db.azk", "pear"]).succeeds();
    place.run(["remove-range", "db.azk", "--from", "a", "--to", "b"]).succeeds();
    place.run(["clear", "db.azk", "main"]).succeeds();
    place.run(["rename", "db.azk", "main", "new"]).succeeds();
    place.run(["drop", "db.azk", "new"]).succeeds();
    let ran = place.run(["watch", "db.azk", "--oldest", "--once"]).succeeds();
    let lines: Vec<(u64, &str)> = ran
        .stdout()
        .lines()
        .map(|line| line.split_once('\t').map(|(n, rest)| (n.parse().unwrap(), rest)).unwrap())
        .collect();
    let told: Vec<&str> = lines.iter().map(|(_, rest)| *rest).collect();
    assert_eq!(
        told,
        [
            "main\tbegin\tvalues",
            "main\tput\tapple\tred\\tand green",
            "main\tput\tpear\tgreen",
            "main\tremove\tpear",
            "main\tremove-range\ta\tb",
            "main\tclear",
            "main\trename\tnew",
            "new\tdrop",
        ]
    );
    assert!(lines.is_sorted_by_key(|(n, _)| n));
    let from = lines[2].0.to_string();
    let ran = place.run(["watch", "db.azk", "--from", &from, "--once", "--json"]).succeeds();
    let all = ran.json_lines();
    assert_eq!(all.len(), 5);
    assert_eq!((&all[0]["change"], &all[0]["key"]), (&"remove".into(), &"pear".into()));
    assert_eq!((&all[1]["from"]["key"], &all[1]["to"]["key"]), (&"a".into(), &"b".into()));
    assert_eq!((&all[3]["table"], &all[3]["name"]), (&"main".into(), &"new".into()));
    place.run(["watch", "db.azk", "--from", "99999", "--once"]).fails(2, "there is no commit 99999");
    place.run(["watch", "db.azk", "--from", "0", "--once"]).fails(2, "the feed has not all changes after");
}

#[test]
fn the_feed_is_told_of_and_bounded() {
    let place = Place::with_database();
    place.run(["feed", "limits", "db.azk", "--bytes", "1M"]).fails(1, "azekura feed start");
    place.run(["feed", "start", "db.azk", "main", "--keys-only"]).succeeds();
    place.run(["feed", "limits", "db.azk", "--bytes", "1"]).fails(2, "65536 bytes at least");
    let ran = place.run(["feed", "limits", "db.azk", "--bytes", "1M", "--age", "60"]).succeeds();
    assert_eq!(ran.stdout(), "the feed keeps 1.05 MB, none older than 60 seconds\n");
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    let ran = place.run(["watch", "db.azk", "--oldest", "--once", "--hex"]).succeeds();
    assert!(ran.stdout().ends_with("\tmain\tput\t6170706c65\n"), "{}", ran.stdout());
    let ran = place.run(["feed", "info", "db.azk"]).succeeds();
    assert!(ran.stdout().contains("\"main\": keys, after commit "), "{}", ran.stdout());
    let info = &place.run(["feed", "info", "db.azk", "--json"]).succeeds().json_lines()[0];
    assert_eq!((&info["bytes_max"], &info["seconds_max"]), (&(1 << 20).into(), &60.0.into()));
    assert_eq!(
        (&info["tables"][0]["table"], &info["tables"][0]["content"]),
        (&"main".into(), &"keys".into())
    );
    place.run(["feed", "stop", "db.azk", "main"]).succeeds();
    let info = &place.run(["feed", "info", "db.azk", "--json"]).succeeds().json_lines()[0];
    assert_eq!(info["tables"], serde_json::json!([]));
}

/// Kills a watch beside a writer again and again. What all of them have printed, each from where the one
/// before had ended, is every commit once. (AZEKURA_KILLS: how often; 40 unless it is set.)
#[test]
fn nothing_is_lost_or_told_twice_when_a_watch_is_killed() {
    let place = Place::new();
    let db = Options::new().memory_bytes(8 << 20).open(place.path("db.azk")).unwrap();
    let table = db.create_table("main", TableKind::Hash).unwrap();
    table.set_feed(Some(azekura::FeedContent::Values)).unwrap();
    let begin = db.feed_info().unwrap().unwrap().newest;
    let kills: u64 = std::env::var("AZEKURA_KILLS").map_or(40, |n| n.parse().expect("a number"));
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| count_up(&db, &ends));
        let (mut from, mut next) = (begin, 1u64);
        for kill in 0..=kills {
            let is_last = kill == kills;
            if is_last {
                ends.store(true, Ordering::Relaxed);
            }
            let arguments = ["watch".into(), "db.azk".into(), "--from".into(), from.to_string()];
            let mut child = place.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            for _ in 0..10 + kill % 50 {
                line.clear();
                lines.read_line(&mut line).unwrap();
                let fields: Vec<&str> = line.trim_end().split('\t').collect();
                assert_eq!(fields[1..], ["main", "put", "count", &next.to_string()], "after kill {kill}");
                let commit: u64 = fields[0].parse().unwrap();
                assert!(commit > from);
                (from, next) = (commit, next + 1);
                if is_last {
                    break;
                }
            }
            signal(&child, "KILL");
            child.wait().unwrap();
        }
        assert!(next > 10 * kills);
    });
}

fn count_up(db: &Db, ends: &AtomicBool) {
    let table = db.open_table("main").unwrap();
    let mut i = 0u64;
    while !ends.load(Ordering::Relaxed) {
        i += 1;
        table.put("count", i.to_string()).unwrap();
    }
    // So that the last watch has something to print.
    (1..100).for_each(|more| table.put("count", (i + more).to_string()).unwrap());
}
