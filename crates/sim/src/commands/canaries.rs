//! Canaries: the engine is broken on purpose, in one way after another. The command that watches the promise
//! must notice. Without this, a command that finds nothing proves nothing.
//!
//! A canary is a fault, and the command that must notice it. The engine has the faults only in builds with
//! `--cfg azekura_canary`. Unless it is such a build itself, this command makes one, in a folder of its own
//! under `target/`. It runs the build once for each canary, whose fault the environment picks. As a control
//! it also runs each command without a fault, and nothing may be found.

use crate::report::{Limits, Run, Verdict};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// A fault, and the command that must notice it.
struct Canary {
    /// The fault's name.
    name: &'static str,
    /// What is broken.
    broken: &'static str,
    /// The command that notices, with its limits.
    command: &'static [&'static str],
}

const CRASH_SMALL: &[&str] = &["crash", "--only", "small", "--count", "150000"];
const CRASH_LONG: &[&str] = &["crash", "--only", "long", "--count", "20000", "--seconds", "60"];
const ERRORS: &[&str] = &["errors", "--count", "4000", "--seconds", "60"];
const FLIPS: &[&str] = &["flips", "--count", "4000"];
/// Parts with pages, and with large values.
const EVERY_BIT: &[&str] = &["flips", "--every-bit", "--part", "12/100", "--count", "2000"];
const EVERY_BIT_OF_VALUES: &[&str] = &["flips", "--every-bit", "--part", "70/100", "--count", "2000"];
const METAMORPHIC: &[&str] = &["metamorphic", "--count", "200", "--seconds", "60"];

const FOLLOWERS: &[&str] = &["followers", "--count", "400", "--seconds", "90"];

const MIRROR: &[&str] = &["mirror", "--count", "4000", "--seconds", "60"];

const CANARIES: [Canary; 26] = [
    Canary {
        name: "skip_sync",
        broken: "a checkpoint is written without syncing what it names",
        command: CRASH_SMALL,
    },
    Canary {
        name: "publish_first",
        broken: "durable commits are acknowledged before they are logged",
        command: CRASH_SMALL,
    },
    Canary { name: "forget_name", broken: "the new file's name is not made durable", command: CRASH_SMALL },
    Canary {
        name: "skip_frame_checksum",
        broken: "checksums of the log are not verified: torn frames count",
        command: CRASH_SMALL,
    },
    Canary {
        name: "forget_rename",
        broken: "the log does not say which tables a commit has renamed and dropped",
        command: CRASH_LONG,
    },
    Canary {
        name: "ignore_gap",
        broken: "recovery goes on behind a gap in the log",
        command: &["crash", "--only", "small", "--count", "250000"],
    },
    Canary {
        name: "reuse_early",
        broken: "space is used again before the checkpoint that frees it",
        command: CRASH_LONG,
    },
    Canary { name: "drop_record", broken: "flushes and merges lose a record", command: CRASH_LONG },
    Canary {
        name: "forget_entry",
        broken: "a write leaves the old value's entry in an index",
        command: CRASH_LONG,
    },
    Canary { name: "lose_operand", broken: "a merge loses what is below an operand", command: CRASH_LONG },
    Canary {
        name: "fold_twice",
        broken: "a merge folds an operand with its base twice",
        command: CRASH_LONG,
    },
    Canary { name: "show_expired", broken: "what has expired is shown, and kept", command: CRASH_LONG },
    Canary {
        name: "entry_outlives",
        broken: "the entries of an index do not expire with their records",
        command: CRASH_LONG,
    },
    Canary { name: "forget_change", broken: "the feed is not told what is removed", command: CRASH_LONG },
    Canary {
        name: "trim_one_more",
        broken: "the feed loses a commit more than it says",
        command: CRASH_LONG,
    },
    Canary { name: "skip_page_checksum", broken: "checksums of pages are not verified", command: FLIPS },
    Canary { name: "skip_page_checksum", broken: "checksums of pages are not verified", command: EVERY_BIT },
    Canary { name: "blind_check", broken: "check does not read large values", command: FLIPS },
    Canary { name: "blind_check", broken: "check does not read large values", command: EVERY_BIT_OF_VALUES },
    Canary { name: "forget_failure", broken: "a failed sync does not poison the handle", command: ERRORS },
    Canary { name: "ignore_pins", broken: "the writer does not look at pins", command: FOLLOWERS },
    Canary {
        name: "revoke_silently",
        broken: "pins are not honoured any more, and no follower is told",
        command: FOLLOWERS,
    },
    Canary {
        name: "mirror_skip_sync",
        broken: "a mirror's superblock is written without syncing what it names",
        command: MIRROR,
    },
    Canary {
        name: "mirror_move_wrong",
        broken: "a mirror copies what was moved from a wrong place, and does not compare it",
        command: MIRROR,
    },
    Canary { name: "late_snapshot", broken: "snapshots see later commits", command: METAMORPHIC },
    Canary { name: "drop_record", broken: "flushes and merges lose a record", command: METAMORPHIC },
];

/// The commands that must find nothing in the same build without a fault.
const CONTROLS: [(&[&str], &str); 8] = [
    (&["crash", "--only", "small", "--count", "20000"], "crash, small"),
    (&["crash", "--only", "long", "--count", "500", "--seconds", "20"], "crash, long"),
    (&["errors", "--count", "500", "--seconds", "20"], "errors"),
    (&["followers", "--count", "20", "--seconds", "20"], "followers"),
    (&["mirror", "--count", "200", "--seconds", "20"], "mirror"),
    (&["flips", "--count", "1000"], "flips"),
    (EVERY_BIT, "flips, every bit"),
    (&["metamorphic", "--count", "20", "--seconds", "20"], "metamorphic"),
];

/// The limits, and what may be left out.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    /// Leave out the controls: the same build passes the commands themselves elsewhere.
    #[arg(long)]
    no_controls: bool,
}

/// Builds and tries the canaries. A fault that its command does not notice is a violation.
pub fn run(arguments: &Arguments) -> Verdict {
    let run = Run::new(&arguments.limits, "canaries");
    match program() {
        Ok(program) => {
            if !arguments.no_controls {
                controls(&run, &program);
            }
            canaries(&run, &program);
        }
        Err(e) => run.violation(format!("the build with faults: {e}")),
    }
    run.verdict()
}

/// The root of the project.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_path_buf()
}

/// This program if it has the faults, else one that is built.
fn program() -> Result<PathBuf, String> {
    if cfg!(azekura_canary) {
        return std::env::current_exe().map_err(|e| e.to_string());
    }
    let target = root().join("target").join("canary");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root())
        .env("RUSTFLAGS", "--cfg azekura_canary")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.args(["build", "--quiet", "--package", "sim", "--target-dir"]).arg(&target);
    let status = command.status().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("cargo ended with {status}"));
    }
    Ok(target.join("debug").join(format!("sim{}", std::env::consts::EXE_SUFFIX)))
}

fn controls(run: &Run, program: &Path) {
    for (arguments, name) in CONTROLS {
        if let Err(e) = call(program, arguments, "", run.seed)
            .and_then(|(found, said)| if found == 0 { Ok(()) } else { Err(said) })
        {
            run.violation(format!("{name} without a fault: {e}"));
        }
    }
}

fn canaries(run: &Run, program: &Path) {
    for canary in &CANARIES {
        if !run.goes_on() {
            return;
        }
        let started = Instant::now();
        run.tried(1);
        match call(program, canary.command, canary.name, run.seed) {
            Ok((0, said)) => {
                run.violation(format!(
                    "{} ({}) is not noticed by {}: {said}",
                    canary.name, canary.broken, canary.command[0]
                ));
            }
            Ok((_, said)) => run.note(format!(
                "{} ({}): noticed by {} in {:.1} s: {said}",
                canary.name,
                canary.broken,
                canary.command[0],
                started.elapsed().as_secs_f64()
            )),
            Err(e) => run.violation(format!("{}: {e}", canary.name)),
        }
    }
}

/// Runs a command of the build. Returns how many violations it found, and its last line. A command that ends
/// without that line (it crashed, or its watchdog ended it) has judged nothing, so it has noticed nothing
/// either.
fn call(program: &Path, arguments: &[&str], fault: &str, seed: u64) -> Result<(u64, String), String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["--seed", &seed.to_string(), "--violations", "1"])
        .env("AZEKURA_CANARY", fault);
    let output = command.output().map_err(|e| e.to_string())?;
    let last = last_line(&output);
    let mut words = last.split(' ').skip_while(|word| *word != "violations").skip(1);
    match words.next().and_then(|n| n.parse().ok()) {
        Some(n) => Ok((n, last)),
        None => Err(format!("ended with {} and no verdict", output.status)),
    }
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}
