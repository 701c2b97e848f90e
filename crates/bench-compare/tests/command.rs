//! The command as users type it: every workload over Azekura with tiny sizes, results written to a file as
//! they come, and a page and a summary made again from that file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(words: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-compare"))
        .args(words)
        .current_dir(dir)
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("bench-command-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory for the test");
        Self(dir)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("removing the test's directory");
    }
}

#[test]
fn every_workload_runs_and_leaves_a_page() {
    let dir = TestDir::new("all");
    let sizes = ["--quick", "--records", "2000", "--seconds", "0.05", "--phase", "1", "--gets", "500"];
    let files = ["--json", "r.jsonl", "--html", "docs/r.html", "--markdown", "r.md", "--dir", "work"];
    let mut words = vec!["--peers", "azekura-ordered,azekura-hash"];
    words.extend(sizes);
    words.extend(files);
    let output = run(&words, &dir.0);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!dir.0.join("work").exists(), "the databases' directory is left");

    let printed = text(&output.stdout);
    let lines = fs::read_to_string(dir.0.join("r.jsonl")).expect("the results");
    let names = [
        "sequential",
        "lookup",
        "huge",
        "pairs",
        "text",
        "small",
        "ycsb",
        "mixed",
        "durable",
        "scan",
        "delete",
        "ttl",
        "counters",
        "feed",
        "recover",
        "open",
    ];
    for name in names {
        assert!(printed.contains(&format!("{name}: ")), "{name}");
        assert!(lines.contains(&format!("\"workload\":\"{name}\"")), "{name}");
    }
    assert!(!lines.contains("\"error\""), "{lines}");

    let again = run(&["page", "--json", "r.jsonl", "--html", "again.html", "--markdown", "again.md"], &dir.0);
    assert!(again.status.success(), "{}", text(&again.stderr));
    for (made, remade) in [("docs/r.html", "again.html"), ("r.md", "again.md")] {
        let read = |name| fs::read_to_string(dir.0.join(name)).expect("a report");
        assert_eq!(read(made), read(remade), "{made}");
    }
}

#[test]
fn a_measurement_that_fails_takes_nothing_from_the_others() {
    let dir = TestDir::new("limit");
    let words =
        ["lookup", "--records", "5000000", "--limit", "0", "--peers", "azekura-hash", "--json", "r.jsonl"];
    assert_eq!(run(&words, &dir.0).status.code(), Some(1));
    let words = [
        "lookup",
        "--records",
        "5000",
        "--runs",
        "2",
        "--peers",
        "azekura-hash",
        "--json",
        "r.jsonl",
        "--html",
        "r.html",
    ];
    assert!(run(&words, &dir.0).status.success());
    let lines = fs::read_to_string(dir.0.join("r.jsonl")).expect("the results");
    assert_eq!(lines.matches("\"type\":\"session\"").count(), 2);
    assert_eq!(lines.matches("given up after 0 s").count(), 1);
    let page = fs::read_to_string(dir.0.join("r.html")).expect("the page");
    assert!(page.contains("given up after 0 s") && page.contains("5,000 records"));
}

#[test]
fn what_makes_no_sense_is_told_in_a_line() {
    let dir = TestDir::new("wrong");
    for (words, told) in [
        (&["lookup", "--peers", "nobody"][..], "no peer \"nobody\""),
        (&["page", "--json", "absent.jsonl", "--html", "x.html"][..], "absent.jsonl"),
    ] {
        let output = run(words, &dir.0);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    }
    fs::write(dir.0.join("bad.jsonl"), "{\"type\":\"measurement\"}\n").expect("a file");
    let output = run(&["page", "--json", "bad.jsonl", "--html", "x.html"], &dir.0);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bad.jsonl: line 1"), "{}", text(&output.stderr));
}

#[test]
fn documents_keep_their_figures_if_not_all_can_be_filled() {
    let dir = TestDir::new("fill");
    let document = "<!-- figures -->\nold\n<!-- /figures -->\n";
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.jsonl");
    fs::write(dir.0.join("none.jsonl"), "").expect("a file");
    fs::write(dir.0.join("good.md"), document).expect("a file");
    fs::write(dir.0.join("plain.md"), "text\n").expect("a file");
    for (json, other, told) in [
        ("none.jsonl", "good.md", "nothing was measured in none.jsonl"),
        (sample, "plain.md", "plain.md: there is no block of figures"),
        (sample, "absent.md", "reading absent.md"),
    ] {
        let output = run(&["page", "--json", json, "--html", "x.html", "--fill", "good.md", other], &dir.0);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(dir.0.join("good.md")).expect("the document"), document);
        assert!(!dir.0.join("x.html").exists(), "a page was written");
    }
    let output = run(&["page", "--json", sample, "--fill", "good.md"], &dir.0);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_ne!(fs::read_to_string(dir.0.join("good.md")).expect("the document"), document);
}
