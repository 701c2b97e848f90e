//! What the measurements ran on.

use serde_json::{Value, json};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, for the JSON file.
pub fn describe() -> Value {
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
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    json!({
        "type": "machine",
        "time_s": time_s,
        "cpu": model,
        "cores": cores,
        "memory_bytes": memory_kib.map(|kib| kib * 1024),
        "kernel": kernel.trim(),
    })
}
