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
