//! A small mounted file system: ext4 in a file, on a loop device, where the machine and the process's rights
//! allow it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of images begin.
const PREFIX: &str = "azekura-small-";

/// A mounted file system. It is removed on drop. If the process is killed before, the next one made removes
/// it.
pub struct Mounted {
    image: PathBuf,
    mount: PathBuf,
    /// Locked while its process lives.
    _lock: Option<File>,
}

impl Mounted {
    /// A new ext4 of this many bytes.
    ///
    /// # Errors
    /// Why that is impossible here, on one line.
    pub fn new(bytes: u64) -> Result<Mounted, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        remove_abandoned();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = place().join(format!("{PREFIX}{}-{number}", std::process::id()));
        let mut small = Mounted { image: base.with_extension("ext4"), mount: base, _lock: None };
        let text = |e: std::io::Error| e.to_string();
        fs::create_dir_all(&small.mount).map_err(text)?;
        // Nobody else sees the image before it is locked.
        let unlocked = small.mount.with_extension("new");
        let image = File::create(&unlocked).map_err(text)?;
        image.lock().and_then(|()| image.set_len(bytes)).map_err(text)?;
        fs::rename(&unlocked, &small.image).map_err(text)?;
        small._lock = Some(image);
        call("mkfs.ext4", &["-q", "-F", "-m", "0"], &[&small.image])?;
        call("mount", &["-o", "loop"], &[&small.image, &small.mount])?;
        Ok(small)
    }

    /// The folder where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        remove(&self.image, &self.mount);
    }
}

fn remove(image: &Path, mount: &Path) {
    // It may not have been mounted.
    let _unmounted = call("umount", &[], &[mount]);
    let _removed = fs::remove_dir(mount);
    let _gone = fs::remove_file(image);
}

/// Removes what killed processes have left.
fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(place()) else { return };
    for image in entries.flatten().map(|entry| entry.path()) {
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX)
            && name.ends_with(".ext4")
            && let Ok(file) = File::open(&image)
            && file.try_lock().is_ok()
        {
            // It stays locked until it is removed.
            remove(&image, &image.with_extension(""));
        }
    }
}

/// In memory if possible, since a sync costs nothing there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let base = place().join(format!("{PREFIX}{}-abandoned", std::process::id()));
        let (image, kept) =
            (base.with_extension("ext4"), place().join(format!("{PREFIX}{}-kept.ext4", std::process::id())));
        fs::create_dir(&base).unwrap();
        fs::write(&image, b"").unwrap();
        let in_use = File::create(&kept).unwrap();
        in_use.lock().unwrap();
        remove_abandoned();
        assert!(!image.exists() && !base.exists() && kept.exists());
        fs::remove_file(kept).unwrap();
    }
}
