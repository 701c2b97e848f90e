//! The header is what the source says: it is generated anew and compared. `cargo xtask header` writes it.

use std::path::Path;

/// In the order in which the header is read.
const SOURCES: [&str; 31] = [
    "status",
    "call",
    "memory",
    "arguments",
    "handles",
    "options",
    "db",
    "tables",
    "get",
    "put",
    "many",
    "scan",
    "edges",
    "removing",
    "update",
    "read",
    "write",
    "write_tables",
    "write_get",
    "write_put",
    "expiry",
    "merging",
    "cursors",
    "cursor",
    "index",
    "lookup",
    "feed",
    "shards",
    "upkeep",
    "backup",
    "stats",
];

/// The header as the source has it.
fn generated() -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(package.join("cbindgen.toml")).expect("the configuration is good");
    let sources = SOURCES.iter().map(|name| package.join("src").join(name).with_extension("rs"));
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut generated = Vec::new();
    builder.generate().expect("the source can be read").write(&mut generated);
    String::from_utf8(generated).expect("a header is text")
}

#[test]
fn the_header_is_what_the_source_says() {
    let (package, generated) = (Path::new(env!("CARGO_MANIFEST_DIR")), generated());
    let header = package.join("include/azekura.h");
    if std::env::var_os("AZEKURA_WRITE_HEADER").is_some() {
        std::fs::write(&header, &generated).expect("the header can be written");
    }
    let there = std::fs::read(&header).expect("the header is there");
    let differs = "include/azekura.h is not what the source says: cargo xtask header writes it";
    assert!(String::from_utf8_lossy(&there) == generated, "{differs}");
}

#[test]
fn every_function_of_the_source_is_in_the_header() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = generated();
    let mut functions = 0;
    for entry in std::fs::read_dir(package.join("src")).expect("the source is there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(path).expect("it can be read");
        for line in source.lines().filter(|line| line.contains("extern \"C\" fn azk_")) {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name");
            assert!(header.contains(&format!("{name}(")), "{name} is missing");
            functions += 1;
        }
    }
    assert!(functions > 80, "only {functions} functions were found");
}
