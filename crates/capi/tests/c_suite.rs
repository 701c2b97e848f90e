//! The library as programs in C and C++ see it: each test and example is compiled against the header and the
//! built library, and run in a directory of its own; also under AddressSanitizer and valgrind where there are
//! such. Valgrind runs every test in C: also those on a full disk and of shards.
//!
//! What has no tool on this machine is skipped with a line that says so.

mod common;

use common::{Compiler, Linking, Runner};

/// The tests in C.
const TESTS: [&str; 7] = ["records", "transactions", "updates", "handles", "model", "indexes", "feed"];

#[test]
fn tests_in_c() {
    let Some(c) = Compiler::c() else { return };
    for name in TESTS {
        c.build(&format!("tests/{name}.c"), Linking::Shared, &[]).run(&Runner::Plain);
    }
}

/// Programs want the library by the name that says which interface it has.
#[test]
#[cfg(target_os = "linux")]
fn programs_name_the_version_of_the_interface() {
    let Some(c) = Compiler::c() else { return };
    let program = c.build("tests/records.c", Linking::Shared, &[]);
    assert!(program.contains(b"\0libazekura.so.0\0"), "the library has no soname, or another one");
}

#[test]
fn tests_in_c_with_the_archive() {
    let Some(c) = Compiler::c() else { return };
    c.build("tests/records.c", Linking::Archive, &[]).run(&Runner::Plain);
}

#[test]
fn tests_in_c_under_address_sanitizer() {
    let Some(c) = Compiler::c().filter(|c| c.has("-fsanitize=address,undefined")) else { return };
    for name in TESTS {
        let program = c.build(&format!("tests/{name}.c"), Linking::Shared, &["-fsanitize=address,undefined"]);
        program.run(&Runner::Plain);
    }
}

#[test]
fn tests_in_c_under_valgrind() {
    let (Some(c), Some(valgrind)) = (Compiler::c(), Runner::valgrind()) else { return };
    for name in TESTS {
        c.build(&format!("tests/{name}.c"), Linking::Shared, &[]).run(&valgrind);
    }
}

/// Closing on a full disk, which has a status of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_in_c() {
    let Some(c) = Compiler::c() else { return };
    let program = c.build("tests/full.c", Linking::Shared, &[]);
    for runner in [Some(Runner::Plain), Runner::valgrind()].into_iter().flatten() {
        let said = program.run(&runner);
        if !said.is_empty() {
            common::skipped(said.trim_end());
        }
    }
}

/// The set is made here: in C there are only readers.
#[test]
fn shards_in_c() {
    use azekura_shards::{Draft, Spec};
    let Some(c) = Compiler::c() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let set = folder.path().join("t.azs");
    for newer in [false, true] {
        let draft = Draft::begin(&set, &Spec::ordered(3)).expect("a draft");
        let mut keys: Vec<String> = (0..10_000).map(|n| format!("key {n}")).collect();
        keys.sort();
        let mut files = Vec::new();
        for (shard, own) in (0..).zip(keys.chunks(4000)) {
            let mut writer = draft.writer(shard, "a").expect("a writer");
            for key in own {
                let value = if newer && key == "key 7" { "new" } else { &key[4..] };
                writer.put(key.as_bytes(), value.as_bytes()).expect("a record");
            }
            files.push(writer.finish().expect("a shard"));
        }
        draft.commit(&files).expect("a version");
    }
    let flags: &[&str] =
        if c.has("-fsanitize=address,undefined") { &["-fsanitize=address,undefined"] } else { &[] };
    let set = set.to_str().expect("text");
    c.build("tests/shards.c", Linking::Shared, flags).run_with(set, &Runner::Plain);
    // The two do not go together.
    if let Some(valgrind) = Runner::valgrind() {
        c.build("tests/shards.c", Linking::Shared, &[]).run_with(set, &valgrind);
    }
}

#[test]
fn the_header_is_for_all_standards() {
    for (compiler, standards) in
        [(Compiler::c(), ["c99", "c11", "c17"].as_slice()), (Compiler::cpp(), &["c++11", "c++17"])]
    {
        let Some(compiler) = compiler else { continue };
        standards.iter().for_each(|standard| compiler.accepts("azekura.h", standard));
    }
}

#[test]
fn tests_in_cpp() {
    let Some(cpp) = Compiler::cpp() else { return };
    let sanitizer = "-fsanitize=address,undefined";
    let flags: &[&str] = if cpp.has(sanitizer) { &[sanitizer] } else { &[] };
    cpp.build("tests/wrapper.cpp", Linking::Shared, flags).run(&Runner::Plain);
    // Ranges are of the standard after the wrapper's.
    if cpp.has("-std=c++20") {
        cpp.build("tests/wrapper.cpp", Linking::Shared, &["-std=c++20"]).run(&Runner::Plain);
    }
}

#[test]
fn examples_do_what_they_say() {
    if let Some(c) = Compiler::c() {
        let said = c.build("examples/people.c", Linking::Shared, &[]).run(&Runner::Plain);
        assert_eq!(said, "grace was born in 1906\nada 1815\nalan 1912\n");
    }
    if let Some(cpp) = Compiler::cpp() {
        let words = cpp.build("examples/words.cpp", Linking::Shared, &[]);
        assert_eq!(words.run_with("an apple and an ant", &Runner::Plain), "an 2\nand 1\nant 1\napple 1\n");
    }
}

/// The blocks of C and C++ in the documents are programs that run.
#[test]
fn documents_show_what_runs() {
    for (compiler, language, count) in [(Compiler::c(), "c", 2), (Compiler::cpp(), "cpp", 2)] {
        let Some(compiler) = compiler else { continue };
        let blocks = common::blocks(language);
        assert_eq!(blocks.len(), count, "blocks of {language} in README.md and docs/c.md");
        for block in blocks {
            compiler.build_text(&block).run(&Runner::Plain);
        }
    }
}
