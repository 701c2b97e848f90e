//! A workload with its sizes: what is compared between peers.

use crate::numbers::grouped;
use crate::peers::{About, PeerPlace};
use crate::records::Shape;
use serde::{Deserialize, Serialize};

/// A workload by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The classic table: ascending 8-byte keys, values of 4 to 8,192 bytes, 1,000 transactions;
    /// reopened, got in order, scanned.
    Sequential,
    /// Scattered 8-byte keys with 8-byte values, batch by batch; gets of present and absent keys, one
    /// by one and by the hundred.
    Lookup,
    /// Scattered 16-byte keys with values of 44 and 1,524 bytes in batches of 100,000; gets of
    /// distinct keys and of the same one.
    Huge,
    /// Scattered 8-byte keys with 36-byte values and an index of the first 8 bytes of these, in batches of
    /// 100,000; then lookups by the index.
    Index,
    /// Lists of pairs of about 730-byte texts, put and got over and over.
    Pairs,
    /// Text keys of 8 to 40 bytes with values of 20 to 200 bytes.
    Text,
    /// One record a transaction, not synced.
    Small,
    /// The six mixes of the Yahoo! Cloud Serving Benchmark, zipfian, from one thread and from two, and
    /// at a fixed rate.
    Ycsb,
    /// A thread that gets beside a thread that commits transactions of 100 updates.
    Mixed,
    /// One record a transaction, synced, from 1, 2, 4 and 8 threads; beside a file appended and synced.
    Durable,
    /// All records, ranges of 100, and all in reverse.
    Scan,
    /// Half of the records removed at random; then the file's size and gets.
    Delete,
    /// A cache: records that live for a tenth of the time are put all the time, as many in each life as there
    /// are to be at once; then what that takes of processor, file and memory.
    Ttl,
    /// Numbers that are incremented at random, many in a transaction, and got; then one of them is, by four
    /// threads.
    Counters,
    /// Records put with every change kept for a reader, beside the same without; the changes taken
    /// afterwards, and while they are made.
    Feed,
    /// Backups while another thread updates: the first, one after 1 % was updated, restoring that, and what
    /// the writer loses beside them.
    Backup,
    /// The time to open a database whose process was killed in the middle of a load.
    Recover,
    /// The time to open a database and get one record.
    Open,
}

/// A workload with its sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Which.
    pub workload: Workload,
    /// Records loaded.
    pub records: u64,
    /// Records a transaction.
    pub batch: u64,
    /// Bytes of a value; ignored by the text workload.
    pub value_bytes: usize,
    /// Random gets of each kind, at most.
    pub gets: u64,
    /// How long what runs for a time runs.
    pub seconds: f64,
    /// Threads, in the workloads that have several.
    pub threads: u64,
    /// Operations a second in all. Each begins on time, even if earlier ones are not done. Without a rate,
    /// each thread begins one when the one before is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u64>,
    /// Memory for the peer.
    pub budget_bytes: u64,
    /// Seconds after which a load, or a kind of gets, is stopped; its rate is of what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_s: Option<f64>,
    /// Let peers finish their background work, outside the times, before they are read from.
    pub settle: bool,
    /// A command of the shell that is run before the store is opened to be read. `PEER_PID` in its
    /// environment is the process that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_reads: Option<String>,
}

impl Case {
    /// The shape of its records.
    pub fn shape(&self) -> Shape {
        match self.workload {
            Workload::Sequential => Shape::Ascending,
            Workload::Huge | Workload::Feed => Shape::Random16,
            Workload::Pairs => Shape::Pairs,
            Workload::Text => Shape::Text,
            _ => Shape::Random8,
        }
    }

    /// The case in words, without the workload's name.
    pub fn detail(&self) -> String {
        let (records, value, s) = (grouped(self.records), grouped_size(self.value_bytes), self.seconds);
        let batch = match self.batch {
            1 => "one a transaction".to_owned(),
            batch => format!("{} a transaction", grouped(batch)),
        };
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        match self.workload {
            Workload::Sequential | Workload::Lookup | Workload::Small | Workload::Index => {
                format!("{records} records of 8 + {value} bytes, {batch}")
            }
            Workload::Huge | Workload::Feed => format!("{records} records of 16 + {value} bytes, {batch}"),
            Workload::Text => format!("{records} records of 8…40 + 20…200 bytes, {batch}"),
            Workload::Pairs => {
                format!(
                    "lists of {records} pairs of 8…40 + {value} bytes, put in one transaction and got, for {s} s"
                )
            }
            Workload::Ycsb => match self.rate_per_s {
                None => format!("{records} records of 8 + {value} bytes, {threads}, {s} s each"),
                Some(rate) => format!(
                    "{records} records of 8 + {value} bytes, {} operations/s from {threads}, {s} s each",
                    grouped(rate)
                ),
            },
            Workload::Mixed => format!(
                "transactions of {} updates beside gets, {records} records of 8 + {value} bytes, {s} s",
                grouped(self.batch)
            ),
            Workload::Durable => {
                format!("synced commits of one record of 8 + {value} bytes, {threads}, {s} s")
            }
            Workload::Delete => format!("half of {records} records of 8 + {value} bytes, {batch}"),
            Workload::Ttl => format!(
                "{records} records of 8 + {value} bytes at once, each for {:.1} s, for {s} s, {batch}",
                s / 10.0
            ),
            Workload::Counters => {
                format!("{records} counters incremented at random, {batch}, then one by 4 threads, for {s} s")
            }
            Workload::Backup => format!(
                "{records} records of 8 + {value} bytes; beside transactions of {} updates for {s} s",
                grouped(self.batch)
            ),
            Workload::Recover => {
                format!("killed after {s} s of putting records of 8 + {value} bytes, {batch}")
            }
            Workload::Scan | Workload::Open => format!("{records} records of 8 + {value} bytes"),
        }
    }

    /// The case in words.
    pub fn title(&self) -> String {
        format!("{}: {}", self.workload.name(), self.detail())
    }

    /// Whether a peer can take part: its transactions and its keys must be what the case asks for.
    pub fn suits(&self, about: &About) -> bool {
        let numbers = match self.workload {
            Workload::Lookup => self.value_bytes == 8,
            workload => workload == Workload::Index,
        };
        // A helper process answers one call after the other. A server outlives its client.
        let together = self.threads > 1
            || self.rate_per_s.is_some()
            || matches!(self.workload, Workload::Mixed | Workload::Backup);
        // What a helper is told in one message is not seen one by one.
        let in_steps = matches!(self.workload, Workload::Ttl | Workload::Counters | Workload::Feed);
        let killed_with_us = self.workload != Workload::Recover || about.place != PeerPlace::Server;
        (self.shape() == Shape::Ascending || !about.ascending_only)
            && (numbers || !about.numbers_only)
            && !(together && matches!(about.place, PeerPlace::Helper(_)))
            && killed_with_us
            && (self.workload != Workload::Index || about.indexes)
            && (self.workload != Workload::Feed || about.feeds)
            && (self.workload != Workload::Backup || about.backs_up)
            && (!in_steps || about.place == PeerPlace::Here)
    }
}

impl Workload {
    /// As given on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Lookup => "lookup",
            Self::Huge => "huge",
            Self::Index => "index",
            Self::Pairs => "pairs",
            Self::Text => "text",
            Self::Small => "small",
            Self::Ycsb => "ycsb",
            Self::Mixed => "mixed",
            Self::Durable => "durable",
            Self::Scan => "scan",
            Self::Delete => "delete",
            Self::Ttl => "ttl",
            Self::Counters => "counters",
            Self::Feed => "feed",
            Self::Backup => "backup",
            Self::Recover => "recover",
            Self::Open => "open",
        }
    }
}

fn grouped_size(bytes: usize) -> String {
    grouped(crate::records::to_u64(bytes))
}
