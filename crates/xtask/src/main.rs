//! The project's own tasks. `cargo xtask test` is the test command: everything that must be right before a
//! change lands, in order. It stops at the first thing that is wrong.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod adapters;
mod checkers;
mod fuzz;
mod house;
mod install;
mod peers;
mod programs;
mod promises;
mod python;
mod runner;
mod sanitize;
mod schedules;
mod smoke;
mod stress;
mod targets;
mod test;
mod venv;
mod wheel;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <task>

Tasks:
  test          formatting, order of the rooms, clippy, documentation, tests, the promises (crate sim), and a run of the bench
  promises      [--seconds S] [--seed X]: the commands of the crate sim, each for a minute, and a table of what they tried
  peers         installs what is missing of the packages that the peers of bench-compare need (Debian, Ubuntu)
  house         whether rooms import only from those before them, no files import each other in a circle, and
                none is too long
  stress-tests  [--count N] [--minutes M] [--busy LOOPS] [--only-busy] [--package P] [NAME]: every test 100 times, alone and beside
                busy loops, an hour each at most; what failing tests print is kept in target/stress-tests
  schedules     [--count N] [--seed X] [--replay FILE TEST]: the engine in many orders of its threads' steps
  fuzz          TARGET [libFuzzer arguments]: hostile bytes, guided by coverage (open, salvage, log, page, manifest, parts, import, index)
  sanitize      address | thread [TEST...]: the engine's tests under a sanitizer
  install       --prefix DIR [--destdir DIR]: the library for C and C++, its headers, and the command line
  public-programs  programs that others wrote for Kyoto Cabinet or ndbm, as they are, with the drop-in: their sources are
                fetched by apt-get (Debian, Ubuntu)
  header        writes azekura.h and kclangc.h anew from their source
  targets       whether engine, command line and C library build for aarch64 Linux, FreeBSD and macOS
  spark         [TEST...] | --kills N | bench [--help]: sets of shards with PySpark, which is installed below the
                build folder; needs Java. --kills: only the test that kills processes of a cluster, N of them
  ray           [TEST...]: the same with Ray Data, which is installed there
  python        builds the Python package's module and runs the package's tests (python3 >= 3.11)
                --wheel [--python PROGRAM]: builds the package as users do, installs it in a new virtual environment,
                and runs the tests with that; --full [--python PROGRAM]: there with all the libraries and checkers of
                types that tests use, so that none is skipped; both install packages by pip
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test::run(),
        ["promises", ..] => promises::run_longer(&arguments[1..]),
        ["peers"] => peers::run(),
        ["public-programs"] => programs::run(),
        ["schedules", ..] => schedules::run(&arguments[1..]),
        ["fuzz", ..] => fuzz::run(&arguments[1..]),
        ["sanitize", ..] => sanitize::run(&arguments[1..]),
        ["stress-tests", ..] => stress::run(&arguments[1..]),
        ["house"] => house::run(),
        ["install", ..] => install::run(&arguments[1..]),
        ["header"] => install::header(),
        ["python"] => python::run(),
        ["python", ..] => wheel::run(&arguments[1..]),
        ["spark", ..] => adapters::run(&adapters::SPARK, &arguments[1..]),
        ["ray", ..] => adapters::run(&adapters::RAY, &arguments[1..]),
        ["targets"] => targets::run(),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
