//! The summary as a section of Markdown: for every workload Azekura's ratio to the best peer, wins and losses
//! alike.

use super::format::{digits, figure};
use super::machine;
use super::page::{tally, versions};
use super::summary::End;
use crate::results::Results;
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
        "The better of Azekura's two kinds of table against the best of all peers that took part; × says how many \
         times better Azekura is, so below 1 it is worse (**loss**). † The peer's load was stopped when its time was \
         over, so its figure is of fewer records.\n\n\
         | workload | figure | Azekura | | best peer | | × | |\n|---|---|---|---|---|---|---|---|\n",
    );
    for result in &results.cases {
        for duel in result.duels() {
            let unit = duel.column.unit;
            let mark = match duel.end() {
                End::Won => "",
                End::Even => "even",
                End::Lost => "**loss**",
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {mark} |",
                cell(&result.case.title()),
                cell(&duel.column.heading()),
                cell(&duel.ours.title),
                figure(duel.our_figure, unit),
                cell(&duel.peer_title()),
                figure(duel.peer_figure, unit),
                digits(duel.factor),
            );
        }
    }
    failures(&mut text, results);
    text
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
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
