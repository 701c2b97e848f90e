//! `salvage`, from damaged files to new databases.

use crate::common::Place;

/// A database with 20,000 records, closed.
fn filled() -> Place {
    let place = Place::with_database();
    let lines: String = (0..20_000).map(|n| format!("key{n:06}\tthe value of {n}\n")).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    place
}

fn count(place: &Place, file: &str) -> u64 {
    place.run(["count", file]).succeeds().stdout().trim().parse().expect("a number")
}

#[test]
fn a_whole_file_is_salvaged_whole_and_not_changed() {
    let place = filled();
    let before = place.read("db.azk");
    let ran = place.run(["salvage", "db.azk", "new.azk"]).succeeds();
    assert!(ran.stdout().contains("20,000 records"), "{}", ran.stdout());
    assert_eq!(count(&place, "new.azk"), 20_000);
    assert_eq!(place.read("db.azk"), before);
    let names = std::fs::read_dir(place.path(".")).expect("the folder");
    assert_eq!(names.count(), 2, "something was left behind");
}

#[test]
fn a_tables_time_to_live_is_saved() {
    let place = Place::with_database();
    place.run(["create", "db.azk", "--table", "sessions", "--ttl", "3600"]).succeeds();
    let ran = place.run(["salvage", "db.azk", "new.azk", "--json"]).succeeds();
    let report = &ran.json_lines()[0];
    let tables = report["tables"].as_array().expect("a list");
    let ttl =
        |name: &str| tables.iter().find(|table| table["name"] == name).expect("the table")["ttl"].clone();
    assert_eq!((ttl("sessions"), ttl("main")), (3600.0.into(), serde_json::Value::Null), "{report}");
    let told = place.run(["ttl", "new.azk", "--table", "sessions"]).succeeds();
    assert!(told.stdout().contains("3600 seconds"), "{}", told.stdout());
    let told = place.run(["salvage", "db.azk", "again.azk"]).succeeds();
    assert!(
        told.stdout().contains("\"sessions\" (ordered): 0 records, which live for 3600 s\n"),
        "{}",
        told.stdout()
    );
}

#[test]
fn without_superblocks_and_with_a_damaged_page_the_rest_is_saved_and_the_status_is_3() {
    let place = filled();
    let mut bytes = place.read("db.azk");
    bytes[..8192].fill(0);
    place.run(["get", "db.azk", "key000001"]).succeeds();
    place.write("db.azk", &bytes);
    place.run(["get", "db.azk", "key000001"]).fails(2, "zeros");
    let ran = place.run(["salvage", "db.azk", "new.azk", "--json"]);
    assert_eq!(ran.status(), 3, "{}", ran.stderr());
    let report = &ran.json_lines()[0];
    assert_eq!(
        (&report["manifest"], &report["tables"][0]["name"]),
        (&false.into(), &"main".into()),
        "{report}"
    );
    assert_eq!(count(&place, "new.azk"), 20_000);
    assert_eq!(place.run(["get", "new.azk", "key019999"]).succeeds().stdout(), "the value of 19999\n");

    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    place.write("db.azk", &bytes);
    let ran = place.run(["salvage", "db.azk", "rest.azk"]);
    assert_eq!(ran.status(), 3);
    assert!(ran.stdout().contains("lost:"), "{}", ran.stdout());
    assert!((19_000..=20_000).contains(&count(&place, "rest.azk")));
    place.run(["check", "rest.azk"]).succeeds();
}

#[test]
fn nothing_that_is_there_is_written_over_and_nothing_is_left_of_a_failure() {
    let place = filled();
    let before = place.read("db.azk");
    for out in ["db.azk", "./db.azk"] {
        place.run(["salvage", "db.azk", out, "--force"]).fails(2, "is the database itself");
    }
    place.write("list", "A shopping list.\n".repeat(1_000));
    place.run(["salvage", "db.azk", "list"]).fails(2, "exists already");
    place.run(["salvage", "list", "new.azk"]).fails(2, "list");
    place.run(["salvage", "absent", "new.azk"]).fails(2, "absent");
    assert_eq!(place.read("db.azk"), before);
    assert!(!place.path("new.azk").exists());
    assert_eq!(std::fs::read_dir(place.path(".")).expect("the folder").count(), 2);
}
