//! Files that commands write: what they never overwrite, and that a file gets its name only when it is whole.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;

use crate::common::Place;

fn filled() -> Place {
    let place = Place::with_database();
    let lines: String = (0..20_000).map(|n| format!("key{n:06}\tthe value of {n}\n")).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    place
}

/// Requires that the folder has only these files, so nothing temporary was left behind.
fn has_only(place: &Place, names: &[&str]) {
    let mut found: Vec<String> = std::fs::read_dir(place.path("."))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    found.sort_unstable();
    assert_eq!(found, names);
}

#[test]
fn an_export_never_goes_over_its_database() {
    let place = filled();
    let before = place.read("db.azk");
    symlink("db.azk", place.path("link")).expect("a link");
    std::fs::hard_link(place.path("db.azk"), place.path("hard")).expect("a link");
    for name in ["db.azk", "./db.azk", "link", "hard"] {
        for force in [None, Some("--force")] {
            let arguments = ["export", "db.azk", name].into_iter().chain(force);
            place.run(arguments).fails(2, &format!("{name} is the database itself"));
            assert!(place.read("db.azk") == before, "{name} {force:?}");
        }
    }
    has_only(&place, &["db.azk", "hard", "link"]);
}

#[test]
fn an_export_never_goes_over_another_database() {
    let place = filled();
    place.run(["create", "other.azk"]).succeeds();
    let mut half = place.read("other.azk");
    for _ in 0..2 {
        // The second time the first copy of the superblock is damaged.
        let before = place.read("other.azk");
        place.run(["export", "db.azk", "other.azk", "--force"]).fails(2, "other.azk is a database");
        assert!(place.read("other.azk") == before);
        half[..4096].fill(0xff);
        place.write("other.azk", &half);
    }
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let place = filled();
    place.write("out.tsv", "mine");
    std::fs::set_permissions(place.path("out.tsv"), PermissionsExt::from_mode(0o640)).expect("rights");
    symlink("out.tsv", place.path("link")).expect("a link");
    for name in ["out.tsv", "link"] {
        place.run(["export", "db.azk", name]).fails(2, "exists already (--force replaces it)");
        assert_eq!(place.read("out.tsv"), b"mine");
    }
    place.run(["export", "db.azk", "link", "--force"]).succeeds();
    assert_eq!(place.read("out.tsv"), place.run(["export", "db.azk"]).succeeds().stdout_bytes());
    // The file keeps its rights, and the link stays a link.
    let metadata = std::fs::metadata(place.path("out.tsv")).expect("the file");
    assert_eq!(metadata.mode() & 0o777, 0o640);
    assert!(place.path("link").is_symlink());
    has_only(&place, &["db.azk", "link", "out.tsv"]);
}

/// No half export appears: the old file keeps the name until the new one is whole.
#[test]
fn an_export_that_fails_leaves_nothing() {
    let place = filled();
    let mut bytes = place.read("db.azk");
    // A data page is damaged: the export fails after it has begun to write.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
    place.write("db.azk", bytes);
    place.write("old.tsv", "mine");
    place.run(["export", "db.azk", "new.tsv"]).fails(3, "corrupt");
    place.run(["export", "db.azk", "old.tsv", "--force"]).fails(3, "corrupt");
    assert_eq!(place.read("old.tsv"), b"mine");
    has_only(&place, &["db.azk", "old.tsv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_regular_file_is_written_as_it_is() {
    let place = filled();
    let whole = place.run(["export", "db.azk"]).succeeds().stdout_bytes().to_vec();
    place.run(["export", "db.azk", "/dev/null"]).succeeds();
    place.run(["export", "db.azk", "/dev/full"]).fails(2, "/dev/full");
    place.run(["export", "db.azk", "."]).fails(2, ". is a directory");
    // Standard output is a pipe, a file, and a file that is appended to.
    assert_eq!(place.run(["export", "db.azk", "/dev/stdout"]).succeeds().stdout_bytes(), whole);
    for _ in 0..2 {
        let file =
            std::fs::File::options().append(true).create(true).open(place.path("out")).expect("a file");
        let ran = place.command(["export", "db.azk", "/dev/stdout"]).stdout(file).status().expect("it runs");
        assert!(ran.success());
    }
    assert_eq!(place.read("out"), [&whole[..], &whole[..]].concat());
    let mkfifo = std::process::Command::new("mkfifo").arg(place.path("fifo")).status().expect("mkfifo");
    assert!(mkfifo.success());
    let child = place.command(["export", "db.azk", "fifo"]).stdout(Stdio::null()).spawn();
    let read = place.read("fifo");
    assert!(child.expect("it runs").wait().expect("it ends").success());
    assert_eq!(read, whole);
}

#[test]
fn output_never_goes_into_the_database() {
    let place = filled();
    let before = place.read("db.azk");
    for arguments in
        [&["export", "db.azk"][..], &["info", "db.azk"], &["scan", "db.azk"], &["check", "db.azk"]]
    {
        let file = std::fs::File::options().append(true).open(place.path("db.azk")).expect("the file");
        let ran = place.command(arguments).stdout(file).output().expect("it runs");
        assert_eq!(ran.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&ran.stderr).contains("standard output is the database itself"));
        assert!(place.read("db.azk") == before, "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_export_leaves_nothing() {
    let place = Place::with_database();
    let lines: String = (0..300_000).map(|n| format!("key{n:06}\tthe value of {n}\n")).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    // An export that ends before the signal comes is no failure.
    for _ in 0..100 {
        let mut child = place
            .interruptible(["export", "db.azk", "new.tsv"])
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        while child.try_wait().expect("a child").is_none() {
            let mut names = std::fs::read_dir(place.path(".")).expect("the folder");
            if names.any(|name| name.is_ok_and(|name| name.file_name() != "db.azk")) {
                break;
            }
        }
        crate::common::signal(&child, "INT");
        if child.wait().expect("it ends").code() == Some(130) {
            return has_only(&place, &["db.azk"]);
        }
        std::fs::remove_file(place.path("new.tsv")).expect("an export that was not interrupted is whole");
    }
    panic!("no export was interrupted");
}
