//! Reads a level from end to end, past the cache, in large reads. Merges use it.

use super::Run;
use crate::base::codec::{u32_of, usize_of};
use crate::base::error::Result;
use crate::format::block::Block;
use crate::format::guide::Guide;
use crate::format::page::{Page, check, corrupt_page, units_of};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Walks the pages of a list of runs, which must follow each other in key order.
pub(crate) struct RunReader {
    /// The run that is being read, and those after it. Runs that have been read are dropped.
    runs: VecDeque<Arc<Run>>,
    /// How many runs have been read.
    read: usize,
    /// The next unit to read from the file.
    unit: u32,
    buf: Vec<u8>,
    at: usize,
    /// Runs that are passed over, by their ids.
    skipped: HashSet<u64>,
}

impl RunReader {
    pub(crate) fn new(runs: Vec<Arc<Run>>) -> RunReader {
        RunReader { runs: runs.into(), read: 0, unit: 0, buf: Vec::new(), at: 0, skipped: HashSet::new() }
    }

    /// The same, that passes over some of the runs as if they had no records.
    pub(crate) fn without(self, skipped: &HashSet<u64>) -> RunReader {
        RunReader { skipped: skipped.clone(), ..self }
    }

    /// The index in the list of the run that the last block came from.
    pub(crate) fn run_index(&self) -> usize {
        self.read
    }

    /// Decodes the next page into `out`. False at the end.
    pub(crate) fn next_block(&mut self, out: &mut Block) -> Result<bool> {
        if self.at == self.buf.len() && !self.refill()? {
            return Ok(false);
        }
        let Some(run) = self.runs.front() else { return Ok(false) };
        let unit_bytes = run.info.page_bytes;
        let first = self.unit - u32_of((self.buf.len() - self.at).div_ceil(unit_bytes));
        let offset = run.unit_offset(first);
        let bad = |detail: &str| corrupt_page(offset, run.info.id, first, detail);
        let units =
            units_of(&self.buf[self.at..], unit_bytes).ok_or_else(|| bad("impossible number of units"))?;
        while self.buf.len() - self.at < units * unit_bytes {
            if self.unit == run.info.units {
                return Err(bad("page passes the end of the run"));
            }
            let start = self.buf.len();
            self.buf.resize(start + unit_bytes, 0);
            run.read_units(self.unit, &mut self.buf[start..])?;
            self.unit += 1;
        }
        let bytes = &self.buf[self.at..self.at + units * unit_bytes];
        check(bytes, run.seed(), run.info.id, first, offset)?;
        let guide = Guide::read(bytes).map_err(bad)?;
        Page::new(bytes, &guide).decode(out).map_err(bad)?;
        if run.info.fixed.is_some() && out.fixed != run.info.fixed {
            return Err(bad("its widths are not those of its run"));
        }
        self.at += units * unit_bytes;
        Ok(true)
    }

    /// Reads the next stretch of units; of the next run, if this one has been read.
    fn refill(&mut self) -> Result<bool> {
        let is_skipped = |run: &Arc<Run>| self.skipped.contains(&run.info.id);
        while self.runs.front().is_some_and(|run| self.unit == run.info.units || is_skipped(run)) {
            self.runs.pop_front();
            self.read += 1;
            self.unit = 0;
        }
        let Some(run) = self.runs.front() else { return Ok(false) };
        let unit_bytes = run.info.page_bytes;
        let units = (run.info.units - self.unit).min(u32_of(run.store.buffers.read / unit_bytes));
        self.buf.resize(usize_of(units) * unit_bytes, 0);
        run.read_units(self.unit, &mut self.buf)?;
        self.unit += units;
        self.at = 0;
        Ok(true)
    }
}
