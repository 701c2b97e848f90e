//! Several columns of a value as bytes.
//!
//! ```text
//! one column without nulls   its value as it is, in the form of the engine's typed tables
//! no columns                 nothing
//! columns of fixed widths    one after the other; behind them, only if there is a null, the bits of nulls
//! others                     [flag, if nulls are possible: 1 if the bits of nulls follow]  [bits of nulls]
//!                            the columns of fixed widths
//!                            the lengths of the others, four bytes each, but for the last
//!                            the others
//! ```
//!
//! Numbers are little-endian. The bits of nulls are one for each column, the first in the lowest bit of the
//! first byte; a null's place in the fixed widths is zero, and its length nothing. So rows of fixed widths
//! without nulls have one length, and cost nothing beside their values.

use crate::spec::Column;

/// How rows of some columns are encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowForm {
    /// The width of each column; none if its values differ.
    widths: Vec<Option<usize>>,
    nullable: Vec<bool>,
    /// The sum of the widths.
    fixed_bytes: usize,
    variable: usize,
}

impl RowForm {
    /// The form of some columns.
    pub fn of(columns: &[Column]) -> RowForm {
        let widths: Vec<_> = columns.iter().map(|column| column.of.width()).collect();
        let fixed_bytes = widths.iter().flatten().sum();
        let variable = widths.iter().filter(|width| width.is_none()).count();
        let nullable = columns.iter().map(|column| column.nullable).collect();
        RowForm { widths, nullable, fixed_bytes, variable }
    }

    /// Whether a value is the one column's value and nothing else.
    pub fn is_plain(&self) -> bool {
        self.nullable == [false]
    }

    /// How many bytes each row has; none if they differ.
    pub fn width(&self) -> Option<usize> {
        (self.variable == 0 && !self.nullable.contains(&true)).then_some(self.fixed_bytes)
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.widths.len()
    }

    fn has_flag(&self) -> bool {
        self.variable > 0 && self.nullable.contains(&true)
    }

    fn null_bytes(&self) -> usize {
        self.widths.len().div_ceil(8)
    }

    /// Adds a row to `out`. Each cell is a column's value, or none if it is missing.
    ///
    /// # Errors
    /// Says what is wrong with the cells: their number, the width of one, a null where none may be.
    pub fn encode(&self, cells: &[Option<&[u8]>], out: &mut Vec<u8>) -> Result<(), String> {
        self.check(cells)?;
        if let ([Some(cell)], true) = (cells, self.is_plain()) {
            out.extend_from_slice(cell);
            return Ok(());
        }
        let any_null = cells.contains(&None);
        if self.has_flag() {
            out.push(u8::from(any_null));
            if any_null {
                push_nulls(cells, out);
            }
        }
        for (cell, width) in cells.iter().zip(&self.widths) {
            if let Some(width) = width {
                match cell {
                    Some(cell) => out.extend_from_slice(cell),
                    None => out.resize(out.len() + width, 0),
                }
            }
        }
        let variable =
            || cells.iter().zip(&self.widths).filter(|(_, width)| width.is_none()).map(|(cell, _)| cell);
        for cell in variable().take(self.variable.saturating_sub(1)) {
            let len =
                u32::try_from(cell.map_or(0, <[u8]>::len)).map_err(|_| "a value of 4 GiB".to_owned())?;
            out.extend_from_slice(&len.to_le_bytes());
        }
        variable().flatten().for_each(|cell| out.extend_from_slice(cell));
        if self.variable == 0 && any_null {
            push_nulls(cells, out);
        }
        Ok(())
    }

    fn check(&self, cells: &[Option<&[u8]>]) -> Result<(), String> {
        if cells.len() != self.widths.len() {
            return Err(format!("{} cells for {} columns", cells.len(), self.widths.len()));
        }
        for (i, cell) in cells.iter().enumerate() {
            match (cell, self.widths[i]) {
                (None, _) if !self.nullable[i] => {
                    return Err(format!("a null in column {i}, which has none"));
                }
                (Some(cell), Some(width)) if cell.len() != width => {
                    return Err(format!("a value of {} bytes in column {i}, of {width} each", cell.len()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Calls `cell` for each column of a row, with the column's number. None if it is no such row, or if
    /// `cell` has returned that.
    pub fn decode<'a>(
        &self,
        row: &'a [u8],
        mut cell: impl FnMut(usize, Option<&'a [u8]>) -> Option<()>,
    ) -> Option<()> {
        if self.is_plain() {
            return self.widths[0]
                .is_none_or(|width| row.len() == width)
                .then_some(())
                .and_then(|()| cell(0, Some(row)));
        }
        let (nulls, mut rest) = self.split_nulls(row)?;
        let fixed = take(&mut rest, self.fixed_bytes)?;
        let mut lengths = take(&mut rest, 4 * self.variable.saturating_sub(1))?;
        let mut left = self.variable;
        let mut at = 0;
        for (i, width) in self.widths.iter().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls[i / 8] >> (i % 8) & 1 == 1);
            let own = match width {
                Some(width) => {
                    at += width;
                    &fixed[at - width..at]
                }
                None if left > 1 => {
                    left -= 1;
                    let (len, after) = lengths.split_first_chunk::<4>()?;
                    lengths = after;
                    take(&mut rest, usize::try_from(u32::from_le_bytes(*len)).ok()?)?
                }
                None => std::mem::take(&mut rest),
            };
            if is_null && !(self.nullable[i] && own.iter().all(|&byte| byte == 0)) {
                return None;
            }
            cell(i, if is_null { None } else { Some(own) })?;
        }
        rest.is_empty().then_some(())
    }

    /// The bits of nulls, if there are some, and the rest of a row.
    fn split_nulls<'a>(&self, row: &'a [u8]) -> Option<(Option<&'a [u8]>, &'a [u8])> {
        if self.has_flag() {
            let (&flag, mut rest) = row.split_first()?;
            return match flag {
                0 => Some((None, rest)),
                1 => Some((Some(take(&mut rest, self.null_bytes())?), rest)),
                _ => None,
            };
        }
        if self.variable == 0 && self.nullable.contains(&true) && row.len() > self.fixed_bytes {
            let (rest, nulls) = row.split_at(self.fixed_bytes);
            return (nulls.len() == self.null_bytes()).then_some((Some(nulls), rest));
        }
        Some((None, row))
    }
}

fn push_nulls(cells: &[Option<&[u8]>], out: &mut Vec<u8>) {
    for eight in cells.chunks(8) {
        out.push(eight.iter().rev().fold(0, |bits, cell| bits << 1 | u8::from(cell.is_none())));
    }
}

/// The first bytes of `rest`, which becomes what follows them.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (own, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ColumnType::{self, Bool, Bytes, I64, Str, U16};

    fn form(columns: &[(ColumnType, bool)]) -> RowForm {
        let column = |&(of, nullable): &(ColumnType, bool)| Column { name: "c".into(), of, nullable };
        RowForm::of(&columns.iter().map(column).collect::<Vec<_>>())
    }

    fn decoded<'a>(form: &RowForm, row: &'a [u8]) -> Option<Vec<Option<&'a [u8]>>> {
        let mut cells = Vec::new();
        form.decode(row, |i, cell| {
            assert_eq!(i, cells.len());
            cells.push(cell);
            Some(())
        })?;
        Some(cells)
    }

    fn encoded(form: &RowForm, cells: &[Option<&[u8]>]) -> Vec<u8> {
        let mut row = Vec::new();
        form.encode(cells, &mut row).expect("a row");
        let back = decoded(form, &row).expect("the same row");
        assert_eq!(back, cells);
        row
    }

    #[test]
    fn rows_have_the_bytes_that_are_described() {
        let plain = form(&[(U16, false)]);
        assert_eq!(encoded(&plain, &[Some(&[1, 2])]), [1, 2]);
        assert!(encoded(&form(&[]), &[]).is_empty());
        let fixed = form(&[(U16, true), (Bool, false)]);
        assert_eq!(encoded(&fixed, &[Some(&[1, 2]), Some(&[1])]), [1, 2, 1]);
        assert_eq!(encoded(&fixed, &[None, Some(&[1])]), [0, 0, 1, 0b01]);
        let mixed = form(&[(Str, true), (Bool, false), (Bytes, true)]);
        assert_eq!(encoded(&mixed, &[Some(b"ab"), Some(&[1]), Some(b"c")]), b"\0\x01\x02\0\0\0abc");
        assert_eq!(encoded(&mixed, &[Some(b"ab"), Some(&[1]), None]), b"\x01\x04\x01\x02\0\0\0ab");
        let firm = form(&[(Str, false), (Bytes, false)]);
        assert_eq!(encoded(&firm, &[Some(b""), Some(b"x")]), b"\0\0\0\0x");
    }

    /// A sequence of numbers, from a seed.
    fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut x = seed;
        move |below| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(x >> 33).expect("31 bits") % below
        }
    }

    #[test]
    fn any_row_comes_back_and_damaged_ones_do_no_harm() {
        let types = [Bool, U16, ColumnType::F32, I64, Str, Bytes];
        for seed in 0..2000 {
            let mut random = random(seed);
            let count = random(12);
            let columns: Vec<_> = (0..count).map(|_| (types[random(6)], random(2) == 0)).collect();
            let form = form(&columns);
            let cells: Vec<Option<Vec<u8>>> = columns
                .iter()
                .map(|(of, nullable)| {
                    let len = of.width().unwrap_or_else(|| random(20));
                    let is_null = *nullable && random(3) == 0;
                    (!is_null).then(|| (0..len).map(|_| u8::try_from(random(256)).expect("a byte")).collect())
                })
                .collect();
            let cells: Vec<Option<&[u8]>> = cells.iter().map(Option::as_deref).collect();
            let row = encoded(&form, &cells);
            for _ in 0..20 {
                let mut other = row.clone();
                match other.len() {
                    0 => other.push(7),
                    len if random(2) == 0 => other.truncate(random(len)),
                    len => other[random(len)] ^= 1 << random(8),
                }
                // It is another row, or none. It does not panic.
                let _any = decoded(&form, &other);
            }
        }
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let form = form(&[(U16, false), (Bool, true)]);
        let refused = |cells: &[Option<&[u8]>]| form.encode(cells, &mut Vec::new()).expect_err("refused");
        assert!(refused(&[Some(&[1, 2])]).contains("1 cells for 2 columns"));
        assert!(refused(&[None, None]).contains("a null in column 0"));
        assert!(refused(&[Some(&[1]), None]).contains("1 bytes in column 0"));
        for wrong in [&[1, 2][..], &[1, 2, 3, 0, 0], &[1, 2, 0, 1], &[1, 2, 1, 2]] {
            assert_eq!(decoded(&form, wrong), None, "{wrong:?}");
        }
    }
}
