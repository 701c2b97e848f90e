//! The arguments of `bench`, and which of them can be combined.

use std::path::PathBuf;

use azekura::{Durability, Options, TableKind};
use clap::ValueEnum;

use super::data::{Dataset, KeyShape, ValueShape};
use crate::failure::{Failure, Outcome};
use crate::units::{parse_bytes, parse_count, parse_positive, parse_seconds};

/// The value sizes of the sequential order if none is given, in bytes.
const SEQUENTIAL_VALUE_BYTES: [u64; 11] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// The largest value for which a pool in memory is practical.
const MAX_VALUE_BYTES: u64 = 1 << 30;
/// In the mixed order a value has at least the bytes of its version.
const MIXED_VALUE_BYTES_MIN: u64 = 8;
/// The number of transactions in the sequential order if none is given.
const DEFAULT_TRANSACTIONS: u64 = 1_000;
/// The records of one transaction in the random order if no number is given.
const DEFAULT_BATCH: u64 = 65_536;

/// The order in which records are written, and what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Ascending keys; every key is read back in sequence
    Sequential,
    /// Keys in random order; then random gets of present and absent keys
    Random,
    /// Random updates in one thread beside random gets in another
    Mixed,
    /// Single-record durable transactions, in 1, 2 and 4 threads
    Durable,
}

/// The kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindArgument {
    /// In the order of the keys
    Ordered,
    /// In hash order
    Hash,
}

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// At once; durable within a second
    Eventual,
    /// When it is durable
    Sync,
}

/// What keys look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// Fixed-width integers
    Binary,
    /// URL-like text of 8 to 40 bytes, with values of 20 to 200 bytes
    Text,
}

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sizes take units (512MiB, 4k), counts too (10M). Values are incompressible, and every byte\n\
                  that is read is compared with what was written.\n\n\
                  Example:\n  azekura bench\n  \
                  azekura bench --value-size 4 --records 10M --transactions 10k\n  \
                  azekura bench --order random --table hash --records 100M --cache 512MiB\n  \
                  azekura bench --order random --keys text --records 5M --batch 100k\n  \
                  azekura bench --order durable --seconds 5"
)]
pub struct Args {
    /// What to measure
    #[arg(long, value_enum, default_value = "sequential")]
    pub order: Order,
    /// The kind of table
    #[arg(long, value_enum, default_value = "ordered")]
    pub table: KindArgument,
    /// Records
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = parse_positive)]
    pub records: u64,
    /// Transactions that the records are written in (sequential) [default: 1000]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    transactions: Option<u64>,
    /// Records in one transaction (random: 65536, mixed: 100)
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    batch: Option<u64>,
    /// When a commit returns [default: eventual]
    #[arg(long, value_enum)]
    durability: Option<When>,
    /// Bytes of a value; several, separated by commas, give a row each
    /// [default: 4,8,16,…,4096 (sequential), 8 (random), 100 (mixed, durable)]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_bytes)]
    value_size: Vec<u64>,
    /// What keys look like (random)
    #[arg(long, value_enum, default_value = "binary")]
    keys: Keys,
    /// Bytes of a binary key: 8 or 16 (random)
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = ["8", "16"])]
    key_bytes: String,
    /// Memory budget of the engine [default: the engine's own]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub cache: Option<u64>,
    /// The database file, which must not exist [default: in the temporary directory]
    #[arg(long, value_name = "FILE")]
    pub path: Option<PathBuf>,
    /// Keep the database file afterwards
    #[arg(long)]
    pub keep: bool,
    /// Wait after the load until background merging is done, timed apart (random: the default)
    #[arg(long, overrides_with = "no_settle")]
    settle: bool,
    /// Do not wait for background merging
    #[arg(long, overrides_with = "settle")]
    no_settle: bool,
    /// The time of each batch, as CSV (random) [default: beside the database file]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Replace the CSV file if it exists (random)
    #[arg(long)]
    pub force: bool,
    /// Random gets of present and of absent keys (random) [default: 2M, or the records if fewer]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    gets: Option<u64>,
    /// How long to run (mixed: 10, durable: 5 for each number of threads)
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Seed of the values and of the random choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub seed: u64,
    /// Print one JSON object a row on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Refuses arguments that have no meaning in this order, and sets defaults that depend on the order.
    pub fn validate(&mut self) -> Outcome {
        let given = [
            ("--transactions", self.transactions.is_some(), &[Order::Sequential][..]),
            ("--batch", self.batch.is_some(), &[Order::Random, Order::Mixed]),
            ("--keys text", self.keys == Keys::Text, &[Order::Random]),
            ("--key-bytes 16", self.key_bytes == "16", &[Order::Random]),
            ("--csv", self.csv.is_some(), &[Order::Random]),
            ("--force", self.force, &[Order::Random]),
            ("--gets", self.gets.is_some(), &[Order::Random]),
            ("--seconds", self.seconds.is_some(), &[Order::Mixed, Order::Durable]),
            ("--settle", self.settle, &[Order::Sequential, Order::Random]),
        ];
        for (name, is_given, orders) in given {
            if is_given && !orders.contains(&self.order) {
                let text = format!("{name} has no meaning with --order {}", self.order_name());
                return Err(Failure::Usage(text));
            }
        }
        if self.order == Order::Durable && self.durability == Some(When::Eventual) {
            return Err(Failure::Usage("--order durable measures durable commits".to_owned()));
        }
        if self.keys == Keys::Text && (!self.value_size.is_empty() || self.key_bytes == "16") {
            let text = "--keys text has its own sizes: values of 20 to 200 bytes";
            return Err(Failure::Usage(text.to_owned()));
        }
        self.validate_sizes()
    }

    fn validate_sizes(&mut self) -> Outcome {
        if self.value_size.is_empty() {
            self.value_size = match self.order {
                Order::Sequential => SEQUENTIAL_VALUE_BYTES.to_vec(),
                Order::Random => vec![8],
                Order::Mixed | Order::Durable => vec![100],
            };
        }
        let least = if self.order == Order::Mixed { MIXED_VALUE_BYTES_MIN } else { 0 };
        for &size in &self.value_size {
            if size < least || size > MAX_VALUE_BYTES {
                let text = format!("--value-size {size}: from {least} to {MAX_VALUE_BYTES} bytes");
                return Err(Failure::Usage(text));
            }
        }
        if self.keys == Keys::Text && self.records > super::text_keys::MAX_RECORDS {
            let text = format!("--keys text: at most {} records", super::text_keys::MAX_RECORDS);
            return Err(Failure::Usage(text));
        }
        Ok(())
    }

    /// The value sizes, one for each row.
    pub fn value_sizes(&self) -> &[u64] {
        &self.value_size
    }

    /// The number of transactions in the sequential order. None is empty.
    pub fn transactions(&self) -> u64 {
        self.transactions.unwrap_or(DEFAULT_TRANSACTIONS).min(self.records)
    }

    /// Records in one transaction.
    pub fn batch(&self) -> u64 {
        let default = if self.order == Order::Mixed { 100 } else { DEFAULT_BATCH };
        self.batch.unwrap_or(default)
    }

    /// The number of random gets of present keys, and of absent ones.
    pub fn gets(&self) -> u64 {
        self.gets.unwrap_or_else(|| self.records.min(2_000_000)).max(1)
    }

    /// How long each run of a timed order takes.
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.order == Order::Mixed { 10.0 } else { 5.0 })
    }

    /// Whether to wait for background merging.
    pub fn settles(&self) -> bool {
        !self.no_settle && (self.settle || self.order == Order::Random)
    }

    /// The records of one row.
    pub fn dataset(&self, value_bytes: u64) -> Dataset {
        let keys = match (self.order, self.keys, self.key_bytes.as_str()) {
            (Order::Sequential, ..) => KeyShape::Ascending,
            (_, Keys::Text, _) => KeyShape::Text,
            (_, _, "16") => KeyShape::Mixed16,
            _ => KeyShape::Mixed8,
        };
        let values = match self.keys {
            Keys::Text => ValueShape::Spread,
            Keys::Binary => ValueShape::Fixed(value_bytes),
        };
        Dataset::new(keys, values, self.seed)
    }

    /// The engine's options, for a new file or for one just written.
    pub fn options(&self) -> Options {
        let options = Options::new().durability(self.durability());
        match self.cache {
            Some(bytes) => options.memory_bytes(bytes),
            None => options,
        }
    }

    /// The durability of every commit.
    pub fn durability(&self) -> Durability {
        match (self.order, self.durability) {
            (Order::Durable, _) | (_, Some(When::Sync)) => Durability::Sync,
            _ => Durability::Eventual,
        }
    }

    /// The kind of table, as the engine names it.
    pub fn kind(&self) -> TableKind {
        match self.table {
            KindArgument::Ordered => TableKind::Ordered,
            KindArgument::Hash => TableKind::Hash,
        }
    }

    /// The order's name, as on the command line.
    pub fn order_name(&self) -> &'static str {
        match self.order {
            Order::Sequential => "sequential",
            Order::Random => "random",
            Order::Mixed => "mixed",
            Order::Durable => "durable",
        }
    }

    /// The table kind's name, as on the command line.
    pub fn table_name(&self) -> &'static str {
        crate::store::kind_name(self.kind())
    }

    /// The durability's name, as on the command line.
    pub fn durability_name(&self) -> &'static str {
        match self.durability() {
            Durability::Sync => "sync",
            Durability::Eventual => "eventual",
        }
    }
}
