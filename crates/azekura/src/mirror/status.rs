//! How far a mirror is behind its source.

use crate::base::sync::Instant;
use std::time::Duration;

/// What a [`Mirror`](crate::Mirror) has, and what it lacks.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-status-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
/// # use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let people = db.table("people", TableKind::Ordered)?;
/// people.put("ada", "1815")?;
/// db.flush()?;
/// let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
/// assert!(!mirror.status().is_level(), "nothing is there yet");
/// while mirror.step()? {}
/// let status = mirror.status();
/// assert!(status.is_level() && status.behind_commits == 0 && status.copied_bytes > 0);
/// # drop((people, mirror)); db.close()?; std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorStatus {
    /// The number of the checkpoint that the mirror has.
    pub checkpoint: u64,
    /// The newest commit in it, durably.
    pub commit: u64,
    /// How many commits it is behind, of those that the source is known to have. The source may have more
    /// that are not durable yet, or not looked at.
    pub behind_commits: u64,
    /// Bytes that it lacks, as far as is known.
    pub behind_bytes: u64,
    /// For how long it has lacked something.
    pub behind: Duration,
    /// Whether the last look at the source has found nothing that is durable there and not here.
    pub level: bool,
    /// Whether durable commits in the source wait for it
    /// ([`Mirror::synchronous`](crate::Mirror::synchronous)).
    pub synchronous: bool,
    /// Bytes that have come from the source since it was opened: of runs, value segments and the log. Through
    /// a pipe, those of the answers in which they came, which are fewer where the log was packed.
    pub copied_bytes: u64,
    /// Bytes of what the source had moved within its file. The mirror had them, and copied them itself.
    pub moved_bytes: u64,
    /// How many times the file was built anew, the first time among them.
    pub built: u64,
}

impl MirrorStatus {
    /// Whether it is there, and has all that is known to be durable in the source.
    pub fn is_level(&self) -> bool {
        self.checkpoint > 0 && self.level
    }
}

/// Keeps the status.
#[derive(Default)]
pub(super) struct Gauge {
    pub(super) status: MirrorStatus,
    /// Since when something lacks.
    lacks_since: Option<Instant>,
}

impl Gauge {
    /// So much lacks, or nothing.
    pub(super) fn lacks(&mut self, commits: u64, bytes: u64) {
        let now = Instant::now();
        self.lacks_since = if bytes > 0 { self.lacks_since.or(Some(now)) } else { None };
        let since = |since| now.saturating_duration_since(since);
        self.status.behind = self.lacks_since.map_or(Duration::ZERO, since);
        (self.status.behind_commits, self.status.behind_bytes) = (commits, bytes);
        self.status.level = false;
    }

    /// Something has come. What lacks still was seen a moment ago.
    pub(super) fn goes_on(&mut self) {
        self.lacks_since = None;
    }

    /// Nothing that is durable was found to be shipped.
    pub(super) fn rests(&mut self) {
        self.status.level = true;
    }

    /// There is a checkpoint of which is not known yet whether it counts.
    pub(super) fn waits(&mut self) {
        let now = Instant::now();
        let since = *self.lacks_since.get_or_insert(now);
        self.status.behind = now.saturating_duration_since(since);
        self.status.level = false;
    }

    /// So many bytes had not to be copied.
    pub(super) fn found(&mut self, bytes: u64) {
        self.status.behind_bytes = self.status.behind_bytes.saturating_sub(bytes);
    }

    /// So many bytes were copied from another place of the mirror.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.status.moved_bytes += bytes;
        self.found(bytes);
    }

    /// So many bytes were copied.
    pub(super) fn copied(&mut self, bytes: u64) {
        self.status.copied_bytes += bytes;
        self.status.behind_bytes = self.status.behind_bytes.saturating_sub(bytes);
    }
}
