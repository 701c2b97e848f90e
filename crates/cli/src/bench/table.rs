//! A table whose rows are printed as they come: column widths are fixed beforehand.
//!
//! Where the columns do not fit side by side, a row takes several lines of one grid. Each line has its own
//! heading.

use crate::failure::Outcome;
use crate::output::Output;
use crate::style::Paint;

/// Columns between two cells.
const GAP: usize = 2;

/// One column: two lines of heading, and the width of its widest cell.
#[derive(Debug, Clone)]
pub struct Column {
    head: [&'static str; 2],
    width: usize,
}

impl Column {
    /// A column for cells of up to `widest` characters.
    pub fn new(first: &'static str, second: &'static str, widest: usize) -> Column {
        let heads = first.chars().count().max(second.chars().count());
        Column { head: [first, second], width: heads.max(widest) }
    }
}

/// The layout: the lines of a row, each a range of columns.
#[derive(Debug)]
pub struct Layout {
    lines: Vec<Vec<Column>>,
}

impl Layout {
    /// All columns of a row on one line.
    pub fn new(columns: Vec<Column>) -> Layout {
        Layout { lines: vec![columns] }
    }

    /// A line for each group of columns, in one grid: a column has the same width in every line.
    pub fn stacked(mut groups: Vec<Vec<Column>>) -> Layout {
        let columns = groups.iter().map(Vec::len).max().unwrap_or(0);
        for place in 0..columns {
            let at_place = |group: &Vec<Column>| group.get(place).map(|column| column.width);
            let widest = groups.iter().filter_map(at_place).max().unwrap_or(0);
            for column in groups.iter_mut().filter_map(|group| group.get_mut(place)) {
                column.width = widest;
            }
        }
        Layout { lines: groups }
    }

    /// The width of a row, in columns of the terminal.
    pub fn width(&self) -> usize {
        self.lines.iter().map(|line| line_width(line)).max().unwrap_or(0)
    }

    /// Prints the heading, and a rule below it.
    pub fn print_header(&self, output: &mut Output) -> Outcome {
        let paint = Paint::stdout();
        for line in &self.lines {
            for half in 0..2 {
                let text = join(line, line.iter().map(|column| column.head[half]));
                output.line(&paint.bold(&text))?;
            }
        }
        output.line(&paint.dim(&"─".repeat(self.width())))?;
        output.flush()
    }

    /// Prints a row: a cell for each column of each line, in order. If there are several lines, the last one
    /// stands out.
    pub fn print_row(&self, cells: &[String], output: &mut Output) -> Outcome {
        let paint = Paint::stdout();
        let mut cells = cells.iter().map(String::as_str);
        for (number, line) in self.lines.iter().enumerate() {
            let text = join(line, cells.by_ref().take(line.len()));
            let is_last = number + 1 == self.lines.len();
            output.line(&if is_last { text } else { paint.dim(&text) })?;
        }
        output.flush()
    }
}

fn line_width(line: &[Column]) -> usize {
    line.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP)
}

fn join<'a>(line: &[Column], cells: impl Iterator<Item = &'a str>) -> String {
    let padded = line.iter().zip(cells).map(|(column, cell)| format!("{cell:>0$}", column.width));
    padded.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_their_headings() {
        let line = [Column::new("records", "per txn", 3), Column::new("", "s", 5)];
        assert_eq!(join(&line, ["1", "0.123"].into_iter()), "      1  0.123");
        assert_eq!(line_width(&line), 14);
    }

    #[test]
    fn stacked_lines_share_a_grid() {
        let column = |width| Column::new("a", "b", width);
        let layout = Layout::stacked(vec![vec![column(3), column(9)], vec![column(5)]]);
        assert_eq!(layout.lines[0][0].width, 5);
        assert_eq!(layout.lines[1][0].width, 5);
        assert_eq!(layout.width(), 5 + 2 + 9);
    }
}
