//! Making the system's file that shows a file of the disk.

use super::bytes::Bytes;
use super::shown::Shown;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Bytes {
    /// The bytes in a file of the system, which follows their changes.
    pub(super) fn show(&mut self) -> io::Result<Arc<File>> {
        if let Some(file) = &self.shown.0 {
            return Ok(file.clone());
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let path = dir.join(format!("azekura-sim-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        file.set_len(self.len)?;
        for (at, chunk) in self.chunks() {
            let there = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX).min(chunk.len());
            file.write_all_at(&chunk[..there], at)?;
        }
        let file = Arc::new(file);
        self.shown = Shown(Some(file.clone()));
        Ok(file)
    }
}
