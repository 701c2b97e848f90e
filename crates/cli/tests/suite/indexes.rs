//! Commands on indexes: making them, lookups, lists, removing them.

use crate::common::Place;
use serde_json::json;

/// A database with 1,000 people and indexes of their cities and of the years when they were born.
fn people() -> Place {
    let place = Place::with_database();
    let lines: String = (0..1_000).map(|n| format!("{n:03}\t{}\n", person(n))).collect();
    place.run_with_input(["import", "db.azk"], lines.as_bytes()).succeeds();
    says(
        &place,
        ["create", "db.azk", "main", "by_city", "v./city:lower, v./born:i64"],
        "made index \"by_city\" of table \"main\" (1,000 records)",
    );
    place.run(["index", "create", "db.azk", "main", "by_name", "v./name unique where present"]).succeeds();
    place
}

/// Every tenth has no city, and every second no name.
fn person(n: usize) -> String {
    let mut person = json!({ "born": 1800 + n % 100 });
    if !n.is_multiple_of(10) {
        person["city"] = json!(["Oslo", "Turku", "Visby"][n % 3]);
    }
    if !n.is_multiple_of(2) {
        person["name"] = json!(format!("p{n:03}"));
    }
    person.to_string()
}

fn says<const N: usize>(place: &Place, arguments: [&str; N], text: &str) {
    let ran = place.run(["index"].iter().chain(&arguments)).succeeds();
    assert_eq!(ran.stdout(), format!("{text}\n"));
}

/// The keys that `index get` prints.
fn keys(place: &Place, arguments: &[&str]) -> Vec<usize> {
    let start = ["index", "get", "db.azk", "main", "--keys-only"];
    let ran = place.run(start.iter().chain(arguments)).succeeds();
    ran.stdout().lines().map(|line| line.parse().unwrap()).collect()
}

/// The numbers of people with a city, in the order of years and then of keys.
fn of_city(city: usize, years: std::ops::Range<usize>) -> Vec<usize> {
    let mut all: Vec<usize> =
        (0..1_000).filter(|n| n % 3 == city && n % 10 > 0 && years.contains(&(1800 + n % 100))).collect();
    all.sort_by_key(|n| (n % 100, *n));
    all
}

#[test]
fn records_are_found() {
    let place = people();
    let turku = of_city(1, 0..3000);
    assert_eq!(keys(&place, &["by_city", "TURKU"]), turku);
    assert_eq!(
        keys(&place, &["by_city", "turku", "--reverse", "--limit", "5"]),
        turku.iter().rev().take(5).copied().collect::<Vec<_>>()
    );
    assert_eq!(keys(&place, &["by_city", "tu", "--prefix"]), turku);
    assert_eq!(keys(&place, &["by_city", "turku", "1811"]), of_city(1, 1811..1812));
    assert_eq!(keys(&place, &["by_city", "turku", "--from", "1811", "--to", "1850"]), of_city(1, 1811..1850));
    assert_eq!(keys(&place, &["by_city", "turku", "--to", "1850"]), of_city(1, 0..1850));
    assert_eq!(keys(&place, &["by_city", "turku", "--from", "-5"]), turku);
    assert_eq!(
        keys(&place, &["by_city", "--from", "oslo", "--to", "visby"]),
        [of_city(0, 0..3000), turku.clone()].concat()
    );
    assert_eq!(keys(&place, &["by_city", "--to", "turku"]), of_city(0, 0..3000), "and none without a city");
    assert_eq!(keys(&place, &["by_city", "--hex", "7475726b75"]).len(), turku.len());
    assert_eq!(keys(&place, &["by_city"]).len(), 1_000);
    says(&place, ["get", "db.azk", "main", "by_city", "turku", "--count"], &turku.len().to_string());
    says(&place, ["get", "db.azk", "main", "by_name", "--count"], "500");
    let line = format!("007\t{}", person(7).replace('\\', "\\\\"));
    says(&place, ["get", "db.azk", "main", "by_name", "p007"], &line);
    let ran = place
        .run_with_input(["index", "get", "db.azk", "main", "by_name", "-", "--json"], b"p007")
        .succeeds();
    assert_eq!(ran.json_lines(), [json!({ "key": "007", "value": person(7) })]);
    let report = json!({ "table": "main", "index": "by_name", "records": 1 });
    let ran =
        place.run(["index", "get", "db.azk", "main", "by_name", "p007", "--count", "--json"]).succeeds();
    assert_eq!(ran.json_lines(), [report]);
}

#[test]
fn writes_keep_them() {
    let place = people();
    place.run(["set", "db.azk", "007", r#"{"city": "Turku", "born": 1807}"#]).succeeds();
    place.run(["remove", "db.azk", "001"]).succeeds();
    place.run(["index", "get", "db.azk", "main", "by_name", "p007"]).fails(1, "no record with these values");
    assert_eq!(keys(&place, &["by_city", "turku", "--to", "1808"])[..1], [301]);
    place.run(["set", "db.azk", "new", r#"{"name": "p003"}"#]).fails(2, "by_name");
    place.run(["check", "db.azk"]).succeeds();
}

#[test]
fn they_are_listed_and_dropped() {
    let place = people();
    place.run(["create", "db.azk", "--table", "none"]).succeeds();
    let list = place.run(["index", "list", "db.azk"]).succeeds();
    let lines: Vec<String> =
        list.stdout().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "table index ready entries size spec");
    assert!(lines[1].starts_with("main by_city yes 1,000 "), "{lines:?}");
    assert!(lines[1].ends_with(" kB v./city:lower, v./born:i64"), "{lines:?}");
    assert!(lines[2].starts_with("main by_name yes 500 "), "{lines:?}");
    assert!(lines[2].ends_with(" kB v./name unique where present") && lines.len() == 3, "{lines:?}");
    let info = place.run(["info", "db.azk", "--json"]).succeeds().json_lines().remove(0);
    assert!(info["indexes"] == 2 && info["index_bytes"].as_u64().unwrap() > 10_000, "{info}");
    assert!(place.run(["info", "db.azk"]).succeeds().stdout().contains("\nindexes    2 with "));
    let by_name = json!({ "table": "main", "index": "by_name", "spec": "v./name unique where present" });
    says(
        &place,
        ["create", "db.azk", "main", "by_name", "v.json./name where present unique"],
        "index \"by_name\" of table \"main\" was there already",
    );
    says(
        &place,
        ["drop", "db.azk", "main", "by_city"],
        "dropped index \"by_city\" of table \"main\", which was of v./city:lower, v./born:i64",
    );
    let rows = place.run(["index", "list", "db.azk", "main", "--json"]).succeeds().json_lines();
    let mut ready = by_name.clone();
    ready["ready"] = json!(true);
    ready["entries"] = json!(500);
    ready["bytes"] = rows[0]["bytes"].clone();
    assert!(rows == [ready] && rows[0]["bytes"].as_u64().unwrap() > 1_000, "{rows:?}");
    assert_eq!(
        place.run(["index", "drop", "db.azk", "main", "by_name", "--json"]).succeeds().json_lines(),
        [by_name]
    );
    assert_eq!(place.run(["index", "list", "db.azk"]).succeeds().stdout(), "");
    assert_eq!(place.run(["index", "list", "db.azk", "none"]).succeeds().stdout(), "");
    let report = json!({ "table": "none", "index": "i", "spec": "v", "records": 0 });
    assert_eq!(
        place.run(["index", "create", "db.azk", "none", "i", "v", "--json"]).succeeds().json_lines(),
        [report]
    );
}

#[test]
fn what_is_wrong_is_said() {
    let place = people();
    let before = place.read("db.azk");
    let fails = |arguments: &[&str], text: &str| {
        place.run(["index"].iter().chain(arguments)).fails(2, text);
    };
    fails(&["create", "db.azk", "main", "x", "v./a:u63"], "column 6: a type expected");
    fails(&["create", "db.azk", "no", "x", "v"], "no table named \"no\"");
    fails(&["create", "no.azk", "main", "x", "v"], "no such database");
    fails(&["get", "db.azk", "main", "no"], "no index named \"no\" (it has \"by_city\", \"by_name\")");
    fails(&["get", "db.azk", "main", "by_city", "Oslo", "x"], "field v./born:i64 of an index has no value");
    fails(&["get", "db.azk", "main", "by_city", "Oslo", "1", "2"], "2 fields");
    fails(
        &["get", "db.azk", "main", "by_city", "Oslo", "1", "--prefix"],
        "only text and bytes have a beginning",
    );
    fails(&["get", "db.azk", "main", "by_city", "--hex", "abc"], "an odd number");
    fails(&["get", "db.azk", "main", "by_city", "-", "--to", "-"], "only one of them can be standard input");
    fails(&["get", "db.azk", "main", "by_city", "--prefix"], "required");
    fails(&["drop", "db.azk", "main", "no"], "no index named \"no\"");
    fails(&["list", "db.azk", "no"], "no table named \"no\"");
    assert!(place.read("db.azk") == before, "commands that fail change nothing");
    fails(&["create", "db.azk", "main", "by_city", "v./city"], "already");
    fails(
        &["create", "db.azk", "main", "by_year", "v./born:i64 unique"],
        "index \"by_year\" of table \"main\"",
    );
    assert_eq!(place.run(["index", "list", "db.azk"]).succeeds().stdout().lines().count(), 3);
}
