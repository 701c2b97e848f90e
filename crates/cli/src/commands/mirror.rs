//! `azekura mirror`: keeps a file equal to a database that a program writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azekura::{Mirror, MirrorStatus};

use super::backup::RateArg;
use crate::failure::Outcome;
use crate::interrupt::Deferred;
use crate::output;
use crate::priority;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// How often a line of JSON is printed.
const LINES: Duration = Duration::from_secs(1);

/// Arguments of `mirror`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It goes on until it is interrupted, and can go on later where it ended. At every moment DEST is\n\
                  the database after one of its commits. Others read DEST meanwhile with --follow; nobody writes\n\
                  to it before azekura promote.\n\n\
                  Example:\n  azekura mirror fruit.azk --to /backup/fruit.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The mirror, which is made if it is not there
    #[arg(long, value_name = "DEST")]
    to: PathBuf,
    /// End when DEST has all that is durable
    #[arg(long)]
    once: bool,
    /// Make durable commits wait until DEST has them, too
    #[arg(long, conflicts_with = "once")]
    sync: bool,
    #[command(flatten)]
    rate: RateArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `mirror`.
pub fn run(args: &Args) -> Outcome {
    store::must_exist(&args.file.path)?;
    if !args.sync {
        priority::give_way();
    }
    let ends = Arc::new(AtomicBool::new(false));
    let asked = ends.clone();
    let _deferred = Deferred::new(move || asked.store(true, Ordering::Relaxed));
    let mut mirror = Mirror::open(&args.file.path, &args.to, args.rate.options())?;
    mirror.synchronous(args.sync);
    let mut shown = Shown::new(&args.to, args.once, args.json.json);
    let mut printed = Ok(());
    mirror.run(|status| {
        printed = shown.show(status);
        printed.is_ok() && !shown.is_done(status) && !ends.load(Ordering::Relaxed)
    })?;
    printed?;
    shown.end(&mirror.status())
}

/// What is shown of the state of things.
pub(super) struct Shown<'a> {
    to: &'a Path,
    once: bool,
    json: bool,
    progress: Option<Progress>,
    /// When the next line is due.
    next: Instant,
    was_level: bool,
    built: u64,
}

impl Shown<'_> {
    pub(super) fn new(to: &Path, once: bool, json: bool) -> Shown<'_> {
        Shown { to, once, json, progress: None, next: Instant::now(), was_level: false, built: 0 }
    }

    /// Whether that is all that was wanted.
    pub(super) fn is_done(&self, status: &MirrorStatus) -> bool {
        self.once && status.is_level()
    }

    pub(super) fn show(&mut self, status: &MirrorStatus) -> Outcome {
        if self.json {
            return self.show_json(status);
        }
        if status.is_level() {
            self.progress = None;
        } else if status.behind_bytes > 0 {
            let progress = self.progress.get_or_insert_with(|| Progress::new("mirroring", Unit::Bytes, 0));
            progress.set_of(status.copied_bytes, status.copied_bytes + status.behind_bytes);
        }
        if status.is_level() && (!self.was_level || status.built > self.built) {
            (self.was_level, self.built) = (true, status.built);
            return output::print_line(&level(self.to, status));
        }
        Ok(())
    }

    fn show_json(&mut self, status: &MirrorStatus) -> Outcome {
        let is_first = status.is_level() && !self.was_level;
        self.was_level |= status.is_level();
        if Instant::now() < self.next && !is_first {
            return Ok(());
        }
        self.next = Instant::now() + LINES;
        output::print_json(&json(status))
    }

    pub(super) fn end(&mut self, status: &MirrorStatus) -> Outcome {
        self.progress = None;
        if self.json {
            return output::print_json(&json(status));
        }
        if self.once {
            return Ok(());
        }
        let state = if status.is_level() { "level".to_owned() } else { behind(status) };
        output::print_line(&format!("ended at commit {}, {state}", units::grouped(status.commit)))
    }
}

fn level(to: &Path, status: &MirrorStatus) -> String {
    let (to, commit) = (crate::bytes::harmless(&to.display().to_string()), units::grouped(status.commit));
    let wait = if status.synchronous { "; durable commits wait for it" } else { "" };
    format!("{to} has commit {commit}; {} copied{wait}", units::bytes(status.copied_bytes))
}

fn behind(status: &MirrorStatus) -> String {
    let commits = units::counted(status.behind_commits, "commit");
    let seconds = units::seconds(status.behind.as_secs_f64());
    format!("{commits}, {} and {seconds} behind", units::bytes(status.behind_bytes))
}

fn json(status: &MirrorStatus) -> serde_json::Value {
    serde_json::json!({
        "level": status.is_level(),
        "synchronous": status.synchronous,
        "checkpoint": status.checkpoint,
        "commit": status.commit,
        "behind_commits": status.behind_commits,
        "behind_bytes": status.behind_bytes,
        "behind_seconds": status.behind.as_secs_f64(),
        "copied_bytes": status.copied_bytes,
        "moved_bytes": status.moved_bytes,
        "built": status.built,
    })
}
