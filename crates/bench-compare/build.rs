//! Compiles one shim per library, and leaves out the libraries whose headers this machine lacks:
//! such a peer is skipped at run time with a line that says which package to install.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

/// A library that a shim drives.
struct Library {
    /// Sets `cfg(has_<name>)`, and names the shim's static library.
    name: &'static str,
    shim: &'static str,
    /// A header of it, tried with the compiler.
    header: &'static str,
    link: &'static str,
    /// Debian's package of the headers.
    package: &'static str,
}

const LIBRARIES: [Library; 9] = [
    Library {
        name: "kyoto",
        shim: "shim/kyoto.cc",
        header: "kchashdb.h",
        link: "kyotocabinet",
        package: "libkyotocabinet-dev",
    },
    Library {
        name: "tkrzw",
        shim: "shim/tkrzw.cc",
        header: "tkrzw_dbm_hash.h",
        link: "tkrzw",
        package: "libtkrzw-dev",
    },
    Library { name: "lmdb", shim: "shim/lmdb.c", header: "lmdb.h", link: "lmdb", package: "liblmdb-dev" },
    Library {
        name: "leveldb",
        shim: "shim/leveldb.cc",
        header: "leveldb/db.h",
        link: "leveldb",
        package: "libleveldb-dev",
    },
    Library {
        name: "tokyo",
        shim: "shim/tokyo.c",
        header: "tcbdb.h",
        link: "tokyocabinet",
        package: "libtokyocabinet-dev",
    },
    Library { name: "berkeley", shim: "shim/berkeley.c", header: "db.h", link: "db-5.3", package: "libdb5.3-dev" },
    Library {
        name: "rocksdb",
        shim: "shim/rocksdb.cc",
        header: "rocksdb/db.h",
        link: "rocksdb",
        package: "librocksdb-dev",
    },
    Library { name: "sqlite", shim: "shim/sqlite.c", header: "sqlite3.h", link: "sqlite3", package: "libsqlite3-dev" },
    Library {
        name: "mariadb",
        shim: "shim/mariadb.c",
        header: "mariadb/mysql.h",
        link: "mariadb",
        package: "mariadb-server libmariadb-dev",
    },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rustc-env=BENCH_HELPERS={}", helpers_dir().display());
    for library in &LIBRARIES {
        println!("cargo::rustc-check-cfg=cfg(has_{})", library.name);
        match build(library) {
            Ok(()) => {
                println!("cargo::rustc-cfg=has_{}", library.name);
                println!("cargo::rustc-link-lib={}", library.link);
            }
            Err(reason) => println!(
                "cargo::warning={} is left out of the comparison: {reason} (Debian: apt install {})",
                library.name, library.package
            ),
        }
    }
}

/// Where the helper programs are built when they are first needed: beside the profiles' directories.
fn helpers_dir() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    // target/<profile>/build/<package>/out
    out.ancestors().nth(4).unwrap_or(&out).join("helpers")
}

fn build(library: &Library) -> Result<(), String> {
    let cpp = !library.shim.ends_with(".c");
    let mut build = cc::Build::new();
    build
        .cpp(cpp)
        .std(if cpp { "c++17" } else { "c11" })
        .opt_level(3)
        .include("shim")
        .file(library.shim)
        .cargo_warnings(false);
    let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
    if !has_header(&compiler, cpp, library.header) {
        return Err(format!("{} was not found", library.header));
    }
    build
        .try_compile(&format!("bench_{}", library.name))
        .map_err(|error| format!("{} did not compile: {error}", library.shim))
}

/// Whether the compiler, with whatever flags the environment gives it, finds a header.
fn has_header(compiler: &cc::Tool, cpp: bool, header: &str) -> bool {
    let mut command = compiler.to_command();
    command
        .args(["-E", "-x", if cpp { "c++" } else { "c" }, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let written = match child.stdin.take() {
        Some(mut stdin) => writeln!(stdin, "#include <{header}>").is_ok(),
        None => false,
    };
    matches!(child.wait(), Ok(status) if status.success()) && written
}
