//! Figures in documents. A document has blocks between `<!-- NAME -->` and `<!-- /NAME -->`, each on a line
//! of its own. What stands in them is written anew from results, so a document says what was measured.

use super::format::{compact, figure};
use super::markdown::{self, cell};
use super::page::tally;
use super::summary::Better;
use super::{columns, machine};
use crate::case::{Case, Workload};
use crate::failure::{Failure, Result};
use crate::results::{CaseResult, Results};
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// What can stand in a block.
type Content = fn(&Results) -> String;

/// The blocks: the short table, the table of all headline figures, and some more figures.
const BLOCKS: [(&str, Content); 3] =
    [("figures", short), ("main table", main_table), ("more figures", further)];

/// Writes the content of all blocks of a document anew.
pub fn filled(document: &str, results: &Results) -> Result<String> {
    let mut text = document.to_owned();
    let mut found = false;
    for (name, content) in BLOCKS {
        let (opening, closing) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
        let Some(start) = text.find(&opening).map(|at| at + opening.len()) else { continue };
        let end = text[start..].find(&closing).map(|length| start + length);
        let end = end.ok_or_else(|| Failure::Usage(format!("the block {name:?} has no end")))?;
        text.replace_range(start..end, &content(results));
        found = true;
    }
    if !found {
        let names = BLOCKS.map(|(name, _)| format!("<!-- {name} -->")).join(", ");
        return Err(Failure::Usage(format!("there is no block of figures: none of {names}")));
    }
    Ok(text)
}

/// A line of the short table: its name, the case, and one figure or two.
struct Line {
    name: &'static str,
    case: fn(&Case) -> bool,
    figures: &'static [&'static str],
}

const LINES: [Line; 9] = [
    Line {
        name: "sequential 8 + 4 bytes, 1M: writes/s, flushed",
        case: sequential,
        figures: &["write_flush_per_s"],
    },
    Line { name: "gets in order/s, reopened", case: sequential, figures: &["read_per_s"] },
    Line { name: "bytes of file per record (raw: 12)", case: sequential, figures: &["bytes_per_record"] },
    Line {
        name: "random 8 + 8 bytes, 10M: inserts/s, flushed",
        case: lookup,
        figures: &["write_flush_per_s"],
    },
    Line {
        name: "gets of absent / present keys/s",
        case: lookup,
        figures: &["absent_gets_per_s", "present_gets_per_s"],
    },
    Line { name: "bytes of file per record (raw: 16)", case: lookup, figures: &["bytes_per_record"] },
    Line {
        name: "text keys, 5M: inserts, flushed / gets/s",
        case: text,
        figures: &["write_flush_per_s", "present_gets_per_s"],
    },
    Line {
        name: "1,000-byte values, 1M, YCSB A / C: operations/s",
        case: ycsb,
        figures: &["a_ops_per_s", "c_ops_per_s"],
    },
    Line { name: "commits of one record/s, eventual", case: small, figures: &["write_flush_per_s"] },
];

/// The peers of the short table.
const PEERS: [(&str, &str); 3] =
    [("lmdb", "LMDB"), ("kyoto-hash", "Kyoto HashDB"), ("tkrzw-hash", "Tkrzw HashDBM (no transactions)")];

fn sequential(case: &Case) -> bool {
    case.workload == Workload::Sequential && case.value_bytes == 4 && case.records == 1_000_000
}
fn lookup(case: &Case) -> bool {
    case.workload == Workload::Lookup && case.records == 10_000_000
}
fn text(case: &Case) -> bool {
    case.workload == Workload::Text
}
fn ycsb(case: &Case) -> bool {
    case.workload == Workload::Ycsb && case.threads == 1 && case.rate_per_s.is_none()
}
fn small(case: &Case) -> bool {
    case.workload == Workload::Small
}

/// The short table. The best figure of each line is bold.
fn short(results: &Results) -> String {
    let [won, even, lost] = tally(&results.cases);
    let mut text = format!(
        "`docs/benchmarks.html` shows the same run: {won} figures better than the best peer, {even} even, {lost}\n\
         worse.\n\n"
    );
    let cores = results.sessions.last().map_or(0, |session| session.cores);
    let budget = results.cases.first().map_or(0, |result| result.case.budget_bytes >> 20);
    let peers = PEERS.map(|(_, title)| title).join(" | ");
    let _ = writeln!(text, "| {cores} cores, {budget} MiB for each | Azekura | {peers} |");
    text.push_str("|---|---|---|---|---|\n");
    for line in &LINES {
        if let Some(result) = results.cases.iter().find(|result| (line.case)(&result.case)) {
            let _ = writeln!(text, "| {} | {} |", line.name, entries(line, result).join(" | "));
        }
    }
    text
}

/// Azekura's entry, and one for each peer.
fn entries(line: &Line, result: &CaseResult) -> Vec<String> {
    let mut entries = vec![Vec::new(); PEERS.len() + 1];
    for name in line.figures {
        let Some(column) = columns::named(result.case.workload, name) else { continue };
        let ours = result.best_of_ours(name, column.better).map(|(_, ours)| ours);
        let theirs = PEERS.map(|(peer, _)| result.figure(peer, name).map(|figure| figure.median));
        let values: Vec<Option<f64>> = std::iter::once(ours).chain(theirs).collect();
        let known = values.iter().flatten().copied();
        let best = match column.better {
            Better::Lower => known.min_by(f64::total_cmp),
            _ => known.max_by(f64::total_cmp),
        };
        for (entry, value) in entries.iter_mut().zip(&values) {
            entry.extend(value.map(|number| {
                let shown = compact(number);
                if *value == best { format!("**{shown}**") } else { shown }
            }));
        }
    }
    entries.into_iter().map(|parts| parts.join(" / ")).collect()
}

/// All headline figures beside the best peer, and where they come from.
fn main_table(results: &Results) -> String {
    let mut text = String::new();
    if let (Some(first), Some(last)) = (results.sessions.first(), results.sessions.last()) {
        let minutes = last.time_s.saturating_sub(first.time_s).div_ceil(60);
        let _ = writeln!(
            text,
            "{}, all commands begun within {minutes} minutes, on {}.\n",
            machine::date(first.time_s),
            machine::describe(last)
        );
    }
    text.push_str(&markdown::table(&results.cases));
    text
}

/// Figures of which the page's tables have more, and those that no peer has.
const FURTHER: [(Workload, &str); 6] = [
    (Workload::Lookup, "many_gets_per_s"),
    (Workload::Lookup, "scan_per_s"),
    (Workload::Lookup, "batch_max_ms"),
    (Workload::Text, "many_gets_per_s"),
    (Workload::Text, "scan_per_s"),
    (Workload::Huge, "many_gets_per_s"),
];

/// The further figures, of everyone who has them.
fn further(results: &Results) -> String {
    let mut text = "| workload | figure | Azekura | peers |\n|---|---|---|---|\n".to_owned();
    for (workload, name) in FURTHER {
        let Some(column) = columns::named(workload, name) else { continue };
        for result in results.cases.iter().filter(|result| result.case.workload == workload) {
            let Some((ours, value)) = result.best_of_ours(name, column.better) else { continue };
            let peers = result.rows.iter().filter(|row| !row.entrant.ours).filter_map(|row| {
                let value = result.figure(&row.entrant.name, name)?.median;
                Some(format!("{} {}", row.entrant.title, figure(value, column.unit)))
            });
            let _ = writeln!(
                text,
                "| {} | {} | {} {} | {} |",
                cell(&result.case.title()),
                cell(&column.heading()),
                markdown::kind(ours),
                figure(value, column.unit),
                peers.collect::<Vec<_>>().join(", ")
            );
        }
    }
    text
}
