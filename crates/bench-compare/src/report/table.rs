//! A case's table: a row for each peer, then Azekura's ratio to the best of them.

use super::columns::{self, Column};
use super::format::{digits, figure};
use super::summary::{Better, Figure};
use crate::results::{CaseResult, Row};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// The table with its heading, and notes about its rows.
pub fn render(result: &CaseResult) -> String {
    let columns: Vec<&Column> = columns::of(result.case.workload)
        .iter()
        .filter(|column| result.rows.iter().any(|row| Figure::in_row(row, column.name).is_some()))
        .collect();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let heads = columns.iter().map(|column| {
        let arrow = if column.better == Better::Lower { " ↓" } else { "" };
        Cell::new(format!("{}{arrow}", column.title)).set_alignment(CellAlignment::Right)
    });
    table.set_header(std::iter::once(Cell::new("")).chain(heads));
    for row in result.rows.iter().filter(|row| !row.outcomes.is_empty()) {
        let cells = columns.iter().map(|column| right(cell(row, column)));
        table.add_row(std::iter::once(Cell::new(&row.entrant.title)).chain(cells));
    }
    for row in result.rows.iter().filter(|row| row.entrant.ours && !row.outcomes.is_empty()) {
        let cells = columns.iter().map(|column| right(ratio(result, row, column)));
        let title = format!("{}\n/ best peer", row.entrant.title);
        table.add_row(std::iter::once(Cell::new(title)).chain(cells));
    }

    let mut text = format!("{}\n", result.case.title());
    if !columns.is_empty() {
        text.push_str(&format!("{table}\n"));
    }
    for row in &result.rows {
        if let Some(failure) = &row.failure {
            text.push_str(&format!("  {} failed: {failure}\n", row.entrant.title));
        }
        for stopped in row.stopped() {
            text.push_str(&format!("  {} stopped: {stopped}\n", row.entrant.title));
        }
        if !row.entrant.caveat.is_empty() && !row.outcomes.is_empty() {
            text.push_str(&format!("  {}: {}\n", row.entrant.title, row.entrant.caveat));
        }
    }
    text
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// The median, and below it the range if there are several repetitions.
fn cell(row: &Row, column: &Column) -> String {
    let Some(value) = Figure::in_row(row, column.name) else {
        return "–".to_owned();
    };
    let median = figure(value.median, column.unit);
    if row.outcomes.len() < 2 {
        return median;
    }
    format!("{median}\n{}…{}", figure(value.min, column.unit), figure(value.max, column.unit))
}

fn ratio(result: &CaseResult, row: &Row, column: &Column) -> String {
    let ours = Figure::in_row(row, column.name);
    let best = result.best_peer(column.name, column.better);
    match (ours, best) {
        (Some(ours), Some((peer, best))) if best > 0.0 => {
            format!("{}×\n{}", digits(ours.median / best), peer.name)
        }
        _ => String::new(),
    }
}
