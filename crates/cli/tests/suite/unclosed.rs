//! What commands say about a database that was not closed.

use crate::common::Place;
use azekura::{Db, Options, TableKind};

/// A database with 467 records, copied while it was in use. Creating its table was a commit too.
fn unclosed() -> Place {
    let place = Place::new();
    let db = Db::open(place.path("used.azk"), Options::new()).expect("it opens");
    let table = db.table("main", TableKind::Ordered).expect("a table");
    for n in 0..470u32 {
        table.put(format!("key{n}").as_bytes(), b"value").expect("it is stored");
    }
    (0..3u32).for_each(|n| table.remove(format!("key{n}").as_bytes()).expect("it is removed"));
    std::fs::copy(place.path("used.azk"), place.path("db.azk")).expect("it is copied");
    place
}

#[test]
fn check_and_info_see_the_log() {
    let place = unclosed();
    let only = |arguments: &[&str]| place.run(arguments).succeeds().json_lines().remove(0);
    assert_eq!(only(&["count", "db.azk", "--json"])["records"], 467);
    let check = only(&["check", "db.azk", "--json"]);
    assert_eq!(check["records"], 467);
    assert_eq!(check["deletes"], 3);
    assert_eq!(check["hidden"], 3);
    assert_eq!(check["log_commits"], 474);
    assert_eq!(check["log_records"], 473);
    assert!(check["log_bytes"].as_u64().expect("bytes") >= 473 * 4096);
    let info = only(&["info", "db.azk", "--json"]);
    assert!(info["log_bytes"].as_u64().expect("bytes") >= 473 * 4096);
    assert_eq!(info["log_commits"], 474);
    assert_eq!(info["log_records"], 473);

    let check = place.run(["check", "db.azk"]).succeeds();
    assert!(check.stdout().starts_with("sound: 467 records in 1 table,"), "{}", check.stdout());
    let row = |label: &str| check.stdout().lines().find(|l| l.starts_with(label)).expect("a row").to_owned();
    assert_eq!(row("deletes"), "deletes  3");
    assert_eq!(row("hidden"), "hidden   3");
    assert!(row("log").starts_with("log      474 commits, 473 records, "), "{}", row("log"));
    let info = place.run(["info", "db.azk"]).succeeds();
    assert!(
        info.stdout().lines().any(|l| l.starts_with("log") && l.ends_with(": 474 commits, 473 records")),
        "{}",
        info.stdout()
    );
}
