//! Hostile bytes: the corpus of every fuzz target is replayed, and damaged again and again. There must be no
//! panic, no hang, no allocation out of proportion, and no error of the wrong kind.
//!
//! This needs no instrumented build. It finds less than the coverage-guided `sim-fuzz` (see RELIABILITY.md),
//! whose finds are in the corpus.

use crate::fuzz::{TARGETS, Target, mutate, seeds};
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest input that is tried.
const INPUT_BYTES_MAX: usize = 256 << 10;

/// The command's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    /// Only this target
    #[arg(long)]
    target: Option<String>,
}

/// Replays and mutates until the run ends.
pub fn run(arguments: &Arguments) -> Verdict {
    let run = Run::new(&arguments.limits, "inputs");
    if !cfg!(fuzzing) && std::env::var_os("AZEKURA_CANARY").is_none_or(|name| name != "fuzzing") {
        run.note("checksums are in force; for all targets build with RUSTFLAGS='--cfg fuzzing'");
    }
    let watchdog = Watchdog::start(60);
    let wanted = |t: &&Target| arguments.target.as_ref().is_none_or(|name| name == t.name);
    let inputs: Vec<(&Target, Vec<Vec<u8>>, AtomicU64)> =
        TARGETS.iter().filter(wanted).map(|t| (t, seeds(t.name), AtomicU64::new(0))).collect();
    if inputs.is_empty() || inputs.iter().any(|(_, seeds, _)| seeds.is_empty()) {
        run.violation("a target is not in this build, or has no seeds");
        return run.verdict();
    }
    for (target, seeds, _) in &inputs {
        for (n, seed) in seeds.iter().enumerate() {
            run.outcome(format!("{}, seed {n}", target.name), trial(target, seed));
        }
    }
    run.on_all_processors(|n| {
        let mut rng = Rng::of(run.seed, n);
        let (target, seeds, done) = rng.pick(&inputs);
        watchdog.at(format!("{}, input {n}", target.name));
        let (mut input, other) = (rng.pick(seeds).clone(), rng.pick(seeds));
        mutate(&mut input, other, &mut rng, INPUT_BYTES_MAX);
        let result = trial(target, &input).map_err(|e| format!("{e}; {}", keep(target, n, &input)));
        done.fetch_add(1, Ordering::Relaxed);
        run.outcome(format!("{}, input {n}", target.name), result);
    });
    for (target, seeds, done) in &inputs {
        run.note(format!(
            "{}: {} seeds, {} mutations",
            target.name,
            seeds.len(),
            done.load(Ordering::Relaxed)
        ));
    }
    run.verdict()
}

/// Tries one input. A panic is printed where it happens.
fn trial(target: &Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target.trial(input))).unwrap_or_else(|_| Err("a panic".into()))
}

/// Keeps an input for later, and says where.
fn keep(target: &Target, n: u64, input: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("azekura-fuzz-{}-{n}", target.name));
    match std::fs::write(&path, input) {
        Ok(()) => format!("the input is in {}", path.display()),
        Err(e) => format!("the input could not be kept: {e}"),
    }
}
