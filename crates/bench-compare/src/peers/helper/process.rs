//! A process started for a store. It ends with the store, and with this process, whatever happens.

use crate::counters;
use crate::failure::{Failure, Result};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// At most this much of what a process says about its failure is shown.
const SAID_BYTES_MAX: u64 = 2000;

/// A running process whose counters count as the peer's.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a process that is killed when this one ends.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let die = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: between fork and exec there is one system call, and nothing allocates.
        let child = unsafe { command.pre_exec(die) }.spawn()?;
        counters::process_started(child.id());
        Ok(Self { child })
    }

    /// Starts a helper, and waits until it says that it is ready.
    pub fn start_ready(peer: &'static str, command: &mut Command) -> Result<Self> {
        let failed =
            |message: &dyn std::fmt::Display| Failure::peer(peer, "open: starting the helper", message);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Self::start(command).map_err(|error| failed(&error))?;
        let mut line = String::new();
        if let Some(stdout) = process.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| failed(&error))?;
        }
        if line.trim_end() == "ready" {
            return Ok(process);
        }
        let mut said = String::new();
        if let Some(stderr) = process.child.stderr.take() {
            stderr.take(SAID_BYTES_MAX).read_to_string(&mut said).map_err(|error| failed(&error))?;
        }
        Err(failed(&said.trim().lines().last().unwrap_or("it ended without a word")))
    }

    /// Notes how much memory it has taken, before it is told to end.
    pub fn note_memory(&self) {
        counters::process_peaks(self.child.id());
    }

    /// Whether the process has ended by itself.
    pub fn has_ended(&mut self) -> std::io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until the process ends by itself. Its work until then counts.
    pub fn wait(&mut self) -> std::io::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let exited = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), exited)?;
        self.end()
    }

    fn end(&mut self) -> std::io::Result<()> {
        counters::process_ends(self.child.id());
        self.child.wait().map(|_| ())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If `wait` has already ended it, both of these do nothing.
        if matches!(self.child.try_wait(), Ok(None)) {
            counters::process_ends(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
