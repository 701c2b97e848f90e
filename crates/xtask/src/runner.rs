//! Running commands from the root of the project.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Why a step failed, in a line.
pub type Failure = String;

/// The root of the project: two folders above this package.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_path_buf()
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|part| part.to_string_lossy().into_owned());
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    format!("{program} {}", arguments.collect::<Vec<_>>().join(" "))
}

/// Runs a command. Its output is shown as it comes.
pub fn run(mut command: Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", shown(&command))) }
}

/// Runs a command. Its output is shown as it comes. Returns the lines that `keep` chooses, also when the
/// command fails.
pub fn run_keeping(mut command: Command, keep: impl Fn(&str) -> bool) -> (Vec<String>, Result<(), Failure>) {
    let mut kept = Vec::new();
    let outcome = follow(&mut command, |line| {
        if keep(line) {
            kept.push(line.to_owned());
        }
    });
    (kept, outcome)
}

fn follow(command: &mut Command, see: impl FnMut(&str)) -> Result<(), Failure> {
    let failed = |error: std::io::Error| error.to_string();
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(stdout) = child.stdout.take() {
        show_lines(stdout, see)?;
    }
    ended(&mut child, command)
}

/// Runs a command. Its output and its errors are shown as they come, in one stream, and `see` gets each line.
pub fn run_seeing(mut command: Command, see: impl FnMut(&str)) -> Result<(), Failure> {
    let failed = |error: std::io::Error| error.to_string();
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut child = command.spawn().map_err(failed)?;
    // The command has the writing ends. With them dropped the stream ends when the children have closed
    // theirs.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    show_lines(reader, see)?;
    ended(&mut child, &command)
}

/// Shows each line of a stream.
fn show_lines(stream: impl Read, mut see: impl FnMut(&str)) -> Result<(), Failure> {
    // Tests may print any bytes. A line that is not UTF-8 is shown as well as possible.
    for line in BufReader::new(stream).split(b'\n') {
        let line = line.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line);
        // The tests go on if the reader of this output has gone.
        let _ = writeln!(std::io::stdout(), "{line}");
        see(&line);
    }
    Ok(())
}

fn ended(child: &mut Child, command: &Command) -> Result<(), Failure> {
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", shown(command))) }
}

/// Runs a command and returns its standard output; its standard error is shown.
pub fn capture(mut command: Command) -> Result<String, Failure> {
    command.stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("{}: {error}", shown(&command)))?;
    if !output.status.success() {
        return Err(format!("{} failed ({})", shown(&command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{}: no UTF-8", shown(&command)))
}

/// Whether a component of the toolchain is installed.
pub fn is_there(component: &str) -> bool {
    let mut command = cargo();
    command.args([component, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
