//! The command that reaches a database on another machine, while it runs.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{bytes, failure};

/// So long the command may take to end once its pipe is of no use.
const END: Duration = Duration::from_secs(1);
/// How often is looked whether something has happened.
const LOOKS: Duration = Duration::from_millis(20);
/// Of what it says so many lines are kept, and so much of each is shown.
const LINES: usize = 3;
const LINE_BYTES: u64 = 2000;

/// A command that was started.
pub struct Running {
    child: Mutex<Child>,
    /// Nobody waits longer for its pipes.
    timeout: Duration,
    /// Whether nothing came for too long.
    was_silent: AtomicBool,
    /// Whether it was ended, so that nobody waits for its pipes any more.
    is_over: AtomicBool,
    /// Its last words on standard error.
    said: Mutex<VecDeque<String>>,
    /// Whether it has said all.
    is_quiet: AtomicBool,
}

/// A value that a thread which has panicked has left whole.
pub fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    /// Gives a command to the shell. Its pipes are for `pipes`.
    pub fn start(command: &str, timeout: Duration) -> io::Result<(Arc<Running>, ChildStdout, ChildStdin)> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(errors)) = pipes else {
            return Err(io::Error::other("it has no input or output"));
        };
        let running = Arc::new(Running {
            child: Mutex::new(child),
            timeout,
            was_silent: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            said: Mutex::new(VecDeque::new()),
            is_quiet: AtomicBool::new(false),
        });
        let hearing = running.clone();
        std::thread::spawn(move || hearing.hear(errors));
        Ok((running, from, to))
    }

    /// Passes on what the command says on standard error, and keeps the last of it.
    fn hear(&self, errors: ChildStderr) {
        let mut errors = BufReader::new(errors);
        loop {
            let mut line = Vec::new();
            match errors.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(n) if n > 0 => {}
                _ => break,
            }
            let line = bytes::harmless(String::from_utf8_lossy(&line).trim_end());
            failure::write_stderr(&format!("{line}\n"));
            let mut said = locked(&self.said);
            said.push_back(line);
            if said.len() > LINES {
                said.pop_front();
            }
        }
        self.is_quiet.store(true, Ordering::Relaxed);
    }

    /// Whether somebody who has waited for a pipe since then may go on with that.
    pub fn may_wait(&self, since: Instant) -> io::Result<()> {
        let over = |why| Err(io::Error::new(io::ErrorKind::TimedOut, why));
        if self.is_over.load(Ordering::Relaxed) {
            return over("it was ended");
        }
        if since.elapsed() < self.timeout {
            return Ok(());
        }
        self.was_silent.store(true, Ordering::Relaxed);
        self.kill();
        over("nothing goes through the pipe")
    }

    /// Ends it, so that nobody waits for it any more.
    pub fn kill(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It may have ended meanwhile.
        let _unheard = locked(&self.child).kill();
    }

    /// How it has ended, or is ended now, since its pipe is of no use any more.
    pub fn end(&self) -> String {
        let until = Instant::now() + END;
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            status = locked(&self.child).try_wait().ok().flatten();
            if status.is_none() {
                sleep(LOOKS);
            }
        }
        self.kill();
        let waited = locked(&self.child).wait();
        while !self.is_quiet.load(Ordering::Relaxed) && Instant::now() < until {
            sleep(LOOKS);
        }
        let how = match (status, self.was_silent.load(Ordering::Relaxed)) {
            (_, true) => "it did not answer for too long".to_owned(),
            (Some(status), _) => status.to_string(),
            (None, _) => waited.map_or_else(|e| e.to_string(), |_| "it was ended".to_owned()),
        };
        let said: Vec<String> = locked(&self.said).iter().cloned().collect();
        if said.is_empty() { how } else { format!("{how}; it said: {}", said.join(" / ")) }
    }
}
