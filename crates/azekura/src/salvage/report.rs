//! What a salvage has found, and what it has not.

use crate::base::key::TableKind;

/// A table of which something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedTable {
    /// Its name in the new database. Where nothing says what it was, `table-` and a number.
    pub name: String,
    /// Its kind.
    pub kind: TableKind,
    /// The records that it has in the new database.
    pub records: u64,
}

/// What a salvage has found. Counts of pages and values count versions that newer ones have replaced, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Whether the newest manifest was whole. Without it everything was found by its identity: records that
    /// were deleted or replaced may be back, and tables that were dropped.
    pub manifest: bool,
    /// The tables of the new database, in the order of their numbers.
    pub tables: Vec<SalvagedTable>,
    /// Runs of which something was found.
    pub runs: u64,
    /// Pages that were whole.
    pub pages: u64,
    /// Pages that were not, as far as anything says that they were there.
    pub pages_lost: u64,
    /// Large values that were whole.
    pub values: u64,
    /// Large values that were not. Their keys are left out.
    pub values_lost: u64,
    /// Commits that were taken from the log.
    pub commits: u64,
    /// Places in the log where frames are missing between others.
    pub log_gaps: u64,
    /// Bytes that the system could not read.
    pub unreadable_bytes: u64,
    /// What was lost, one line each.
    pub losses: Vec<String>,
    /// How much was lost that `losses` has no more room for.
    pub losses_unlisted: u64,
    /// What else there is to say, one line each.
    pub notes: Vec<String>,
}

/// Losses beyond this many are counted only.
const LOSSES_MAX: usize = 1000;
/// So much of a key is shown.
const KEY_BYTES_SHOWN: usize = 40;

impl SalvageReport {
    /// Whether nothing is known to be lost.
    ///
    /// ```
    /// assert!(azekura::SalvageReport::default().is_whole());
    /// ```
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty() && self.losses_unlisted == 0
    }

    pub(super) fn lose(&mut self, text: String) {
        if self.losses.len() < LOSSES_MAX {
            self.losses.push(text);
        } else {
            self.losses_unlisted += 1;
        }
    }
}

/// A key as text.
pub(super) fn shown(key: &[u8]) -> String {
    let cut = key.len() > KEY_BYTES_SHOWN;
    let text = key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii();
    if cut { format!("\"{text}\"… ({} bytes)", key.len()) } else { format!("\"{text}\"") }
}
