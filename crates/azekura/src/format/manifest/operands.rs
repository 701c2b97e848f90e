//! The last part of a manifest: which runs have operands. Nothing where none has.

use super::{Manifest, RunInfo};
use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use crate::format::operand::{Operands, Operator};
use crate::format::superblock::VERSION;
use std::collections::HashMap;

impl Manifest {
    fn with_operands(&self) -> impl Iterator<Item = &RunInfo> {
        let runs = self.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        runs.filter(|run| run.operands.records > 0)
    }

    pub(super) fn encode_operands(&self, w: &mut Writer) {
        let runs = self.with_operands().count();
        if runs == 0 {
            return;
        }
        w.u32(u32_of(runs));
        for run in self.with_operands() {
            w.u64(run.id);
            w.u64(run.operands.records);
            w.u8(run.operands.operator.map_or(0, Operator::code));
        }
        if self.version() == VERSION {
            let widths = || {
                let width_of = |run: &RunInfo| run.operands.operator.map_or(0, Operator::width);
                self.with_operands().map(move |run| (run.id, width_of(run))).filter(|&(_, width)| width > 0)
            };
            w.u32(u32_of(widths().count()));
            for (run, width) in widths() {
                w.u64(run);
                w.u8(width);
            }
        }
    }

    /// Reads what `encode_operands` writes.
    pub(super) fn decode_operands(&mut self, r: &mut Reader<'_>) -> Result<()> {
        let mut said = Vec::new();
        for _ in 0..r.count(17)? {
            said.push((r.u64()?, r.u64()?, r.u8()?));
        }
        let mut widths = HashMap::new();
        if said.iter().any(|&(_, _, code)| Operator::is_long_code(code)) {
            for _ in 0..r.count(9)? {
                widths.insert(r.u64()?, r.u8()?);
            }
        }
        let mut found = HashMap::new();
        for (id, records, code) in said {
            let operator = Operator::from_code(code, widths.remove(&id).unwrap_or(0));
            if records == 0 || operator.is_none() && code != 0 {
                return Err(r.bad(format!("run {id}: {records} operands with operator {code}")));
            }
            found.insert(id, Operands { records, operator });
        }
        if !widths.is_empty() {
            return Err(r.bad("elements of runs without sets"));
        }
        for run in self.tables.iter_mut().flat_map(|t| t.levels.iter_mut().flat_map(|l| &mut l.runs)) {
            run.operands = found.remove(&run.id).unwrap_or_default();
            if run.operands.records.saturating_add(run.expiring.records) > run.records {
                return Err(r.bad(format!("run {}: more operands than records", run.id)));
            }
        }
        if !found.is_empty() {
            return Err(r.bad("operands of runs that are not there"));
        }
        Ok(())
    }
}
