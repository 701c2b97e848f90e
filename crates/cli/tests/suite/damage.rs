//! Damaged databases, and readers that go away.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::Place;

/// A database with 20,000 records, closed.
fn filled() -> Place {
    let place = Place::with_database();
    let lines: String = (0..20_000).map(|n| format!("key{n:06}\tthe value of {n}\n")).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    place
}

#[test]
fn damaged_data_gives_3() {
    let place = filled();
    let mut bytes = place.read("db.azk");
    // The superblocks stay whole. The damage is in the data that they lead to.
    let from = bytes.len().min(8192).min(bytes.len() / 2);
    bytes[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    place.write("db.azk", bytes);
    place.run(["check", "db.azk"]).fails(3, "");
}

#[test]
fn a_truncated_file_gives_3() {
    let place = filled();
    let bytes = place.read("db.azk");
    place.write("db.azk", &bytes[..bytes.len() / 2]);
    place.run(["check", "db.azk"]).fails(3, "");
}

#[test]
fn a_cut_file_is_read_and_not_written() {
    let place = filled();
    let whole = place.read("db.azk");
    for len in [whole.len() - 1, whole.len() / 2, 20_000, 8_191, 4_096] {
        let cut = &whole[..len];
        place.write("db.azk", cut);
        for command in
            [&["set", "db.azk", "k", "v"][..], &["remove", "db.azk", "key000001"], &["compact", "db.azk"]]
        {
            let said = place.run(command).fails(3, "was cut").stderr();
            for part in ["db.azk", &format!("{len} bytes"), "salvage", "export"] {
                assert!(said.contains(part), "{part:?} is not in {said}");
            }
            assert!(place.read("db.azk") == cut, "{command:?} has written to a file of {len} bytes");
        }
        place.run(["check", "db.azk"]).fails(3, "");
        if len <= 20_000 {
            place.run(["get", "db.azk", "key019999"]).fails(3, "");
        }
    }
    for len in [100, 4_095] {
        place.write("db.azk", &whole[..len]);
        for command in
            [&["set", "db.azk", "k", "v"][..], &["remove", "db.azk", "key000001"], &["get", "db.azk", "k"]]
        {
            place.run(command).fails(3, "cut");
            assert!(place.read("db.azk") == whole[..len], "{command:?} has written to a file of {len} bytes");
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let place = filled();
    for arguments in [&["scan", "db.azk"][..], &["export", "db.azk"], &["scan", "db.azk", "--json"]] {
        let mut command = place.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a first line");
        assert!(line.contains("key000000"));
        drop(reader);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let place = filled();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = place.command(["scan", "db.azk"]);
    let output = command.stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("azekura: writing to standard"));
}
