use super::circles;
use crate::house::source::Source;

/// A file of a crate in the folder `c`.
fn file(path: &str, text: &str) -> Source {
    let stem = path.trim_end_matches(".rs");
    let modules = stem.split('/').filter(|name| !["lib", "mod"].contains(name)).map(str::to_owned).collect();
    Source { path: format!("c/{path}").into(), modules, lines: text.lines().map(str::to_owned).collect() }
}

fn found(files: &[Source]) -> Vec<String> {
    circles("c", files)
}

#[test]
fn a_circle_is_named_with_its_imports() {
    let files = [
        file("a.rs", "\nuse crate::b::B;\nstruct A;"),
        file("b.rs", "struct B(\nsuper::c::C);"),
        file("c.rs", "use super::a::{self, X};\nstruct C(a::A);"),
        file("d.rs", "use crate::a::A;"),
    ];
    let files: Vec<_> = files.into_iter().chain([file("lib.rs", "mod a; mod b; mod c; mod d;")]).collect();
    assert_eq!(
        found(&files),
        [
            "c: a circle of 3 files (a.rs, b.rs, c.rs): a.rs:2 imports b.rs, b.rs:2 imports c.rs, c.rs:2 imports a.rs"
        ]
    );
}

#[test]
fn a_file_that_only_hands_on_is_in_no_circle() {
    let parts = |root: &'static str| {
        [
            file("lib.rs", ""),
            file("room/mod.rs", root),
            file("room/low.rs", "pub struct Low;"),
            file("room/high.rs", "use crate::room::Low;\npub struct High(Low);"),
        ]
    };
    assert!(found(&parts("mod low; mod high; pub use low::Low; pub use high::*;")).is_empty());
    // It is, if it needs what it hands on.
    let circle = found(&parts("mod low; mod high; pub struct Low(High); pub use high::High;"));
    assert_eq!(
        circle,
        [
            "c: a circle of 2 files (room/mod.rs, room/high.rs): room/mod.rs:1 imports room/high.rs, room/high.rs:1 \
          imports room/mod.rs"
        ]
    );
}

#[test]
fn children_are_imported_by_their_names() {
    let files = [
        file("lib.rs", "mod a;"),
        file("a.rs", "mod b;\nuse b::B;\npub struct A;"),
        file("a/b.rs", "pub struct B;\nfn f() { super::A }"),
    ];
    assert_eq!(found(&files).len(), 1);
}

#[test]
fn one_way_is_no_circle() {
    let files = [
        file("lib.rs", "mod a; mod b; pub use a::A;"),
        file("a.rs", "use crate::b::B;\nuse std::b::A;\npub struct A;"),
        file("b.rs", "pub struct B;\n#[cfg(test)]\nuse crate::A;"),
    ];
    assert!(found(&files).is_empty());
}
