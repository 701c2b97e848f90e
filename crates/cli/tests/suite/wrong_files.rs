//! Files that are no database. The command says what they seem to be, and leaves them unchanged.

use crate::common::Place;

const COMMANDS: [&[&str]; 14] = [
    &["get", "FILE", "k"],
    &["set", "FILE", "k", "v"],
    &["remove", "FILE", "k"],
    &["remove-range", "FILE", "--prefix", "k"],
    &["scan", "FILE"],
    &["count", "FILE"],
    &["info", "FILE"],
    &["tables", "FILE"],
    &["import", "FILE"],
    &["export", "FILE"],
    &["drop", "FILE", "t"],
    &["copy-table", "FILE", "a", "b"],
    &["check", "FILE"],
    &["shrink", "FILE"],
];

fn arguments(command: &[&str], file: &str) -> Vec<String> {
    command.iter().map(|part| part.replace("FILE", file)).collect()
}

#[test]
fn another_file_gives_2_and_is_named_with_its_kind() {
    let place = Place::new();
    let at = |at: usize, mark: &[u8]| {
        let mut bytes = vec![0; 9_000];
        bytes[at..at + mark.len()].copy_from_slice(mark);
        bytes
    };
    let files: [(&str, Vec<u8>, &str); 9] = [
        ("text", "A shopping list: crème brûlée.\n".repeat(1_000).into(), "text"),
        ("empty", Vec::new(), "an empty file"),
        ("sqlite", at(0, b"SQLite format 3\0"), "an SQLite database"),
        ("lmdb", at(16, &[0xde, 0xc0, 0xef, 0xbe]), "an LMDB database"),
        ("gzip", at(0, &[0x1f, 0x8b, 8]), "gzip data"),
        ("zeros", vec![0; 20_000], "zeros, at least at its start"),
        ("room", vec![0; 8192], "zeros, at least at its start"),
        ("short", b"AZEK".to_vec(), "text"),
        (
            "noise",
            (0..20_000u32).map(|n| ((n * n) >> 5) as u8).collect(),
            "data of a kind that is not known here",
        ),
    ];
    for (name, bytes, kind) in files {
        place.write(name, &bytes);
        for command in COMMANDS {
            let message = format!("azekura: {name} is no Azekura database: it seems to be {kind}\n");
            assert_eq!(place.run(arguments(command, name)).fails(2, "").stderr(), message, "{command:?}");
            assert!(place.read(name) == bytes, "{name}: {command:?}");
        }
        // An empty file may become a database.
        if name != "empty" && name != "room" {
            place.run(["create", name]).fails(2, &format!("it seems to be {kind}"));
            assert!(place.read(name) == bytes, "{name}: create");
        }
    }
    place.run(["create", "empty"]).succeeds();
    place.run(["create", "room"]).succeeds();
    assert_eq!(place.run(["count", "room"]).succeeds().stdout(), "0\n");
}

#[test]
fn a_directory_gives_2_and_is_named_with_its_kind() {
    let place = Place::new();
    let folders: [(&str, &[&str], &str); 4] = [
        ("plain", &[], "a directory"),
        ("level", &["CURRENT", "MANIFEST-000001"], "the directory of a LevelDB database"),
        ("rocks", &["CURRENT", "IDENTITY"], "the directory of a RocksDB database"),
        ("lmdb", &["data.mdb", "lock.mdb"], "the directory of an LMDB database"),
    ];
    for (name, files, kind) in folders {
        std::fs::create_dir(place.path(name)).expect("a folder");
        files.iter().for_each(|file| place.write(&format!("{name}/{file}"), "x"));
        for command in COMMANDS.iter().chain([&["create", "FILE"][..]].iter()) {
            place
                .run(arguments(command, name))
                .fails(2, &format!("{name} is no Azekura database: it seems to be {kind}"));
        }
    }
    place
        .run(["get", "/dev/null", "k"])
        .fails(2, "/dev/null is no Azekura database: it seems to be a pipe or a device");
}

/// A command that fails leaves neither a new file nor a changed one.
#[test]
fn only_create_makes_a_file() {
    let place = Place::new();
    for command in COMMANDS {
        place.run(arguments(command, "gone.azk")).fails(2, "gone.azk: no such database");
    }
    place.run(["create", "no/such/folder.azk"]).fails(2, "no/such/folder.azk: ");
    assert_eq!(std::fs::read_dir(place.path(".")).expect("the folder").count(), 0);
}

/// Names of files, tables and keys may hold any bytes. None of them reaches a terminal unescaped.
#[test]
fn nothing_that_acts_on_a_terminal_is_printed() {
    let place = Place::new();
    let (file, table) = ("\x1b[31mred.azk", "t\x1b]0;title\x07\u{9b}\u{202e}");
    let key = "k\x1b[2J".repeat(9_000);
    place.run(["create", file, "-t", table]).succeeds();
    place.run(["create", file, "-t", &"long".repeat(60)]).succeeds();
    place.write("\x1b[2Jtext", "text");
    let runs: &[&[&str]] = &[
        &["info", file],
        &["tables", file, "--count"],
        &["get", file, &key, "-t", table],
        &["get", file, "--hex", &key, "-t", table],
        &["remove", file, &key, "-t", table],
        &["get", file, "k", "-t", &key],
        &["get", "\x1b[2Jgone", "k"],
        &["get", "\x1b[2Jtext", "k"],
        &["create", file, "-t", table],
        &["rename", file, table, table],
        &["rename", file, table, &key],
        &["rename", file, &key, "x"],
        &["drop", file, &key],
        &["copy-table", file, &key, "x"],
        &["export", file, file, "-t", table],
        &["import", file, "\x1b[2Jtext", "-t", table],
        &["grab\x1b[2J"],
        &["scan", file, "--from", "\x1b[2J", "-t", table],
        &["rename", file, table, "other\x1b"],
        &["clear", file, "other\x1b"],
        &["drop", file, "other\x1b"],
    ];
    for arguments in runs {
        let ran = place.run(*arguments);
        let text = format!("{}{}", ran.stdout(), ran.stderr());
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(acts), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() < 400), "{text}");
        assert!(!text.is_empty() || arguments[0] == "scan", "{arguments:?}");
    }
    place.run(["get", file, "k", "-t", &"long".repeat(60)]).fails(1, "… (240 bytes)");
}

/// The last check of every message, for errors with the path of the file.
#[test]
fn errors_of_the_system_name_the_file() {
    let place = Place::with_database();
    place.run(["get", "db.azk/x", "k"]).fails(2, "db.azk/x");
    place.run(["create", "db.azk/x"]).fails(2, "db.azk/x");
    let mut bytes = place.read("db.azk");
    bytes[..8192].iter_mut().skip(64).for_each(|byte| *byte ^= 0x5a);
    place.write("db.azk", bytes);
    place.run(["get", "db.azk", "k"]).fails(3, "db.azk: corrupt superblock");
}
