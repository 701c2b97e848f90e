//! Canaries: ways in which the engine can be broken on purpose, so that whoever looks for broken promises
//! can show that he finds them. They exist only in builds with `--cfg azekura_canary`, and there the
//! variable `AZEKURA_CANARY` of the environment picks one. One of them, `fuzzing`, does what `--cfg fuzzing` does: no
//! checksum is believed.

use std::sync::OnceLock;

/// Whether the canary of this name was picked.
pub(crate) fn sings(name: &str) -> bool {
    static PICKED: OnceLock<String> = OnceLock::new();
    PICKED.get_or_init(|| std::env::var("AZEKURA_CANARY").unwrap_or_default()) == name
}
