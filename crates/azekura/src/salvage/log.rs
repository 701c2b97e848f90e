//! The log of a damaged file: every commit that can be read, also behind a gap.

use super::input::Input;
use super::report::SalvageReport;
use super::scan::FrameAt;
use crate::base::codec::usize_of;
use crate::format::frame::{HEADER_BYTES, RecordPart};
use crate::format::manifest::{LogChain, Manifest};
use crate::log::stream::Stream;
use std::collections::{BTreeMap, BTreeSet};

/// One commit.
pub(super) struct Commit {
    /// The newest checkpoint that was known when it was logged.
    pub(super) checkpoint: u64,
    pub(super) parts: Vec<RecordPart>,
}

/// Commits by their sequence numbers.
pub(super) type Commits = BTreeMap<u64, Commit>;

/// What the log says.
#[derive(Default)]
pub(super) struct Log {
    pub(super) commits: Commits,
    /// Tables to which commits write whose frames know of the newest checkpoint. A frame may know of it just
    /// before others see what it has changed, so a table that it has dropped can be among them.
    pub(super) used_since: BTreeSet<u32>,
}

/// Reads the commits in `frames`. With the manifest of the newest checkpoint, and its number, only those in
/// frames that it names. Commits that are in its runs are left out.
pub(super) fn read(
    input: &Input,
    mut frames: Vec<FrameAt>,
    newest: Option<(&Manifest, u64)>,
    report: &mut SalvageReport,
) -> Log {
    let (flushed, checkpoint) =
        newest.map_or((0, u64::MAX), |(manifest, number)| (manifest.flushed_seq, number));
    let mut commits = Commits::new();
    let mut used_since = BTreeSet::new();
    if let Some(chains) = newest.map(|(manifest, _)| &manifest.logs) {
        keep_named(&mut frames, chains, report);
    }
    // A jump stands twice, and a frame without payload has the number of the frame that follows it.
    frames.sort_by_key(|f| (f.frame.chain, f.frame.number, f.frame.len == 0));
    frames.dedup_by_key(|f| (f.frame.chain, f.frame.number));
    let mut stream = Stream::default();
    let mut before: Option<(u64, u64)> = None;
    for FrameAt { frame, offset } in frames {
        let here = (frame.chain, frame.number);
        if before.is_none_or(|(chain, number)| (chain, number + 1) != here) {
            stream = Stream::default();
            if before.is_some_and(|b| b.0 == frame.chain) {
                gap(report, frame.chain, "has a gap");
            }
        }
        before = Some(here);
        if frame.jump {
            continue;
        }
        let mut bytes = vec![0; HEADER_BYTES + usize_of(frame.len)];
        input.read(offset, &mut bytes);
        let added = stream.add(&frame, &bytes[HEADER_BYTES..], offset, &mut |seq, parts| {
            // What was never acknowledged has the number of a commit that was made in its place, later.
            let is_newer = commits.get(&seq).is_none_or(|known| known.checkpoint <= frame.checkpoint);
            if seq > flushed && is_newer {
                if frame.checkpoint >= checkpoint {
                    used_since.extend(parts.iter().filter(|p| p.change.is_none()).map(|p| p.table));
                }
                commits.insert(seq, Commit { checkpoint: frame.checkpoint, parts });
            }
            Ok(())
        });
        if added.is_err() {
            gap(report, frame.chain, "has a record that makes no sense");
            before = None;
        }
    }
    report.commits = commits.len() as u64;
    Log { commits, used_since }
}

/// Keeps the frames that a manifest's `chains` name, and reports where some are missing.
fn keep_named(frames: &mut Vec<FrameAt>, chains: &[LogChain], report: &mut SalvageReport) {
    let wanted = |f: &FrameAt| {
        let named = chains.iter().find(|c| c.chain == f.frame.chain);
        named.is_some_and(|c| (c.first_frame..c.end_frame).contains(&f.frame.number))
    };
    frames.retain(wanted);
    for chain in chains {
        let first = frames.iter().filter(|f| f.frame.chain == chain.chain).map(|f| f.frame.number).min();
        let last = frames.iter().filter(|f| f.frame.chain == chain.chain).map(|f| f.frame.number).max();
        let known = frames.iter().filter(|f| f.frame.chain == chain.chain).map(|f| f.frame.durable_below);
        let durable = known.fold(chain.durable_below, u64::max);
        let from = first.is_some_and(|n| n > chain.first_frame);
        // Frames are missing at the end if the chain's end is known, or if the manifest or a frame knows
        // of later ones.
        let end = if chain.end_frame == u64::MAX { durable } else { chain.end_frame };
        let to = last.map_or(chain.first_frame, |n| n + 1) < end;
        if from || to {
            gap(report, chain.chain, if from { "begins" } else { "ends" });
        }
    }
}

fn gap(report: &mut SalvageReport, chain: u64, what: &str) {
    report.log_gaps += 1;
    report.lose(format!("the log's chain {chain} {what} where frames are missing: commits may be lost"));
}
