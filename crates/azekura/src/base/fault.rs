//! Faults: ways to break the engine on purpose, to prove that the tests find broken promises. They exist only
//! in builds with `--cfg azekura_canary`, where the environment variable `AZEKURA_CANARY` picks one. In all
//! other builds `fault!` is the constant `false`, and the code that it guards is not compiled in.
//!
//! The fault `fuzzing` does what `--cfg fuzzing` does: checksums are ignored.

use std::sync::OnceLock;

/// Whether the fault of this name is picked.
macro_rules! fault {
    ($name:literal) => {
        cfg!(azekura_canary) && $crate::base::fault::is_picked($name)
    };
}

pub(crate) use fault;

pub(crate) fn is_picked(name: &str) -> bool {
    static PICKED: OnceLock<String> = OnceLock::new();
    PICKED.get_or_init(|| std::env::var("AZEKURA_CANARY").unwrap_or_default()) == name
}
