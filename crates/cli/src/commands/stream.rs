//! `azekura stream`: the source of a mirror on another machine, at the end of a pipe.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use azekura::MirrorReport;

use crate::failure::{self, Failure, Outcome};
use crate::priority;
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// How often is said what the mirror has.
const LINES: Duration = Duration::from_secs(1);

/// Arguments of `stream`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "azekura follow starts it, and talks with it over its standard input and output. It only reads FILE,\n\
                  beside whoever writes it, and ends when its input does. What the mirror has made durable, and\n\
                  how far it is behind, is said on standard error: with --json, or if that is a terminal.\n\n\
                  Example:\n  azekura follow fruit.azk --from 'ssh host azekura stream /data/fruit.azk'"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// End if the mirror asks nothing for so long
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = units::parse_seconds)]
    timeout: f64,
    /// Say once a second on standard error what the mirror has, and how far it is behind
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `stream`.
pub fn run(args: &Args) -> Outcome {
    store::must_exist(&args.file.path)?;
    if io::stdout().is_terminal() {
        let text = "stream talks with azekura follow, which starts it: see azekura follow --help";
        return Err(Failure::Usage(text.into()));
    }
    priority::give_way();
    let failed = |e: io::Error| Failure::Usage(format!("standard input and output: {e}"));
    // Past the buffers that are made for lines.
    let from = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    let mut from = Input::watched(from, args);
    let mut reports = Reports { json: args.json.json, next: Instant::now(), last: None };
    azekura::stream_mirror(&args.file.path, &mut from, &mut to, &mut |report| reports.hear(report))?;
    reports.end();
    Ok(())
}

/// Says what the mirror has.
struct Reports {
    json: bool,
    /// When the next line is due.
    next: Instant,
    /// What was not said yet.
    last: Option<MirrorReport>,
}

impl Reports {
    fn hear(&mut self, report: &MirrorReport) {
        self.last = Some(*report);
        if Instant::now() >= self.next {
            self.next = Instant::now() + LINES;
            self.end();
        }
    }

    fn end(&mut self) {
        let Some(report) = self.last.take() else { return };
        if self.json {
            failure::write_stderr(&format!("{}\n", json(&report)));
        } else if io::stderr().is_terminal() {
            failure::write_stderr(&format!("{}\n", said(&report)));
        }
    }
}

fn said(report: &MirrorReport) -> String {
    let commit = units::grouped(report.commit);
    if report.level {
        return format!("the mirror has commit {commit}, level");
    }
    let commits = units::counted(report.behind_commits, "commit");
    let (bytes, seconds) = (units::bytes(report.behind_bytes), units::seconds(report.behind.as_secs_f64()));
    format!("the mirror has commit {commit}; {commits}, {bytes} and {seconds} behind")
}

fn json(report: &MirrorReport) -> serde_json::Value {
    serde_json::json!({
        "level": report.level,
        "checkpoint": report.checkpoint,
        "commit": report.commit,
        "behind_commits": report.behind_commits,
        "behind_bytes": report.behind_bytes,
        "behind_seconds": report.behind.as_secs_f64(),
    })
}

/// What the mirror asks. If it asks nothing for too long, the process ends, and with it the pins that keep
/// space in the database: it may be gone without a word.
struct Input {
    from: File,
    heard: Arc<Mutex<Instant>>,
}

impl Input {
    fn watched(from: File, args: &Args) -> Input {
        let timeout = Duration::try_from_secs_f64(args.timeout).unwrap_or(Duration::MAX);
        let heard = Arc::new(Mutex::new(Instant::now()));
        let (watched, path) = (Arc::downgrade(&heard), args.file.path.clone());
        std::thread::spawn(move || {
            while let Some(heard) = watched.upgrade() {
                let since = heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
                if since >= timeout {
                    let text = format!("{}: the mirror has asked nothing for too long", path.display());
                    let _status: ExitCode = Failure::Usage(text).report();
                    std::process::exit(i32::from(failure::EXIT_USAGE));
                }
                drop(heard);
                std::thread::sleep(timeout.saturating_sub(since).min(LINES));
            }
        });
        Input { from, heard }
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buf);
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        read
    }
}
