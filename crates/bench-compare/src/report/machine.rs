//! The machine that the measurements run on.

use crate::results::Session;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Describes a run that begins now, with databases in this directory.
pub fn session(dir: &Path, runs: u32, missing: Vec<String>) -> Session {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kib: Option<u64> = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, |cores| crate::records::to_u64(cores.get()));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    Session {
        time_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()),
        cpu: model,
        cores,
        memory_bytes: memory_kib.map(|kib| kib * 1024),
        kernel: kernel.trim().to_owned(),
        file_system: file_system(dir),
        command: format!("cargo run --release -p bench-compare -- {}", arguments.join(" ")),
        runs,
        missing,
    }
}

/// The kind of file system of a directory: that of the longest mount point above it.
fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        dir.starts_with(point).then_some((point.len(), kind))
    });
    above.max_by_key(|(length, _)| *length).map_or_else(String::new, |(_, kind)| kind.to_owned())
}

/// A time as a date in UTC.
pub fn date(time_s: u64) -> String {
    // Days from the first of March of the year 0, in eras of 400 years. So leap days come last.
    let days = time_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// The machine of a run, in one line.
pub fn describe(session: &Session) -> String {
    let memory = session.memory_bytes.map(|bytes| format!("{} GiB of memory", bytes.div_ceil(1 << 30)));
    let parts = [
        session.cpu.clone(),
        Some(format!("{} hardware threads", session.cores)),
        memory,
        (!session.kernel.is_empty()).then(|| format!("Linux {}", session.kernel)),
        (!session.file_system.is_empty()).then(|| session.file_system.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
    }
}
