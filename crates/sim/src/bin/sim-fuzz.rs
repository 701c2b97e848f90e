//! The coverage-guided fuzzer: libFuzzer around the targets of `sim fuzz`, on the stable toolchain. `cargo
//! xtask fuzz` builds and runs it. `AZEKURA_TARGET` names the target. The first inputs are written to the
//! folder `AZEKURA_SEEDS`, unless they are there. The arguments are libFuzzer's.

#![no_main]

use sim::fuzz::{TARGETS, Target, seeds};
use std::path::Path;
use std::sync::LazyLock;

/// Measures the largest allocation that an input causes.
#[global_allocator]
static ALLOCATOR: sim::memory::Measured = sim::memory::Measured;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("AZEKURA_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|t| t.name == name);
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    *found.unwrap_or_else(|| panic!("AZEKURA_TARGET is {name:?}, not one of {names:?}"))
});

fn write_seeds() {
    let Some(folder) = std::env::var_os("AZEKURA_SEEDS") else { return };
    for (n, seed) in seeds(TARGET.name).iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{n}"));
        std::fs::write(&path, seed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

libfuzzer_sys::fuzz_target!(init: write_seeds(), |data: &[u8]| {
    if let Err(e) = TARGET.trial(data) {
        panic!("{e}");
    }
});
