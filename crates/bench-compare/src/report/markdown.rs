//! The summary as a section of Markdown: for every workload Azekura's ratio to the best peer, wins and losses
//! alike.

use super::format::{digits, figure};
use super::page::{tally, versions};
use super::{gates, machine};
use crate::results::{CaseResult, Entrant, Results};
use std::fmt::Write as _;

/// The summary of all results.
pub fn render(results: &Results) -> String {
    let mut text = String::from("## Against every peer\n\n");
    for session in &results.sessions {
        let (date, machine) = (machine::date(session.time_s), machine::describe(session));
        let plural = if session.runs == 1 { "" } else { "s, medians" };
        let _ =
            writeln!(text, "- {date}: `{}` ({} run{plural}) on {machine}.", session.command, session.runs);
    }
    let versions: Vec<String> = versions(&results.cases)
        .into_iter()
        .map(|(entrant, version)| format!("{} {version}", entrant.title))
        .collect();
    let _ = writeln!(text, "- Versions: {}.", versions.join(", "));
    let [won, even, lost] = tally(&results.cases);
    let _ = writeln!(text, "- Azekura is better in {won} figures, even in {even}, worse in {lost}.\n");
    text.push_str(
        "The better of Azekura's two kinds of table against the best of all peers that took part. × says how many \
         times better Azekura is, so below 1 it is worse. † The peer's load was stopped when its time was over, so \
         its figure is of fewer records.\n\n",
    );
    text.push_str(&table(&results.cases));
    failures(&mut text, results);
    text
}

/// A line for each headline figure: Azekura's, the best peer's, how many times better it is, and how many
/// times better it must be.
pub fn table(cases: &[CaseResult]) -> String {
    let mut text =
        "| workload | figure | Azekura | best peer | × | asked |\n|---|---|---|---|---|---|\n".to_owned();
    for result in cases {
        let mut title = cell(&result.case.title());
        for duel in result.duels() {
            let unit = duel.column.unit;
            let asked = gates::asked(&result.case, duel.column.name).map_or_else(String::new, |asked| {
                format!("{asked} {}", if duel.factor >= asked { '✓' } else { '✗' })
            });
            let _ = writeln!(
                text,
                "| {title} | {} | {} {} | {} {} | {} | {asked} |",
                cell(&duel.column.heading()),
                cell(kind(duel.ours)),
                figure(duel.our_figure, unit),
                cell(&duel.peer_title()),
                figure(duel.peer_figure, unit),
                digits(duel.factor),
            );
            "〃".clone_into(&mut title);
        }
    }
    text
}

/// Which kind of Azekura's tables it is.
pub fn kind(ours: &Entrant) -> &str {
    ours.title.strip_prefix("Azekura ").unwrap_or(&ours.title)
}

fn failures(text: &mut String, results: &Results) {
    let mut lines = Vec::new();
    for result in &results.cases {
        for row in &result.rows {
            if let Some(failure) = &row.failure {
                lines.push(format!("- {}, {}: {failure}\n", row.entrant.title, result.case.title()));
            }
        }
    }
    if !lines.is_empty() {
        let _ = write!(text, "\nNot measured:\n\n{}", lines.concat());
    }
}

/// Text inside a cell.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
