//! What the kernel counts for the processes that run a peer: bytes and calls written, and memory.
//!
//! Usually that is this process. If the peer runs in a helper or a server, it is the processes started for
//! it, including those that have ended.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The processes that run a peer instead of this one, with the counts of those that have ended.
#[derive(Debug)]
struct Outside {
    used: bool,
    live: Vec<u32>,
    ended: Io,
    ended_peak_bytes: u64,
}

static OUTSIDE: Mutex<Outside> =
    Mutex::new(Outside { used: false, live: Vec::new(), ended: Io::NONE, ended_peak_bytes: 0 });

fn outside<T>(with: impl FnOnce(&mut Outside) -> T) -> T {
    with(&mut OUTSIDE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on the process `pid` counts, and this process no longer does.
pub fn process_started(pid: u32) {
    outside(|outside| {
        outside.used = true;
        outside.live.push(pid);
    });
}

/// Notes the memory of a process that goes on. Once it has ended by itself, there is nothing to see.
pub fn process_peaks(pid: u32) {
    outside(|outside| {
        outside.ended_peak_bytes = outside.ended_peak_bytes.max(status(&pid.to_string(), "VmHWM:"));
    });
}

/// Keeps the counts of a process that is about to end, or that has ended and was not waited for yet.
pub fn process_ends(pid: u32) {
    outside(|outside| {
        outside.live.retain(|live| *live != pid);
        outside.ended = outside.ended.plus(Io::of(&pid.to_string()));
        outside.ended_peak_bytes = outside.ended_peak_bytes.max(status(&pid.to_string(), "VmHWM:"));
    });
}

/// Counters of `/proc/<pid>/io` since the process began, threads that have ended included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Io {
    /// Bytes given to write calls.
    pub call_bytes: u64,
    /// Bytes of pages made dirty, through calls and through mappings.
    pub dirtied_bytes: u64,
    /// Write calls.
    pub write_calls: u64,
    /// Bytes that read calls gave.
    pub read_call_bytes: u64,
    /// Bytes that the device gave, through calls and through mappings.
    pub fetched_bytes: u64,
    /// Read calls.
    pub read_calls: u64,
}

impl Io {
    const NONE: Self = Self {
        call_bytes: 0,
        dirtied_bytes: 0,
        write_calls: 0,
        read_call_bytes: 0,
        fetched_bytes: 0,
        read_calls: 0,
    };

    /// The counters now; zeros where the kernel gives none.
    pub fn now() -> Self {
        outside(|outside| {
            if !outside.used {
                return Self::of("self");
            }
            outside.live.iter().fold(outside.ended, |sum, pid| sum.plus(Self::of(&pid.to_string())))
        })
    }

    fn of(process: &str) -> Self {
        let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
        Self {
            call_bytes: field(&text, "wchar:"),
            dirtied_bytes: field(&text, "write_bytes:"),
            write_calls: field(&text, "syscw:"),
            read_call_bytes: field(&text, "rchar:"),
            fetched_bytes: field(&text, "read_bytes:"),
            read_calls: field(&text, "syscr:"),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            call_bytes: self.call_bytes + other.call_bytes,
            dirtied_bytes: self.dirtied_bytes + other.dirtied_bytes,
            write_calls: self.write_calls + other.write_calls,
            read_call_bytes: self.read_call_bytes + other.read_call_bytes,
            fetched_bytes: self.fetched_bytes + other.fetched_bytes,
            read_calls: self.read_calls + other.read_calls,
        }
    }

    /// The counts since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            call_bytes: self.call_bytes.saturating_sub(before.call_bytes),
            dirtied_bytes: self.dirtied_bytes.saturating_sub(before.dirtied_bytes),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
            read_call_bytes: self.read_call_bytes.saturating_sub(before.read_call_bytes),
            fetched_bytes: self.fetched_bytes.saturating_sub(before.fetched_bytes),
            read_calls: self.read_calls.saturating_sub(before.read_calls),
        }
    }

    /// Bytes written: through calls, or through mappings by peers that write that way.
    pub fn written_bytes(self) -> u64 {
        self.call_bytes.max(self.dirtied_bytes)
    }

    /// Bytes read: through calls, or from the device by peers that map their files.
    pub fn read_bytes(self) -> u64 {
        self.read_call_bytes.max(self.fetched_bytes)
    }
}

/// The most memory that was resident so far, mapped files included.
pub fn peak_rss_bytes() -> u64 {
    outside(|outside| {
        if !outside.used {
            return status("self", "VmHWM:");
        }
        let live = outside.live.iter().map(|pid| status(&pid.to_string(), "VmHWM:")).sum();
        outside.ended_peak_bytes.max(live)
    })
}

/// The seconds that processors have worked for it so far, in user code and in the kernel.
pub fn cpu_seconds() -> f64 {
    outside(|outside| {
        if !outside.used {
            return worked_s("self");
        }
        outside.live.iter().map(|pid| worked_s(&pid.to_string())).sum()
    })
}

/// Of `/proc/<pid>/stat`, whose times are in hundredths of a second.
fn worked_s(process: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may have blanks. It stands in brackets.
    let (_, behind) = text.rsplit_once(')').unwrap_or_default();
    let times = behind.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The memory resident now, without files.
pub fn anonymous_rss_bytes() -> u64 {
    outside(|outside| {
        if !outside.used {
            return status("self", "RssAnon:");
        }
        outside.live.iter().map(|pid| status(&pid.to_string(), "RssAnon:")).sum()
    })
}

fn status(process: &str, name: &str) -> u64 {
    field(&fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default(), name) * 1024
}

fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The bytes of all files below a directory. Each file counts with its length or its allocated size,
/// whichever is less. So neither holes nor preallocations count.
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
