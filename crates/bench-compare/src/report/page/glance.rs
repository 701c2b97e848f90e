//! All workloads at a glance: how many times better or worse Azekura is than the best peer.

use crate::case::Workload;
use crate::report::format::{digits, figure};
use crate::report::plot::escape;
use crate::report::summary::{Duel, End};
use crate::results::CaseResult;
use std::fmt::Write as _;

/// The bars end at this many times better, or worse.
const REACH: f64 = 30.0;

/// A list for each case, with a bar for each headline figure.
pub fn of(workload: Workload, cases: &[&CaseResult]) -> String {
    let mut html = String::new();
    for result in cases {
        let duels = result.duels();
        if duels.is_empty() {
            continue;
        }
        let _ = write!(html, "<p class=\"case\">{}</p><ul class=\"duels\">", escape(&result.case.detail()));
        duels.iter().for_each(|duel| line(&mut html, duel));
        html.push_str("</ul>");
    }
    if html.is_empty() {
        return html;
    }
    let name = workload.name();
    format!("<section class=\"glance\"><h3><a href=\"#{name}\">{name}</a></h3>{html}</section>")
}

/// How many figures are better, even and worse in all.
pub fn tally(cases: &[CaseResult]) -> [usize; 3] {
    let ends: Vec<End> = cases.iter().flat_map(CaseResult::duels).map(|duel| duel.end()).collect();
    [End::Won, End::Even, End::Lost].map(|end| ends.iter().filter(|other| **other == end).count())
}

fn line(html: &mut String, duel: &Duel<'_>) {
    let won = duel.factor >= 1.0;
    // Half of the track for each side, on a logarithmic scale.
    let share = 50.0 * (duel.factor.ln().abs() / REACH.ln()).min(1.0);
    let left = if won { 50.0 } else { 50.0 - share };
    let (class, times, than) = match duel.end() {
        End::Won => ("won", format!("{}×", digits(duel.factor)), "better than"),
        End::Lost => ("lost", format!("{}×", digits(1.0 / duel.factor)), "worse than"),
        End::Even => ("even", "even".to_owned(), "with"),
    };
    let unit = duel.column.unit;
    let told = format!(
        "{} {}, {} {}",
        duel.ours.title,
        figure(duel.our_figure, unit),
        duel.peer_title(),
        figure(duel.peer_figure, unit)
    );
    let _ = write!(
        html,
        "<li title=\"{}\"><span class=\"what\">{}</span><span class=\"track\"><i class=\"{class}\" \
         style=\"left:{left:.1}%;width:{share:.1}%\"></i></span><span class=\"times {class}\">{} \
         <small>{than} {}</small></span></li>",
        escape(&told),
        escape(&duel.column.heading()),
        escape(&times),
        escape(&duel.peer_title())
    );
}
