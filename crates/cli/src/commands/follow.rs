//! `azekura follow`: keeps a file equal to a database on another machine, which a command reaches.

mod pipes;
mod running;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use azekura::{MirrorPipe, MirrorStatus};

use self::running::{Running, locked};
use super::backup::RateArg;
use super::mirror::Shown;
use crate::failure::{self, Failure, Outcome};
use crate::interrupt::Deferred;
use crate::priority;
use crate::store::JsonArg;
use crate::units;

/// The pause before the command is started again: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often is looked whether it shall end.
const LOOKS: Duration = Duration::from_millis(50);
/// With `--once`, so many starts in turn may bring nothing.
const STARTS_MAX: u32 = 5;

/// Arguments of `follow`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "COMMAND is given to the shell. It must end in azekura stream FILE, there. When it ends, or its\n\
                  connection breaks, it is started again, and mirroring goes on where it ended. At every moment\n\
                  DEST is the database after one of its commits. Interrupt it to end it.\n\n\
                  Example:\n  azekura follow fruit.azk --from 'ssh host azekura stream /data/fruit.azk'"
)]
pub struct Args {
    /// The mirror, which is made if it is not there
    #[arg(value_name = "DEST")]
    pub to: PathBuf,
    /// The command that reaches the database
    #[arg(long, value_name = "COMMAND")]
    from: String,
    /// End when DEST has all that is durable
    #[arg(long)]
    once: bool,
    /// Make durable commits wait until DEST has them, too
    #[arg(long, conflicts_with = "once")]
    sync: bool,
    /// Take a connection for broken if nothing comes for so long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = units::parse_seconds)]
    timeout: f64,
    #[command(flatten)]
    rate: RateArg,
    #[command(flatten)]
    json: JsonArg,
}

/// What an interrupt must know.
#[derive(Default)]
struct Session {
    ends: AtomicBool,
    running: Mutex<Option<Arc<Running>>>,
}

impl Session {
    fn running(&self) -> MutexGuard<'_, Option<Arc<Running>>> {
        locked(&self.running)
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// An interrupt: who waits for the command must not wait for ever.
    fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(running) = self.running().as_ref() {
            running.kill();
        }
    }
}

/// Why a pipe was refused.
fn reason(error: azekura::Error) -> String {
    match error {
        azekura::Error::Corrupt { detail, .. } | azekura::Error::Invalid { detail } => detail,
        other => other.to_string(),
    }
}

/// How one run of the command has ended.
enum End {
    /// All that was wanted is done.
    Done,
    /// The pipe was cut.
    Cut(String),
}

/// Runs `follow`.
pub fn run(args: &Args) -> Outcome {
    if !args.sync {
        priority::give_way();
    }
    let session = Arc::new(Session::default());
    let asked = session.clone();
    let _deferred = Deferred::new(move || asked.end());
    let shown = Shown::new(&args.to, args.once, args.json.json);
    Follower { args, session, shown, last: MirrorStatus::default(), has_begun: false }.run()
}

struct Follower<'a> {
    args: &'a Args,
    session: Arc<Session>,
    shown: Shown<'a>,
    last: MirrorStatus,
    /// Whether the command has reached the database once.
    has_begun: bool,
}

impl Follower<'_> {
    fn run(mut self) -> Outcome {
        let (mut pause, mut in_vain) = (PAUSE_MIN, 0);
        while !self.session.ends() {
            let before = (self.last.commit, self.last.copied_bytes);
            let End::Cut(why) = self.follow()? else { break };
            if self.session.ends() {
                break;
            }
            if before == (self.last.commit, self.last.copied_bytes) {
                in_vain += 1;
            } else {
                (pause, in_vain) = (PAUSE_MIN, 0);
            }
            if self.args.once && in_vain >= STARTS_MAX {
                return Err(self.failed(&why));
            }
            failure::warn(&format!("{}: {why}; it is started again", self.args.from));
            self.wait(pause)?;
            pause = (2 * pause).min(PAUSE_MAX);
        }
        let last = self.last;
        self.shown.end(&last)
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::Usage(format!("{}: {why}", self.args.from))
    }

    /// Waits, and says how far behind the mirror is.
    fn wait(&mut self, pause: Duration) -> Outcome {
        let (began, before) = (Instant::now(), self.last.behind);
        (self.last.level, self.last.synchronous) = (false, false);
        while began.elapsed() < pause && !self.session.ends() {
            std::thread::sleep(LOOKS.min(pause));
            self.last.behind = before + began.elapsed();
            self.shown.show(&self.last)?;
        }
        Ok(())
    }

    /// Starts the command, and mirrors as long as its pipe is whole.
    fn follow(&mut self) -> Outcome<End> {
        let timeout = Duration::try_from_secs_f64(self.args.timeout).unwrap_or(Duration::MAX);
        let started = pipes::start(&self.args.from, timeout);
        let (running, from, to) = started.map_err(|e| self.failed(&format!("it does not start: {e}")))?;
        *self.session.running() = Some(running.clone());
        if self.session.ends() {
            // The interrupt has come before that.
            running.kill();
        }
        let pipe = match MirrorPipe::new(from, to) {
            Ok(pipe) => pipe,
            Err(e) => {
                let why = format!("{} ({})", reason(e), running.end());
                let is_over = self.has_begun || self.session.ends();
                return if is_over { Ok(End::Cut(why)) } else { Err(self.failed(&why)) };
            }
        };
        self.has_begun = true;
        let done = self.mirror(&pipe);
        let cut = pipe.cut();
        drop(pipe);
        let how = running.end();
        match (done, cut) {
            (Err(Failure::Engine(_)), Some(why)) => Ok(End::Cut(format!("{why} ({how})"))),
            (Err(failure), _) => Err(failure),
            (Ok(()), _) => Ok(End::Done),
        }
    }

    fn mirror(&mut self, pipe: &MirrorPipe) -> Outcome {
        let Follower { args, session, shown, last, .. } = self;
        let mut mirror = pipe.mirror(&args.to, args.rate.options())?;
        mirror.synchronous(args.sync);
        let mut printed = Ok(());
        let done = mirror.run(|status| {
            *last = *status;
            printed = shown.show(status);
            printed.is_ok() && !shown.is_done(status) && !session.ends()
        });
        *last = mirror.status();
        done?;
        printed
    }
}
