//! One measurement in one process. This program runs itself again with a hidden command, and the child
//! answers with one line of JSON.

use crate::failure::{Failure, Result};
use crate::job::{Job, Outcome};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The hidden command.
pub const COMMAND: &str = "__measure";

/// How often a child with a time limit is looked at.
const POLL: Duration = Duration::from_millis(20);

/// The longest wait for processes that were killed.
const GROUP_END_MAX: Duration = Duration::from_secs(10);
/// The longest time to the first commit, for a job that will be killed.
const FIRST_COMMIT_MAX: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Outcome(Outcome),
    Error(String),
}

/// The child's side: does the job given as JSON, and prints the answer.
pub fn main(job: &str, run: fn(&Job) -> Result<Outcome>) -> ExitCode {
    // So no process is left behind when the parent is interrupted or a child is stopped.
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("{COMMAND}: prctl: {error}");
    }
    let result = serde_json::from_str(job)
        .map_err(|error| Failure::Usage(format!("{COMMAND}: {error}")))
        .and_then(|job: Job| run(&job));
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

/// Starts a child in a process group of its own. The helper processes that it starts belong to it too.
fn start(job: &Job) -> Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe().map_err(Failure::io("finding this program"))?;
    let text = serde_json::to_string(job).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut command = Command::new(program);
    command.args([COMMAND, &text]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    command.spawn().map_err(Failure::io("starting a measurement"))
}

/// Kills a child and all that it has started.
fn kill(child: &mut Child) -> Result<()> {
    let failed = || Failure::io("stopping a measurement");
    let began = Instant::now();
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let killed = id.map(|id| kill_process_group(id, Signal::KILL));
    match killed {
        Some(Ok(())) => {}
        // The child has ended by itself, or is not yet a group.
        _ => child.kill().map_err(failed())?,
    }
    child.wait().map_err(failed())?;
    // Its helpers are killed too, but they end a little later. Until then they hold their files.
    while let Some(id) = id
        && test_kill_process_group(id).is_ok()
        && began.elapsed() < GROUP_END_MAX
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Runs a job that prints the number of committed records at each commit. Kills it some time after the first
/// commit. Returns how many records it had committed.
pub fn run_and_kill(job: &Job, after: Duration) -> Result<u64> {
    let mut child = start(job)?;
    let stdout =
        child.stdout.take().ok_or_else(|| Failure::Usage("a measurement without output".to_owned()))?;
    let (sender, lines) = mpsc::channel();
    // This thread ends when the child does, after the child's last line.
    let reading = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut last = lines.recv_timeout(FIRST_COMMIT_MAX).ok();
    let began = Instant::now();
    while let Ok(line) = lines.recv_timeout(after.saturating_sub(began.elapsed())) {
        last = Some(line);
    }
    kill(&mut child)?;
    let last = lines.iter().last().or(last);
    reading.join().map_err(|_| Failure::Usage("reading what a measurement prints".to_owned()))?;
    let Some(line) = last else {
        return Err(Failure::Usage(format!("{}: no commit before it was killed", job.peer)));
    };
    match (line.parse(), serde_json::from_str(&line)) {
        (Ok(committed), _) => Ok(committed),
        (_, Ok(Answer::Error(message))) => Err(Failure::Usage(message)),
        _ => Err(Failure::Usage(format!("{}: it printed {line:?}", job.peer))),
    }
}

/// The parent's side: runs the job in a child, at most for the given limit.
pub fn run(job: &Job, limit: Option<Duration>) -> Result<Outcome> {
    let mut child = start(job)?;
    if let Some(limit) = limit {
        wait_at_most(&mut child, limit, &job.peer)?;
    }
    // The answer is one line and far smaller than a pipe's buffer. So waiting first does not block the child.
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
                kill(child)?;
                let seconds = limit.as_secs();
                return Err(Failure::Usage(format!("{peer}: given up after {seconds} s")));
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
