//! Synchronous mirrors: durable commits in the source wait until the mirror has them.
//!
//! A mirror acknowledges what it has made durable, in the source's file (`storage/acks.rs`). It begins when
//! it is level for the first time, so nobody waits for a mirror that is being built. It ends when it cannot
//! go on, or has to be built anew, and begins again when it is level again. While it ships a checkpoint it
//! goes on, and who commits waits for that.

use super::going::Mirror;
use crate::base::error::{Error, Result};
use std::io;

impl Mirror {
    /// Whether durable commits in the source wait until they are in this mirror, durably. They do from when
    /// it is level ([`MirrorStatus::synchronous`](crate::MirrorStatus)), as long as it is stepped, and no
    /// longer than the program that commits says
    /// ([`Options::mirror_timeout`](crate::Options::mirror_timeout)). Default: false. If there are several
    /// such mirrors, commits wait for all of them.
    ///
    /// While nothing comes, [`run`](Mirror::run) looks a thousand times a second then.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("azekura-doc-synchronous-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
    /// use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// let db = Db::open(&path, Options::new())?;
    /// let people = db.table("people", TableKind::Ordered)?;
    /// let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
    /// mirror.synchronous(true);
    /// mirror.run(|status| !status.synchronous)?;
    ///
    /// let ends = AtomicBool::new(false);
    /// std::thread::scope(|scope| {
    ///     let mirroring = scope.spawn(|| mirror.run(|_| !ends.load(Ordering::Relaxed)));
    ///     people.put("ada", "1815")?;
    ///     let reader = Options::new().freshness(azekura::Freshness::Log).open(&copy)?;
    ///     assert!(reader.open_table("people")?.get("ada")?.is_some(), "it is there when `put` returns");
    ///     ends.store(true, Ordering::Relaxed);
    ///     mirroring.join().unwrap()
    /// })?;
    /// # drop((people, mirror)); db.close()?; std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn synchronous(&mut self, yes: bool) {
        self.is_synchronous = yes;
        if !yes {
            self.acknowledge_nothing();
        }
    }

    /// Acknowledges what the mirror has. REQUIRES: the status says what that is.
    pub(super) fn acknowledge(&mut self) -> Result<()> {
        let status = self.gauge.status;
        let is_there = self.dest.is_some() && self.unnamed.is_none();
        if !self.is_synchronous || !is_there || !(status.synchronous || status.is_level()) {
            return Ok(());
        }
        if self.acknowledged != Some(status.commit) {
            self.source.file.acknowledge(Some(status.commit)).map_err(refused)?;
            self.acknowledged = Some(status.commit);
        }
        self.gauge.status.synchronous = true;
        Ok(())
    }

    /// Nobody waits for this mirror any more.
    pub(super) fn acknowledge_nothing(&mut self) {
        self.gauge.status.synchronous = false;
        if self.acknowledged.take().is_some() {
            // If the system refuses, it ends with the file's handle.
            let _longer = self.source.file.acknowledge(None);
        }
    }
}

fn refused(e: io::Error) -> Error {
    Error::io("acknowledging commits", e)
}
