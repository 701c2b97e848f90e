//! Records and tables through the command line: round trips, forms, exit statuses.

use std::ffi::OsString;
use std::io::Write;
use std::process::Stdio;

use azekura::{Db, Options};

use crate::common::Place;

#[test]
fn a_record_is_set_got_and_removed() {
    let place = Place::with_database();
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "red\n");
    place.run(["set", "db.azk", "apple", "green"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "green\n");
    place.run(["remove", "db.azk", "apple"]).succeeds();
    place.run(["get", "db.azk", "apple"]).fails(1, "no key apple");
    place.run(["remove", "db.azk", "apple"]).fails(1, "no key apple");
}

#[test]
fn both_kinds_of_table_keep_records_apart() {
    let place = Place::with_database();
    place.run(["create", "db.azk", "--table", "prices", "--hash"]).succeeds();
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    place.run(["set", "db.azk", "apple", "2", "--table", "prices"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "red\n");
    assert_eq!(place.run(["get", "db.azk", "apple", "-t", "prices"]).succeeds().stdout(), "2\n");
    let tables = place.run(["tables", "db.azk", "--count", "--json"]).succeeds().json_lines();
    assert_eq!(tables[0], serde_json::json!({"table": "main", "kind": "ordered", "records": 1}));
    assert_eq!(tables[1], serde_json::json!({"table": "prices", "kind": "hash", "records": 1}));
    place.run(["create", "db.azk", "--table", "prices"]).fails(2, "exists already");
}

#[test]
fn missing_files_and_tables_are_named() {
    let place = Place::with_database();
    for command in [&["get", "db.azk", "k"][..], &["scan", "db.azk"], &["count", "db.azk"]] {
        let arguments = command.iter().chain(&["--table", "fruit"]);
        let ran = place.run(arguments).fails(2, "no table named \"fruit\" in db.azk");
        assert!(ran.stderr().contains("main"));
    }
    place.run(["get", "gone.azk", "k"]).fails(2, "azekura create gone.azk");
    place.run(["set", "gone.azk", "k", "v"]).fails(2, "no such database");
    assert!(!place.path("gone.azk").exists());
}

#[test]
fn usage_errors_have_status_2() {
    let place = Place::with_database();
    place.run(["get", "db.azk"]).fails(2, "KEY");
    place.run(["grab", "db.azk"]).fails(2, "grab");
    place.run(["get", "--hex", "db.azk", "abc"]).fails(2, "odd number");
    place.run(["create", "x.azk", "--hash", "--ordered"]).fails(2, "cannot be used");
    place.run(["scan", "db.azk", "--from", "b", "--to", "a"]).fails(2, "--from is after --to");
    assert_eq!(place.run([] as [&str; 0]).status(), 2);
}

#[test]
fn help_and_version_have_status_0() {
    let place = Place::new();
    assert!(place.run(["--version"]).succeeds().stdout().starts_with("azekura "));
    let commands = [
        "bench",
        "create",
        "get",
        "set",
        "remove",
        "remove-range",
        "scan",
        "count",
        "info",
        "tables",
        "drop",
        "rename",
        "clear",
        "copy-table",
        "import",
        "export",
        "check",
        "shrink",
    ];
    let overview = place.run(["--help"]).succeeds();
    for command in commands {
        assert!(overview.stdout().contains(command));
        let help = place.run([command, "--help"]).succeeds();
        assert!(help.stdout().contains(&format!("\n  azekura {command} ")), "{command}");
    }
}

#[test]
fn hex_reads_and_writes_any_bytes() {
    let place = Place::with_database();
    place.run(["set", "--hex", "db.azk", "00ff", "CAFE0a"]).succeeds();
    assert_eq!(place.run(["get", "--hex", "db.azk", "00ff"]).succeeds().stdout(), "cafe0a\n");
    let raw = place.run(["get", "--hex", "--raw", "db.azk", "00ff"]).succeeds();
    assert_eq!(raw.stdout_bytes(), b"\xca\xfe\x0a");
    assert_eq!(place.run(["scan", "--hex", "db.azk"]).succeeds().stdout(), "00ff\tcafe0a\n");
    assert_eq!(place.run(["scan", "db.azk"]).succeeds().stdout(), "\\0\\xff\t\\xca\\xfe\\n\n");
    let json = place.run(["scan", "--json", "db.azk"]).succeeds().json_lines();
    assert_eq!(json[0], serde_json::json!({"key_hex": "00ff", "value_hex": "cafe0a"}));
}

#[test]
fn a_value_comes_from_standard_input() {
    let place = Place::with_database();
    let value: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    place.run_with_input(["set", "db.azk", "big", "-"], &value).succeeds();
    let got = place.run(["get", "db.azk", "big", "--raw"]).succeeds();
    assert_eq!(got.stdout_bytes(), value);
    place.run_with_input(["set", "--hex", "db.azk", "00", "-"], b"0aff\n").succeeds();
    assert_eq!(place.run(["get", "--hex", "db.azk", "00"]).succeeds().stdout(), "0aff\n");
    place.run_with_input(["set", "db.azk", "none", "-"], b"").succeeds();
    assert_eq!(place.run(["get", "db.azk", "none"]).succeeds().stdout(), "\n");
}

#[test]
fn a_key_comes_from_standard_input() {
    let place = Place::with_database();
    let key = b"two\nlines\xff\0";
    place.run_with_input(["set", "db.azk", "-", "red"], key).succeeds();
    assert_eq!(place.run_with_input(["get", "db.azk", "-"], key).succeeds().stdout(), "red\n");
    assert_eq!(place.run(["scan", "db.azk"]).succeeds().stdout(), "two\\nlines\\xff\\0\tred\n");
    // Every byte counts, and the key is not `-` itself.
    place
        .run_with_input(["get", "db.azk", "-"], b"two\nlines")
        .fails(1, "no key two\\nlines in table \"main\"");
    place.run(["get", "--hex", "db.azk", "2d"]).fails(1, "no key 2d");
    place.run_with_input(["remove", "db.azk", "-"], key).succeeds();
    place.run_with_input(["remove", "db.azk", "-"], key).fails(1, "no key");
    place.run_with_input(["set", "--hex", "db.azk", "-", "0aff"], b"00FF\n").succeeds();
    assert_eq!(place.run(["get", "--hex", "db.azk", "00ff"]).succeeds().stdout(), "0aff\n");
    place.run_with_input(["get", "--hex", "db.azk", "-"], b"0x").fails(2, "standard input: ");
    place.run(["set", "--hex", "db.azk", "2d", "aa"]).succeeds();
    assert_eq!(place.run(["get", "--hex", "db.azk", "2d"]).succeeds().stdout(), "aa\n");
}

#[test]
fn standard_input_is_one_thing_only() {
    let place = alphabet();
    place.run_with_input(["set", "db.azk", "-", "-"], b"x").fails(2, "KEY and VALUE are both -");
    place
        .run_with_input(["scan", "db.azk", "--from", "-", "--to", "-"], b"a")
        .fails(2, "--from and --to are both -");
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "5\n");
}

#[test]
fn limits_of_a_scan_come_from_standard_input() {
    let place = alphabet();
    let scan = |options: &[&str], input: &[u8]| {
        let arguments = ["scan", "db.azk", "--keys-only"].iter().chain(options);
        place.run_with_input(arguments, input).succeeds().stdout().replace('\n', " ").trim_end().to_owned()
    };
    assert_eq!(scan(&["--prefix", "-"], b"ab"), "ab abc");
    assert_eq!(scan(&["--from", "-"], b"abc"), "abc b c");
    assert_eq!(scan(&["--from", "ab", "--to", "-"], b"b"), "ab abc");
    assert_eq!(scan(&["--hex", "--from", "-", "--to", "63"], b"6162\n"), "6162 616263 62");
}

#[test]
fn odd_keys_are_keys() {
    let place = Place::with_database();
    for key in ["", "--help", "two words", "clé", "a\tb"] {
        let arguments = ["set", "db.azk", "--", key, key];
        place.run(arguments).succeeds();
    }
    place.run(["set", "db.azk", "-k", "-v"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "-k"]).succeeds().stdout(), "-v\n");
    assert_eq!(place.run(["get", "db.azk", "clé"]).succeeds().stdout(), "clé\n");
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "6\n");
}

#[cfg(unix)]
#[test]
fn a_key_need_not_be_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let place = Place::with_database();
    let key = OsString::from_vec(b"caf\xe9".to_vec());
    let arguments = ["set".into(), "db.azk".into(), key.clone(), "latin".into()];
    place.run(arguments).succeeds();
    assert_eq!(place.run(["get".into(), "db.azk".into(), key]).succeeds().stdout(), "latin\n");
    assert_eq!(place.run(["scan", "db.azk", "--keys-only"]).succeeds().stdout(), "caf\\xe9\n");
}

/// A database with the keys a, ab, abc, b, c. Each value is its key twice.
fn alphabet() -> Place {
    let place = Place::with_database();
    for key in ["b", "abc", "a", "c", "ab"] {
        place.run(["set", "db.azk", key, &key.repeat(2)]).succeeds();
    }
    place
}

fn scan(place: &Place, options: &[&str]) -> String {
    let arguments = ["scan", "db.azk", "--keys-only"].iter().chain(options);
    place.run(arguments).succeeds().stdout().replace('\n', " ").trim_end().to_owned()
}

#[test]
fn scans_take_ranges_prefixes_directions_and_limits() {
    let place = alphabet();
    assert_eq!(scan(&place, &[]), "a ab abc b c");
    assert_eq!(scan(&place, &["--reverse"]), "c b abc ab a");
    assert_eq!(scan(&place, &["--from", "ab"]), "ab abc b c");
    assert_eq!(scan(&place, &["--to", "b"]), "a ab abc");
    assert_eq!(scan(&place, &["--from", "ab", "--to", "c"]), "ab abc b");
    assert_eq!(scan(&place, &["--from", "ab", "--to", "c", "--reverse"]), "b abc ab");
    assert_eq!(scan(&place, &["--from", "aa", "--to", "aa"]), "");
    assert_eq!(scan(&place, &["--prefix", "ab"]), "ab abc");
    assert_eq!(scan(&place, &["--prefix", "ab", "--reverse"]), "abc ab");
    assert_eq!(scan(&place, &["--prefix", "z"]), "");
    assert_eq!(scan(&place, &["--limit", "2"]), "a ab");
    assert_eq!(scan(&place, &["--limit", "2", "--reverse"]), "c b");
    assert_eq!(scan(&place, &["--limit", "0"]), "");
    let json = place.run(["scan", "db.azk", "--limit", "1", "--json"]).succeeds().json_lines();
    assert_eq!(json, [serde_json::json!({"key": "a", "value": "aa"})]);
}

#[test]
fn a_hash_table_is_scanned_whole() {
    let place = Place::new();
    place.run(["create", "db.azk", "--hash"]).succeeds();
    for key in ["one", "two", "three"] {
        place.run(["set", "db.azk", key, "x"]).succeeds();
    }
    let mut keys: Vec<String> = scan(&place, &[]).split(' ').map(str::to_owned).collect();
    let mut backwards: Vec<String> = scan(&place, &["--reverse"]).split(' ').map(str::to_owned).collect();
    backwards.reverse();
    assert_eq!(keys, backwards);
    keys.sort();
    assert_eq!(keys, ["one", "three", "two"]);
    place.run(["scan", "db.azk", "--prefix", "t"]).fails(2, "hash order");
}

#[test]
fn what_machines_read_is_json() {
    let place = alphabet();
    let only = |arguments: &[&str]| place.run(arguments).succeeds().json_lines().remove(0);
    assert_eq!(only(&["get", "db.azk", "b", "--json"])["value"], "bb");
    assert_eq!(only(&["count", "db.azk", "--json"])["records"], 5);
    let info = only(&["info", "db.azk", "--json"]);
    let size = std::fs::metadata(place.path("db.azk")).expect("the file").len();
    assert_eq!(info["file_bytes"], size);
    assert_eq!(info["tables"][0]["table"], "main");
    let check = only(&["check", "db.azk", "--json"]);
    assert_eq!(check["ok"], true);
    assert_eq!(check["records"], 5);
    let compact = only(&["shrink", "db.azk", "--json"]);
    assert_eq!(compact["before_bytes"], size);
    assert_eq!(only(&["get", "db.azk", "abc", "--json"])["value"], "abcabc");
}

#[test]
fn what_people_read_says_what_matters() {
    let place = alphabet();
    assert!(place.run(["info", "db.azk"]).succeeds().stdout().contains("main (ordered)"));
    assert!(place.run(["check", "db.azk"]).succeeds().stdout().starts_with("sound: 5 records"));
    assert!(place.run(["shrink", "db.azk"]).succeeds().stdout().contains("→"));
    let tables = place.run(["tables", "db.azk", "--count"]).succeeds();
    assert!(tables.stdout().lines().any(|line| line.starts_with("main") && line.ends_with(" 5")));
}

/// Import has the database open meanwhile.
fn while_open(place: &Place, work: impl FnOnce()) {
    let mut command = place.command(["import", "db.azk", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut holder = command.spawn().expect("it runs");
    let mut input = holder.stdin.take().expect("a pipe");
    // More than a pipe holds. Once it is written, import is reading, so the database is open.
    input.write_all(&b"key\tvalue\n".repeat(100_000)).expect("import reads");
    work();
    drop(input);
    assert!(holder.wait().expect("it ends").success());
}

#[test]
fn a_second_writer_is_told_that_the_file_is_locked() {
    let place = Place::with_database();
    while_open(&place, || drop(place.run(["set", "db.azk", "k", "v"]).fails(2, "locked")));
    place.run(["set", "db.azk", "k", "v"]).succeeds();
}

#[test]
fn a_database_that_a_program_has_open_is_followed() {
    let place = alphabet();
    while_open(&place, || {
        place.run(["get", "db.azk", "abc"]).fails(2, "locked");
        assert_eq!(place.run(["get", "db.azk", "abc", "--follow"]).succeeds().stdout(), "abcabc\n");
        for command in ["count", "scan", "tables", "export", "check"] {
            place.run([command, "db.azk", "--follow"]).succeeds();
        }
        let info = place.run(["info", "db.azk", "--follow"]).succeeds();
        assert!(info.stdout().contains("followers"), "{}", info.stdout());
        place.run(["backup", "db.azk", "saved"]).succeeds();
        place.run(["copy", "db.azk", "copied.azk"]).succeeds();
    });
    place.run(["restore", "saved", "restored.azk"]).succeeds();
    for file in ["copied.azk", "restored.azk", "db.azk"] {
        assert_eq!(place.run(["get", file, "abc"]).succeeds().stdout(), "abcabc\n", "{file}");
        place.run(["check", file]).succeeds();
    }
}

#[test]
fn info_shows_which_checkpoints_are_read_and_what_they_keep_at_most() {
    let place = Place::with_database();
    let open = |options: Options| options.open(place.path("db.azk")).expect("the database");
    let db = open(Options::new().threads(false));
    let table = db.open_table("main").expect("the table");
    let replace = |n: u8| {
        table.put_many((0..2_000u32).map(|i| (i.to_be_bytes(), [n; 500]))).expect("put");
        db.compact().expect("compacted");
    };
    let info = || place.run(["info", "db.azk", "--follow", "--json"]).succeeds().json_lines().remove(0);
    assert_eq!(info()["pins"], serde_json::json!([]));
    replace(1);
    let old = open(Options::new().follow(true));
    let reading = old.read();
    replace(2);
    replace(3);
    let new = open(Options::new().follow(true));
    let (stats, info) = (db.stats(), info());
    let [first, last] = &info["pins"].as_array().expect("a list")[..] else { panic!("{info}") };
    let (checkpoint, kept) = (stats.pins[0].checkpoint, stats.pins[0].bytes.expect("the writer knows"));
    assert!(kept > 1_000_000, "{kept}");
    assert_eq!(first["checkpoint"], checkpoint);
    assert_eq!(first["behind"], stats.checkpoint - checkpoint);
    assert!(first["age_s"].is_null() && first["bytes"].is_null(), "{first}");
    assert_eq!(first["revoked"], false);
    assert!((kept..=stats.file_bytes).contains(&first["bytes_max"].as_u64().expect("a number")), "{first}");
    let newest = serde_json::json!({
        "checkpoint": stats.checkpoint, "behind": 0, "age_s": 0.0, "bytes": 0, "bytes_max": 0, "revoked": false
    });
    assert_eq!(last, &newest);
    let text = place.run(["info", "db.azk", "--follow"]).succeeds().stdout().to_owned();
    assert!(text.contains(" before the newest: keeps at most "), "{text}");
    assert!(text.contains("the newest: keeps nothing\n"), "{text}");
    drop((reading, old, new, table));
    db.close().expect("closed");
}

#[test]
fn info_shows_which_pins_are_revoked() {
    let place = Place::with_database();
    let open = |options: Options| options.open(place.path("db.azk")).expect("the database");
    let write = |db: &Db, n: u8| {
        let table = db.open_table("main").expect("the table");
        table.put_many((0..2_000u32).map(|i| (i.to_be_bytes(), [n; 500]))).expect("put");
        drop(table);
        db.compact().expect("compacted");
    };
    let limited = open(Options::new().threads(false).pinned_bytes_max(0));
    write(&limited, 1);
    let follower = open(Options::new().follow(true));
    let _reading = follower.read();
    (2..5).for_each(|n| write(&limited, n));
    let info = |more: &[&str]| place.run([&["info", "db.azk", "--follow"], more].concat()).succeeds();
    let first = || info(&["--json"]).json_lines()[0]["pins"][0].clone();
    assert_eq!((&first()["revoked"], &first()["bytes_max"]), (&true.into(), &0.into()), "{}", first());
    let text = info(&[]).stdout().to_owned();
    assert!(text.contains(" before the newest: revoked, keeps nothing\n"), "{text}");
    limited.close().expect("closed");
    // A writer without limits says nothing of it.
    let unlimited = open(Options::new().threads(false));
    write(&unlimited, 5);
    assert!(first()["revoked"].is_null() && first()["bytes"].is_null(), "{}", first());
    let text = info(&[]).stdout().to_owned();
    assert!(text.contains(", and nothing if it was revoked, which the file does not tell\n"), "{text}");
    unlimited.close().expect("closed");
}

#[test]
fn a_record_with_a_time_to_live_goes_by_itself() {
    let place = Place::with_database();
    place.run(["set", "db.azk", "apple", "red", "--ttl", "3600"]).succeeds();
    place.run(["set", "db.azk", "pear", "green", "--ttl", "0.001"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "red\n");
    place.run(["get", "db.azk", "pear"]).fails(1, "no key pear");
    assert_eq!(place.run(["count", "db.azk"]).succeeds().stdout(), "1\n");
    place.run(["set", "db.azk", "pear", "green", "--ttl", "0"]).fails(2, "at least 0.001 seconds");
    place.run(["set", "db.azk", "pear", "green", "--ttl", "1e30"]).fails(2, "too large");
    place.run(["create", "db.azk", "--table", "brief", "--hash", "--ttl", "0.001"]).succeeds();
    place.run(["set", "db.azk", "k", "v", "-t", "brief"]).succeeds();
    place.run(["get", "db.azk", "k", "-t", "brief"]).fails(1, "no key k");
    place.run(["set", "db.azk", "k", "v", "-t", "brief", "--ttl", "3600"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "k", "-t", "brief"]).succeeds().stdout(), "v\n");
}

#[test]
fn a_table_gets_another_time_to_live() {
    let place = Place::with_database();
    let stays = "records of table \"main\" live until they are removed\n";
    assert_eq!(place.run(["ttl", "db.azk"]).succeeds().stdout(), stays);
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    let told = place.run(["ttl", "db.azk", "0.001"]).succeeds().stdout().to_owned();
    assert_eq!(told, "records of table \"main\" live for 0.001 seconds\n");
    assert_eq!(place.run(["ttl", "db.azk"]).succeeds().stdout(), told);
    place.run(["set", "db.azk", "pear", "green"]).succeeds();
    place.run(["get", "db.azk", "pear"]).fails(1, "no key pear");
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "red\n");
    let json = place.run(["ttl", "db.azk", "-t", "main", "3600", "--json"]).succeeds().stdout().to_owned();
    assert!(json.contains("\"ttl\": 3600.0") || json.contains("\"ttl\":3600.0"), "{json}");
    assert_eq!(place.run(["ttl", "db.azk", "none"]).succeeds().stdout(), stays);
    place.run(["set", "db.azk", "pear", "green"]).succeeds();
    assert_eq!(place.run(["get", "db.azk", "pear"]).succeeds().stdout(), "green\n");
    place.run(["ttl", "db.azk", "0"]).fails(2, "at least 0.001 seconds");
    place.run(["ttl", "db.azk", "-t", "gone", "5"]).fails(2, "no table named");
}

#[test]
fn numbers_are_merged() {
    let place = Place::with_database();
    let number = |n: i64| n.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n";
    let get = |key: &str| place.run(["get", "--hex", "db.azk", key]).succeeds().stdout().to_owned();
    let key = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    place.run(["merge", "db.azk", "hits", "add", "5"]).succeeds();
    place.run(["merge", "db.azk", "hits", "add", "-7"]).succeeds();
    assert_eq!(get(&key("hits")), number(-2));
    place.run(["merge", "db.azk", "hits", "max", "3"]).succeeds();
    assert_eq!(get(&key("hits")), number(3));
    place.run(["merge", "db.azk", "hits", "or", "12"]).succeeds();
    assert_eq!(get(&key("hits")), number(15));
    place.run(["merge", "db.azk", "slowest", "min", "0.25", "--type", "f64"]).succeeds();
    assert_eq!(get(&key("slowest")), number(0.25f64.to_bits().cast_signed()));
    place.run(["merge", "db.azk", "hits", "add", "0.5"]).fails(2, "no number");
    place.run(["merge", "db.azk", "hits", "or", "0.5", "--type", "f64"]).fails(2, "integers");
    place.run(["set", "db.azk", "apple", "red"]).succeeds();
    place.run(["merge", "db.azk", "apple", "add", "1"]).fails(2, "the value has 3 bytes");
    assert_eq!(place.run(["get", "db.azk", "apple"]).succeeds().stdout(), "red\n");
    place.run(["check", "db.azk"]).succeeds();
}

#[test]
fn lists_and_sets_are_merged() {
    let place = Place::with_database();
    let get = |key: &str| place.run(["get", "db.azk", key]).succeeds().stdout().to_owned();
    place.run(["merge", "db.azk", "list", "append", "ada"]).succeeds();
    place.run(["merge", "db.azk", "list", "append", "-bob"]).succeeds();
    assert_eq!(get("list"), "ada-bob\n");
    place.run(["merge", "db.azk", "list", "append", "a", "b"]).fails(2, "only union");
    place.run(["merge", "db.azk", "set", "union", "bob", "ada", "bob"]).succeeds();
    place.run(["merge", "db.azk", "set", "union", "eve"]).succeeds();
    assert_eq!(get("set"), "adabobeve\n");
    place.run(["merge", "db.azk", "set", "union", "eve", "adam"]).fails(2, "of one length");
    place.run(["merge", "db.azk", "set", "union", ""]).fails(2, "of one length");
    place.run(["merge", "db.azk", "set", "union", "adam"]).fails(2, "the value has 9 bytes");
    place.run(["merge", "db.azk", "set", "append", "-", "-"]).fails(2, "standard input");
    place.run(["merge", "db.azk", "-", "append", "-"]).fails(2, "standard input");
    assert_eq!(get("set"), "adabobeve\n");
    place.run(["check", "db.azk"]).succeeds();
}
