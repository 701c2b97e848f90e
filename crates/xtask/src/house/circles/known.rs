//! The circles that are there and stay for now.

/// A circle of files.
pub struct Known {
    /// Its crate's folder.
    pub folder: &'static str,
    /// Its files, below that folder.
    pub files: &'static [&'static str],
}

/// Each is to go. One that has gone, or has become smaller, is to be changed here too.
pub const KNOWN: &[Known] = &[
    Known { folder: "crates/azekura/src", files: &["cache/frame.rs", "cache/mod.rs", "cache/page.rs"] },
    Known {
        folder: "crates/azekura/src",
        files: &[
            "cursor/limits.rs",
            "cursor/mod.rs",
            "cursor/source.rs",
            "cursor/source/feed.rs",
            "cursor/value.rs",
        ],
    },
    Known { folder: "crates/azekura/src", files: &["format/block.rs", "format/unpacked.rs"] },
    Known {
        folder: "crates/azekura/src",
        files: &["format/guide.rs", "format/page.rs", "format/page/builder.rs"],
    },
    Known { folder: "crates/azekura/src", files: &["index/extract.rs", "index/json.rs", "index/msgpack.rs"] },
    Known { folder: "crates/azekura/src", files: &["index/parse.rs", "index/spec.rs"] },
    Known { folder: "crates/azekura/src", files: &["log/writer.rs", "log/writer/frames.rs"] },
    Known {
        folder: "crates/azekura/src",
        files: &["memtable/active.rs", "memtable/active/cursor.rs", "memtable/active/writer.rs"],
    },
    Known { folder: "crates/azekura/src", files: &["merge/general.rs", "merge/mod.rs"] },
    Known { folder: "crates/azekura/src", files: &["run/lookup.rs", "run/mapped.rs", "run/mod.rs"] },
    Known { folder: "crates/azekura/src", files: &["space/holes.rs", "space/mod.rs", "space/pinned.rs"] },
    Known {
        folder: "crates/azekura/src",
        files: &[
            "storage/direct.rs",
            "storage/mod.rs",
            "storage/os.rs",
            "storage/pins.rs",
            "storage/retry.rs",
        ],
    },
    Known {
        folder: "crates/azekura/src",
        files: &["txn/indexed.rs", "txn/reading.rs", "txn/savepoint.rs", "txn/write.rs"],
    },
    Known {
        folder: "crates/azekura/src",
        files: &["values/mapped.rs", "values/mod.rs", "values/place.rs", "values/writer.rs"],
    },
    Known {
        folder: "crates/cli/src",
        files: &[
            "bench/args.rs",
            "bench/durable.rs",
            "bench/mixed.rs",
            "bench/mod.rs",
            "bench/place.rs",
            "bench/random.rs",
            "bench/report.rs",
            "bench/sequential.rs",
        ],
    },
    Known { folder: "crates/cli/src", files: &["bench/data.rs", "bench/text_keys.rs"] },
    Known {
        folder: "crates/cli/src",
        files: &[
            "commands/index.rs",
            "commands/index/create.rs",
            "commands/index/drop.rs",
            "commands/index/get.rs",
        ],
    },
    Known {
        folder: "crates/sim/src",
        files: &["commands/backup.rs", "commands/backup/cuts.rs", "commands/backup/damage.rs"],
    },
    Known { folder: "crates/sim/src", files: &["commands/errors.rs", "commands/errors/full.rs"] },
    Known { folder: "crates/sim/src", files: &["commands/flips.rs", "commands/flips/every.rs"] },
    Known { folder: "crates/sim/src", files: &["disk/bytes.rs", "disk/shown.rs"] },
    Known {
        folder: "crates/bench-compare/src",
        files: &["measure/batches.rs", "measure/latency.rs", "measure/mod.rs"],
    },
    Known {
        folder: "crates/bench-compare/src",
        files: &[
            "peers/azekura.rs",
            "peers/crates/fjall.rs",
            "peers/crates/mod.rs",
            "peers/crates/redb.rs",
            "peers/helper/mod.rs",
            "peers/mariadb.rs",
            "peers/mod.rs",
            "peers/shim.rs",
        ],
    },
    Known { folder: "crates/bench-compare/src", files: &["records/mod.rs", "records/text.rs"] },
    Known { folder: "crates/bench-compare/src", files: &["report/columns.rs", "report/summary.rs"] },
];
