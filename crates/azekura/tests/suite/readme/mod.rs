//! The program of the README is one that runs.

use std::process::Command;

mod people {
    include!("people.rs");

    pub fn run() {
        main().unwrap();
    }
}

/// Set where this process is the program.
const IS_PROGRAM: &str = "AZEKURA_RUNS_README";

/// It makes a file in the directory in which it runs, so it runs in a process and a directory of its own.
#[test]
fn the_program_of_the_readme_runs() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        return people::run();
    }
    let dir = std::env::temp_dir().join(format!("azekura-readme-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "--nocapture", "readme::the_program_of_the_readme_runs"]);
    let output = program.env(IS_PROGRAM, "").current_dir(&dir).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("\nada 1815\n"), "{output:?}");
    assert!(!said.contains("grace"), "{said}");
}

#[test]
fn it_is_the_readme_that_has_it() {
    let readme = include_str!("../../../../../README.md");
    assert!(readme.contains(&format!("```rust,no_run\n{}```", include_str!("people.rs"))));
}
