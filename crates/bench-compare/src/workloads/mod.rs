//! The workloads. Each is a function that runs in a process of its own and measures one peer.

mod backup;
mod bench;
mod counters;
mod delete;
mod durable;
mod feed;
mod index;
mod lookup;
mod mixed;
mod open;
mod pairs;
mod recover;
mod scan;
mod sequential;
mod ttl;
mod versions;
mod ycsb;
mod zipf;

#[cfg(test)]
mod tests;

pub use durable::RAW_FILES;

use crate::case::Workload;
use crate::failure::{Failure, Result};
use crate::job::{Job, Outcome, Part};
use crate::measure::Measured;
use crate::peers::{self, Peer};
use bench::Bench;

/// Does a job in this process.
pub fn run(job: &Job) -> Result<Outcome> {
    if let Some(raw) = RAW_FILES.iter().find(|raw| raw.name == job.peer) {
        return durable::raw_file(raw, job);
    }
    let peer = peers::all()
        .into_iter()
        .find(|(about, _)| about.name == job.peer)
        .and_then(|(_, peer)| peer)
        .ok_or_else(|| Failure::Usage(format!("there is no peer {:?} here", job.peer)))?;
    let measured = measure(peer.as_ref(), job)?;
    Ok(Outcome { version: peer.version(), configuration: peer.configuration(), measured })
}

fn measure(peer: &dyn Peer, job: &Job) -> Result<Measured> {
    let bench = &mut Bench::new(peer, &job.case, &job.dir);
    let mut measured = match (job.case.workload, job.part) {
        (Workload::Recover, Part::LoadUntilKilled) => match recover::load(bench)? {},
        (Workload::Recover, _) => recover::run(bench, job),
        (_, Part::Load) => open::load(bench),
        (Workload::Open, _) => open::run(bench, job),
        (Workload::Sequential, _) => sequential::run(bench),
        (Workload::Lookup | Workload::Huge | Workload::Text | Workload::Small, _) => lookup::run(bench),
        (Workload::Index, _) => index::run(bench),
        (Workload::Pairs, _) => pairs::run(bench),
        (Workload::Ycsb, _) => ycsb::run(bench),
        (Workload::Mixed, _) => mixed::run(bench),
        (Workload::Durable, _) => durable::run(bench),
        (Workload::Scan, _) => scan::run(bench),
        (Workload::Delete, _) => delete::run(bench),
        (Workload::Ttl, _) => ttl::run(bench),
        (Workload::Counters, _) => counters::run(bench),
        (Workload::Feed, _) => feed::run(bench),
        (Workload::Backup, _) => backup::run(bench),
    }?;
    bench.report_memory(&mut measured);
    Ok(measured)
}
