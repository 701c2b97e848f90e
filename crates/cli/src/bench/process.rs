//! What the operating system counts for this process: bytes and calls of writing, and the peak of its memory.
//! Only Linux gives these figures.

use crate::progress;

/// Bytes written and write calls, of the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Bytes handed to the operating system.
    pub bytes: u64,
    /// Calls that did so.
    pub calls: u64,
}

impl Writes {
    /// The counts so far, without what the progress bar has written.
    pub fn now() -> Option<Writes> {
        let (drawn_bytes, drawn_calls) = progress::drawn();
        let text = std::fs::read_to_string("/proc/self/io").ok()?;
        let bytes = field(&text, "wchar:")?.saturating_sub(drawn_bytes);
        let calls = field(&text, "syscw:")?.saturating_sub(drawn_calls);
        Some(Writes { bytes, calls })
    }

    /// The counts since `before`.
    pub fn since(before: Option<Writes>) -> Option<Writes> {
        let (before, now) = (before?, Writes::now()?);
        let bytes = now.bytes.saturating_sub(before.bytes);
        Some(Writes { bytes, calls: now.calls.saturating_sub(before.calls) })
    }
}

/// Resets the peak of memory. Where the system refuses, the peak is that of the whole process.
pub fn reset_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak of the process's resident memory since the last reset, in bytes.
pub fn peak_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    field(&text, "VmHWM:").map(|kibibytes| kibibytes * 1024)
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_name() {
        let text = "rchar: 1\nwchar: 1234\nVmHWM:\t   5120 kB\n";
        assert_eq!(field(text, "wchar:"), Some(1234));
        assert_eq!(field(text, "VmHWM:"), Some(5120));
        assert_eq!(field(text, "syscw:"), None);
    }
}
