//! How far the chains of the log have come in a mirror.

use super::chain::{Arrival, Position};
use crate::base::codec::u64_at;
use crate::base::limits::align_up;
use crate::format::frame::HEADER_BYTES;
use crate::format::manifest::Manifest;
use crate::space::Extent;
use std::collections::BTreeMap;

/// What a mirror has of a chain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChainAt {
    /// Frames below this number are in it, durably, or not needed.
    pub(super) below: u64,
    /// Frames below this number are found by who opens the mirror as it is.
    pub(super) end: u64,
    /// Where the next frame will stand, if one was shipped.
    pub(super) tail: Option<u64>,
    /// The latest time of the file's clock in those frames.
    pub(super) clock: u32,
}

/// The chains that a mirror has.
#[derive(Default)]
pub(super) struct Places {
    chains: BTreeMap<u64, ChainAt>,
    /// How far the segments reach, to which frames are shipped.
    reach: u64,
}

impl Places {
    pub(super) fn at(&self, chain: u64) -> Option<ChainAt> {
        self.chains.get(&chain).copied()
    }

    /// Frames of a chain below this number are durable.
    pub(super) fn durable_below(&self, chain: u64) -> u64 {
        self.at(chain).map_or(0, |at| at.below)
    }

    /// A chain was found in the file.
    pub(super) fn found(&mut self, at: &Position) {
        let Position { chain, number, tail, clock, .. } = *at;
        self.chains.insert(chain, ChainAt { below: number, end: number, tail: Some(tail), clock });
    }

    /// A frame, and all before it in its chain that are needed, are durable.
    pub(super) fn shipped(&mut self, arrival: &Arrival) {
        let placed = &arrival.placed;
        let goal = goal_of(arrival);
        self.reaches(goal.map_or(0, |goal| goal.end()));
        let tail = goal.map_or(placed.offset + align_up(placed.bytes.len() as u64), |goal| goal.offset);
        let at = self.chains.entry(arrival.chain).or_default();
        at.below = placed.frame.number + 1;
        at.tail = Some(tail);
        at.clock = at.clock.max(placed.frame.clock);
        if at.end == placed.frame.number {
            at.end = at.below;
        }
    }

    /// A segment reaches so far.
    pub(super) fn reaches(&mut self, end: u64) {
        self.reach = self.reach.max(end);
    }

    pub(super) fn reach(&self) -> u64 {
        self.reach
    }

    /// This is the newest manifest, and its segments reach so far.
    pub(super) fn keep(&mut self, manifest: &Manifest, reach: u64) {
        self.reach = reach;
        self.chains.retain(|id, _| manifest.logs.iter().any(|log| log.chain == *id));
        for log in &manifest.logs {
            let at = self.chains.entry(log.chain).or_default();
            at.below = at.below.max(log.first_frame);
            at.end = at.below;
        }
    }
}

impl Arrival {
    /// Whether a mirror has not got this frame.
    pub(super) fn is_lacking(&self, places: &Places) -> bool {
        self.placed.frame.number >= places.durable_below(self.chain)
    }

    /// The place of the frame, and the bytes that it takes. A jump stands twice.
    pub(super) fn extent(&self) -> (u64, u64) {
        let copies = if self.placed.frame.jump { 2 } else { 1 };
        (self.placed.offset, copies * align_up(self.placed.bytes.len() as u64))
    }
}

/// Where a jump leads.
pub(super) fn goal_of(arrival: &Arrival) -> Option<Extent> {
    let bytes = &arrival.placed.bytes;
    let is_jump = arrival.placed.frame.jump && bytes.len() >= HEADER_BYTES + 16;
    is_jump.then(|| Extent { offset: u64_at(bytes, HEADER_BYTES), len: u64_at(bytes, HEADER_BYTES + 8) })
}
