//! The order of a crate's rooms: its folders, and the files beside them. A file imports only from its own
//! room and from rooms before it. So a reader who follows this order never meets a name from a later room.

use super::source::Source;

/// A crate and its rooms.
pub struct Order {
    /// Its folder, from the project's root.
    pub folder: &'static str,
    /// From the bottom to the top.
    rooms: &'static [&'static str],
}

/// The folders of crates without rooms. Circles and long files are looked for there too.
pub const WITHOUT: [&str; 3] = ["crates/shards/src", "crates/xtask/src", "python/src"];

/// The crates that have rooms.
pub const ORDER: [Order; 6] = [
    Order {
        folder: "crates/azekura/src",
        rooms: &[
            "base", "storage", "space", "format", "index", "values", "cache", "run", "memtable", "log",
            "merge", "engine", "cursor", "txn", "backup", "mirror", "api", "typed", "salvage", "fuzzing",
        ],
    },
    Order {
        folder: "crates/cli/src",
        rooms: &[
            "style",
            "units",
            "times",
            "bytes",
            "foreign",
            "failure",
            "arguments",
            "interrupt",
            "output",
            "output_file",
            "priority",
            "progress",
            "store",
            "keys",
            "bench",
            "commands",
            "bin",
            "cli",
        ],
    },
    Order {
        folder: "crates/capi/src",
        rooms: &[
            "seat",
            "files",
            "status",
            "handles",
            "wrong",
            "call",
            "arguments",
            "slots",
            "memory",
            "options",
            "db",
            "tables",
            "put",
            "get",
            "many",
            "scan",
            "edges",
            "removing",
            "write",
            "read",
            "write_tables",
            "write_put",
            "write_get",
            "update",
            "expiry",
            "merging",
            "cursor",
            "cursors",
            "stats",
            "upkeep",
            "backup",
            "index",
            "lookup",
            "feed",
            "shards",
            "held",
        ],
    },
    Order {
        folder: "crates/dropin/src",
        rooms: &[
            "codes",
            "errors",
            "number",
            "name",
            "claim",
            "memory",
            "standing",
            "open",
            "access",
            "visitor",
            "store",
            "call",
            "place",
            "files",
            "db",
            "records",
            "numbers",
            "bulk",
            "visit",
            "transaction",
            "cursor",
            "text",
            "list",
            "map",
            "matching",
            "snapshot",
            "index",
            "ndbm",
        ],
    },
    Order {
        folder: "crates/sim/src",
        rooms: &[
            "rng",
            "memory",
            "watchdog",
            "mounted",
            "report",
            "disk",
            "fed",
            "script",
            "judge",
            "fuzz",
            "isolation",
            "kills",
            "followers",
            "soak",
            "commands",
            "bin",
        ],
    },
    Order {
        folder: "crates/bench-compare/src",
        rooms: &[
            "failure",
            "records",
            "numbers",
            "counters",
            "peers",
            "measure",
            "case",
            "job",
            "child",
            "workloads",
            "presets",
            "warm",
            "results",
            "report",
            "args",
            "runner",
        ],
    },
];

/// Imports from a later room, and files in no known room.
pub fn upward(order: &Order, files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let place = |room: &str| order.rooms.iter().position(|name| *name == room);
    for file in files {
        // The root names all rooms.
        let Some(own) = file.modules.first() else { continue };
        let Some(at) = place(own) else {
            wrong.push(format!("{}: the room {own} has no place in the order of rooms", file.path.display()));
            continue;
        };
        for (number, line) in (1..).zip(&file.lines) {
            for room in imported(line, file.modules.len()) {
                if place(&room).is_some_and(|other| other > at) {
                    wrong.push(format!(
                        "{}:{number}: {own} imports {room}, which comes after it",
                        file.path.display()
                    ));
                }
            }
        }
    }
    wrong
}

/// What is wrong with a document's table of a crate's folders. It has a row for each, in their order, which
/// begins as in "| `base/` |".
pub fn untrue_table(order: &Order, files: &[Source], document: &str) -> Option<String> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("/` |"));
    let listed: Vec<&str> = rows.map(|(room, _)| room).filter(|room| !room.contains('`')).collect();
    let is_folder = |room: &&str| files.iter().any(|f| f.modules.len() > 1 && f.modules[0] == **room);
    let rooms: Vec<&str> = order.rooms.iter().copied().filter(is_folder).collect();
    (listed != rooms).then(|| {
        format!("{}: the document lists the rooms {listed:?}, their order is {rooms:?}", order.folder)
    })
}

/// The names that a line imports from the crate's root. `depth` is the depth of the line's module.
fn imported(line: &str, depth: usize) -> Vec<String> {
    let root = "super::".repeat(depth);
    let starts = ["crate::", root.as_str()]
        .into_iter()
        .flat_map(|start| line.match_indices(start).map(move |m| (m.0, start)));
    starts
        .filter(|(at, _)| begins_path(line, *at))
        .flat_map(|(at, start)| names(&line[at + start.len()..]))
        .collect()
}

/// Whether a path begins at `at`, and not within another path.
fn begins_path(line: &str, at: usize) -> bool {
    let before = line[..at].chars().next_back();
    before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '$')
}

/// The first name of a path, or of each path in braces.
fn names(path: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut depth = 0;
    let top: String = list
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '{');
            let keep = depth == 0;
            depth -= i32::from(*c == '}');
            keep
        })
        .collect();
    top.split(',').map(|part| name(part.trim_start())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_form() {
        assert_eq!(imported("use crate::run::Run;", 2), ["run"]);
        assert_eq!(imported("use crate::{bytes, style::{a, b}, units};", 2), ["bytes", "style", "units"]);
        assert_eq!(imported("    super::super::engine::open()", 2), ["engine"]);
        assert_eq!(imported("use super::super::state::State;", 3), Vec::<String>::new());
        assert_eq!(imported("a(crate::log::x(), mycrate::txn)", 1), ["log"]);
    }

    #[test]
    fn a_table_of_rooms_in_another_order_is_named() {
        let order = Order { folder: "c", rooms: &["low", "high", "file"] };
        let file = |names: &[&str]| Source {
            path: "a.rs".into(),
            modules: names.iter().map(|&name| name.to_owned()).collect(),
            lines: Vec::new(),
        };
        let files = [file(&["low", "a"]), file(&["high", "a"]), file(&["file"])];
        let found = |document| untrue_table(&order, &files, document);
        assert_eq!(found("| room |\n| `low/` | x |\n| `high/` | y |\n| `A`, `B` | `low/` |"), None);
        assert!(found("| `high/` | y |\n| `low/` | x |").is_some());
        assert!(found("| `low/` | x |").is_some());
    }

    #[test]
    fn what_points_upward_is_named() {
        let order = Order { folder: "", rooms: &["low", "high"] };
        let file = |room: &str, line: &str| Source {
            path: format!("{room}/a.rs").into(),
            modules: vec![room.to_owned(), "a".to_owned()],
            lines: vec![String::new(), line.to_owned()],
        };
        let files =
            [file("low", "use crate::high::X;"), file("high", "use crate::low::Y;"), file("other", "")];
        let wrong = upward(&order, &files);
        assert_eq!(wrong[0], "low/a.rs:2: low imports high, which comes after it");
        assert_eq!(wrong[1], "other/a.rs: the room other has no place in the order of rooms");
        assert_eq!(wrong.len(), 2);
    }
}
