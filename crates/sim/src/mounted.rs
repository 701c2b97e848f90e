//! A small file system of its own: ext4 in a file, mounted on a loop device, where the machine and our rights
//! allow it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mounted file system, gone when this is dropped.
pub struct Mounted {
    image: PathBuf,
    mount: PathBuf,
}

impl Mounted {
    /// A new ext4 of so many bytes.
    ///
    /// # Errors
    /// Why none can be had here, on one line.
    pub fn new(bytes: u64) -> Result<Mounted, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = place().join(format!("azekura-small-{}-{number}", std::process::id()));
        let small = Mounted { image: base.with_extension("ext4"), mount: base };
        let text = |e: std::io::Error| e.to_string();
        fs::create_dir_all(&small.mount).map_err(text)?;
        fs::File::create(&small.image).and_then(|f| f.set_len(bytes)).map_err(text)?;
        call("mkfs.ext4", &["-q", "-F", "-m", "0"], &[&small.image])?;
        call("mount", &["-o", "loop"], &[&small.image, &small.mount])?;
        Ok(small)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may not have been mounted.
        let _unmounted = call("umount", &[], &[&self.mount]);
        let _removed = fs::remove_dir(&self.mount);
        let _gone = fs::remove_file(&self.image);
    }
}

/// In memory if there is such a place, for a sync costs nothing there.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.into() } else { std::env::temp_dir() }
}

fn call(program: &str, arguments: &[&str], paths: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).args(paths).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", text.lines().next().unwrap_or("failed")))
}
