//! Compiles one shim per library. A library whose headers this machine lacks is left out: its peer is skipped
//! at run time with a line that says which package to install.

#[path = "src/peers/libraries.rs"]
#[expect(dead_code, reason = "what the peers and the tasks need of it")]
mod libraries;

use libraries::{LIBRARIES, Library};
use std::path::{Path, PathBuf};

/// Changes whenever a package is installed or removed. The missing header itself cannot be watched: cargo
/// treats a missing file as one that has just changed.
const PACKAGES: &str = "/var/lib/dpkg/status";
/// Where libraries installed without packages go.
const LOCAL: &str = "/usr/local/include";
/// Variables that also tell a compiler where to look.
const PATHS: [&str; 3] = ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];

fn main() {
    for watched in ["build.rs", "shim", "src/peers/libraries.rs", PACKAGES, LOCAL] {
        if Path::new(watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
    for name in PATHS {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rustc-env=BENCH_HELPERS={}", helpers_dir().display());
    for library in &LIBRARIES {
        println!("cargo::rustc-check-cfg=cfg(has_{})", library.name);
        match build(library) {
            Ok(header) => {
                println!("cargo::rerun-if-changed={header}");
                println!("cargo::rustc-cfg=has_{}", library.name);
                println!("cargo::rustc-link-lib={}", library.link);
            }
            Err(reason) => println!(
                "cargo::warning={} is left out of the comparison: {reason} (cargo xtask peers, or {})",
                library.title, library.get
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

/// Compiles a shim. Returns the header that was found.
fn build(library: &Library) -> Result<String, String> {
    let cpp = library.is_cpp();
    let mut build = cc::Build::new();
    build
        .cpp(cpp)
        .std(if cpp { "c++17" } else { "c11" })
        .include("shim")
        .file(library.shim)
        .cargo_warnings(false);
    let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
    let header = library
        .header_at(compiler.to_command())
        .ok_or_else(|| format!("{} was not found", library.header))?;
    build
        .try_compile(&format!("bench_{}", library.name))
        .map_err(|error| format!("{} did not compile: {error}", library.shim))?;
    Ok(header)
}
