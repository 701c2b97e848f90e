//! Looks at every block of the file for structures that identify themselves: pages, meta blocks, log frames.

use super::identity::{Identity, Solver};
use super::input::Input;
use crate::base::codec::{u32_at, usize_of, usize_of64};
use crate::base::error::Result;
use crate::base::limits::{
    ALIGN_BYTES, COUNT_END, PAGE_BYTES, SMALL_PAGE_BYTES, SUPERBLOCKS_BYTES, align_up,
};
use crate::engine::Progress;
use crate::format::frame::{self, Frame};
use crate::format::page::FILTER_PAGE_BASE;
use crate::format::page::{HEADER_BYTES, PageIdentity, SHAPE_MAX, units_of, used_of, verify};
use crate::run::label::{self, Label};
use crate::run::meta::Meta;
use std::collections::{BTreeMap, HashMap};

/// How much of the file is looked at together.
const WINDOW_BYTES: usize = 4 << 20;
/// How much of a page in a window may be behind the window.
const OVERLAP_BYTES: usize = 6 * PAGE_BYTES;
/// How many identities are counted. A hostile file may have more.
const VOTES_MAX: usize = 1 << 20;

/// Where a page of a run is.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageAt {
    pub(super) number: u32,
    pub(super) offset: u64,
    /// The size of its units.
    pub(super) unit_bytes: usize,
    /// How many of its bytes are there. At a run's end the missing ones are zeros.
    pub(super) there: usize,
}

/// What was found of a run.
#[derive(Default)]
pub(super) struct FoundRun {
    pub(super) pages: Vec<PageAt>,
    /// The identity in the first of its pages.
    pub(super) place: Option<PageIdentity>,
    pub(super) label: Option<Label>,
    /// Its fence and range deletes, if these are whole.
    pub(super) meta: Option<Meta>,
}

/// A frame of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameAt {
    pub(super) frame: Frame,
    pub(super) offset: u64,
}

/// What the file holds.
#[derive(Default)]
pub(super) struct Found {
    pub(super) runs: BTreeMap<u64, FoundRun>,
    pub(super) frames: Vec<FrameAt>,
}

/// What speaks for an identity.
struct Vote {
    count: u64,
    /// Run and number of the first page that has it. Copies of this page, and cut versions of it, do not
    /// count again. None if a checksum that needs no identity has confirmed it.
    page: Option<(u64, u32)>,
}

/// One block, and the bytes that follow it.
struct Block<'a> {
    input: &'a Input,
    offset: u64,
    bytes: &'a [u8],
}

/// The identity that most structures of the file have.
pub(super) fn identity(input: &Input, progress: &mut dyn FnMut(Progress)) -> Option<Identity> {
    let (mut solver, mut votes) = (Solver::default(), HashMap::<Identity, Vote>::new());
    each_block(input, progress, |block| {
        let mut vote = |identity, page: Option<(u64, u32)>| {
            let is_known = votes.contains_key(&identity);
            if votes.len() < VOTES_MAX || is_known {
                let vote = votes.entry(identity).or_insert(Vote { count: 0, page });
                vote.count += u64::from(!is_known || page.is_none() || page != vote.page);
                // A confirmed identity belongs to no single page.
                vote.page = page.and(vote.page);
            }
        };
        if let Some(frame) = block.frame() {
            vote(Identity::of(frame.file_id), None);
        } else if let Some(label) = block.label() {
            vote(Identity::of(label.file_id), None);
        } else {
            let place = PageIdentity::read(block.bytes);
            let pages = block.page_bytes().into_iter();
            pages.for_each(|page| vote(solver.solve(&page.bytes), Some((place.run, place.number))));
        }
    });
    // A single page proves nothing: any bytes give some identity. Two different pages that agree are no
    // accident.
    let known = votes.into_iter().map(|(id, vote)| (id, (vote.count, vote.page.is_none())));
    let known = known.filter(|(_, (n, is_sure))| *is_sure || *n > 1);
    known.max_by_key(|&(identity, (n, _))| (n, identity)).map(|(identity, _)| identity)
}

/// Finds what belongs to the file: its frames, and its runs if `runs`.
pub(super) fn find(
    input: &Input,
    identity: Identity,
    runs: bool,
    progress: &mut dyn FnMut(Progress),
) -> Found {
    let mut found = Found::default();
    let mut frames_end = 0;
    each_block(input, progress, |block| {
        if block.offset < frames_end {
            // Part of a frame's payload. Frames do not overlap; otherwise a small file could hold endless
            // commits.
        } else if let Some(frame) = block.frame() {
            if Identity::of(frame.file_id) == identity {
                frames_end = block.offset + frame::HEADER_BYTES as u64 + u64::from(frame.len);
                found.frames.push(FrameAt { frame, offset: block.offset });
            }
        } else if runs && let Some(label) = block.label() {
            if Identity::of(label.file_id) == identity {
                let run = found.runs.entry(label.run).or_default();
                if run.meta.is_none() {
                    run.meta = block.meta(identity.seed(label.run));
                    run.label = Some(label);
                }
            }
        } else if runs && let Some((place, page)) = block.page(identity) {
            let run = found.runs.entry(place.run).or_default();
            run.place.get_or_insert(place);
            run.pages.push(page);
        }
    });
    for run in found.runs.values_mut() {
        // A page that was moved may also be in its former place.
        run.pages.sort_by_key(|p| p.number);
        run.pages.dedup_by_key(|p| p.number);
    }
    found
}

fn each_block(input: &Input, progress: &mut dyn FnMut(Progress), mut look: impl FnMut(&Block<'_>)) {
    let mut window =
        vec![0; (WINDOW_BYTES + OVERLAP_BYTES).min(usize_of64(align_up(input.len())) + OVERLAP_BYTES)];
    let mut start = SUPERBLOCKS_BYTES;
    while start < input.len() {
        input.read(start, &mut window);
        let end = (window.len() - OVERLAP_BYTES).min(usize_of64(align_up(input.len() - start)));
        for at in (0..end).step_by(usize_of64(ALIGN_BYTES)) {
            look(&Block { input, offset: start + at as u64, bytes: &window[at..at + OVERLAP_BYTES] });
        }
        start += end as u64;
        progress(Progress { done: start.min(input.len()), total: input.len() });
    }
}

impl Block<'_> {
    /// The frame that begins here, if it is whole.
    fn frame(&self) -> Option<Frame> {
        let frame = Frame::parse(self.bytes)?;
        let len = frame::HEADER_BYTES + usize_of(frame.len);
        if self.offset + len as u64 > self.input.len()
            || frame.number >= COUNT_END
            || frame.chain >= COUNT_END
        {
            return None;
        }
        if len > self.bytes.len() && !self.input.may_read(len) {
            return None;
        }
        frame.verify(&self.bytes_to(len)).then_some(frame)
    }

    /// The label of the meta block that begins here, if the label is whole.
    fn label(&self) -> Option<Label> {
        if u32_at(self.bytes, 4) != label::MAGIC {
            return None;
        }
        Label::read(self.bytes).ok()
    }

    /// The meta block that begins here, if it is whole.
    fn meta(&self, run_seed: u32) -> Option<Meta> {
        let len = usize_of(u32_at(self.bytes, label::BYTES_AT));
        if self.offset + len as u64 > self.input.len() || !self.input.may_read(len) {
            return None;
        }
        let meta: Result<Meta> = Meta::decode(&self.bytes_to(len), run_seed, self.offset, FILTER_PAGE_BASE);
        meta.ok()
    }

    /// The first `len` bytes from here on.
    fn bytes_to(&self, len: usize) -> Vec<u8> {
        if let Some(bytes) = self.bytes.get(..len) {
            return bytes.to_vec();
        }
        let mut bytes = vec![0; len];
        self.input.read(self.offset, &mut bytes);
        bytes
    }

    /// The page of the file that begins here, if it is whole.
    fn page(&self, identity: Identity) -> Option<(PageIdentity, PageAt)> {
        let place = PageIdentity::read(self.bytes);
        let seed = identity.seed(place.run);
        let found = self.page_bytes().into_iter().find(|p| verify(&p.bytes, seed, place.number).is_ok())?;
        let (unit_bytes, there) = (found.unit_bytes, found.there);
        Some((place, PageAt { number: place.number, offset: self.offset, unit_bytes, there }))
    }

    /// The pages that may begin here: with units of either size, and cut at each block behind which the page
    /// would be zero, as a run's last page is.
    fn page_bytes(&self) -> Vec<Candidate> {
        let place = PageIdentity::read(self.bytes);
        let possible = self.bytes[4] == 1 && self.bytes[5] <= SHAPE_MAX && self.bytes[6..8] != [0, 0];
        if !possible || place.run >= COUNT_END || place.number >= FILTER_PAGE_BASE {
            return Vec::new();
        }
        let used = used_of(self.bytes);
        let mut out = Vec::new();
        for unit_bytes in [PAGE_BYTES, SMALL_PAGE_BYTES] {
            let blocks = (1..=used.min(self.bytes.len()).div_ceil(usize_of64(ALIGN_BYTES))).rev();
            for there in blocks.map(|n| (n * usize_of64(ALIGN_BYTES)).min(used)) {
                let page = page_at(&self.bytes[..there], unit_bytes);
                out.extend(page.map(|bytes| Candidate { bytes, unit_bytes, there }));
            }
        }
        out
    }
}

/// Bytes that may be a page.
struct Candidate {
    bytes: Vec<u8>,
    unit_bytes: usize,
    there: usize,
}

/// The page that begins with `there`. The rest of its used bytes, and all bytes behind them, are zeros.
pub(super) fn page_at(there: &[u8], unit_bytes: usize) -> Option<Vec<u8>> {
    if there.len() < HEADER_BYTES {
        return None;
    }
    let (units, used) = (units_of(there, unit_bytes)?, used_of(there));
    if used > units * unit_bytes {
        return None;
    }
    let mut page = there[..used.min(there.len())].to_vec();
    page.resize(units * unit_bytes, 0);
    Some(page)
}
