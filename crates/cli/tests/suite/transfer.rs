//! Import and export: escapes, binary data, streams, bad input.

use std::io::Write;
use std::process::Stdio;

use crate::common::Place;

/// Every byte, alone and beside others, in keys and values.
fn binary_records() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = vec![(Vec::new(), b"the empty key".to_vec()), (b"empty".to_vec(), Vec::new())];
    for byte in 0..=u8::MAX {
        records.push((vec![byte], vec![byte; 3]));
        records.push((vec![b'k', byte, b'\\'], vec![b'\t', byte, b'\n', b'\r']));
    }
    records.push((b"long".to_vec(), (0..=u8::MAX).cycle().take(300_000).collect()));
    records.push(("鍵".into(), "値 with spaces".into()));
    records.sort();
    records
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex_lines(records: &[(Vec<u8>, Vec<u8>)]) -> String {
    records.iter().map(|(key, value)| format!("{}\t{}\n", hex(key), hex(value))).collect()
}

#[test]
fn any_bytes_survive_export_and_import() {
    let place = Place::with_database();
    let lines = hex_lines(&binary_records());
    place.run_with_input(["import", "--hex", "db.azk"], lines.as_bytes()).succeeds();
    place.run(["export", "db.azk", "all.tsv"]).succeeds();

    // The file is text, whatever the records hold.
    let exported = String::from_utf8(place.read("all.tsv")).expect("UTF-8");
    assert_eq!(exported.lines().count(), binary_records().len());
    assert!(exported.chars().all(|c| !c.is_control() || c == '\t' || c == '\n'));

    place.run(["create", "copy.azk"]).succeeds();
    place.run(["import", "copy.azk", "all.tsv"]).succeeds();
    assert_eq!(place.run(["export", "--hex", "copy.azk"]).succeeds().stdout(), lines);
    assert_eq!(place.run(["export", "copy.azk", "-"]).succeeds().stdout(), exported);
}

#[test]
fn records_are_exported_and_imported_with_the_time_at_which_they_expire() {
    let place = Place::with_database();
    for (key, ttl) in [("a", "100"), ("c", "0.001"), ("d", "5000.5")] {
        place.run(["set", "db.azk", key, "1", "--ttl", ttl]).succeeds();
    }
    place.run(["set", "db.azk", "b", "2"]).succeeds();
    let exported = place.run(["export", "db.azk"]).succeeds().stdout().to_owned();
    let lines: Vec<&str> = exported.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("a\t1\texpires=1") && lines[1] == "b\t2", "{exported}");
    let hex = place.run(["export", "--hex", "db.azk"]).succeeds().stdout().to_owned();
    assert_eq!(hex, exported.replace("a\t1", "61\t31").replace("b\t2", "62\t32").replace("d\t1", "64\t31"));
    // What is imported again expires at the same time, also in a table whose records live otherwise.
    place.run(["create", "copy.azk", "--hash", "--ttl", "9"]).succeeds();
    place.run_with_input(["import", "copy.azk"], exported.as_bytes()).succeeds();
    place.run_with_input(["import", "copy.azk", "--hex"], hex.as_bytes()).succeeds();
    let copied = place.run(["export", "copy.azk"]).succeeds().stdout().to_owned();
    let mut copied: Vec<&str> = copied.lines().collect();
    copied.sort_unstable();
    assert_eq!((copied[0], copied[2]), (lines[0], lines[2]));
    assert!(copied[1].starts_with("b\t2\texpires=1"), "as the table says: {}", copied[1]);
    // What has expired meanwhile leaves what is there.
    let old = format!("b\tnew\texpires=1600000000000\ne\t5\texpires=1600000000000\n{}\n", lines[2]);
    let ran = place.run_with_input(["import", "db.azk"], old.as_bytes()).succeeds();
    assert_eq!(
        ran.stdout().trim_end(),
        format!("imported 1 records ({} B), without 2 that had expired", old.len())
    );
    let ran = place.run_with_input(["import", "--json", "db.azk"], old.as_bytes()).succeeds();
    assert_eq!((&ran.json_lines()[0]["records"], &ran.json_lines()[0]["expired"]), (&1.into(), &2.into()));
    assert_eq!(place.run(["export", "db.azk"]).succeeds().stdout(), exported);
    for bad in ["f\t1\texpires=", "f\t1\texpires=-1", "f\t1\texpires=1\t"] {
        place.run_with_input(["import", "db.azk"], bad.as_bytes()).fails(2, "line 1");
    }
}

#[test]
fn a_copied_table_has_the_times_of_its_original() {
    let place = Place::with_database();
    place.run(["create", "db.azk", "-t", "t", "--ttl", "500"]).succeeds();
    place.run(["set", "db.azk", "-t", "t", "usual", "1"]).succeeds();
    place.run(["set", "db.azk", "-t", "t", "longer", "2", "--ttl", "9000"]).succeeds();
    place.run(["ttl", "db.azk", "-t", "t", "none"]).succeeds();
    place.run(["set", "db.azk", "-t", "t", "stays", "3"]).succeeds();
    place.run(["ttl", "db.azk", "-t", "t", "700"]).succeeds();
    place.run(["create", "other.azk"]).succeeds();
    let exported = place.run(["export", "db.azk", "-t", "t"]).succeeds().stdout().to_owned();
    assert_eq!(exported.matches("expires=1").count(), 2, "{exported}");
    assert!(exported.contains("stays\t3\texpires=never"), "{exported}");
    place.run(["create", "third.azk", "--ttl", "5"]).succeeds();
    place.run_with_input(["import", "third.azk"], exported.as_bytes()).succeeds();
    assert_eq!(place.run(["export", "third.azk"]).succeeds().stdout(), exported);
    place.run(["copy-table", "db.azk", "t", "copy"]).succeeds();
    place.run(["copy-table", "db.azk", "t", "copy", "--to-file", "other.azk"]).succeeds();
    for file in ["db.azk", "other.azk"] {
        assert_eq!(place.run(["export", file, "-t", "copy"]).succeeds().stdout(), exported, "{file}");
        let usual = place.run(["ttl", file, "-t", "copy"]).succeeds().stdout().to_owned();
        assert_eq!(usual, "records of table \"copy\" live for 700 seconds\n");
    }
}

#[test]
fn many_batches_are_imported_from_a_pipe() {
    let place = Place::new();
    place.run(["create", "db.azk", "--hash"]).succeeds();
    let lines: String = (0..35_000).map(|n| format!("key{n}\tvalue{n}\n")).collect();
    let ran = place.run_with_input(["import", "db.azk", "-", "--json"], lines.as_bytes());
    assert_eq!(ran.succeeds().json_lines()[0]["records"], 35_000);
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "35000\n");
    assert_eq!(place.run(["get", "db.azk", "key34999"]).succeeds().stdout(), "value34999\n");
    let exported = place.run(["export", "db.azk"]).succeeds();
    let mut exported: Vec<&str> = exported.stdout().lines().collect();
    let mut expected: Vec<&str> = lines.lines().collect();
    exported.sort_unstable();
    expected.sort_unstable();
    assert_eq!(exported, expected);
}

#[test]
fn import_accepts_windows_lines_and_a_missing_last_line_feed() {
    let place = Place::with_database();
    place.run_with_input(["import", "db.azk"], b"a\t1\r\nb\t2\\r\r\nc\t3").succeeds();
    assert_eq!(place.run(["export", "db.azk"]).succeeds().stdout(), "a\t1\nb\t2\\r\nc\t3\n");
}

#[test]
fn importing_nothing_is_no_error() {
    let place = Place::with_database();
    let ran = place.run_with_input(["import", "db.azk"], b"").succeeds();
    assert!(ran.stdout().starts_with("imported 0 records"));
    assert_eq!(place.run(["export", "db.azk"]).succeeds().stdout(), "");
}

#[test]
fn a_bad_line_is_numbered_and_nothing_before_it_is_lost() {
    let bad = [
        ("no tab here", "no tab"),
        ("", "no tab"),
        ("one\ttwo\tthree", "more than one tab"),
        ("key\tbad \\q escape", "unknown escape \\q"),
        ("key\t\\x1", "two hexadecimal digits"),
        ("key\\\tvalue", "backslash"),
    ];
    for (line, reason) in bad {
        let place = Place::with_database();
        place.run(["set", "db.azk", "old", "record"]).succeeds();
        // More than a batch comes before it, so one is committed and one is in progress.
        let good: String = (0..12_345).map(|n| format!("k{n:05}\tv{n}\n")).collect();
        place.write("bad.tsv", format!("{good}{line}\nafter\tit\n"));
        let ran = place.run(["import", "db.azk", "bad.tsv"]).fails(2, reason);
        assert!(ran.stderr().contains("bad.tsv: line 12346: "), "{}", ran.stderr());
        let stored = "; 12,345 rows are stored; go on with --from-line 12346\n";
        assert!(ran.stderr().ends_with(stored), "{}", ran.stderr());
        assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "12346\n");
        assert_eq!(place.run(["get", "db.azk", "k12344"]).succeeds().stdout(), "v12344\n");
        assert_eq!(place.run(["get", "db.azk", "old"]).succeeds().stdout(), "record\n");
        place.run(["get", "db.azk", "after"]).fails(1, "no key after");
        // After the line is corrected, the rest follows.
        place.write(
            "bad.tsv",
            format!(
                "a bad line that is passed over\n{}better\tline\nafter\tit\n",
                &good[good.find('\n').map_or(0, |end| end + 1)..]
            ),
        );
        let arguments = ["import", "db.azk", "bad.tsv", "--from-line", "12346"];
        assert!(place.run(arguments).succeeds().stdout().starts_with("imported 2 records"));
        assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "12348\n");
    }
}

#[test]
fn a_key_that_is_too_large_is_a_bad_line() {
    let place = Place::with_database();
    let input = format!("a\t1\n{}\t2\n", "k".repeat(70_000));
    let ran = place.run_with_input(["import", "db.azk"], input.as_bytes());
    let ran = ran.fails(2, "standard input: line 2: ");
    assert!(ran.stderr().contains("too large"));
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "1\n");
}

/// If it is interrupted while it reads or waits for more, it says how many rows are stored. The number is
/// right, and the line that it names comes after these rows.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_import_says_where_to_go_on() {
    let place = Place::with_database();
    let lines: String = (0..45_000).map(|n| format!("k{n:05}\tv{n}\n")).collect();
    place.write("all.tsv", &lines);
    for signal in ["INT", "TERM"] {
        place.run(["clear", "db.azk", "main"]).succeeds();
        let mut command = place.interruptible(["import", "db.azk"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut input = child.stdin.take().expect("a pipe");
        // More than a pipe holds. Once it is written, import is reading, so the handler is set.
        input.write_all(lines.as_bytes()).expect("import reads");
        crate::common::signal(&child, signal);
        let ended = child.wait_with_output().expect("it ends");
        drop(input);
        assert_eq!(ended.status.code(), Some(130));
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        let rows = place.run(["count", "db.azk"]).succeeds().stdout().trim_end().to_owned();
        let rows: u64 = rows.parse().expect("a number");
        let stored = match rows {
            0 => "no row is stored".to_owned(),
            1 => "1 row is stored".to_owned(),
            1_000.. => format!("{},{:03} rows are stored", rows / 1_000, rows % 1_000),
            _ => format!("{rows} rows are stored"),
        };
        let line = (rows + 1).to_string();
        assert_eq!(message, format!("azekura: interrupted; {stored}; go on with --from-line {line}\n"));
        place.run(["import", "db.azk", "all.tsv", "--from-line", &line]).succeeds();
        assert_eq!(place.run(["export", "db.azk"]).succeeds().stdout(), lines);
    }
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let place = Place::with_database();
    place.run(["import", "db.azk", "gone.tsv"]).fails(2, "gone.tsv");
    place.run(["export", "db.azk", "no/such/folder.tsv"]).fails(2, "no/such/folder.tsv");
    place.write("kept.tsv", "mine");
    place.run(["export", "gone.azk", "kept.tsv"]).fails(2, "gone.azk");
    assert_eq!(place.read("kept.tsv"), b"mine");
}

/// A database of three keys with an older point and a newer one in a repository.
fn backed_up() -> Place {
    let place = Place::with_database();
    for (key, value) in [("ada", "1815"), ("grace", "1906")] {
        place.run(["set", "db.azk", key, value]).succeeds();
        let ran = place.run(["backup", "db.azk", "saved"]).succeeds();
        assert!(ran.stdout().starts_with("point "), "{}", ran.stdout());
    }
    place
}

fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(".")).expect("the folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn a_repository_gives_each_point_back_and_is_verified_and_pruned() {
    let place = backed_up();
    let points = place.run(["points", "saved", "--json"]).succeeds().json_lines();
    assert_eq!(points.len(), 2);
    assert!(place.run(["points", "saved"]).succeeds().stdout().contains(" UTC "));
    let (older, newer) = (&points[0], &points[1]);
    assert_eq!((&older["point"], &newer["point"]), (&1.into(), &2.into()));
    place.run(["verify", "saved"]).succeeds();
    let commit = newer["commit"].to_string();
    place.run(["restore", "saved", "new.azk", "--commit", &commit]).succeeds();
    place.run(["restore", "saved", "old.azk", "--point", "1"]).succeeds();
    assert_eq!(place.run(["get", "new.azk", "grace"]).succeeds().stdout(), "1906\n");
    place.run(["get", "old.azk", "grace"]).fails(1, "grace");
    assert_eq!(place.run(["get", "old.azk", "ada"]).succeeds().stdout(), "1815\n");
    place.run(["check", "old.azk"]).succeeds();
    place.run(["restore", "saved", "future.azk", "--time", "2999-01-01"]).succeeds();
    place.run(["restore", "saved", "past.azk", "--time", "2001-01-01"]).fails(2, "no point is as old");
    place.run(["restore", "saved", "none.azk", "--point", "7"]).fails(2, "no point 7");
    place.run(["restore", "saved", "none.azk", "--point", "1", "--commit", "1"]).fails(2, "--commit");
    place.run(["backup", "old.azk", "saved"]).fails(2, "another lineage");
    place.run(["backup", "old.azk", "saved-2"]).succeeds();
    place.run(["prune", "saved", "--keep", "7x"]).fails(2, "7x");
    assert!(
        place.run(["prune", "saved", "--keep", "1"]).succeeds().stdout().starts_with("points: 1 removed")
    );
    place.run(["restore", "saved", "none.azk", "--point", "1"]).fails(2, "no point 1");
    let expected = ["db.azk", "future.azk", "new.azk", "old.azk", "saved", "saved-2"];
    assert_eq!(names(&place), expected, "something was left behind");
}

/// This process has the database open, and flushes nothing.
#[test]
fn a_backup_beside_a_program_has_each_durable_commit_and_gives_each() {
    let place = Place::with_database();
    let options = azekura::Options::new().threads(false);
    let db = azekura::Db::open(place.path("db.azk"), options).expect("it opens");
    let table = db.open_table("main").expect("there is one");
    for n in 1..=5u32 {
        table.put("newest", n.to_string()).expect("a durable commit");
    }
    place.run(["backup", "db.azk", "saved"]).succeeds();
    place.run(["copy", "db.azk", "copied.azk"]).succeeds();
    let stream = place.run(["backup", "db.azk", "-"]).succeeds().stdout_bytes().to_vec();
    place.run_with_input(["restore", "-", "piped.azk"], &stream).succeeds();
    let point = place.run(["points", "saved", "--json"]).succeeds().json_lines().remove(0);
    let number = |name: &str| point[name].as_u64().expect("a number");
    let (first, last) = (number("first_commit"), number("commit"));
    assert!(last >= first + 5, "{point}");
    let listed = place.run(["points", "saved"]).succeeds();
    let words: Vec<&str> = listed.stdout().lines().last().expect("a line").split_whitespace().collect();
    assert_eq!(words[..3], ["1", &*first.to_string(), &*last.to_string()]);
    place.run(["restore", "saved", "whole.azk"]).succeeds();
    for file in ["copied.azk", "piped.azk", "whole.azk"] {
        assert_eq!(place.run(["get", file, "newest"]).succeeds().stdout(), "5\n", "{file}");
        place.run(["check", file]).succeeds();
    }
    for (commit, newest) in [(last, "5\n"), (last - 1, "4\n"), (last - 4, "1\n")] {
        let file = format!("at-{commit}.azk");
        let ran = place.run(["restore", "saved", &file, "--commit", &commit.to_string()]).succeeds();
        assert!(ran.stdout().contains(&format!("commit {commit},")), "{}", ran.stdout());
        assert_eq!(place.run(["get", &file, "newest"]).succeeds().stdout(), newest);
    }
    let after = (last + 1).to_string();
    let ran =
        place.run(["restore", "saved", "none.azk", "--commit", &after]).fails(2, "no point has exactly");
    assert!(ran.stderr().contains(&format!("the last one before it is {last}")), "{}", ran.stderr());
    drop(table);
    db.close().expect("it closes");
}

#[test]
fn a_backup_goes_through_a_pipe() {
    let place = backed_up();
    let stream = place.run(["backup", "db.azk", "-"]).succeeds().stdout_bytes().to_vec();
    place.run_with_input(["restore", "-", "out.azk"], &stream).succeeds();
    assert_eq!(place.run(["get", "out.azk", "grace"]).succeeds().stdout(), "1906\n");
    let half = &stream[..stream.len() / 2];
    place.run_with_input(["restore", "-", "half.azk"], half).fails(3, "standard input");
    place.run_with_input(["restore", "-", "half.azk"], b"").fails(3, "cut off");
    place.run_with_input(["restore", "-", "half.azk", "--point", "1"], &stream).fails(2, "one point");
    place.run_with_input(["restore", "-", "db.azk", "--force"], &stream).fails(2, "is a database");
    assert_eq!(names(&place), ["db.azk", "out.azk", "saved"]);
}

#[test]
fn damage_of_a_repository_is_told_and_nothing_is_restored_from_it() {
    let place = backed_up();
    let point = "saved/points/2";
    let mut bytes = place.read(point);
    bytes[40] ^= 1;
    place.write(point, &bytes);
    place.run(["restore", "saved", "out.azk"]).fails(3, "points/2");
    assert_eq!(place.run(["verify", "saved"]).status(), 3);
    assert_eq!(place.run(["points", "saved"]).status(), 3);
    place.run(["prune", "saved", "--keep", "1"]).fails(3, "points/2");
    place.run(["restore", "saved", "older.azk", "--point", "1"]).succeeds();
    for wrong in ["absent", "db.azk"] {
        place.run(["restore", wrong, "out.azk"]).fails(2, wrong);
        place.run(["verify", wrong]).fails(2, wrong);
    }
    std::fs::create_dir(place.path("photos")).expect("a folder");
    place.write("photos/cat", "purr");
    place.run(["backup", "db.azk", "photos"]).fails(2, "other files");
    assert_eq!(names(&place), ["db.azk", "older.azk", "photos", "saved"]);
}

#[test]
fn a_copy_is_a_database_of_its_own() {
    let place = backed_up();
    place.run(["copy", "db.azk", "copy.azk"]).succeeds();
    place.run(["remove", "db.azk", "ada"]).succeeds();
    place.run(["copy", "db.azk", "small.azk", "--compact"]).succeeds();
    assert_eq!(place.run(["get", "copy.azk", "ada"]).succeeds().stdout(), "1815\n");
    place.run(["get", "small.azk", "ada"]).fails(1, "ada");
    place.run(["check", "small.azk"]).succeeds();
    place.run(["copy", "db.azk", "copy.azk"]).fails(2, "is a database");
    place.run(["copy", "db.azk", "db.azk", "--force"]).fails(2, "is the database itself");
    assert_eq!(names(&place), ["copy.azk", "db.azk", "saved", "small.azk"]);
}
