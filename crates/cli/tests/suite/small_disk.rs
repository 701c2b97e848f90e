//! Commands on a full disk: what they say about a change is what happened to it. The disk is a file system in
//! memory, in its own namespace. Where this is not available, the tests say so and pass.

#![cfg(target_os = "linux")]

use std::process::Command;

use crate::common::Place;

/// Runs a shell script in a file system of this many bytes, with the binary as `$AZ` and the place's folder
/// as `$OUT`. Returns what it prints, or `None` if there is no such file system here.
fn on_small_disk(place: &Place, bytes: u64, script: &str) -> Option<String> {
    let mount = format!("mount -t tmpfs -o size={bytes} none \"$DISK\" || exit 77; cd \"$DISK\"; {script}");
    std::fs::create_dir(place.path("disk")).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount]);
    command
        .env("AZ", env!("CARGO_BIN_EXE_azekura"))
        .env("DISK", place.path("disk"))
        .env("OUT", place.path("."));
    let output = match command.output() {
        Ok(output) if output.status.success() => output,
        other => {
            println!("skipped: no file system of its own for this test here: {other:?}");
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A stored change is a success, even if closing failed. A change that was not stored is a failure.
#[test]
fn what_was_stored_is_never_called_a_failure() {
    let place = Place::new();
    let script = r#"
        $AZ create db.azk && head -c 4000000 /dev/zero > filler
        value=$(head -c 30000 /dev/urandom | od -An -tx1 | tr -d ' \n')
        for n in $(seq 60); do
            $AZ set db.azk key$n $value 2>> "$OUT/said"; set=$?
            $AZ get db.azk key$n > /dev/null 2>&1; echo set $n $set $?
        done
        for n in $(seq 60); do
            $AZ get db.azk key$n > /dev/null 2>&1; before=$?
            $AZ remove db.azk key$n 2>> "$OUT/said"; removed=$?
            $AZ get db.azk key$n > /dev/null 2>&1; echo removed $n $before $removed $?
        done
        $AZ check db.azk; cat "$OUT/said""#;
    // Some records find room, but not all.
    let Some(said) = on_small_disk(&place, 6_000_000, script) else { return };
    println!("{said}");
    let fields = |word: &str| -> Vec<Vec<String>> {
        let lines = said.lines().filter(|line| line.split(' ').next() == Some(word));
        lines.map(|line| line.split(' ').skip(2).map(str::to_owned).collect()).collect()
    };
    assert_eq!((fields("set").len(), fields("removed").len()), (60, 60));
    for set in fields("set") {
        assert!(set == ["0", "0"] || set == ["2", "1"], "{set:?}");
    }
    assert!(fields("set").iter().any(|set| set[0] == "2"), "the disk was full");
    for removed in fields("removed") {
        assert!(
            removed == ["0", "0", "1"] || removed == ["0", "2", "0"] || removed == ["1", "1", "1"],
            "{removed:?}"
        );
    }
    assert!(said.contains("sound: "));
    for line in said.lines().filter(|line| line.starts_with("azekura:")) {
        assert!(line.contains("db.azk: ") || line.contains("no key"), "{line}");
    }
}

#[test]
fn an_import_that_fills_the_disk_says_where_to_go_on() {
    let place = Place::new();
    let mut seed = 1u64;
    let mut line = |n: u32| {
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 11
        };
        format!("k{n:05}\t{}\n", (0..20).map(|_| format!("{:013x}", random())).collect::<String>())
    };
    let lines: String = (0..90_000).map(&mut line).collect();
    place.write("all.tsv", &lines);
    let script = r#"
        $AZ create db.azk
        $AZ import db.azk "$OUT/all.tsv" 2> "$OUT/said"; echo status $?
        cat "$OUT/said"
        mount -o remount,size=200m "$DISK"
        echo count $($AZ count db.azk)
        line=$(sed -n 's/.*--from-line //p' "$OUT/said")
        $AZ import db.azk "$OUT/all.tsv" --from-line $line
        $AZ export db.azk "$OUT/back.tsv"; $AZ check db.azk"#;
    let Some(said) = on_small_disk(&place, 12_000_000, script) else { return };
    println!("{said}");
    assert!(said.contains("status 2\n"), "the disk was full");
    assert!(said.contains("azekura: db.azk: no space left on the device"));
    let next = said
        .lines()
        .find_map(|line| line.split_once("--from-line "))
        .and_then(|(_, next)| next.parse::<u64>().ok());
    let count =
        said.lines().find_map(|line| line.strip_prefix("count ")).and_then(|count| count.parse::<u64>().ok());
    let (next, count) = (next.expect("a line"), count.expect("a count"));
    assert!(count >= next - 1 && count < 90_000, "{count} rows are there");
    assert!(place.read("back.tsv") == lines.as_bytes());
    assert!(said.contains("sound: "));
}

/// A version of a set is there whole or not at all, and what could not become one is gone.
#[test]
fn a_merge_of_shards_that_fills_the_disk_leaves_nothing() {
    use azekura_shards::{Draft, Spec};
    let place = Place::new();
    let draft = Draft::begin(place.path("t.azs"), &Spec::ordered(1)).expect("a draft");
    let mut writer = draft.writer(0, "a").expect("a writer");
    for n in 0..20_000_u64 {
        writer
            .put(&n.to_be_bytes(), &[n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes(); 10].concat())
            .expect("a record");
    }
    draft.commit(&[writer.finish().expect("a shard")]).expect("a version");
    let script = r#"
        cp -r "$OUT/t.azs" . && for n in 1 2 3 4; do
            $AZ shards merge t.azs --shards $n 2>> "$OUT/said"; echo merged $?
        done
        ls -A t.azs | tr '\n' ' '; echo
        $AZ shards verify t.azs; cat "$OUT/said""#;
    let Some(said) = on_small_disk(&place, 6_000_000, script) else { return };
    println!("{said}");
    let merged: Vec<&str> = said.lines().filter(|line| line.starts_with("merged")).collect();
    let good = merged.iter().filter(|line| **line == "merged 0").count();
    assert!(
        (1..4).contains(&good) && merged.iter().all(|line| ["merged 0", "merged 2"].contains(line)),
        "{said}"
    );
    assert!(said.contains("no space left on the device"), "{said}");
    let newest = good + 1;
    assert!(said.contains(&format!("sound: version {newest}, ")), "{said}");
    assert!(!said.contains(".new-"), "{said}");
}
