//! The page made from stored results is well-formed, complete and self-contained.

use super::render;
use crate::case::Workload;
use crate::report::markdown;
use crate::results::Results;
use clap::ValueEnum as _;
use roxmltree::{Document, Node, ParsingOptions};

/// Real results of a small run.
const SAMPLE: &str = include_str!("../../../tests/sample.jsonl");

fn sample() -> Results {
    let mut results = Results::default();
    results.append(SAMPLE).expect("the sample has the lines of today's program");
    results
}

fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).expect("a page that is well-formed")
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|node| node.text()).collect()
}

fn section<'a>(document: &'a Document<'a>, id: &str) -> Option<Node<'a, 'a>> {
    document.descendants().find(|node| node.attribute("id") == Some(id))
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let page = render(&sample());
    let document = parsed(&page);
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "embed", "base"].contains(&name), "{name}");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on") && name != "src", "{name}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
            assert!(!value.contains("NaN") && !value.contains("inf "), "{name}={value}");
        }
    }
    // Names of namespaces are not fetched. Nothing else may look like an address.
    let rest = page.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xhtml", "");
    for foreign in ["http://", "https://", "url(", "@import", "NaN"] {
        assert!(!rest.contains(foreign), "{foreign}");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.len() < 1 << 20, "{} bytes", page.len());
}

#[test]
fn identifiers_are_unique_and_links_lead_to_them() {
    let page = render(&sample());
    let document = parsed(&page);
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for link in document.descendants().filter_map(|node| node.attribute("href")) {
        assert!(ids.contains(&link.trim_start_matches('#')), "{link}");
    }
}

#[test]
fn every_workload_has_its_plots_tables_and_configurations() {
    let results = sample();
    let page = render(&results);
    let document = parsed(&page);
    for workload in Workload::value_variants() {
        let name = workload.name();
        let section = section(&document, name).unwrap_or_else(|| panic!("no section {name}"));
        let having = |tag: &str| section.descendants().filter(|node| node.tag_name().name() == tag).count();
        let cases: Vec<_> = results.cases.iter().filter(|result| result.case.workload == *workload).collect();
        assert!(having("figure") > 0 && having("table") == cases.len(), "{name}");
        let told = text(section);
        for row in cases.iter().flat_map(|result| &result.rows) {
            assert!(told.contains(&row.entrant.title), "{name}: {}", row.entrant.title);
            for outcome in &row.outcomes {
                assert!(told.contains(&outcome.configuration), "{name}: {}", row.entrant.title);
                assert!(told.contains(&outcome.version), "{name}: {}", row.entrant.title);
            }
        }
        assert!(told.contains("cargo run --release -p bench-compare"), "{name}");
    }
}

#[test]
fn the_plots_that_people_look_for_are_there() {
    let page = render(&sample());
    for title in [
        "Write, by size of the value",
        "Write, by number of records",
        "Overhead in the file, by size of the value",
        "Time of a batch",
        "Rate by mix, 1 thread",
        "Mix A, latency of reads, at ",
        "Durable commits, by number of threads",
        "Latency of a get beside the writer",
        "CEDA B+Tree, published, scaled",
    ] {
        assert!(page.contains(title), "{title}");
    }
}

#[test]
fn published_figures_are_scaled_by_what_was_measured() {
    let results = sample();
    let result = results
        .cases
        .iter()
        .find(|result| result.case.title().starts_with("sequential") && result.case.value_bytes == 4);
    let result = result.expect("the sample has the classic table");
    let kyoto = result.figure("kyoto-hash", "read_per_s").expect("the sample has Kyoto Cabinet").median;
    let scaled = super::ceda::SERIES[0].scaled(result, "read_per_s").expect("it is scaled");
    assert!((scaled / kyoto - 9003.0 / 2815.0).abs() < 1e-9);
    let other = results.cases.iter().find(|other| other.case.value_bytes != 4).expect("other sizes");
    assert_eq!(super::ceda::SERIES[0].scaled(other, "read_per_s"), None);
}

#[test]
fn whatever_peers_say_is_escaped_and_odd_figures_are_left_out() {
    let mut lines: Vec<String> = SAMPLE.lines().map(str::to_owned).collect();
    let mut line: serde_json::Value = serde_json::from_str(&lines[1]).expect("a measurement");
    line["entrant"]["title"] = "<b>&\"evil'".into();
    line["entrant"]["name"] = "x\"}</style><script>".into();
    line["version"] = "</dt>&nbsp;".into();
    line["configuration"] = "<script>alert(1)</script>]]>".into();
    line["measured"]["numbers"]["read_per_s"] = 0.into();
    line["measured"]["numbers"]["write_flush_per_s"] = (-5).into();
    lines.push(line.to_string());
    let mut failed = line.clone();
    failed["entrant"]["name"] = "failed".into();
    failed
        .as_object_mut()
        .expect("an object")
        .retain(|name, _| !["version", "configuration", "measured"].contains(&name.as_str()));
    failed["error"] = "<i>no</i> & no".into();
    lines.push(failed.to_string());
    let mut results = Results::default();
    results.append(&lines.join("\n")).expect("lines");
    let page = render(&results);
    let document = parsed(&page);
    assert!(!document.descendants().any(|node| node.tag_name().name() == "script"));
    assert!(text(document.root()).contains("<b>&\"evil' failed: <i>no</i> & no"));
    assert!(!page.contains("NaN"));
}

#[test]
fn what_is_measured_again_replaces_what_was() {
    let mut results = sample();
    let before = results.cases.len();
    let (case, rows) =
        results.cases.first().map(|result| (result.case.clone(), result.rows.len())).expect("a case");
    let once: usize =
        results.of(&case).map_or(0, |result| result.rows.iter().map(|row| row.outcomes.len()).sum());
    results.append(SAMPLE).expect("lines");
    let result = results.of(&case).expect("the case is still there");
    assert_eq!((results.cases.len(), result.rows.len()), (before, rows));
    assert_eq!(result.rows.iter().map(|row| row.outcomes.len()).sum::<usize>(), once);
}

#[test]
fn the_summary_has_every_case_that_was_fought() {
    let results = sample();
    let summary = markdown::render(&results);
    for result in results.cases.iter().filter(|result| !result.duels().is_empty()) {
        assert!(summary.contains(&result.case.title()), "{}", result.case.title());
    }
    assert!(summary.contains(" ✗ |") && summary.contains("Versions: ") && !summary.contains("NaN"));
    let columns = |line: &str| line.matches('|').count();
    assert!(summary.lines().filter(|line| line.starts_with('|')).all(|line| columns(line) == 7));
}

#[test]
fn a_page_of_nothing_is_a_page() {
    parsed(&render(&Results::default()));
}
