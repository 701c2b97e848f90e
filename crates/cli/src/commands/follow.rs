//! `azekura follow`: keeps a file equal to a database on another machine, which a command reaches.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azekura::{Error, MirrorPipe, MirrorStatus};

use super::backup::RateArg;
use super::mirror::Shown;
use crate::failure::{self, Failure, Outcome};
use crate::interrupt::Deferred;
use crate::store::JsonArg;

/// The pause before the command is started again: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// With `--once`, so many starts in turn may bring nothing.
const STARTS_MAX: u32 = 5;

/// Arguments of `follow`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "COMMAND is given to the shell. It must end in azekura stream FILE, there. When it ends or its connection\n\
                  breaks it is started again, and mirroring goes on where it ended. Interrupt it to end it.\n\n\
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
    #[command(flatten)]
    rate: RateArg,
    #[command(flatten)]
    json: JsonArg,
}

/// What an interrupt must know.
#[derive(Default)]
struct Session {
    ends: AtomicBool,
    child: Mutex<Option<Child>>,
}

impl Session {
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// Ends the command, and says how it has ended. Its pipe is of no use any more.
    fn end_child(&self) -> Option<String> {
        let mut child = self.child().take()?;
        let ended = child.try_wait().ok().flatten();
        // It may have ended meanwhile.
        let _unheard = child.kill();
        let _waited = child.wait();
        Some(ended.map_or_else(|| "its connection broke".into(), |status| status.to_string()))
    }
}

/// How one run of the command has ended.
enum End {
    /// All that was wanted is done.
    Done(MirrorStatus),
    /// The pipe was cut. Whether something was shipped before.
    Cut(String, bool),
}

/// Runs `follow`.
pub fn run(args: &Args) -> Outcome {
    let session = Arc::new(Session::default());
    let asked = session.clone();
    let _deferred = Deferred::new(move || {
        asked.ends.store(true, Ordering::Relaxed);
        // Who waits for it must not wait for ever.
        if let Some(child) = asked.child().as_mut() {
            let _unheard = child.kill();
        }
    });
    let mut shown = Shown::new(&args.to, args.once, args.json.json);
    let (mut pause, mut in_vain, mut has_begun) = (PAUSE_MIN, 0, false);
    let mut last = MirrorStatus::default();
    while !session.ends() {
        let why = match follow(args, &session, &mut shown, &mut last, has_begun)? {
            End::Done(status) => return shown.end(&status),
            End::Cut(why, has_shipped) => {
                (has_begun, in_vain) = (true, if has_shipped { 0 } else { in_vain + 1 });
                if has_shipped {
                    pause = PAUSE_MIN;
                }
                why
            }
        };
        if session.ends() {
            break;
        }
        if args.once && in_vain >= STARTS_MAX {
            return Err(Failure::Usage(format!("{}: {why}", args.from)));
        }
        failure::warn(&format!("{}: {why}; it is started again", args.from));
        std::thread::sleep(pause);
        pause = (2 * pause).min(PAUSE_MAX);
    }
    shown.end(&last)
}

/// Starts the command, and mirrors as long as its pipe is whole.
fn follow(
    args: &Args,
    session: &Session,
    shown: &mut Shown<'_>,
    last: &mut MirrorStatus,
    has_begun: bool,
) -> Outcome<End> {
    let failed = |e: std::io::Error| Failure::Usage(format!("starting {}: {e}", args.from));
    let mut command = Command::new("sh");
    command.arg("-c").arg(&args.from).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    *session.child() = Some(child);
    let (Some(to), Some(from)) = (to, from) else {
        return Err(Failure::Usage(format!("{}: it has no input or output", args.from)));
    };
    let pipe = match MirrorPipe::new(from, to) {
        Ok(pipe) => pipe,
        Err(e) => {
            let how = session.end_child().unwrap_or_default();
            let why = format!("{e} ({how})");
            let is_refused = matches!(e, Error::NewerVersion { .. });
            return if has_begun && !is_refused {
                Ok(End::Cut(why, false))
            } else if session.ends() {
                Ok(End::Done(*last))
            } else {
                Err(Failure::Usage(format!("{}: {why}", args.from)))
            };
        }
    };
    let done = mirror(args, session, shown, last, &pipe);
    let cut = pipe.cut();
    drop(pipe);
    let how = session.end_child().unwrap_or_default();
    match (done, cut) {
        (Ok(_), None) => Ok(End::Done(*last)),
        (_, Some(why)) => Ok(End::Cut(format!("{why} ({how})"), last.checkpoint > 0)),
        (Err(failure), None) => Err(failure),
    }
}

fn mirror(
    args: &Args,
    session: &Session,
    shown: &mut Shown<'_>,
    last: &mut MirrorStatus,
    pipe: &MirrorPipe,
) -> Outcome {
    let mut mirror = pipe.mirror(&args.to, args.rate.options())?;
    *last = MirrorStatus::default();
    let mut printed = Ok(());
    mirror.run(|status| {
        *last = *status;
        pipe.tell(status);
        printed = shown.show(status);
        printed.is_ok() && !shown.is_done(status) && !session.ends()
    })?;
    *last = mirror.status();
    pipe.tell(last);
    printed
}
