//! The project's documents say what the run says that is kept beside them.

use super::filled;
use crate::report::page;
use crate::results::Results;
use std::fs;
use std::path::{Path, PathBuf};

/// The command that mends what these tests find.
const COMMAND: &str = "cargo run --release -p bench-compare -- page --json docs/benchmarks.jsonl \
    --html docs/benchmarks.html --fill README.md BENCHMARKS.md";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn kept() -> Results {
    let mut results = Results::default();
    results.read(&path("docs/benchmarks.jsonl")).expect("the lines of the run");
    results
}

#[test]
fn documents_have_the_figures_of_the_run_that_is_kept() {
    let results = kept();
    for name in ["README.md", "BENCHMARKS.md"] {
        let document = read(name);
        let filled = filled(&document, &results).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        for (is, ought) in document.lines().zip(filled.lines()) {
            assert_eq!(is, ought, "{name}: {COMMAND}");
        }
        assert!(document == filled, "{name}: {COMMAND}");
    }
    assert!(read("docs/benchmarks.html") == page::render(&results), "docs/benchmarks.html: {COMMAND}");
}

#[test]
fn every_line_of_the_short_table_was_measured() {
    let results = kept();
    for line in &super::LINES {
        let result = results.cases.iter().find(|result| (line.case)(&result.case)).expect(line.name);
        for entry in super::entries(line, result).iter().take(1) {
            assert_eq!(entry.split(" / ").count(), line.figures.len(), "{}: {entry}", line.name);
        }
    }
}

#[test]
fn only_blocks_are_written_anew() {
    let results = kept();
    let document = "before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n";
    let new = filled(document, &results).expect("filled");
    assert!(new.starts_with("before\n<!-- figures -->\n") && new.ends_with("\n<!-- /figures -->\nafter\n"));
    assert!(new.contains("| Azekura |") && !new.contains("old"));
    assert_eq!(filled(&new, &results).expect("filled again"), new);
}

#[test]
fn a_document_without_a_whole_block_is_refused() {
    let results = Results::default();
    let message = |document: &str| filled(document, &results).expect_err("refused").to_string();
    assert!(message("text\n").contains("no block of figures"));
    assert!(message("<!-- figures -->\ntext\n").contains("\"figures\" has no end"));
}
