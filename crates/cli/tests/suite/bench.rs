//! The bench command: its rows, for programs and for people, in every order.

use crate::common::Place;
use serde_json::Value;

/// Runs the bench with `--json` in its own folder. Its file must be gone afterwards.
fn rows(options: &str) -> Vec<Value> {
    let place = Place::new();
    let arguments = ["bench", "--json", "--path", "b.azk"];
    let ran = place.run(arguments.into_iter().chain(options.split(' '))).succeeds();
    assert!(!place.path("b.azk").exists());
    ran.json_lines()
}

/// Requires the fields that every row of a load has.
fn requires_common(row: &Value) {
    for field in ["order", "table", "durability"] {
        assert!(row[field].is_string(), "{field}: {row}");
    }
    for field in ["records", "transactions", "value_bytes", "write_s", "flush_s", "read_s", "database_bytes"]
    {
        assert!(row[field].is_number(), "{field}: {row}");
    }
    for field in ["written_bytes", "write_calls", "peak_rss_bytes"] {
        assert!(row[field].is_u64() || !cfg!(target_os = "linux"), "{field}: {row}");
    }
}

#[test]
fn sequential_rows_are_complete() {
    let rows = rows("--records 3000 --transactions 7 --value-size 0,4,1500 --table hash");
    assert_eq!(rows.len(), 3);
    for (row, value_bytes) in rows.iter().zip([0, 4, 1500]) {
        requires_common(row);
        assert_eq!(row["order"], "sequential");
        assert_eq!(row["table"], "hash");
        assert_eq!(row["durability"], "eventual");
        assert_eq!(row["records"], 3000);
        assert_eq!(row["transactions"], 7);
        assert_eq!(row["value_bytes"], value_bytes);
        assert_eq!(row["verified"], 6000);
    }
}

#[test]
fn the_default_sizes_are_the_classic_ones() {
    let rows = rows("--records 100 --transactions 10");
    let sizes: Vec<u64> = rows.iter().filter_map(|row| row["value_bytes"].as_u64()).collect();
    assert_eq!(sizes, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]);
    assert!(rows.iter().all(|row| row["table"] == "ordered"));
}

#[test]
fn random_rows_are_complete() {
    for options in [
        "--records 20000 --batch 1000",
        "--records 20000 --batch 999 --table hash --key-bytes 16 --value-size 44",
        "--records 20000 --batch 1000 --keys text --no-settle",
        "--records 2000 --batch 1 --durability eventual --cache 32MiB",
    ] {
        let rows = rows(&format!("--order random {options}"));
        assert_eq!(rows.len(), 1);
        requires_common(&rows[0]);
        for field in [
            "batch_mean_ms",
            "batch_p99_ms",
            "batch_max_ms",
            "growth",
            "present_gets_per_s",
            "absent_gets_per_s",
            "get_many_per_s",
            "scan_per_s",
            "open_ms",
        ] {
            assert!(rows[0][field].is_number(), "{options}: {field}");
        }
        assert_eq!(rows[0]["settle_s"].is_number(), !options.contains("--no-settle"));
    }
}

#[test]
fn each_batch_has_a_line_of_csv() {
    let place = Place::new();
    let options = "bench --order random --records 1050 --batch 100 --json --path b.azk --csv t.csv";
    place.run(options.split(' ')).succeeds();
    let csv = String::from_utf8(place.read("t.csv")).expect("UTF-8");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "batch,records,ms");
    assert_eq!(lines.len(), 1 + 11);
    assert!(lines[11].starts_with("10,1050,"));
}

/// Neither the times of the batches nor the scratch file of the raw appends overwrites an existing file.
#[test]
fn a_bench_leaves_other_files_alone() {
    let place = Place::new();
    let random = |options: &str| {
        place.run(format!("bench --order random --records 50 --path b.azk{options}").split(' '))
    };
    for name in ["b.csv", "t.csv", "t.8.csv", "b.raw"] {
        place.write(name, "mine");
    }
    random("").fails(2, "b.csv exists already");
    random(" --csv t.csv").fails(2, "t.csv exists already");
    random(" --csv t.csv --value-size 4,8").fails(2, "t.8.csv exists already");
    assert!(!place.path("t.4.csv").exists());
    place.run("bench --order durable --seconds 0.1 --path b.azk".split(' ')).fails(2, "b.raw");
    for name in ["b.csv", "t.csv", "t.8.csv", "b.raw"] {
        assert_eq!(place.read(name), b"mine", "{name}");
    }
    random(" --csv t.csv --force").succeeds();
    assert!(place.read("t.csv").starts_with(b"batch,"));
    place.run(["create", "other.azk"]).succeeds();
    random(" --csv other.azk --force").fails(2, "other.azk is a database");
}

#[test]
fn mixed_and_durable_rows_are_complete() {
    let mixed = rows("--order mixed --records 5000 --seconds 0.3");
    for field in ["gets_per_s", "updates_per_s", "get_p50_us", "get_p99_9_us", "get_max_us"] {
        assert!(mixed[0][field].as_f64().is_some_and(|figure| figure > 0.0), "{field}");
    }
    let durable = rows("--order durable --seconds 0.2");
    let threads: Vec<u64> = durable.iter().filter_map(|row| row["threads"].as_u64()).collect();
    assert_eq!(threads, [1, 2, 4]);
    for row in &durable {
        assert!(row["commits_per_s"].as_f64().is_some_and(|figure| figure > 0.0));
        assert!(row["ratio_to_raw"].as_f64().is_some_and(|figure| figure > 0.0));
    }
    assert_eq!(durable[0]["ratio_to_one_thread"], 1.0);
}

#[test]
fn people_get_a_table() {
    let place = Place::new();
    let options = "bench --records 1000 --transactions 10 --value-size 4,8 --path b.azk --keep";
    let ran = place.run(options.split(' ')).succeeds();
    assert!(ran.stdout().contains("overhead"));
    assert!(ran.stdout().contains("kept b.azk"));
    let rows: Vec<&str> = ran.stdout().lines().filter(|line| line.contains("100  ")).collect();
    assert_eq!(rows.len(), 2, "{}", ran.stdout());
    assert_eq!(rows[0].chars().count(), rows[1].chars().count());
    // The file stays. It is an ordinary database: that of the last size.
    let count = place.run(["count", "b.azk", "--table", "bench"]).succeeds();
    assert_eq!(count.stdout(), "1000\n");
    place.run(["bench", "--path", "b.azk"]).fails(2, "exists already");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let place = Place::new();
    for options in [
        "--batch 5",
        "--order random --transactions 5",
        "--order durable --durability eventual",
        "--order random --keys text --value-size 8",
        "--order mixed --value-size 4",
        "--records 0",
        "--cache lots",
        "--csv x.csv",
    ] {
        place.run(["bench"].into_iter().chain(options.split(' '))).fails(2, "");
    }
}
