//! What a salvage has found, and what it has not.

use crate::base::key::TableKind;
use std::time::Duration;

/// A table with something found.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-salvagedtable-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved.azk");
/// t.put("ada", "1815")?;
/// # let file = path.clone(); drop(t); db.close()?;
/// let out = Db::open(&saved, Options::new())?;
/// let report = azekura::salvage(&file, &out, |_| {})?;
/// assert_eq!((report.tables[0].name.as_str(), report.tables[0].records), ("t", 1));
/// # out.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_file(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedTable {
    /// Its name in the new database. If its name is not known, `table-` and a number.
    pub name: String,
    /// Its kind.
    pub kind: TableKind,
    /// How many records it has in the new database.
    pub records: u64,
    /// How long its records live if nothing else is said, there too. None: until they are removed.
    pub ttl: Option<Duration>,
}

/// What a salvage has found. The counts of pages and values include versions that newer ones have replaced.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-salvagereport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// # let saved = path.with_extension("saved.azk");
/// t.put("ada", "1815")?;
/// # let file = path.clone(); drop(t); db.close()?;
/// let out = Db::open(&saved, Options::new())?;
/// let report = azekura::salvage(&file, &out, |_| {})?;
/// assert!(report.manifest && report.losses.is_empty());
/// # out.close()?; std::fs::remove_file(&path).unwrap(); std::fs::remove_file(&saved).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Whether the newest manifest was whole. Without it everything was found by its identity: records and
    /// tables that were deleted or replaced may be back.
    pub manifest: bool,
    /// The tables of the new database, in the order of their ids.
    pub tables: Vec<SalvagedTable>,
    /// Runs with something found.
    pub runs: u64,
    /// Pages that were whole.
    pub pages: u64,
    /// Pages that were damaged or missing, as far as it is known that they existed.
    pub pages_lost: u64,
    /// Large values that were whole.
    pub values: u64,
    /// Large values that were damaged or missing. Their keys are left out.
    pub values_lost: u64,
    /// Commits that were taken from the log.
    pub commits: u64,
    /// Places in the log where frames are missing.
    pub log_gaps: u64,
    /// Bytes that the system could not read.
    pub unreadable_bytes: u64,
    /// What was lost, one line each.
    pub losses: Vec<String>,
    /// How many losses are not in `losses`, which is full.
    pub losses_unlisted: u64,
    /// Other remarks, one line each.
    pub notes: Vec<String>,
}

/// More losses than this are only counted.
const LOSSES_MAX: usize = 1000;

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
