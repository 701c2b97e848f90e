//! One page with all results: plots as inline SVG, tables, configurations. It needs nothing else, neither a
//! network nor scripts. Light and dark follow the reader's setting.
//!
//! It is well-formed XML as well as HTML. The tests use that.

mod ceda;
mod glance;
pub mod palette;
mod plots;
mod tables;
#[cfg(test)]
mod tests;

pub use glance::tally;

use super::machine;
use super::plot::{definitions, escape, swatch};
use crate::case::Workload;
use crate::results::{CaseResult, Entrant, Results, Session};
use clap::ValueEnum as _;
use plots::Plot;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The drawing of a log storehouse on its posts.
const SEAL: &str = "<svg class=\"seal\" viewBox=\"0 0 100 92\" aria-hidden=\"true\"><path d=\"M50 4L98 34H2Z\"/>\
    <path d=\"M14 38h72v7H14zM14 48h72v7H14zM14 58h72v7H14zM8 68h84v6H8z\"/>\
    <path d=\"M18 76h8v14h-8zM46 76h8v14h-8zM74 76h8v14h-8z\"/></svg>";

/// The page of all results.
pub fn render(results: &Results) -> String {
    let groups: Vec<(Workload, Vec<&CaseResult>)> = Workload::value_variants()
        .iter()
        .map(|workload| (*workload, cases_of(results, *workload)))
        .filter(|(_, cases)| !cases.is_empty())
        .collect();
    let names = entrants(&results.cases);
    let published = ["ceda-btree", "ceda-lss"];
    let style = palette::style(names.iter().map(|entrant| entrant.name.as_str()).chain(published));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/><title>Azekura beside its peers</title>\
         <style>\n{STYLE}\n{style}\n</style></head><body>"
    );
    header(&mut html, results);
    let nav = groups.iter().map(|(workload, _)| format!("<a href=\"#{0}\">{0}</a>", workload.name()));
    let looks = names.iter().map(|entrant| entrant.name.as_str()).chain(published).map(palette::look);
    let swatches: String = looks.map(|look| swatch(&look, &look.swatch())).collect();
    let _ = write!(html, "{}<nav>{}</nav><main>", definitions(&swatches), nav.collect::<String>());
    at_a_glance(&mut html, results, &groups);
    for (workload, cases) in &groups {
        section(&mut html, *workload, cases, &results.sessions);
    }
    how_measured(&mut html, results);
    html.push_str("</main></body></html>\n");
    html
}

fn cases_of(results: &Results, workload: Workload) -> Vec<&CaseResult> {
    results.cases.iter().filter(|result| result.case.workload == workload).collect()
}

/// Everyone who takes part, in order of first appearance.
fn entrants(cases: &[CaseResult]) -> Vec<&Entrant> {
    let mut entrants: Vec<&Entrant> = Vec::new();
    for row in cases.iter().flat_map(|result| &result.rows) {
        if !entrants.iter().any(|entrant| entrant.name == row.entrant.name) {
            entrants.push(&row.entrant);
        }
    }
    entrants
}

/// The version of each measured peer.
pub fn versions(cases: &[CaseResult]) -> Vec<(&Entrant, &str)> {
    let version = |entrant: &Entrant| {
        let mut rows = cases.iter().filter_map(|result| result.row(&entrant.name));
        rows.find_map(|row| row.outcomes.first()).map(|outcome| outcome.version.as_str())
    };
    let known = entrants(cases).into_iter().filter_map(|entrant| Some((entrant, version(entrant)?)));
    known.filter(|(_, version)| !version.is_empty()).collect()
}

fn header(html: &mut String, results: &Results) {
    let [wins, evens, losses] = tally(&results.cases);
    let peers = entrants(&results.cases).iter().filter(|entrant| !entrant.ours && !entrant.reference).count();
    let _ = write!(
        html,
        "<header>{SEAL}<h1>Azekura beside its peers</h1><p class=\"lead\">{} peers, {} cases, the \
         same keys and incompressible values, the same memory budget, a process for each measurement, every value \
         verified.</p><p class=\"tally\"><b class=\"won\">{wins}</b> figures better than the best peer, \
         <b class=\"even\">{evens}</b> even, <b class=\"lost\">{losses}</b> worse.</p>",
        peers,
        results.cases.len()
    );
    if let Some(session) = results.sessions.last() {
        let _ = write!(
            html,
            "<p class=\"machine\">{} · {}</p>",
            machine::date(session.time_s),
            escape(&machine::describe(session))
        );
    }
    html.push_str("</header>");
}

fn at_a_glance(html: &mut String, results: &Results, groups: &[(Workload, Vec<&CaseResult>)]) {
    html.push_str(
        "<section id=\"glance\"><h2>At a glance</h2><p>The better of Azekura's two kinds of table against the best \
         of all peers that took part, in the figures that stand for each workload. Bars to the right are wins, bars \
         to the left losses; the scale is logarithmic, a full bar is 30 times or more. Even is within 3 %.</p>",
    );
    if results.cases.iter().all(|result| result.duels().is_empty()) {
        html.push_str("<p>No figure has been measured of both Azekura and a peer.</p></section>");
        return;
    }
    html.push_str("<div class=\"glances\">");
    for (workload, cases) in groups {
        html.push_str(&glance::of(*workload, cases));
    }
    html.push_str("</div></section>");
}

fn section(html: &mut String, workload: Workload, cases: &[&CaseResult], sessions: &[Session]) {
    let name = workload.name();
    let about = workload.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
    let _ = write!(
        html,
        "<section class=\"workload\" id=\"{name}\"><h2>{name}</h2><p>{}.</p>",
        escape(about.unwrap_or_default().trim_end_matches('.'))
    );
    if workload == Workload::Huge {
        html.push_str("<p class=\"aside\">Without a secondary index: the workload index has one.</p>");
    }
    html.push_str("<div class=\"plots\">");
    for one in plots::of(workload, cases) {
        plot(html, &one);
    }
    html.push_str("</div>");
    for (at, case) in cases.iter().enumerate() {
        let open = if at == 0 { " open=\"open\"" } else { "" };
        let _ = write!(
            html,
            "<details class=\"table\"{open}><summary>{}</summary>{}</details>",
            escape(&case.case.detail()),
            tables::of(case)
        );
    }
    configurations(html, cases, sessions);
    html.push_str("</section>");
}

fn plot(html: &mut String, plot: &Plot) {
    let _ = write!(
        html,
        "<figure class=\"plot\"><h3>{}</h3><p class=\"note\">{}</p>{}",
        escape(&plot.title),
        escape(&plot.note),
        plot.svg
    );
    if !plot.keys.is_empty() {
        html.push_str("<figcaption>");
        for (look, title) in &plot.keys {
            let _ = write!(
                html,
                "<span class=\"key {}\"><svg viewBox=\"0 0 26 12\"><use href=\"#{}\"/></svg>{}</span>",
                look.class,
                look.swatch(),
                escape(title)
            );
        }
        html.push_str("</figcaption>");
    }
    html.push_str("</figure>");
}

/// Every peer's version and configuration, the machine, and the commands.
fn configurations(html: &mut String, cases: &[&CaseResult], sessions: &[Session]) {
    html.push_str(
        "<details class=\"configurations\"><summary>Configurations, versions, machine and command</summary><dl>",
    );
    let mut told: Vec<&str> = Vec::new();
    for row in cases.iter().flat_map(|result| &result.rows) {
        let Some(outcome) = row.outcomes.first().filter(|_| !told.contains(&row.entrant.name.as_str()))
        else {
            continue;
        };
        told.push(&row.entrant.name);
        let _ = write!(
            html,
            "<dt>{} <small>{}</small></dt><dd>{}",
            escape(&row.entrant.title),
            escape(&outcome.version),
            escape(&outcome.configuration)
        );
        if !row.entrant.caveat.is_empty() {
            let _ = write!(html, "<em>{}.</em>", escape(&row.entrant.caveat));
        }
        html.push_str("</dd>");
    }
    html.push_str("</dl>");
    if let Some(case) = cases.first().map(|result| &result.case) {
        let phase =
            case.phase_s.map_or_else(String::new, |phase| format!(" A phase was stopped after {phase} s."));
        let _ = write!(html, "<p>Memory budget {} MiB.{phase}</p>", case.budget_bytes >> 20);
    }
    commands(html, sessions);
    html.push_str("</details>");
}

fn commands(html: &mut String, sessions: &[Session]) {
    html.push_str("<ul class=\"commands\">");
    for session in sessions {
        let _ = write!(
            html,
            "<li>{}: <code>{}</code>, {} run{} of each, on {}</li>",
            machine::date(session.time_s),
            escape(&session.command),
            session.runs,
            if session.runs == 1 { "" } else { "s" },
            escape(&machine::describe(session))
        );
    }
    html.push_str("</ul>");
}

fn how_measured(html: &mut String, results: &Results) {
    html.push_str(
        "<section id=\"how\"><h2>How it was measured</h2><ul class=\"how\">\
         <li>Each measurement runs in a process of its own, on a database of its own; peers are interleaved over the \
         repetitions, every other one in reverse. A figure is the median, the whisker or the small figures its range.</li>\
         <li>Writing is the time of all puts and commits; “flush, close” is making everything durable and closing. \
         Reads come after reopening, with the page cache warm. Every value is compared byte for byte.</li>\
         <li>Transactions are atomic where the peer has them, and not synced one by one except in <i>durable</i>.</li>\
         <li>† The load was too slow for the time that a phase may take: it was stopped, and all figures are of the \
         records that were there by then. Sizes are left out, since some peers make room for all records at once. \
         Beneath the table stands how much that was, and which gets were stopped.</li>\
         <li>Bytes written are those given to write calls or those of pages made dirty, whichever are more.</li>\
         <li>At a fixed rate, the latency of an operation counts from when it was due, so that a stall counts for all \
         that it delays (no coordinated omission).</li>\
         <li>The CEDA figures (stars) were published for another machine; they are scaled by Kyoto Cabinet's HashDB, \
         which stood beside them there and was measured here in the same run.</li></ul>",
    );
    let missing: Vec<&String> = results.sessions.iter().flat_map(|session| &session.missing).collect();
    if !missing.is_empty() {
        html.push_str("<h3>Not measured</h3><ul class=\"how\">");
        for (at, line) in missing.iter().enumerate() {
            if !missing[..at].contains(line) {
                let _ = write!(html, "<li>{}</li>", escape(line));
            }
        }
        html.push_str("</ul>");
    }
    html.push_str("</section>");
}
