//! The library as programs in C see it. What holds for Kyoto Cabinet too is also tried with its own library,
//! where that is installed.
//!
//! What has no tool on this machine is skipped with a line that says so.

#[allow(dead_code, reason = "it is shared, and these tests use a part of it")]
#[path = "../../capi/tests/common/mod.rs"]
mod common;

use common::{Compiler, Linking, Runner};

/// Kyoto Cabinet's own library, as linkers know it.
const KYOTO: &str = "kyotocabinet";

#[test]
fn programs_for_kyoto_cabinet() {
    let Some(c) = Compiler::c() else { return };
    for name in ["kyoto", "model"] {
        c.build(&format!("tests/{name}.c"), Linking::Shared, &[]).run(&Runner::Plain);
    }
}

/// The tests say what Kyoto Cabinet does, and not only what this library does.
#[test]
fn kyoto_cabinet_passes_the_same_tests() {
    let Some(c) = Compiler::c().filter(|c| c.has(&format!("-l{KYOTO}"))) else { return };
    for name in ["kyoto", "model"] {
        c.build(&format!("tests/{name}.c"), Linking::System(KYOTO), &[]).run(&Runner::Plain);
    }
}

/// A file that one library has dumped is loaded by the other.
#[test]
fn snapshots_go_from_one_to_the_other() {
    let Some(c) = Compiler::c().filter(|c| c.has(&format!("-l{KYOTO}"))) else { return };
    let ours = c.build("tests/snapshot.c", Linking::Shared, &[]);
    let theirs = c.build("tests/snapshot.c", Linking::System(KYOTO), &[]);
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let name = file.path().display();
        from.run_with(&format!("dump {name}"), &Runner::Plain);
        to.run_with(&format!("load {name}"), &Runner::Plain);
    }
}

#[test]
fn misuse_and_threads() {
    let Some(c) = Compiler::c() else { return };
    let sanitizer = "-fsanitize=address,undefined";
    let flags: &[&str] = if c.has(sanitizer) { &[sanitizer] } else { &[] };
    for name in ["misuse", "threads", "ndbm"] {
        c.build(&format!("tests/{name}.c"), Linking::Shared, flags).run(&Runner::Plain);
    }
}

#[test]
fn all_under_valgrind() {
    let (Some(c), Some(valgrind)) = (Compiler::c(), Runner::valgrind()) else { return };
    for name in ["kyoto", "model", "misuse", "threads", "ndbm"] {
        c.build(&format!("tests/{name}.c"), Linking::Shared, &[]).run(&valgrind);
    }
    let snapshot = c.build("tests/snapshot.c", Linking::Shared, &[]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    for order in ["dump", "load"] {
        snapshot.run_with(&format!("{order} {}", file.path().display()), &valgrind);
    }
}

#[test]
fn the_headers_are_for_all_standards() {
    for (compiler, standards) in
        [(Compiler::c(), ["c99", "c17"].as_slice()), (Compiler::cpp(), &["c++11", "c++17"])]
    {
        let Some(compiler) = compiler else { continue };
        for header in ["kclangc.h", "ndbm.h"] {
            standards.iter().for_each(|standard| compiler.accepts(header, standard));
        }
    }
}
