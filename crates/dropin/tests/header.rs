//! `kclangc.h` is what the source says: it is generated anew and compared. `cargo xtask header` writes it.

use std::collections::BTreeSet;
use std::path::Path;

/// In the order in which the header is read.
const SOURCES: [&str; 15] = [
    "codes",
    "db",
    "files",
    "records",
    "numbers",
    "bulk",
    "visit",
    "transaction",
    "snapshot",
    "matching",
    "cursor",
    "index",
    "map",
    "list",
    "text",
];

fn header_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name);
    std::fs::read_to_string(path).expect("the header is there")
}

#[test]
fn the_header_is_what_the_source_says() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(package.join("cbindgen.toml")).expect("the configuration is good");
    let sources = SOURCES.iter().chain(&["memory"]);
    let sources = sources.map(|name| package.join("src").join(name).with_extension("rs"));
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut generated = Vec::new();
    builder.generate().expect("the source can be read").write(&mut generated);
    let header = package.join("include/kclangc.h");
    if std::env::var_os("AZEKURA_WRITE_HEADER").is_some() {
        std::fs::write(&header, &generated).expect("the header can be written");
    }
    let differs = "include/kclangc.h is not what the source says: cargo xtask header writes it";
    assert!(header_text("kclangc.h") == String::from_utf8_lossy(&generated), "{differs}");
}

#[test]
fn every_function_of_the_source_is_in_a_header() {
    let headers = header_text("kclangc.h") + &header_text("ndbm.h");
    let mut functions = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("it is there") {
        let source =
            std::fs::read_to_string(entry.expect("it can be listed").path()).expect("it can be read");
        for line in source.lines().filter(|line| line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name");
            assert!(headers.contains(&format!("{name}(")), "{name} is missing");
            functions.insert(name.to_owned());
        }
    }
    // Those of Kyoto Cabinet's interface for C, and ndbm's eleven.
    let of_kyoto = functions.iter().filter(|name| name.starts_with("kc")).count();
    assert_eq!((of_kyoto, functions.len()), (KYOTO_FUNCTIONS, KYOTO_FUNCTIONS + 11));
}

/// How many functions Kyoto Cabinet 1.2.79 has for C.
const KYOTO_FUNCTIONS: usize = 126;
