//! What the kernel counts of this process: bytes and calls written, and memory.

use std::fs;
use std::path::Path;

/// Counters of `/proc/self/io` since the process began, threads that have ended included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Io {
    /// Bytes given to write calls.
    pub call_bytes: u64,
    /// Bytes of pages made dirty, through calls and through mappings.
    pub dirtied_bytes: u64,
    /// Write calls.
    pub write_calls: u64,
}

impl Io {
    /// The counters now; zeros where the kernel gives none.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Self {
            call_bytes: field(&text, "wchar:"),
            dirtied_bytes: field(&text, "write_bytes:"),
            write_calls: field(&text, "syscw:"),
        }
    }

    /// What was counted since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            call_bytes: self.call_bytes.saturating_sub(before.call_bytes),
            dirtied_bytes: self.dirtied_bytes.saturating_sub(before.dirtied_bytes),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
        }
    }

    /// Bytes written: through calls, or through mappings by peers that write that way.
    pub fn written_bytes(self) -> u64 {
        self.call_bytes.max(self.dirtied_bytes)
    }
}

/// The most memory that was resident so far, mapped files included.
pub fn peak_rss_bytes() -> u64 {
    status("VmHWM:")
}

/// The memory resident now that is not a file's.
pub fn anonymous_rss_bytes() -> u64 {
    status("RssAnon:")
}

fn status(name: &str) -> u64 {
    field(&fs::read_to_string("/proc/self/status").unwrap_or_default(), name) * 1024
}

fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Bytes of all files below a directory: of each, what is allocated or its length, whichever is less,
/// so that neither a hole nor a preallocation counts.
pub fn directory_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => metadata.len().min(metadata.blocks() * 512),
            Err(_) => 0,
        })
        .sum()
}
