//! A case's table with the best of each column marked, and notes about its rows.

use crate::report::columns::{self, Column};
use crate::report::format::{digits, figure};
use crate::report::plot::escape;
use crate::report::summary::{Better, Figure};
use crate::results::{CaseResult, Row};
use std::fmt::Write as _;

/// The table with its notes.
pub fn of(result: &CaseResult) -> String {
    let columns: Vec<&Column> = columns::of(result.case.workload)
        .iter()
        .filter(|column| result.rows.iter().any(|row| Figure::in_row(row, column.name).is_some()))
        .collect();
    let mut html = String::new();
    if !columns.is_empty() {
        html.push_str("<div class=\"scroll\"><table><thead><tr><th></th>");
        for column in &columns {
            let arrow = match column.better {
                Better::Higher => "<i title=\"more is better\">↑</i>",
                Better::Lower => "<i title=\"less is better\">↓</i>",
                Better::Neither => "",
            };
            let _ = write!(
                html,
                "<th scope=\"col\">{} {arrow}</th>",
                escape(column.title).replace('\n', "<br/>")
            );
        }
        html.push_str("</tr></thead><tbody>");
        for row in result.rows.iter().filter(|row| !row.outcomes.is_empty()) {
            line(&mut html, result, row, &columns);
        }
        ratios(&mut html, result, &columns);
        html.push_str("</tbody></table></div>");
    }
    notes(&mut html, result);
    html
}

fn line(html: &mut String, result: &CaseResult, row: &Row, columns: &[&Column]) {
    let class = match (row.entrant.ours, row.entrant.reference) {
        (true, _) => " class=\"ours\"",
        (_, true) => " class=\"reference\"",
        _ => "",
    };
    let marker = if row.load_stopped() { " †" } else { "" };
    let _ = write!(html, "<tr{class}><th scope=\"row\">{}{marker}</th>", escape(&row.entrant.title));
    for column in columns {
        match Figure::in_row(row, column.name) {
            None => html.push_str("<td>–</td>"),
            Some(value) => {
                let best = if is_best(result, column, value) { " class=\"best\"" } else { "" };
                let _ = write!(html, "<td{best}>{}", escape(&figure(value.median, column.unit)));
                if let Some((low, high)) = value.range() {
                    let (low, high) = (figure(low, column.unit), figure(high, column.unit));
                    let _ = write!(html, "<small>{}…{}</small>", escape(&low), escape(&high));
                }
                html.push_str("</td>");
            }
        }
    }
    html.push_str("</tr>");
}

/// Whether no other row has a better figure, references aside.
fn is_best(result: &CaseResult, column: &Column, value: Figure) -> bool {
    let others = result.rows.iter().filter(|row| !row.entrant.reference);
    let mut others = others.filter_map(|row| Figure::in_row(row, column.name));
    match column.better {
        Better::Higher => others.all(|other| other.median <= value.median),
        Better::Lower => others.all(|other| other.median >= value.median),
        Better::Neither => false,
    }
}

/// Azekura's ratio to the best peer, with a line for each kind.
fn ratios(html: &mut String, result: &CaseResult, columns: &[&Column]) {
    for row in result.rows.iter().filter(|row| row.entrant.ours && !row.outcomes.is_empty()) {
        let _ = write!(
            html,
            "<tr class=\"ratio\"><th scope=\"row\">{} / best peer</th>",
            escape(&row.entrant.title)
        );
        for column in columns {
            let best = result.best_peer(column.name, column.better).filter(|(_, best)| *best > 0.0);
            match (Figure::in_row(row, column.name), best) {
                (Some(ours), Some((peer, best))) => {
                    let ratio = ours.median / best;
                    let won = if column.better == Better::Lower { ratio <= 1.0 } else { ratio >= 1.0 };
                    let class = if won { "won" } else { "lost" };
                    let _ = write!(
                        html,
                        "<td class=\"{class}\">{}×<small>{}</small></td>",
                        digits(ratio),
                        escape(&peer.title)
                    );
                }
                _ => html.push_str("<td></td>"),
            }
        }
        html.push_str("</tr>");
    }
}

fn notes(html: &mut String, result: &CaseResult) {
    let mut lines = Vec::new();
    for row in &result.rows {
        let title = escape(&row.entrant.title);
        if let Some(failure) = &row.failure {
            lines.push(format!("<li class=\"failed\"><b>{title}</b> failed: {}</li>", escape(failure)));
        }
        if !row.stopped().is_empty() {
            lines.push(format!(
                "<li>{} <b>{title}</b> was stopped: {}</li>",
                if row.load_stopped() { "†" } else { "" },
                escape(&row.stopped().join(", "))
            ));
        }
    }
    if !lines.is_empty() {
        let _ = write!(html, "<ul class=\"notes\">{}</ul>", lines.concat());
    }
}
