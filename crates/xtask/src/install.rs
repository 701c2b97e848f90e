//! `cargo xtask install`: installs the library for C and C++, its headers and the command line where a system
//! looks for them. `cargo xtask header`: generates the headers from their source.

use crate::runner::{self, Failure, cargo, root};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "install --prefix DIR [--destdir DIR]";
/// The shared libraries, as linkers know them, and what cargo calls them. The soname of each ends with the
/// version of its interface, which is 0.
const LIBRARIES: [(&str, &str); 2] = [("azekura", "azekura_capi"), ("azekura_dropin", "azekura_dropin")];

/// Where to install.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    /// The prefix as programs will see it.
    prefix: PathBuf,
    /// A folder in front of the prefix during the installation, for makers of packages.
    destdir: PathBuf,
}

/// Builds for release, and installs.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some(places) = parse(arguments) else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    match build().and_then(|built| install(&built, &places)) {
        Ok(files) => {
            files.iter().for_each(|file| println!("{}", file.display()));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the headers.
pub fn header() -> ExitCode {
    let mut command = cargo();
    command.args(["test", "--package", "azekura-capi", "--package", "azekura-dropin", "--test", "header"]);
    command.env("AZEKURA_WRITE_HEADER", "1");
    match runner::run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Option<Places> {
    let (mut prefix, mut destdir) = (None, None);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        let place = match name.as_str() {
            "--prefix" => &mut prefix,
            "--destdir" => &mut destdir,
            _ => return None,
        };
        *place = Some(std::path::absolute(value).ok()?);
    }
    Some(Places { prefix: prefix?, destdir: destdir.unwrap_or_else(|| PathBuf::from("/")) })
}

/// Builds everything. Returns the folder with the results.
fn build() -> Result<PathBuf, Failure> {
    // The crate type `lib` is left out, which only the tests need: then the library is optimised together
    // with the engine.
    for (package, types) in [("azekura-capi", "cdylib,staticlib"), ("azekura-dropin", "cdylib")] {
        let mut library = cargo();
        library.args(["rustc", "--release", "--package", package, "--lib", "--crate-type", types]);
        runner::run(library)?;
    }
    let mut binary = cargo();
    binary.args(["build", "--release", "--package", "azekura-cli", "--bin", "azekura"]);
    runner::run(binary)?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&runner::capture(metadata)?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(Path::new(target).join("release"))
}

/// Copies what was built. Returns the installed files.
fn install(built: &Path, places: &Places) -> Result<Vec<PathBuf>, Failure> {
    let capi = root().join("crates/capi");
    let to = places.destdir.join(places.prefix.strip_prefix("/").unwrap_or(&places.prefix));
    let dropin = root().join("crates/dropin");
    let mut files = Vec::new();
    let mut copies = vec![
        (capi.join("include/azekura.h"), "include/azekura.h".to_owned()),
        (capi.join("include/azekura.hpp"), "include/azekura.hpp".to_owned()),
        (capi.join("include/azekura_base.hpp"), "include/azekura_base.hpp".to_owned()),
        (capi.join("include/azekura_index.hpp"), "include/azekura_index.hpp".to_owned()),
        (capi.join("include/azekura_feed.hpp"), "include/azekura_feed.hpp".to_owned()),
        (capi.join("include/azekura_txn.hpp"), "include/azekura_txn.hpp".to_owned()),
        (capi.join("include/azekura_backup.hpp"), "include/azekura_backup.hpp".to_owned()),
        // In a folder of their own, for others' headers have these names too.
        (dropin.join("include/kclangc.h"), "include/azekura-dropin/kclangc.h".to_owned()),
        (dropin.join("include/ndbm.h"), "include/azekura-dropin/ndbm.h".to_owned()),
        (built.join("libazekura_capi.a"), "lib/libazekura.a".to_owned()),
        (built.join("azekura"), "bin/azekura".to_owned()),
    ];
    for (name, made) in LIBRARIES {
        copies.push((built.join(format!("lib{made}.so")), format!("lib/{}", real_name(name))));
    }
    for (from, name) in copies {
        let file = fresh(&to.join(name))?;
        std::fs::copy(&from, &file).map_err(|e| format!("{} to {}: {e}", from.display(), file.display()))?;
        files.push(file);
    }
    for (name, _) in LIBRARIES {
        let soname = format!("lib{name}.so.0");
        for (name, leads_to) in [(&soname, &real_name(name)), (&format!("lib{name}.so"), &soname)] {
            let link = fresh(&to.join("lib").join(name))?;
            std::os::unix::fs::symlink(leads_to, &link).map_err(|e| format!("{}: {e}", link.display()))?;
            files.push(link);
        }
    }
    for (template, name) in
        [(capi.join("azekura.pc.in"), "azekura"), (dropin.join("azekura-dropin.pc.in"), "azekura-dropin")]
    {
        let text = std::fs::read_to_string(&template).map_err(|e| format!("{}: {e}", template.display()))?;
        let text = text
            .replace("@PREFIX@", &places.prefix.to_string_lossy())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        let file = fresh(&to.join(format!("lib/pkgconfig/{name}.pc")))?;
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// The file of a shared library.
fn real_name(name: &str) -> String {
    format!("lib{name}.so.{}", env!("CARGO_PKG_VERSION"))
}

/// Removes the file at a path, and returns the path. An old library is not written over: programs that run
/// keep it.
fn fresh(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(path.to_path_buf()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read_whole_or_refused() {
        let places = parse(&words("--prefix /usr --destdir /tmp/x")).expect("they are good");
        assert_eq!(places, Places { prefix: "/usr".into(), destdir: "/tmp/x".into() });
        assert!(parse(&words("--prefix")).is_none() && parse(&words("--destdir /tmp/x")).is_none());
        assert!(parse(&words("--prefix /usr --root /")).is_none());
    }

    /// What the tests' build has made, as a release's would be. None with a line if it is not all there.
    fn built_for_tests(folder: &Path) -> Option<()> {
        let test = std::env::current_exe().expect("the test knows where it is");
        let beside = test.parent().expect("a folder");
        let libraries = ["libazekura_capi.a", "libazekura_capi.so", "libazekura_dropin.so"];
        let files = libraries.map(|name| beside.join(name)).into_iter().chain([beside.join("../azekura")]);
        for file in files {
            if !file.exists() {
                skipped(&format!("a real installation: {} was not built", file.display()));
                return None;
            }
            let name = file.file_name().expect("a name");
            std::os::unix::fs::symlink(&file, folder.join(name)).expect("a link");
        }
        Some(())
    }

    /// A line past those that the runner keeps of tests that pass.
    fn skipped(what: &str) {
        use std::io::Write;
        let _nobody_reads = writeln!(std::io::stderr(), "skipped: {what}");
    }

    fn succeed(command: &mut std::process::Command) -> Option<String> {
        let output = command.output().ok()?;
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Programs are compiled by what pkg-config says of the installation, and run with it.
    #[test]
    #[cfg(target_os = "linux")]
    fn programs_find_what_is_installed() {
        use std::process::Command;
        let dir = tempfile::tempdir().expect("a directory");
        let (built, prefix) = (dir.path().join("built"), dir.path().join("prefix"));
        std::fs::create_dir_all(&built).expect("a directory");
        if built_for_tests(&built).is_none() {
            return;
        }
        install(&built, &Places { prefix: prefix.clone(), destdir: "/".into() }).expect("it is installed");
        let version = succeed(Command::new(prefix.join("bin/azekura")).arg("--version"));
        assert!(version.is_some_and(|said| said.contains(env!("CARGO_PKG_VERSION"))));
        let programs =
            [("azekura", "crates/capi/examples/people.c"), ("azekura-dropin", "crates/dropin/tests/kyoto.c")];
        for (library, source) in programs {
            let mut asked = Command::new("pkg-config");
            asked.args(["--cflags", "--libs", library]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
            let Some(flags) = succeed(&mut asked) else {
                return skipped("programs by pkg-config: there is none");
            };
            let program = dir.path().join(library);
            let mut compiled = Command::new("cc");
            compiled.arg(root().join(source)).arg("-o").arg(&program).args(flags.split_whitespace());
            if succeed(&mut compiled).is_none() {
                return skipped("programs by pkg-config: there is no compiler (cc)");
            }
            let data = dir.path().join(format!("{library}-data"));
            std::fs::create_dir_all(&data).expect("a directory");
            let mut run = Command::new(&program);
            run.arg(&data).current_dir(&data).env("LD_LIBRARY_PATH", prefix.join("lib"));
            let said = succeed(&mut run).expect("it runs");
            assert_eq!(said.contains("grace was born in 1906"), library == "azekura", "{said}");
        }
    }

    #[test]
    fn everything_is_where_it_is_looked_for() {
        let dir = std::env::temp_dir().join(format!("azekura-install-{}", std::process::id()));
        let built = dir.join("built");
        std::fs::create_dir_all(&built).expect("a directory");
        for name in ["libazekura_capi.a", "libazekura_capi.so", "libazekura_dropin.so", "azekura"] {
            std::fs::write(built.join(name), name).expect("a file");
        }
        let places = Places { prefix: "/opt/azekura".into(), destdir: dir.join("root") };
        // Also a second time, over the first.
        for _ in 0..2 {
            let files = install(&built, &places).expect("it is installed");
            assert!(files.iter().all(|file| file.starts_with(dir.join("root/opt/azekura"))));
        }
        let lib = dir.join("root/opt/azekura/lib");
        let read = |path: PathBuf| std::fs::read_to_string(path).expect("it is there");
        assert_eq!(read(lib.join("libazekura.so")), "libazekura_capi.so");
        assert_eq!(read(lib.join("libazekura_dropin.so")), "libazekura_dropin.so");
        let link = std::fs::read_link(lib.join("libazekura.so")).expect("a link");
        assert_eq!(link, Path::new("libazekura.so.0"));
        assert_eq!(read(lib.join("libazekura.a")), "libazekura_capi.a");
        let pc = read(lib.join("pkgconfig/azekura.pc"));
        assert!(
            pc.starts_with("prefix=/opt/azekura\n")
                && pc.contains(env!("CARGO_PKG_VERSION"))
                && !pc.contains('@')
        );
        assert!(read(lib.join("pkgconfig/azekura-dropin.pc")).contains("-lazekura_dropin"));
        let include = dir.join("root/opt/azekura/include");
        assert!(read(include.join("azekura.h")).contains("azk_db_open"));
        assert!(read(include.join("azekura-dropin/kclangc.h")).contains("kcdbopen"));
        std::fs::remove_dir_all(&dir).expect("it goes");
    }
}
