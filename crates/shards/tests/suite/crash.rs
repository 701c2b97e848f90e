//! After a crash a version is there whole or not at all.

use crate::common::{Place, names, some_records, write_all, write_version};
use azekura_shards::{Draft, ShardedReader, Spec, prune, verify, versions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// With this in the environment the test below is the child that is killed.
const CHILD: &str = "AZEKURA_SHARDS_CHILD";
const RECORDS: u64 = 20_000;

/// Writes versions until it is killed, and says each number when it is committed.
fn child(root: &str) {
    let records = some_records(RECORDS, 5);
    loop {
        let draft = Draft::begin(root, &Spec::hash(3)).expect("a draft");
        println!("begun");
        let files = write_all(&draft, &records, "a").expect("shards");
        println!("written");
        let version = draft.commit(&files).expect("a version");
        println!("committed {version}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

#[test]
fn killed_writers_leave_whole_versions_or_nothing() {
    if let Ok(root) = std::env::var(CHILD) {
        return child(&root);
    }
    let place = Place::new();
    let root = place.set();
    std::fs::create_dir(&root).expect("a folder");
    let records = some_records(RECORDS, 5);
    let (mut acknowledged, mut drafts_seen) = (0, 0);
    for round in 0..20_u64 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "crash::killed_writers_leave_whole_versions_or_nothing", "--nocapture"])
            .env(CHILD, &root)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        // The moment differs: after it has begun, and some later.
        let until = ["begun", "written", "committed"][usize::try_from(round % 3).unwrap()];
        let seen = |line: &str| line.strip_prefix("committed ").and_then(|number| number.parse::<u32>().ok());
        for line in lines.by_ref().map_while(Result::ok) {
            acknowledged = acknowledged.max(seen(&line).unwrap_or(0));
            if line.contains(until) {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(round * 1300));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        for line in lines.map_while(Result::ok) {
            acknowledged = acknowledged.max(seen(&line).unwrap_or(0));
        }
        drafts_seen += usize::from(names(&root).iter().any(|name| name.starts_with(".new-")));
        let all = versions(&root).expect("versions");
        assert!(all.last().copied().unwrap_or(0) >= acknowledged, "{all:?}, {acknowledged}");
        for version in all {
            let report = verify(&root, Some(version), |_, _| {}).expect("a report");
            assert_eq!((report.problems, report.records), (Vec::<String>::new(), RECORDS));
        }
        if acknowledged > 0 {
            let reader = ShardedReader::open(&root).expect("a reader");
            let keys: Vec<_> = records.keys().collect();
            let found = reader.get_many(&keys).expect("values");
            assert!(found.iter().zip(records.values()).all(|(found, due)| found.as_ref() == Some(due)));
        }
        prune(&root, 2, Duration::ZERO).expect("a report");
    }
    assert!(acknowledged >= 6 && drafts_seen >= 6, "{acknowledged} versions, {drafts_seen} drafts");
    assert!(names(&root).iter().all(|name| !name.starts_with(".new-")));
}

#[test]
fn a_folder_without_a_manifest_is_no_version() {
    let place = Place::new();
    let records = some_records(100, 1);
    write_version(&place.set(), &Spec::hash(2), &records);
    write_version(&place.set(), &Spec::hash(2), &records);
    std::fs::remove_file(place.set().join("manifest-0002.json")).expect("it was there");
    assert_eq!(ShardedReader::open(place.set()).expect("the first").version().number(), 1);
    assert_eq!(write_version(&place.set(), &Spec::hash(2), &records), 3);
    prune(place.set(), 9, Duration::ZERO).expect("a report");
    assert_eq!(names(&place.set()), ["manifest-0001.json", "manifest-0003.json", "v0001", "v0003"]);
}
