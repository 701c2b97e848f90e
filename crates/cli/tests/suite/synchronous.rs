//! Mirrors for which durable commits wait, in processes that are killed or stopped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use azekura::{Db, Freshness, Options, Table, TableKind};

use crate::common::{Place, signal};

/// Where the process that writes finds its database.
const WRITER: &str = "AZEKURA_TEST_WRITER";
const THREADS: u64 = 3;
/// The least number of commits before a writer is killed.
const COMMITS: usize = 150;

/// Ends a process when it is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The command that keeps `m.azk` equal to `db.azk`.
fn mirroring(way: &str) -> Vec<String> {
    let stream = format!("exec '{}' stream db.azk", env!("CARGO_BIN_EXE_azekura"));
    let words = match way {
        "file" => vec!["mirror", "db.azk", "--to", "m.azk"],
        _ => vec!["follow", "m.azk", "--from", &stream],
    };
    words.into_iter().chain(["--sync", "--json"]).map(str::to_owned).collect()
}

/// Starts a mirror, and waits until commits wait for it.
fn mirrored(place: &Place, way: &str) -> Ends {
    let mut command = place.command(mirroring(way));
    let mut child = Ends(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("its output")).lines();
    loop {
        let line = lines.next().expect("it goes on").expect("a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if line["synchronous"] == true {
            break;
        }
    }
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn opened(place: &Place, options: Options) -> (Db, Table) {
    let db = options.open(place.path("db.azk")).expect("it opens");
    let table = db.table("t", TableKind::Ordered).expect("a table");
    (db, table)
}

/// In a process of its own: commits for ever, and says of each when it has returned.
#[test]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let db = Db::open(path, Options::new().mirror_timeout(Duration::from_secs(600))).expect("it opens");
    let table = db.table("t", TableKind::Ordered).expect("a table");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let table = &table;
            scope.spawn(move || {
                for n in (thread..).step_by(3) {
                    table.put(n.to_be_bytes(), n.to_be_bytes()).expect("it is put");
                    println!("\nput {n}");
                }
            });
        }
    });
}

/// What was acknowledged when the writer was killed.
fn written(place: &Place) -> Vec<u64> {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    let test = "synchronous::writes_until_it_is_killed";
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(WRITER, place.path("db.azk"));
    let mut writer = Ends(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs"));
    let lines = BufReader::new(writer.0.stdout.take().expect("its output")).lines();
    let mut put = Vec::new();
    for line in lines.map_while(Result::ok) {
        put.extend(line.strip_prefix("put ").and_then(|n| n.parse::<u64>().ok()));
        if put.len() == COMMITS {
            // What comes until it is dead counts too.
            signal(&writer.0, "KILL");
        }
    }
    assert!(put.len() >= COMMITS, "{} commits", put.len());
    put
}

fn nothing_is_lost(way: &str) {
    let place = Place::with_database();
    let mirror = mirrored(&place, way);
    let put = written(&place);
    // All that there was of the database's disk.
    std::fs::remove_file(place.path("db.azk")).expect("it is removed");
    drop(mirror);
    place.run(["check", "m.azk"]).succeeds();
    place.run(["promote", "m.azk"]).succeeds();
    let db = Db::open(place.path("m.azk"), Options::new()).expect("it opens");
    let table = db.open_table("t").expect("a table");
    for n in put {
        assert!(
            table.get(n.to_be_bytes()).expect("it is read").is_some(),
            "{n} was acknowledged, and is lost"
        );
    }
}

#[test]
fn what_returned_is_in_the_mirror_when_the_disk_is_lost() {
    nothing_is_lost("file");
}

#[test]
fn what_returned_is_in_the_follower_when_the_disk_is_lost() {
    nothing_is_lost("pipe");
}

fn goes_on_when_it_is_killed(way: &str) {
    let place = Place::with_database();
    let mirror = mirrored(&place, way);
    let (db, table) = opened(&place, Options::new().mirror_timeout(Duration::from_secs(600)));
    let put = |key: &'static str| {
        let table = table.clone();
        std::thread::spawn(move || table.put(key, "value").expect("it is put"))
    };
    table.put("before", "value").expect("it is put");
    signal(&mirror.0, "STOP");
    let (waiting, began) = (put("while it is stopped"), Instant::now());
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished(), "nobody has it");
    signal(&mirror.0, "KILL");
    waiting.join().expect("it returns");
    table.put("after", "value").expect("it is put");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(db.stats().unmirrored_commits, 0, "there is no mirror any more");
}

#[test]
fn a_writer_goes_on_when_the_mirror_is_killed() {
    goes_on_when_it_is_killed("file");
}

#[test]
fn a_writer_goes_on_when_the_follower_is_killed() {
    goes_on_when_it_is_killed("pipe");
}

fn leaves_it_behind_when_it_is_stopped(way: &str) {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let place = Place::with_database();
    let mirror = mirrored(&place, way);
    let (db, table) = opened(&place, Options::new().mirror_timeout(TIMEOUT));
    let unmirrored = || db.stats().unmirrored_commits;
    signal(&mirror.0, "STOP");
    let before = unmirrored();
    let began = Instant::now();
    table.put("one", "value").expect("it is put");
    assert!(began.elapsed() >= TIMEOUT && unmirrored() == before + 1, "{:?}", began.elapsed());
    for n in 0..100u32 {
        table.put(n.to_be_bytes(), "value").expect("it is put");
    }
    assert_eq!(unmirrored(), before + 101, "they did not wait");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    signal(&mirror.0, "CONT");
    let mut last = unmirrored();
    for n in 0u32.. {
        assert!(began.elapsed() < Duration::from_secs(60), "the mirror does not catch up");
        table.put("round", n.to_be_bytes()).expect("it is put");
        if last == unmirrored() {
            let copy = Options::new().freshness(Freshness::Log).open(place.path("m.azk")).expect("it opens");
            let there = copy.open_table("t").expect("a table").get("round").expect("it is read");
            assert_eq!(there.as_deref(), Some(&n.to_be_bytes()[..]));
            break;
        }
        last = unmirrored();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_mirror_that_is_stopped_is_left_behind() {
    leaves_it_behind_when_it_is_stopped("file");
}

#[test]
fn a_follower_that_is_stopped_is_left_behind() {
    leaves_it_behind_when_it_is_stopped("pipe");
}

#[test]
fn a_command_says_that_the_mirror_did_not_have_its_change_in_time() {
    let place = Place::with_database();
    let mirror = mirrored(&place, "file");
    let set = |key| place.run(["set", "db.azk", key, "1"]);
    set("a").succeeds();
    signal(&mirror.0, "STOP");
    set("b").warns("db.azk: the change is stored here, and its synchronous mirror did not have it in time");
    signal(&mirror.0, "CONT");
    set("c").succeeds();
}

#[test]
fn one_run_cannot_be_waited_for() {
    let place = Place::with_database();
    place.run(["mirror", "db.azk", "--to", "m.azk", "--once", "--sync"]).fails(2, "cannot be used with");
}
