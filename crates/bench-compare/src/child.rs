//! One measurement, one process: this program runs itself again with a hidden command, and the child
//! answers with one line of JSON.

use crate::failure::{Failure, Result};
use crate::workloads::{self, Job, Outcome};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The hidden command.
pub const COMMAND: &str = "__measure";

/// How often a child is looked at while a limit is on its time.
const POLL: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Outcome(Outcome),
    Error(String),
}

/// The child's side: does the job given as JSON and prints the answer.
pub fn main(job: &str) -> ExitCode {
    // A parent that is interrupted, or a child that is stopped, leaves no process behind.
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("{COMMAND}: prctl: {error}");
    }
    let result = serde_json::from_str(job)
        .map_err(|error| Failure::Usage(format!("{COMMAND}: {error}")))
        .and_then(|job: Job| workloads::run(&job));
    let (answer, code) = match result {
        Ok(outcome) => (Answer::Outcome(outcome), ExitCode::SUCCESS),
        Err(failure) => (Answer::Error(failure.to_string()), ExitCode::FAILURE),
    };
    match serde_json::to_string(&answer) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("{COMMAND}: {error}"),
    }
    code
}

/// The parent's side: runs the job in a child, for no longer than the limit.
pub fn run(job: &Job, limit: Option<Duration>) -> Result<Outcome> {
    let program = std::env::current_exe().map_err(Failure::io("finding this program"))?;
    let text = serde_json::to_string(job).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut child = Command::new(program)
        .args([COMMAND, &text])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Failure::io("starting a measurement"))?;
    if let Some(limit) = limit {
        wait_at_most(&mut child, limit, &job.peer)?;
    }
    // The answer is one line, far smaller than what a pipe holds, so waiting first does not block it.
    let output = child.wait_with_output().map_err(Failure::io("waiting for a measurement"))?;
    match serde_json::from_slice(&output.stdout) {
        Ok(Answer::Outcome(outcome)) => Ok(outcome),
        Ok(Answer::Error(message)) => Err(Failure::Usage(message)),
        Err(_) => Err(Failure::Usage(format!("{}: {}", job.peer, ending(output.status)))),
    }
}

fn wait_at_most(child: &mut Child, limit: Duration, peer: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        match child.try_wait().map_err(Failure::io("waiting for a measurement"))? {
            Some(_) => return Ok(()),
            None if began.elapsed() < limit => std::thread::sleep(POLL),
            None => {
                child.kill().map_err(Failure::io("stopping a measurement"))?;
                child.wait().map_err(Failure::io("waiting for a measurement"))?;
                let seconds = limit.as_secs();
                return Err(Failure::Usage(format!("{peer}: stopped after {seconds} s (--limit)")));
            }
        }
    }
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal() {
        Some(signal) => format!("the process was ended by signal {signal}"),
        None => format!("the process ended without an answer ({status})"),
    }
}
