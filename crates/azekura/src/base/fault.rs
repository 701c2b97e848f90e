//! Faults: ways in which the engine can be broken on purpose, so that whoever looks for broken promises can
//! show that he finds them. They exist only in builds with `--cfg azekura_canary`. There the variable
//! `AZEKURA_CANARY` of the environment picks one. In all other builds `fault!` is the constant `false`, and
//! what it guards is not compiled in.
//!
//! One of them, `fuzzing`, does what `--cfg fuzzing` does: no checksum is believed.

use std::sync::OnceLock;

/// Whether the fault of this name was picked.
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
