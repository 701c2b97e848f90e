//! The command line, and the cases that it asks for.

use crate::workloads::{Case, Workload};
use clap::{Parser, ValueEnum as _};
use std::path::PathBuf;

/// Compares Azekura with other key-value stores: the same keys, the same incompressible values, the
/// same memory budget, a process for each measurement, every value verified.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  bench-compare --quick\n  bench-compare sequential --peers azekura-ordered,kyoto-hash,lmdb\n  bench-compare random --records 100M --settle --runs 1 --json results.jsonl"
)]
pub struct Args {
    /// Which workloads; all if none is named.
    #[arg(value_enum)]
    pub workloads: Vec<Workload>,
    /// Which peers, separated by commas; all that are there if none is named.
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Smaller sizes and one run: about ten minutes for everything.
    #[arg(long)]
    pub quick: bool,
    /// Records to load, such as 1M.
    #[arg(long, value_parser = parse_count)]
    pub records: Option<u64>,
    /// Transactions over which the sequential workloads spread their records.
    #[arg(long, value_parser = parse_count, default_value = "1000")]
    pub transactions: u64,
    /// Records a transaction of the other workloads; a list makes a case of each.
    #[arg(long, value_parser = parse_count, value_delimiter = ',')]
    pub batch: Vec<u64>,
    /// Bytes of a value; a list makes a case of each.
    #[arg(long, value_delimiter = ',')]
    pub value_size: Vec<usize>,
    /// Random gets of each kind, at most.
    #[arg(long, value_parser = parse_count, default_value = "1M")]
    pub gets: u64,
    /// Seconds that the mixed and durable workloads run.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Threads that commit in the durable workload; a list makes a case of each.
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    pub threads: Vec<u64>,
    /// Memory for each peer, such as 512M.
    #[arg(long, value_parser = parse_bytes, default_value = "512M")]
    pub budget: u64,
    /// Repetitions of each measurement; the table has their median, and their range.
    #[arg(long)]
    pub runs: Option<u32>,
    /// Let peers finish their background work before they are read from.
    #[arg(long)]
    pub settle: bool,
    /// Seconds after which a measurement is given up.
    #[arg(long, default_value = "3600")]
    pub limit: u64,
    /// Where databases are made and removed; by default a new directory for temporary files.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Append every measurement to a file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List the peers and their configurations, and do nothing else.
    #[arg(long)]
    pub list: bool,
}

impl Args {
    /// Repetitions of each measurement.
    pub fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 }).max(1)
    }

    /// The cases, in the order in which to run them.
    pub fn cases(&self) -> Vec<Case> {
        let chosen = match self.workloads.as_slice() {
            [] => Workload::value_variants(),
            chosen => chosen,
        };
        chosen.iter().flat_map(|workload| self.cases_of(*workload)).collect()
    }

    fn cases_of(&self, workload: Workload) -> Vec<Case> {
        let preset = Preset::of(workload, self.quick);
        let threads = match workload {
            Workload::Durable => self.threads.as_slice(),
            _ => &[1],
        };
        let mut cases = Vec::new();
        for (value_bytes, preset_records) in self.values(&preset) {
            let records = self.records.unwrap_or(preset_records);
            for batch in self.batches(workload, &preset, records) {
                cases.extend(threads.iter().map(|threads| Case {
                    workload,
                    records,
                    batch,
                    value_bytes,
                    gets: self.gets,
                    seconds: self.seconds.unwrap_or(preset.seconds),
                    threads: (*threads).max(1),
                    budget_bytes: self.budget,
                    settle: self.settle,
                }));
            }
        }
        cases
    }

    fn values(&self, preset: &Preset) -> Vec<(usize, u64)> {
        match self.value_size.as_slice() {
            [] => preset.values.to_vec(),
            sizes => {
                let records = preset.values.first().map_or(0, |(_, records)| *records);
                sizes.iter().map(|size| (*size, records)).collect()
            }
        }
    }

    fn batches(&self, workload: Workload, preset: &Preset, records: u64) -> Vec<u64> {
        match (workload, self.batch.as_slice()) {
            (Workload::Sequential | Workload::Large, _) => {
                vec![records.div_ceil(self.transactions.max(1)).max(1)]
            }
            (Workload::Small | Workload::Durable, _) => vec![1],
            (_, []) => vec![preset.batch],
            (_, batches) => batches.iter().map(|batch| (*batch).max(1)).collect(),
        }
    }
}

/// The sizes of a workload that is not told others.
struct Preset {
    /// Lengths of values, and how many records of each.
    values: &'static [(usize, u64)],
    batch: u64,
    seconds: f64,
}

impl Preset {
    fn of(workload: Workload, quick: bool) -> Self {
        type Values = &'static [(usize, u64)];
        let (full, small, batch): (Values, Values, u64) = match workload {
            Workload::Sequential => (&[(4, 1_000_000)], &[(4, 1_000_000)], 1000),
            Workload::Large => (&[(4096, 250_000)], &[(4096, 25_000)], 250),
            Workload::Random => (&[(8, 10_000_000)], &[(8, 1_000_000)], 65_536),
            Workload::Ordinary16 => {
                (&[(44, 5_000_000), (1524, 1_000_000)], &[(44, 1_000_000), (1524, 100_000)], 100_000)
            }
            Workload::Text => (&[(0, 5_000_000)], &[(0, 500_000)], 65_536),
            Workload::Small => (&[(8, 1_000_000)], &[(8, 200_000)], 1),
            Workload::Mixed => (&[(100, 1_000_000)], &[(100, 1_000_000)], 100),
            Workload::Durable => (&[(8, 1_000_000)], &[(8, 1_000_000)], 1),
            Workload::Open => (&[(8, 10_000_000)], &[(8, 1_000_000)], 65_536),
        };
        Self {
            values: if quick { small } else { full },
            batch,
            seconds: match (workload, quick) {
                (Workload::Durable, true) => 1.0,
                (_, true) => 3.0,
                (Workload::Durable, false) => 3.0,
                (_, false) => 10.0,
            },
        }
    }
}

/// A count with an optional K, M or G for thousands, millions or billions.
fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, 1000)
}

/// A number of bytes with an optional K, M or G for powers of 1,024.
fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_scaled(text, 1024)
}

fn parse_scaled(text: &str, unit: u64) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        other => return Err(format!("{other:?} is none of K, M and G")),
    };
    let number: u64 = digits.replace(['_', ','], "").parse().map_err(|_| "not a number".to_owned())?;
    number.checked_mul(unit.pow(power)).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_bytes_have_their_units() {
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_bytes("512M"), Ok(512 << 20));
        assert!(parse_count("10X").is_err());
        assert!(parse_count("99999999999G").is_err());
    }

    #[test]
    fn lists_make_a_case_of_each() {
        let args =
            Args::parse_from(["bench-compare", "sequential", "durable", "--value-size", "4,16", "--records", "1M"]);
        let cases = args.cases();
        assert_eq!(cases.len(), 2 + 4);
        assert!(cases.iter().all(|case| case.records == 1_000_000));
        assert_eq!(cases.first().map(|case| case.batch), Some(1000));
    }
}
