//! The coverage-guided fuzzer: libFuzzer around the targets of `sim fuzz`, on the stable toolchain. The
//! target is named by `AZEKURA_TARGET`; arguments are libFuzzer's. How to build it is in RELIABILITY.md.

#![no_main]

use sim::fuzz::TARGETS;
use std::sync::OnceLock;

/// The largest allocation that an input may cause.
#[global_allocator]
static ALLOCATOR: sim::memory::Measured = sim::memory::Measured;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<sim::fuzz::Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("AZEKURA_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|t| t.name == name);
        *found.unwrap_or_else(|| panic!("AZEKURA_TARGET names no target: {name:?}"))
    });
    if let Err(e) = (target.run)(data) {
        panic!("{e}");
    }
});
