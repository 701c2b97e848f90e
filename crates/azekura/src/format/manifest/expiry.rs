//! The end of a manifest: what expires in the file, and what time it is by the file's clock. What is known of
//! operands comes behind that.

use super::{Manifest, RunInfo};
use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use crate::format::expiry::Expiring;
use crate::format::operand::Folding;
use crate::format::superblock::{PLAIN_VERSION, VERSION, WORDS_VERSION};
use std::collections::HashMap;

impl Manifest {
    /// Whether no record of the file has a word, or has had one that was a time.
    pub(crate) fn is_plain(&self) -> bool {
        let mut runs = self.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        let has_words = |run: &RunInfo| run.operands.records > 0 || run.expiring.records > 0;
        self.clock_ms.is_none() && self.tables.iter().all(|t| t.ttl_ms == 0) && !runs.any(has_words)
    }

    /// The version of the format that the file has.
    pub(crate) fn version(&self) -> u32 {
        let mut runs = self.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        if runs.any(|run| run.operands.folding() == Folding::Long) {
            return VERSION;
        }
        if self.is_plain() { PLAIN_VERSION } else { WORDS_VERSION }
    }

    /// What expires, and when it is now. Nothing in a plain file.
    pub(super) fn encode_expiry(&self, w: &mut Writer) {
        if self.is_plain() {
            return;
        }
        w.u64(self.clock_ms.unwrap_or(0));
        let runs = || {
            let all = self.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
            all.filter(|run| run.expiring.records > 0)
        };
        w.u32(u32_of(runs().count()));
        for run in runs() {
            w.u64(run.id);
            w.u64(run.expiring.records);
            w.u64(run.expiring.first_ms);
            w.u64(run.expiring.last_ms);
        }
        let tables = || self.tables.iter().filter(|table| table.ttl_ms > 0);
        w.u32(u32_of(tables().count()));
        for table in tables() {
            w.u32(table.id);
            w.u64(table.ttl_ms);
        }
        self.encode_operands(w);
    }

    /// Reads what `encode_expiry` writes.
    pub(super) fn decode_expiry(&mut self, r: &mut Reader<'_>) -> Result<()> {
        self.clock_ms = Some(r.counted()?).filter(|&ms| ms > 0);
        let mut found = HashMap::new();
        for _ in 0..r.count(32)? {
            let id = r.u64()?;
            let expiring = Expiring { records: r.u64()?, first_ms: r.u64()?, last_ms: r.u64()? };
            if expiring.records == 0 || expiring.first_ms > expiring.last_ms {
                return Err(r.bad(format!("run {id}: impossible times")));
            }
            found.insert(id, expiring);
        }
        for run in self.tables.iter_mut().flat_map(|t| t.levels.iter_mut().flat_map(|l| &mut l.runs)) {
            run.expiring = found.remove(&run.id).unwrap_or_default();
            if run.expiring.records > run.records {
                return Err(r.bad(format!("run {}: more records expire than it has", run.id)));
            }
        }
        let mut lifetimes = HashMap::new();
        for _ in 0..r.count(12)? {
            lifetimes.insert(r.u32()?, r.u64()?);
        }
        for table in &mut self.tables {
            table.ttl_ms = lifetimes.remove(&table.id).unwrap_or_default();
        }
        if !found.is_empty() || !lifetimes.is_empty() {
            return Err(r.bad("times of runs or tables that are not there"));
        }
        if r.remaining() > 0 { self.decode_operands(r) } else { Ok(()) }
    }
}
