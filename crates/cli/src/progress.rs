//! A progress bar on standard error, on terminals only.
//!
//! ```text
//!   importing  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  62 %  312 MB of 503 MB  104 MB/s  2 s left
//! ```
//!
//! The bar is the project's own, so that `bench` can subtract its writes from the process's counters: every
//! draw is one write, which [`drawn`] counts. Short work draws nothing.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::style::Paint;
use crate::units;

/// The time between two draws: short enough to look smooth, long enough to cost nothing.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Columns of the bar, if the terminal has room.
const BAR_COLUMNS: usize = 30;
/// With fewer columns there is no bar.
const BAR_COLUMNS_LEAST: usize = 5;
/// The assumed width of a terminal that does not tell its width.
const DEFAULT_COLUMNS: usize = 80;

static DRAWN_BYTES: AtomicU64 = AtomicU64::new(0);
static DRAWN_CALLS: AtomicU64 = AtomicU64::new(0);

/// Bytes and write calls that all progress bars of the process have needed so far.
pub fn drawn() -> (u64, u64) {
    (DRAWN_BYTES.load(Ordering::Relaxed), DRAWN_CALLS.load(Ordering::Relaxed))
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of input or file.
    Bytes,
    /// Records.
    Records,
    /// Milliseconds of a run of fixed length.
    Time,
}

/// One piece of work. Dropping it removes the bar from the screen.
pub struct Progress {
    bar: Option<Bar>,
}

struct Bar {
    label: String,
    unit: Unit,
    total: u64,
    started: Instant,
    next_draw: Instant,
    shown: bool,
}

impl Progress {
    /// Begins a piece of work of `total` units. 0: the total is not known.
    pub fn new(label: impl Into<String>, unit: Unit, total: u64) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress { bar: None };
        }
        let started = Instant::now();
        let next_draw = started + 2 * DRAW_INTERVAL;
        let bar = Bar { label: label.into(), unit, total, started, next_draw, shown: false };
        Progress { bar: Some(bar) }
    }

    /// Whether anything is drawn. If not, callers need not report.
    pub fn is_visible(&self) -> bool {
        self.bar.is_some()
    }

    /// Reports how much is done.
    pub fn set(&mut self, done: u64) {
        if let Some(bar) = &mut self.bar {
            bar.draw_if_due(done);
        }
    }

    /// Reports how much is done, and of how much. The total may grow meanwhile.
    pub fn set_of(&mut self, done: u64, total: u64) {
        if let Some(bar) = &mut self.bar {
            bar.total = total;
            bar.draw_if_due(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.bar.as_ref().is_some_and(|bar| bar.shown) {
            write_counted("\r\x1b[2K");
        }
    }
}

impl Bar {
    fn draw_if_due(&mut self, done: u64) {
        let now = Instant::now();
        if now < self.next_draw {
            return;
        }
        self.next_draw = now + DRAW_INTERVAL;
        self.shown = true;
        let elapsed_s = (now - self.started).as_secs_f64();
        let columns = terminal_size::terminal_size_of(io::stderr())
            .map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0));
        write_counted(&format!("\r\x1b[2K{}", self.line(done, elapsed_s, columns)));
    }

    /// The line for a terminal of this many columns. With less room the bar shrinks, then it goes, then the
    /// least important figures go. No figure is cut.
    fn line(&self, done: u64, elapsed_s: f64, columns: usize) -> String {
        let paint = Paint::stderr();
        let room = columns.saturating_sub(1);
        let lines = self.figures(done, elapsed_s).map(|figures| format!("  {}  {figures}", self.label));
        let width = |line: &str| line.chars().count();
        let left = room.saturating_sub(width(&lines[0]) + 2).min(BAR_COLUMNS);
        if self.total == 0 || left < BAR_COLUMNS_LEAST {
            let fits = lines.iter().find(|line| width(line) <= room);
            return fits.map_or_else(|| self.label.chars().take(room).collect(), String::clone);
        }
        let done_share = units::as_f64(done.min(self.total)) / units::as_f64(self.total);
        let (filled, rest) = strip(done_share, left);
        let figures = &lines[0][2 + self.label.len()..];
        format!("  {}  {}{}{figures}", self.label, paint.green(&filled), paint.dim(&rest))
    }

    /// The figures: all of them, then fewer and fewer.
    fn figures(&self, done: u64, elapsed_s: f64) -> [String; 4] {
        let per_second = units::as_f64(done) / elapsed_s.max(1e-9);
        let amount = |number: u64| match self.unit {
            Unit::Bytes => units::bytes(number),
            Unit::Records => units::grouped(number),
            Unit::Time => units::seconds(units::as_f64(number) / 1e3),
        };
        let speed = match self.unit {
            Unit::Bytes => format!("  {}/s", units::bytes(per_second as u64)),
            Unit::Records => format!("  {}", units::rate(per_second)),
            Unit::Time => String::new(),
        };
        if self.total == 0 {
            let done = amount(done);
            return [format!("{done}{speed}"), done.clone(), done.clone(), done];
        }
        let percent = format!("{} %", done.min(self.total) * 100 / self.total);
        let left_s = units::as_f64(self.total.saturating_sub(done)) / per_second.max(1e-9);
        let left = match self.unit {
            Unit::Time => String::new(),
            _ if done == 0 => String::new(),
            _ => format!("  {left_s:.0} s left"),
        };
        let amounts = format!("  {} of {}", amount(done), amount(self.total));
        [
            format!("{percent:>5}{amounts}{speed}{left}"),
            format!("{percent}{speed}{left}"),
            format!("{percent}{left}"),
            percent,
        ]
    }
}

/// A strip of `columns` cells: the filled part and the rest, to half a cell.
fn strip(share: f64, columns: usize) -> (String, String) {
    let halves = (share * (columns * 2) as f64) as usize;
    let mut filled = "━".repeat(halves / 2);
    let mut rest = columns - halves / 2;
    if halves % 2 == 1 {
        filled.push('╸');
        rest -= 1;
    }
    (filled, "─".repeat(rest))
}

fn write_counted(text: &str) {
    if io::stderr().write_all(text.as_bytes()).is_ok() {
        DRAWN_BYTES.fetch_add(u64::try_from(text.len()).unwrap_or(0), Ordering::Relaxed);
        DRAWN_CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(total: u64) -> Bar {
        let now = Instant::now();
        let label = "importing".to_owned();
        Bar { label, unit: Unit::Bytes, total, started: now, next_draw: now, shown: false }
    }

    #[test]
    fn a_line_never_wraps() {
        for columns in 1..120 {
            for total in [0, 1, 503_000_000] {
                let line = bar(total).line(total / 3, 2.5, columns);
                let plain: String = strip_colours(&line);
                assert!(plain.chars().count() < columns.max(2), "{columns}: {plain}");
            }
        }
    }

    /// No figure is cut, and at least the share and the remaining time are shown.
    #[test]
    fn thirty_columns_are_enough() {
        for label in ["importing", "exporting", "checking", "shrinking", "copying", "counting"] {
            for unit in [Unit::Bytes, Unit::Records] {
                let bar = Bar { label: label.to_owned(), unit, ..bar(123_456_789_000) };
                for done in [1, 123_456_789_000 / 3] {
                    let line = strip_colours(&bar.line(done, 2.5, 30));
                    assert!(line.contains(" % ") && line.ends_with(" s left") || done == 1, "{line}");
                    assert!(line.starts_with(&format!("  {label}")) && line.contains('%'), "{line}");
                }
                let unknown = Bar { total: 0, label: label.to_owned(), unit, ..bar };
                let line = unknown.line(123_456_789, 2.5, 30);
                assert!(
                    line.ends_with("123 MB") || line.ends_with("123,456,789") || line.ends_with("/s"),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn a_strip_has_the_columns_asked_for() {
        for half in 0..=20 {
            let (filled, rest) = strip(f64::from(half) / 20.0, 10);
            assert_eq!(filled.chars().count() + rest.chars().count(), 10);
        }
    }

    fn strip_colours(text: &str) -> String {
        let mut out = String::new();
        let mut inside = false;
        for character in text.chars() {
            match character {
                '\x1b' => inside = true,
                'm' if inside => inside = false,
                _ if !inside => out.push(character),
                _ => {}
            }
        }
        out
    }
}
