//! The last part of a manifest: which runs have operands. Nothing where none has.

use super::{Manifest, RunInfo};
use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use crate::format::operand::{Operands, Operator};
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
    }

    /// Reads what `encode_operands` writes.
    pub(super) fn decode_operands(&mut self, r: &mut Reader<'_>) -> Result<()> {
        let mut found = HashMap::new();
        for _ in 0..r.count(17)? {
            let (id, records, code) = (r.u64()?, r.u64()?, r.u8()?);
            let operator = Operator::from_code(code);
            if records == 0 || operator.is_none() && code != 0 {
                return Err(r.bad(format!("run {id}: {records} operands with operator {code}")));
            }
            found.insert(id, Operands { records, operator });
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
