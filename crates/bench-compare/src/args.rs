//! The command line.

use crate::case::{Case, Workload};
use crate::presets::{self, Choices};
use clap::{Parser, Subcommand, ValueEnum as _};
use std::path::PathBuf;

/// Compares Azekura with other key-value stores: the same keys, the same incompressible values, the
/// same memory budget, a process for each measurement, every value verified.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        bench-compare --quick --json results.jsonl --html benchmarks.html\n  \
        bench-compare sequential --value-size 4 --peers azekura-ordered,kyoto-hash,lmdb\n  \
        bench-compare lookup --records 100M --settle --runs 1 --json results.jsonl\n  \
        bench-compare page --json results.jsonl --html benchmarks.html --fill README.md BENCHMARKS.md"
)]
pub struct Args {
    /// Makes a page of what was measured before, instead of measuring.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Which workloads; all if none is named.
    #[arg(value_enum)]
    pub workloads: Vec<Workload>,
    /// Which peers, separated by commas; all that are there if none is named.
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Smaller sizes, one run, and phases that are stopped in time: at most ten minutes for everything.
    #[arg(long)]
    pub quick: bool,
    /// Records to load, such as 1M.
    #[arg(long, value_parser = parse_count)]
    pub records: Option<u64>,
    /// Transactions over which sequential spreads its records.
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
    /// Seconds that what runs for a time runs: pairs, ycsb, mixed, durable; and when recover kills.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Threads of durable (1, 2, 4 and 8 otherwise) and ycsb (1 and 2); a list makes a case of each.
    #[arg(long, value_delimiter = ',')]
    pub threads: Vec<u64>,
    /// Operations a second of ycsb's open loop; 0 leaves it out.
    #[arg(long, value_parser = parse_count, default_value = "20K")]
    pub rate: u64,
    /// Seconds after which a load, or a kind of gets, is stopped; its rate is of what it did. With
    /// --quick it is chosen so that all fits.
    #[arg(long)]
    pub phase: Option<f64>,
    /// Memory for each peer, such as 512M.
    #[arg(long, value_parser = parse_bytes, default_value = "512M")]
    pub budget: u64,
    /// Memory to be touched and given back before each measurement, 2G unless it is a quick run: else
    /// whoever is measured first may pay for what the host of a virtual machine has taken back.
    #[arg(long, value_parser = parse_bytes)]
    pub warm: Option<u64>,
    /// Repetitions of each measurement; the table has their median, and their range.
    #[arg(long)]
    pub runs: Option<u32>,
    /// Let peers finish their background work before they are read from.
    #[arg(long)]
    pub settle: bool,
    /// A command of the shell that is run before a store is opened to be read, such as one that empties the
    /// system's page cache; in its environment PEER_PID is the process that will read.
    #[arg(long, value_name = "COMMAND")]
    pub before_reads: Option<String>,
    /// Seconds after which a measurement is given up.
    #[arg(long, default_value = "3600")]
    pub limit: u64,
    /// Where databases are made and removed; by default a new directory for temporary files.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Append every measurement to a file as it comes, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with plots, and all that the JSON file has from earlier runs.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a summary: for each workload Azekura's ratio to the best peer.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// List the peers and their configurations, and do nothing else.
    #[arg(long)]
    pub list: bool,
}

/// What else there is to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a page or a summary of what was measured before, or fills its figures into documents.
    Page {
        /// Files of measurements; of those with the same case and peer the last counts.
        #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
        json: Vec<PathBuf>,
        /// The page with plots.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// The summary.
        #[arg(long, value_name = "FILE")]
        markdown: Option<PathBuf>,
        /// Documents whose blocks of figures are written anew: `<!-- figures -->` and the like.
        #[arg(long, value_name = "FILE", num_args = 1..)]
        fill: Vec<PathBuf>,
    },
}

/// The seconds that a quick run may take in all. Measurements that would begin later are left out.
pub const QUICK_S: f64 = 585.0;
/// The time of a measurement besides its phases: processes, closing, removing files, waiting for the disk. It
/// is measured over all peers.
const AROUND_S: f64 = 0.25;
/// The limits between which the phases of a quick run are chosen.
const PHASE_S: (f64, f64) = (0.05, 3.0);
/// Most phases end long before they would be stopped. So each may be this much longer than its share.
const PHASE_STRETCH: f64 = 1.3;

/// The memory and system cache that a peer needs, in most cases.
const WARM_BYTES: u64 = 2 << 30;

impl Args {
    /// Repetitions of each measurement.
    pub fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 }).max(1)
    }

    /// Bytes of memory to touch before each measurement.
    pub fn warm(&self) -> u64 {
        self.warm.unwrap_or(if self.quick { 0 } else { WARM_BYTES })
    }

    /// The cases, in the order in which to run them. `takes_part` gives the number of measurements of a case.
    pub fn cases(&self, takes_part: impl Fn(&Case) -> usize) -> Vec<Case> {
        let chosen = match self.workloads.as_slice() {
            [] => Workload::value_variants(),
            chosen => chosen,
        };
        let choices = self.choices();
        let mut cases: Vec<Case> =
            chosen.iter().flat_map(|workload| presets::cases(*workload, &choices)).collect();
        if self.quick && self.phase.is_none() {
            let measurements = |case: &Case| {
                f64::from(self.runs()) * f64::from(u32::try_from(takes_part(case)).unwrap_or(u32::MAX))
            };
            let fixed: f64 =
                cases.iter().map(|case| measurements(case) * (AROUND_S + presets::phases_s(case, 0.0))).sum();
            let each: f64 = cases
                .iter()
                .map(|case| {
                    measurements(case) * (presets::phases_s(case, 1.0) - presets::phases_s(case, 0.0))
                })
                .sum();
            let phase = PHASE_STRETCH * (QUICK_S - fixed) / each.max(1e-9);
            // Two digits, so that the figure can be told.
            let phase = (phase.clamp(PHASE_S.0, PHASE_S.1) * 100.0).floor() / 100.0;
            cases.iter_mut().for_each(|case| case.phase_s = Some(phase));
        }
        cases
    }

    fn choices(&self) -> Choices {
        Choices {
            quick: self.quick,
            records: self.records,
            transactions: self.transactions,
            batch: self.batch.clone(),
            value_size: self.value_size.clone(),
            gets: self.gets,
            seconds: self.seconds,
            threads: self.threads.clone(),
            rate: self.rate,
            budget: self.budget,
            phase: self.phase,
            settle: self.settle,
            before_reads: self.before_reads.clone(),
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

    fn cases(words: &[&str]) -> Vec<Case> {
        Args::parse_from(std::iter::once("bench-compare").chain(words.iter().copied())).cases(|_| 20)
    }

    #[test]
    fn counts_and_bytes_have_their_units() {
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_bytes("512M"), Ok(512 << 20));
        assert!(parse_count("10X").is_err());
        assert!(parse_count("99999999999G").is_err());
    }

    #[test]
    fn lists_make_a_case_of_each() {
        let cases =
            cases(&["sequential", "durable", "--value-size", "4,16", "--threads", "1,4", "--records", "1M"]);
        assert_eq!(cases.len(), 2 + 4);
        assert!(cases.iter().all(|case| case.records == 1_000_000 && case.phase_s.is_none()));
        assert_eq!(cases.first().map(|case| case.batch), Some(1000));
    }

    #[test]
    fn a_quick_run_divides_its_time() {
        let (all, one) = (cases(&["--quick"]), cases(&["text", "--quick"]));
        let phase = |cases: &[Case]| cases.first().and_then(|case| case.phase_s).unwrap_or(0.0);
        assert!(phase(&all) >= PHASE_S.0 && phase(&all) < phase(&one));
    }

    #[test]
    fn a_page_is_made_of_files() {
        let args = Args::parse_from(["bench-compare", "page", "--json", "a", "b", "--html", "c"]);
        assert!(matches!(args.command, Some(Command::Page { json, .. }) if json.len() == 2));
    }
}
