//! Commands on tables and ranges: dropping, renaming, clearing, removing a range, copying.

use crate::common::Place;
use serde_json::json;

/// A database with the tables `main` (ordered, 1,000 records), `hash` (1,000) and `none`.
fn filled() -> Place {
    let place = Place::with_database();
    place.run(["create", "db.azk", "--table", "hash", "--hash"]).succeeds();
    place.run(["create", "db.azk", "--table", "none"]).succeeds();
    let lines: String = (0..1_000).map(|n| format!("key{n:03}\tvalue {n}\n")).collect();
    for table in ["main", "hash"] {
        place.run_with_input(["import", "db.azk", "-t", table], lines.as_bytes()).succeeds();
    }
    place
}

fn tables(place: &Place, file: &str) -> String {
    let rows = place.run(["tables", file, "--count", "--json"]).succeeds().json_lines();
    let show = |row: &serde_json::Value| format!("{} {} {}", row["table"], row["kind"], row["records"]);
    rows.iter().map(show).collect::<Vec<_>>().join(", ").replace('"', "")
}

fn says(place: &Place, arguments: &str, text: &str) {
    assert_eq!(place.run(arguments.split(' ')).succeeds().stdout(), format!("{text}\n"));
}

fn says_json(place: &Place, arguments: &str, report: serde_json::Value) {
    let arguments = arguments.split(' ').chain(["--json"]);
    assert_eq!(place.run(arguments).succeeds().json_lines(), [report]);
}

#[test]
fn tables_are_dropped() {
    let place = filled();
    says(&place, "drop db.azk hash", "dropped table \"hash\" (1,000 records)");
    assert_eq!(tables(&place, "db.azk"), "main ordered 1000, none ordered 0");
    says_json(&place, "drop db.azk none", json!({ "table": "none", "records": 0 }));
    assert_eq!(tables(&place, "db.azk"), "main ordered 1000");
    place.run(["check", "db.azk"]).succeeds();
}

#[test]
fn tables_are_renamed() {
    let place = filled();
    says(&place, "rename db.azk hash other", "renamed table \"hash\" to \"other\"");
    says_json(&place, "rename db.azk none empty", json!({ "from": "none", "to": "empty" }));
    assert_eq!(tables(&place, "db.azk"), "empty ordered 0, main ordered 1000, other hash 1000");
    assert_eq!(place.run(["get", "db.azk", "key007", "-t", "other"]).succeeds().stdout(), "value 7\n");
}

#[test]
fn tables_are_cleared() {
    let place = filled();
    says(&place, "clear db.azk hash", "cleared table \"hash\" (1,000 records)");
    says_json(&place, "clear db.azk main", json!({ "table": "main", "records": 1000 }));
    assert_eq!(tables(&place, "db.azk"), "hash hash 0, main ordered 0, none ordered 0");
}

#[test]
fn ranges_are_removed() {
    let place = filled();
    says(&place, "remove-range db.azk --from key100 --to key200", "removed 100 records from table \"main\"");
    says(&place, "remove-range db.azk --prefix key00", "removed 10 records from table \"main\"");
    says(&place, "remove-range db.azk --to key011", "removed 1 record from table \"main\"");
    says(&place, "remove-range db.azk --hex --from 6b65793939", "removed 10 records from table \"main\"");
    says_json(&place, "remove-range db.azk --prefix no", json!({ "table": "main", "records": 0 }));
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "879\n");
    let keys = place.run(["scan", "db.azk", "--keys-only"]).succeeds();
    let expected: String = (11..100).chain(200..990).map(|n| format!("key{n:03}\n")).collect();
    assert_eq!(keys.stdout(), expected);
}

#[test]
fn a_table_is_copied() {
    let place = filled();
    let copied = "copied 1,000 records (14.9 kB) from table \"hash\" to \"hash2\"";
    says(&place, "copy-table db.azk hash hash2", copied);
    assert_eq!(
        tables(&place, "db.azk"),
        "hash hash 1000, hash2 hash 1000, main ordered 1000, none ordered 0"
    );
    place.run(["create", "other.azk"]).succeeds();
    place.run(["copy-table", "db.azk", "main", "here", "--to-file", "other.azk"]).succeeds();
    let report = json!({ "from": "none", "to": "none", "records": 0, "bytes": 0, "indexes": 0 });
    says_json(&place, "copy-table db.azk none none --to-file other.azk", report);
    assert_eq!(tables(&place, "other.azk"), "here ordered 1000, main ordered 0, none ordered 0");
    let export = |file, table| place.run(["export", file, "-t", table]).succeeds().stdout().to_owned();
    assert_eq!(export("other.azk", "here"), export("db.azk", "main"));
    assert_eq!(export("db.azk", "hash2"), export("db.azk", "hash"));
    place.run(["check", "db.azk"]).succeeds();
    place.run(["check", "other.azk"]).succeeds();
}

#[test]
fn a_table_is_copied_with_its_indexes() {
    let place = filled();
    for (table, name, spec) in
        [("main", "back", "v, k"), ("main", "unique", "k unique"), ("hash", "start", "k[..4]:lower")]
    {
        place.run(["index", "create", "db.azk", table, name, spec]).succeeds();
    }
    place.run(["create", "other.azk"]).succeeds();
    let ran = place.run(["copy-table", "db.azk", "main", "here", "--to-file", "other.azk"]).succeeds();
    assert!(ran.stdout().ends_with(" to \"here\" with 2 indexes\n"), "{}", ran.stdout());
    let ran = place.run(["copy-table", "db.azk", "hash", "copy"]).succeeds();
    assert!(ran.stdout().ends_with(" to \"copy\" with an index\n"), "{}", ran.stdout());
    let found = |file, table, index| {
        let ran = place.run(["index", "get", file, table, index]).succeeds();
        assert_eq!(ran.stdout().lines().count(), 1000);
        ran.stdout().to_owned()
    };
    for index in ["back", "unique"] {
        assert_eq!(found("other.azk", "here", index), found("db.azk", "main", index));
    }
    assert_eq!(found("db.azk", "copy", "start"), found("db.azk", "hash", "start"));
    let rows = place.run(["index", "list", "other.azk", "--json"]).succeeds().json_lines();
    assert!(rows.len() == 2 && rows[1]["spec"] == "k unique" && rows[1]["ready"] == true, "{rows:?}");
    place.run(["check", "db.azk"]).succeeds();
    place.run(["check", "other.azk"]).succeeds();
}

#[test]
fn many_batches_and_large_values_are_copied() {
    let place = Place::with_database();
    let lines: String = (0..25_000).map(|n| format!("{n}\t{}\n", "v".repeat(n % 70))).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    place.run_with_input(["set", "db.azk", "large", "-"], &[7; 3_000_000]).succeeds();
    place.run(["copy-table", "db.azk", "main", "copy"]).succeeds();
    let export = |table| place.run(["export", "db.azk", "-t", table]).succeeds().stdout_bytes().to_vec();
    assert!(export("main") == export("copy"));
}

/// A page of the source is damaged: no table appears, neither under the copy's name nor under another.
#[test]
fn a_copy_is_whole_or_not_there() {
    let place = filled();
    let lines: String = (0..50_000).map(|n| format!("key{n:06}\tthe value of {n}\n")).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    place.run(["create", "other.azk"]).succeeds();
    let mut bytes = place.read("db.azk");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
    place.write("db.azk", bytes);
    for to_file in [&[][..], &["--to-file", "other.azk"]] {
        let arguments = ["copy-table", "db.azk", "main", "copy"].iter().chain(to_file);
        let ran = place.run(arguments).fails(3, "db.azk: corrupt");
        assert!(ran.stderr().contains("; nothing was copied"), "{}", ran.stderr());
    }
    assert_eq!(tables(&place, "other.azk"), "main ordered 0");
    let names = place.run(["tables", "db.azk"]).succeeds();
    assert!(!names.stdout().contains("copy"), "{}", names.stdout());
}

/// A command that fails says why, and has changed no byte.
#[test]
fn commands_that_fail_change_nothing() {
    let place = filled();
    place.run(["create", "db.azk", "--table", "old.copying"]).succeeds();
    place.run(["create", "other.azk"]).succeeds();
    std::fs::hard_link(place.path("db.azk"), place.path("same.azk")).expect("a link");
    let before = [place.read("db.azk"), place.read("other.azk")];
    let long = "n".repeat(256);
    let fails = |arguments: &str, text: &str| {
        place.run(arguments.split(' ')).fails(2, text);
        assert!(before == [place.read("db.azk"), place.read("other.azk")], "{arguments}");
    };
    for command in
        ["set db.azk k v -t", "remove db.azk k -t", "drop db.azk", "clear db.azk", "import db.azk -t"]
    {
        fails(&format!("{command} gone"), "no table named \"gone\" in db.azk (it has ");
    }
    fails("remove-range db.azk --prefix x -t gone", "no table named \"gone\"");
    fails("remove-range db.azk", "needs --from, --to or --prefix");
    fails("remove-range db.azk --prefix ", "not an empty one");
    fails("remove-range db.azk --from ", "not an empty one");
    fails("remove-range db.azk -t hash --prefix x", "hash order");
    fails("remove-range db.azk --from b --to a", "--from is after --to");
    fails("clear db.azk", "TABLE");
    fails("rename db.azk gone new", "no table named \"gone\"");
    fails("rename db.azk main hash", "\"hash\" in db.azk exists already");
    fails(&format!("rename db.azk main {long}"), "256 bytes");
    fails("create db.azk -t hash", "exists already");
    fails(&format!("create db.azk -t {long}"), "256 bytes");
    fails("copy-table db.azk gone new", "no table named \"gone\"");
    fails("copy-table db.azk main hash", "\"hash\" in db.azk exists already");
    fails("copy-table db.azk main main --to-file other.azk", "\"main\" in other.azk exists already");
    fails("copy-table db.azk main x --to-file gone.azk", "gone.azk: no such database");
    fails("copy-table db.azk main x --to-file same.azk", "is the same database");
    fails("copy-table db.azk main old", "\"old.copying\" is there, as a copy that was cut off");
    fails("copy-table db.azk old.copying old", "rename the table first");
    fails(&format!("set db.azk {} v", "k".repeat(70_000)), "70,000 bytes");
    fails("import db.azk db.azk", "is the database itself");
    fails("import db.azk .", "is a directory");
    fails("import db.azk gone.tsv", "gone.tsv");
    place.run(["rename", "db.azk", "main", ""]).fails(2, "cannot be empty");
    place.run(["create", "new.azk", "--table", ""]).fails(2, "cannot be empty");
    place.run(["create", "new.azk", "--table", &long]).fails(2, "256 bytes");
    place.run(["remove", "db.azk", "gone"]).fails(1, "no key gone");
    assert!(before == [place.read("db.azk"), place.read("other.azk")]);
    assert!(!place.path("new.azk").exists() && !place.path("gone.azk").exists());
}

/// Opening a database that was not closed for writing reads its log again, which changes the file. A command
/// that fails must not do that.
#[test]
fn commands_that_fail_change_nothing_in_a_database_that_was_not_closed() {
    let place = Place::with_database();
    let db = azekura::Db::open(place.path("db.azk"), azekura::Options::new()).expect("it opens");
    db.open_table("main").and_then(|table| table.put(b"a", b"1")).expect("a record");
    // A copy of a file in use is the same as a crash leaves.
    let crashed = place.read("db.azk");
    db.close().expect("it closes");
    place.write("crashed.azk", &crashed);
    place.run(["set", "crashed.azk", "b", "2", "-t", "gone"]).fails(2, "no table");
    place.run(["remove", "crashed.azk", "b"]).fails(1, "no key b");
    place.run(["create", "crashed.azk"]).fails(2, "exists already");
    place.run(["drop", "crashed.azk", "gone"]).fails(2, "no table");
    assert!(place.read("crashed.azk") == crashed);
    assert_eq!(place.run(["get", "crashed.azk", "a"]).succeeds().stdout(), "1\n");
}
