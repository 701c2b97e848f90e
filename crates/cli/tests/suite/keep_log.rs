//! Backups that keep the log, and processes that are killed meanwhile.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Place, signal};

/// The command, which has copied the first point when this returns.
fn keeper(place: &Place) -> Child {
    let before = points(place).len();
    let mut command = place.interruptible(["backup", "db.azk", "saved", "--keep-log", "--every", "0.1"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    until("the point", || points(place).len() > before);
    child
}

fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn points(place: &Place) -> Vec<serde_json::Value> {
    if !place.path("saved/repository").exists() {
        return Vec::new();
    }
    place.run(["points", "saved", "--json"]).succeeds().json_lines()
}

/// The first and the last commit of each point.
fn ranges(place: &Place) -> Vec<(u64, u64)> {
    let number = |point: &serde_json::Value, name: &str| point[name].as_u64().expect("a number");
    points(place).iter().map(|point| (number(point, "first_commit"), number(point, "commit"))).collect()
}

fn restored(place: &Place, commit: u64) -> String {
    let file = format!("at-{commit}.azk");
    place.run(["restore", "saved", &file, "--commit", &commit.to_string()]).succeeds();
    place.run(["check", &file]).succeeds();
    file
}

fn ended(keeper: Child) {
    signal(&keeper, "INT");
    let ended = keeper.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn each_commit_of_programs_that_come_and_go_can_be_restored() {
    let place = Place::with_database();
    place.run(["set", "db.azk", "n", "0"]).succeeds();
    let keeper = keeper(&place);
    let first = ranges(&place)[0].1;
    for n in 1..=6u64 {
        place.run(["set", "db.azk", "n", &n.to_string()]).succeeds();
        if n % 2 == 0 {
            until("the commit", || ranges(&place).last().is_some_and(|range| range.1 >= first + n));
        }
    }
    ended(keeper);
    let ranges = ranges(&place);
    assert_eq!(ranges.last().map(|range| range.1), Some(first + 6), "{ranges:?}");
    // A program that opens, writes and closes at once may leave no log to be read.
    let there: Vec<u64> =
        (first..=first + 6).filter(|c| ranges.iter().any(|r| (r.0..=r.1).contains(c))).collect();
    assert!(there.len() >= 4, "{ranges:?}");
    for commit in there {
        let file = restored(&place, commit);
        let found = place.run(["get", &file, "n"]).succeeds();
        assert_eq!(found.stdout(), format!("{}\n", commit - first));
    }
    place.run(["verify", "saved"]).succeeds();
    place.run(["backup", "db.azk", "-", "--keep-log"]).fails(2, "--keep-log needs a repository");
    place.run(["backup", "db.azk", "saved", "--every", "1"]).fails(2, "--keep-log");
    place.run(["backup", "no.azk", "saved", "--keep-log"]).fails(2, "no such database");
}

/// A program has the database open all the time, and flushes nothing.
#[test]
fn each_durable_commit_of_a_program_can_be_restored() {
    let place = Place::with_database();
    let options = azekura::Options::new().threads(false);
    let db = azekura::Db::open(place.path("db.azk"), options).expect("it opens");
    let table = db.open_table("main").expect("there is one");
    table.put("n", "0").expect("a durable commit");
    let keeper = keeper(&place);
    let first = ranges(&place)[0].1;
    for n in 1..=200u64 {
        table.put("n", n.to_string()).expect("a durable commit");
        if n == 100 {
            db.flush().expect("it is flushed");
            std::thread::sleep(Duration::from_millis(250));
        }
    }
    ended(keeper);
    let ranges = ranges(&place);
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    assert_eq!(ranges[0].1, first + 200);
    for n in [0, 1, 57, 99, 100, 101, 150, 199, 200] {
        let file = restored(&place, first + n);
        assert_eq!(place.run(["get", &file, "n"]).succeeds().stdout(), format!("{n}\n"));
    }
    drop(table);
    db.close().expect("it closes");
}

/// Imports are killed, and then the keeper, again and again. What the repository says that it has, it has.
#[test]
fn writers_and_the_keeper_are_killed() {
    let place = Place::with_database();
    let lines: String = (0..200_000).map(|n| format!("k{n:06}\tr{n}\n")).collect();
    place.write("lines.tsv", lines);
    place.run(["set", "db.azk", "n", "0"]).succeeds();
    for round in 0..4 {
        let mut keeper = keeper(&place);
        for wait in [40, 90] {
            let mut importing = place.command(["import", "db.azk", "lines.tsv"]);
            importing.stdout(Stdio::null()).stderr(Stdio::null());
            let mut importing = importing.spawn().expect("the binary runs");
            std::thread::sleep(Duration::from_millis(wait * (1 + round)));
            signal(&importing, "KILL");
            let _ = importing.wait();
            std::thread::sleep(Duration::from_millis(150));
        }
        if round % 2 == 0 {
            signal(&keeper, "KILL");
            let _ = keeper.wait();
        } else {
            ended(keeper);
        }
        place.run(["verify", "saved"]).succeeds();
    }
    let ranges = ranges(&place);
    let wanted: Vec<u64> = ranges.iter().flat_map(|r| [r.0, r.0 + (r.1 - r.0) / 2, r.1]).collect();
    assert!(ranges.len() >= 4, "{ranges:?}");
    let mut records = 0;
    for commit in wanted {
        if place.path(&format!("at-{commit}.azk")).exists() {
            continue;
        }
        let file = restored(&place, commit);
        // An import writes in the order of keys, from the first one on.
        let text = place.run(["export", &file]).succeeds().stdout().to_owned();
        let keys = text.lines().filter(|line| line.starts_with('k'));
        records = records.max(keys.clone().count());
        assert!(keys.zip(0..).all(|(line, n)| *line == format!("k{n:06}\tr{n}")), "commit {commit}");
    }
    assert!(records > 0, "nothing was imported: {ranges:?}");
}
