//! Mirrors: the commands, and processes that are killed.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::{Place, signal};

#[test]
fn a_mirror_is_read_and_promoted() {
    let place = Place::with_database();
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    let ran = place.run(["mirror", "db.azk", "--to", "m.azk", "--once"]).succeeds();
    assert!(ran.stdout().starts_with("m.azk has commit "), "{}", ran.stdout());
    place.run(["set", "db.azk", "apple", "green"]).succeeds();
    let ran = place.run(["mirror", "db.azk", "--to", "m.azk", "--once", "--json"]).succeeds();
    let last = ran.json_lines().pop().expect("a line");
    assert!(last["level"] == true && last["behind_bytes"] == 0 && last["built"] == 0, "{last}");
    assert_eq!(place.run(["get", "m.azk", "apple"]).succeeds().stdout(), "green\n");
    assert_eq!(place.run(["info", "m.azk", "--json"]).succeeds().json_lines()[0]["mirror"], true);
    place.run(["set", "m.azk", "apple", "blue"]).fails(2, "it is a mirror");
    place.run(["mirror", "m.azk", "--to", "m.azk"]).fails(2, "cannot mirror itself");
    place.run(["mirror", "no.azk", "--to", "n.azk"]).fails(2, "no such database");
    place.run(["promote", "db.azk"]).fails(2, "is no mirror");
    place.run(["promote", "m.azk"]).succeeds();
    place.run(["set", "m.azk", "apple", "blue"]).succeeds();
    place.run(["check", "m.azk"]).succeeds();
    place.run(["mirror", "db.azk", "--to", "m.azk"]).fails(2, "no mirror");
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "green\n");
}

/// The command that is the source of a mirror, for the shell.
fn stream(file: &str) -> String {
    format!("exec '{}' stream {file}", env!("CARGO_BIN_EXE_azekura"))
}

#[test]
fn a_database_is_followed_through_a_command() {
    let place = Place::with_database();
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    let stream = stream("db.azk");
    let ran = place.run(["follow", "m.azk", "--from", &stream, "--once"]).succeeds();
    assert!(ran.stdout().starts_with("m.azk has commit "), "{}", ran.stdout());
    assert_eq!(ran.stderr(), "");
    place.run(["set", "db.azk", "apple", "green"]).succeeds();
    let reporting = format!("{stream} --json");
    let ran = place.run(["follow", "m.azk", "--from", &reporting, "--once", "--json"]);
    assert_eq!(ran.status(), 0, "{}", ran.stderr());
    let last = ran.json_lines().pop().expect("a line");
    assert!(last["level"] == true && last["behind_bytes"] == 0 && last["built"] == 0, "{last}");
    let report = ran.stderr().lines().last().expect("a report").to_owned();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert!(report["level"] == true && report["commit"] == last["commit"], "{report}");
    assert_eq!(place.run(["get", "m.azk", "apple"]).succeeds().stdout(), "green\n");
    place.run(["set", "m.azk", "apple", "blue"]).fails(2, "it is a mirror");
    place.run(["promote", "m.azk"]).succeeds();
    place.run(["follow", "m.azk", "--from", &stream, "--once"]).fails(2, "no mirror");
}

#[test]
fn what_is_no_source_is_named() {
    let place = Place::with_database();
    place.run(["create", "other.azk"]).succeeds();
    let fails = |dest: &str, command: &str, part: &str| {
        let ran = place.run(["follow", dest, "--from", command, "--timeout", "5", "--once"]);
        // What the command says comes first.
        assert!(ran.status() == 2 && ran.stderr().contains(part), "{} {}", ran.status(), ran.stderr());
        let last = ran.stderr().lines().last().unwrap_or_default().to_owned();
        assert!(last.starts_with("azekura: ") && !last.contains("warning"), "{}", ran.stderr());
        ran.stderr()
    };
    fails("n.azk", "echo Welcome to nowhere, and more of it", "it begins with \"Welcome to nowhe\"");
    fails("n.azk", "echo no way in >&2; exit 7", "(exit status: 7; it said: no way in)");
    fails("n.azk", &stream("no.azk"), "no.azk: no such database");
    fails("n.azk", "no-such-command-anywhere", "not found");
    place.write("text", "this is no database".repeat(1000));
    fails("n.azk", &stream("text"), "is no Azekura database");
    assert!(!place.path("n.azk").exists());
    // It breaks at the same place each time. (`head` would keep what is less for itself.)
    let half = format!("{} | dd bs=1 count=3000 status=none", stream("db.azk").replacen("exec ", "", 1));
    let text = fails("n.azk", &half, "it did not answer for too long");
    assert_eq!(text.matches("it is started again").count(), 4, "{text}");
    fails("db.azk", &stream("other.azk"), "no mirror");
    place.run(["follow", "m.azk", "--from", &stream("db.azk"), "--once"]).succeeds();
    fails("m.azk", &stream("other.azk"), "another database");
    let silent = place.run(["follow", "s.azk", "--from", "sleep 30", "--timeout", "0.2", "--once"]);
    silent.fails(2, "it did not answer for too long");
}

/// The command ends three times a second.
#[test]
fn a_connection_that_breaks_is_made_again() {
    let place = Place::with_database();
    let cut = format!("timeout 0.3 '{}' stream db.azk", env!("CARGO_BIN_EXE_azekura"));
    let mut command = place.interruptible(["follow", "m.azk", "--from", &cut]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let until = SystemTime::now() + Duration::from_secs(60);
    for round in ["one", "two", "three", "four"] {
        place.run(["set", "db.azk", "round", round]).succeeds();
        std::thread::sleep(Duration::from_millis(300));
        while !place.path("m.azk").exists()
            || place.run(["get", "m.azk", "round", "--follow"]).stdout() != format!("{round}\n")
        {
            assert!(SystemTime::now() < until, "round {round} does not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    signal(&child, "INT");
    let ended = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("it is started again"), "{text}");
    place.run(["check", "m.azk"]).succeeds();
}

#[test]
fn an_interrupt_ends_mirroring() {
    let place = Place::with_database();
    let mut command = place.interruptible(["mirror", "db.azk", "--to", "m.azk"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let until = SystemTime::now() + Duration::from_secs(30);
    while !place.path("m.azk").exists() {
        assert!(SystemTime::now() < until, "the mirror does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    place.run(["count", "m.azk", "--follow"]).succeeds();
    place.run(["promote", "m.azk"]).fails(2, "locked");
    signal(&child, "INT");
    assert!(child.wait().expect("it ends").success());
    place.run(["count", "m.azk"]).succeeds();
}

/// What the command has started holds its pipe, and lives on when the shell is ended.
const HELD: &str = "sleep 25 | cat";

#[test]
fn a_pipe_that_others_hold_is_waited_for_no_longer_than_was_said() {
    let place = Place::with_database();
    let began = Instant::now();
    let ran = place.run(["follow", "m.azk", "--once", "--timeout", "1", "--from", HELD]);
    ran.fails(2, "it did not answer for too long");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn an_interrupt_ends_following_though_others_hold_the_pipe() {
    let place = Place::with_database();
    let mut command = place.interruptible(["follow", "m.azk", "--from", &format!("touch begun; {HELD}")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let began = Instant::now();
    while !place.path("begun").exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "the command does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&child, "TERM");
    child.wait().expect("it ends");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

const RECORDS: usize = 40_000;
const ROUNDS: usize = 6;

/// The round in which each record was last written, in the order of keys. An import writes in that order, so
/// after each of its commits no record has a later round than one before it.
fn rounds_of(place: &Place, file: &str) -> Vec<usize> {
    let text = place.run(["export", file]).succeeds().stdout().to_owned();
    let round = |line: &str| line.rsplit('\t').next().and_then(|r| r.trim_start_matches('r').parse().ok());
    let rounds: Vec<usize> = text.lines().map(|line| round(line).expect("a round")).collect();
    assert!(rounds.windows(2).all(|two| two[0] >= two[1]), "{file} is after no commit");
    rounds
}

/// Whether `a` has nothing that `b` has not, or that is newer there.
fn is_behind(a: &[usize], b: &[usize]) -> bool {
    a.len() <= b.len() && a.iter().zip(b).all(|(a, b)| a <= b)
}

fn killed(mut child: Child) {
    signal(&child, "KILL");
    let _ = child.wait();
}

#[test]
fn writer_and_mirror_are_killed() {
    kill_both(&["mirror", "db.azk", "--to", "m.azk"]);
}

#[test]
fn writer_and_follower_are_killed() {
    kill_both(&["follow", "m.azk", "--from", &stream("db.azk")]);
}

/// The source's side is killed, again and again, while the follower lives.
#[test]
fn the_streaming_process_is_killed() {
    let place = Place::with_database();
    let noted = format!("echo $$ > pid; {}", stream("db.azk"));
    let mut command = place.interruptible(["follow", "m.azk", "--from", &noted]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let lines: String = (0..RECORDS).map(|n| format!("k{n:06}\tr1\n")).collect();
    place.write("lines.tsv", lines);
    let importing = place.command(["import", "db.azk", "lines.tsv"]).stdout(Stdio::null()).spawn();
    let mut importing = importing.expect("the binary runs");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(120));
        let pid = std::fs::read_to_string(place.path("pid")).unwrap_or_default();
        if !pid.trim().is_empty() {
            let _ =
                std::process::Command::new("kill").args(["-KILL", pid.trim()]).stderr(Stdio::null()).status();
        }
    }
    assert!(importing.wait().expect("it ends").success());
    let until = SystemTime::now() + Duration::from_secs(60);
    while !place.path("m.azk").exists()
        || place.run(["count", "m.azk", "--follow"]).stdout() != format!("{RECORDS}\n")
    {
        assert!(SystemTime::now() < until, "the mirror does not come to its source");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, "INT");
    assert!(child.wait_with_output().expect("it ends").status.success());
    place.run(["check", "m.azk"]).succeeds();
    assert_eq!(rounds_of(&place, "m.azk"), vec![1; RECORDS]);
}

fn kill_both(mirroring: &[&str]) {
    let place = Place::with_database();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    println!("seed {seed}");
    let mut random = u64::from(seed) | 1;
    let mut pause = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        std::thread::sleep(Duration::from_millis((random >> 33) % 150));
    };
    let mut before: Vec<usize> = Vec::new();
    for round in 1..=ROUNDS {
        let lines: String = (0..RECORDS).map(|n| format!("k{n:06}\tr{round}\n")).collect();
        place.write("lines.tsv", lines);
        let start = |words: &[&str]| {
            let mut command = place.command(words);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
        };
        let mirror = start(mirroring);
        let writer = start(&["import", "db.azk", "lines.tsv"]);
        pause();
        pause();
        if round % 2 == 0 {
            killed(writer);
            pause();
            killed(mirror);
        } else {
            killed(mirror);
            pause();
            killed(writer);
        }
        let source = rounds_of(&place, "db.azk");
        if place.path("m.azk").exists() {
            place.run(["check", "m.azk"]).succeeds();
            let mirrored = rounds_of(&place, "m.azk");
            assert!(is_behind(&mirrored, &source), "round {round}: the mirror has what its source has not");
            assert!(is_behind(&before, &mirrored), "round {round}: the mirror has gone back");
            before = mirrored;
        }
    }
    place.run(["import", "db.azk", "lines.tsv"]).succeeds();
    place.run(["mirror", "db.azk", "--to", "m.azk", "--once"]).succeeds();
    assert_eq!(rounds_of(&place, "m.azk"), vec![ROUNDS; RECORDS]);
    place.run(["promote", "m.azk"]).succeeds();
    place.run(["check", "m.azk"]).succeeds();
}
