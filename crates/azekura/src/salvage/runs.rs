//! One run of a damaged file: its whole pages, and what is missing.

use super::identity::Identity;
use super::input::Input;
use super::report::SalvageReport;
use super::scan::{FoundRun, PageAt, page_at};
use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::error::shown;
use crate::format::block::Block;
use crate::format::guide::Guide;
use crate::format::manifest::RunInfo;
use crate::format::page::{HEADER_BYTES, Page, units_of, verify};
use crate::format::ranges::{Range, Ranges};
use crate::run::meta::Meta;

/// What is known of a run.
pub(super) struct RunPlan {
    id: u64,
    seed: u32,
    /// Pages that were found to be whole, by their numbers.
    pages: Vec<PageAt>,
    /// Where the run is, if a manifest says so.
    info: Option<RunInfo>,
    /// Its fence and range deletes, if these are whole.
    pub(super) fence: Option<Meta>,
    /// Keys for which older runs do not count.
    covers: Ranges,
    /// Whether its age is known.
    pub(super) has_age: bool,
    /// Keys for which this run does not count.
    pub(super) hidden: Ranges,
}

/// A range of units that no whole page has.
type Gap = (u32, u32);

impl RunPlan {
    /// A run that the newest manifest names. `found` is what the scan has found of it.
    pub(super) fn named(input: &Input, identity: Identity, info: &RunInfo, found: FoundRun) -> RunPlan {
        let mut run = RunPlan::found(identity, info.id, found, Some(info));
        if run.fence.is_none() && u64::from(info.meta_bytes) <= input.len() {
            // The meta block may be in two extents, where a scan does not find it.
            let mut bytes = vec![0; usize_of(info.meta_bytes)];
            input.read_extents(&info.extents, info.meta_at(), &mut bytes);
            run.fence = Meta::decode(&bytes, run.seed, 0, info.units).ok();
        }
        run
    }

    /// A run that the scan has found. An older manifest may say where it was.
    pub(super) fn found(identity: Identity, id: u64, found: FoundRun, info: Option<&RunInfo>) -> RunPlan {
        let has_age = found.label.is_some() || info.is_some();
        let covers = found.label.map_or(Ranges::none(), |l| l.covers);
        let (pages, info) = (found.pages, info.cloned());
        let hidden = Ranges::default();
        RunPlan { id, seed: identity.seed(id), pages, info, fence: found.meta, covers, has_age, hidden }
    }

    /// Its range deletes.
    pub(super) fn ranges(&self) -> &Ranges {
        const NONE: &Ranges = &Ranges::none();
        self.fence.as_ref().map_or(NONE, |f| &f.ranges)
    }

    /// Calls `take` with the records of each whole page, and reports what is missing. Returns the keys that
    /// missing pages may have had.
    pub(super) fn read(
        &self,
        input: &Input,
        table: &str,
        report: &mut SalvageReport,
        mut take: impl FnMut(&Block, &mut SalvageReport) -> crate::Result<()>,
    ) -> crate::Result<Ranges> {
        let (mut unit, mut gaps) = (0u32, Vec::<Gap>::new());
        let mut missing = Missing::before(self.info.as_ref());
        let mut block = Block::new(None);
        let mut any = false;
        while unit < self.end() {
            let page = self.page(input, unit).filter(|page| decode(&page.0, &mut block));
            let Some((_, units)) = page else {
                let next = self.next_place(input, unit);
                missing.is_open = true;
                match gaps.last_mut().filter(|g| g.1 == unit) {
                    Some(gap) => gap.1 = next,
                    None => gaps.push((unit, next)),
                }
                unit = next;
                continue;
            };
            any = true;
            missing.end_at(&block);
            report.pages += 1;
            take(&block, report)?;
            unit = unit.saturating_add(units);
        }
        report.runs += u64::from(any);
        gaps.iter().for_each(|gap| self.report_gap(*gap, table, report));
        Ok(missing.end(self.info.as_ref()))
    }

    /// The records of its first page, if that is whole.
    pub(super) fn first_page(&self, input: &Input) -> Option<Block> {
        let mut block = Block::new(None);
        self.page(input, 0).is_some_and(|(page, _)| decode(&page, &mut block)).then_some(block)
    }

    /// The number after its last unit, as far as that is known.
    fn end(&self) -> u32 {
        let last = self.pages.last().map_or(0, |p| p.number.saturating_add(1));
        let fence = self.fence.as_ref().filter(|f| f.pages() > 0).map_or(0, |f| f.unit_of(f.pages() - 1) + 1);
        last.max(fence).max(self.info.as_ref().map_or(0, |i| i.units))
    }

    /// The next unit after `unit` that may begin a page.
    fn next_place(&self, input: &Input, unit: u32) -> u32 {
        let at = self.pages.partition_point(|p| p.number <= unit);
        let found = self.pages.get(at).map_or(self.end(), |p| p.number);
        let Some(info) = &self.info else { return found };
        let unit_bytes = info.page_bytes as u64;
        let (place, mut before) = (u64::from(unit) * unit_bytes, 0u64);
        for e in &info.extents {
            let end = before.saturating_add(e.len);
            if place < end && e.offset.saturating_add(place - before) >= input.len() {
                // The file ends before this extent. The next extent may be at a lower offset.
                let next = u32::try_from(end.div_ceil(unit_bytes)).unwrap_or(u32::MAX);
                return next.max(unit + 1).min(found);
            }
            if place < end {
                return if input.may_look() { unit + 1 } else { found };
            }
            before = end;
        }
        found
    }

    /// The page that begins with a unit, and how many units it has.
    fn page(&self, input: &Input, unit: u32) -> Option<(Vec<u8>, u32)> {
        let found = self.pages.binary_search_by_key(&unit, |p| p.number).ok().map(|i| self.pages[i]);
        let there =
            found.and_then(|p| self.whole(p.unit_bytes, p.there, unit, |out| input.read(p.offset, out)));
        there.or_else(|| {
            let info = self.info.as_ref().filter(|i| unit < i.units)?;
            let at = u64::from(unit) * info.page_bytes as u64;
            let left = usize_of64(info.data_bytes.saturating_sub(at));
            self.whole(info.page_bytes, left, unit, |out| input.read_extents(&info.extents, at, out))
        })
    }

    /// The page that `read` reads, if it is whole. At most `there` bytes of it are in the file.
    fn whole(
        &self,
        unit_bytes: usize,
        there: usize,
        number: u32,
        read: impl Fn(&mut [u8]),
    ) -> Option<(Vec<u8>, u32)> {
        let mut header = [0; HEADER_BYTES];
        read(&mut header);
        let units = units_of(&header, unit_bytes)?;
        let mut bytes = vec![0; there.min(units * unit_bytes)];
        read(&mut bytes);
        let page = page_at(&bytes, unit_bytes)?;
        verify(&page, self.seed, number).ok()?;
        Some((page, u32_of(units)))
    }

    /// Reports what a gap has cost: pages and their keys, if the fence is whole.
    fn report_gap(&self, (from, to): Gap, table: &str, report: &mut SalvageReport) {
        let lost = |report: &mut SalvageReport, n: u64, what: String| {
            report.pages_lost += n;
            report.lose(format!("table {table:?}, run {}: {what}", self.id));
        };
        let Some(fence) = &self.fence else {
            let units =
                if to - from == 1 { format!("unit {from}") } else { format!("units {from} to {}", to - 1) };
            lost(report, 1, format!("{units}, of which nothing is known"));
            return;
        };
        for page in self.pages_in(fence, (from, to)) {
            let Range { start, end } = stretch(fence, page);
            let until = end.map_or("the run's last".to_owned(), |end| format!("below {}", shown(&end)));
            lost(report, 1, format!("page {page}, keys from {} to {until}", shown(&start)));
        }
    }

    /// The pages whose first unit is in a gap.
    fn pages_in(&self, fence: &Meta, (from, to): Gap) -> impl Iterator<Item = usize> {
        (0..fence.pages()).filter(move |&i| (from..to).contains(&fence.unit_of(i)))
    }
}

/// The keys that missing pages may have had: those between the last key before them and the first one behind
/// them.
struct Missing {
    keys: Ranges,
    /// The least key that may be missing after what was found.
    before: Vec<u8>,
    /// Whether a page is missing there.
    is_open: bool,
}

impl Missing {
    fn before(run: Option<&RunInfo>) -> Missing {
        let before = run.map_or(Vec::new(), |run| run.min.clone());
        Missing { keys: Ranges::default(), before, is_open: false }
    }

    /// A page is there with these records.
    fn end_at(&mut self, block: &Block) {
        let Some(last) = block.len().checked_sub(1) else { return };
        let mut tmp = [0; 8];
        if std::mem::take(&mut self.is_open) {
            let (start, end) = (std::mem::take(&mut self.before), block.key(0, &mut tmp).to_vec());
            self.keys.add(Range { start, end: Some(end) });
        }
        // The least key behind that one.
        self.before.clear();
        self.before.extend_from_slice(block.key(last, &mut tmp));
        self.before.push(0);
    }

    /// No page follows.
    fn end(mut self, run: Option<&RunInfo>) -> Ranges {
        if self.is_open {
            let end = run.map(|run| [&run.max[..], &[0]].concat());
            self.keys.add(Range { start: self.before, end });
        }
        self.keys
    }
}

/// The keys that a page may have.
fn stretch(fence: &Meta, page: usize) -> Range {
    let key = |i: usize| fence.fence.key(i, &mut [0; 8]).to_vec();
    Range { start: key(page), end: (page + 1 < fence.pages()).then(|| key(page + 1)) }
}

/// Decodes a page into `block`. False if its records make no sense.
fn decode(page: &[u8], block: &mut Block) -> bool {
    let Ok(guide) = Guide::read(page) else { return false };
    Page::new(page, &guide).decode(block).is_ok()
}

/// The keys for which nothing older counts, because the run has all their live records. Keys of missing pages
/// are left out: for these an older version is better than nothing.
pub(super) fn covers_of(run: &RunPlan) -> Vec<Range> {
    let (Some(fence), Some(covers)) = (&run.fence, run.covers.iter().next()) else { return Vec::new() };
    let n = fence.pages();
    if n == 0 {
        return vec![covers.clone()];
    }
    let is_there = |page: usize| run.pages.binary_search_by_key(&fence.unit_of(page), |p| p.number).is_ok();
    let mut out: Vec<Range> = Vec::new();
    for page in (0..n).filter(|&p| is_there(p)) {
        let Range { start, end } = stretch(fence, page);
        let start = if page == 0 { covers.start.clone() } else { start };
        let end = if page + 1 == n { covers.end.clone() } else { end };
        match out.last_mut().filter(|r| r.end.as_ref() == Some(&start)) {
            Some(last) => last.end = end,
            None => out.push(Range { start, end }),
        }
    }
    out
}
