//! The check: everything in the file is read and compared with everything that refers to it.
//!
//! Runs, memtables and log hold versions: records, tombstones, and what they hide. How many records a table
//! has is counted by a scan of it. So no set of keys is needed.

mod feed;
mod indexes;

use super::Db;
use crate::base::codec::usize_of;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::key::SortKey;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES};
use crate::cursor::{Cursor, Limits};
use crate::engine::state::{State, TableState};
use crate::engine::{Engine, Progress};
use crate::format::block::{Block, Tag};
use crate::format::expiry::{Content, Expiring};
use crate::format::feed::FEED_NAME;
use crate::format::hidden::is_hidden;
use crate::format::manifest::RunInfo;
use crate::format::operand::{Operands, check_stored, references};
use crate::format::superblock::{self, ManifestAt, Parsed, Superblock};
use crate::run::Run;
use crate::run::reader::RunReader;
use crate::space::{Extent, Space};
use crate::values::ValuePointer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a check has found.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-checkreport-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("ada", "1815"), ("grace", "1906")])?;
/// let report = db.check(|_| {})?;
/// assert_eq!((report.tables, report.records, report.problems.len()), (1, 2, 0));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Tables checked, each with its indexes.
    pub tables: u64,
    /// Records of tables, as a scan counts them: in runs, memtables and the log together.
    pub records: u64,
    /// Tombstones that are kept, since something older may have their keys.
    pub deletes: u64,
    /// Older versions of records, still in runs and memtables, that a newer one, a tombstone or a range
    /// delete hides.
    pub hidden: u64,
    /// Pages read.
    pub pages: u64,
    /// Large values read.
    pub values: u64,
    /// Commits in the file's log that are in no run yet. The log is read again for that.
    pub log_commits: u64,
    /// Records of those commits, tombstones included.
    pub log_records: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// Extents in use.
    pub extents: u64,
    /// Bytes in use.
    pub live_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// What is wrong, one line each; none if all is well.
    pub problems: Vec<String>,
}

/// Problems beyond this many are not listed.
const PROBLEMS_MAX: usize = 1000;
/// No lookup can find such a record.
const NO_SORT_KEY: &str = "a record of a hash table stands under what is the mix of no key";
/// Extents that overlap in so many looks are damage. In one look a segment may just be closing.
const OVERLAP_LOOKS: usize = 3;

struct Check<'a> {
    db: &'a Db,
    engine: &'a Engine,
    state: Arc<State>,
    /// Commits up to this one are looked at.
    seq: u64,
    /// The time by which records have expired or not.
    now: u64,
    /// Versions of the table at hand that are no tombstones.
    puts: u64,
    report: CheckReport,
    done: u64,
    total: u64,
    /// Bytes of each value segment that runs refer to.
    referred: BTreeMap<u32, u64>,
}

pub(super) fn check(db: &Db, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
    let state = db.engine.newest_full()?;
    let engine = db.engine.behind(&state);
    let seq = state.visible();
    let total = state.tables.with_runs().flat_map(|t| t.levels.iter()).map(|l| l.bytes()).sum();
    let (report, referred) = (CheckReport::default(), BTreeMap::new());
    let (now, state_held) = (engine.config.clock.now_if_used(), state.clone());
    let mut check =
        Check { db, engine, state: state_held, seq, now, puts: 0, report, done: 0, total, referred };
    for table in state.tables.iter() {
        if is_hidden(&table.name) {
            check.hidden(table);
        } else {
            check.report.tables += 1;
        }
        check.table(table, progress);
        // If somebody has closed the database or revoked the pin, nothing can be read. That is no damage.
        engine.check_readable()?;
    }
    check.length()?;
    check.log();
    if engine.config.follow.is_none() {
        // Another process writes them, and the follower has read the newest one and its manifest.
        check.superblocks()?;
    }
    check.extents(&state);
    engine.check_readable()?;
    progress(Progress { done: total, total });
    Ok(check.report)
}

impl Check<'_> {
    fn problem(&mut self, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }

    fn table(&mut self, table: &Arc<TableState>, progress: &mut dyn FnMut(Progress)) {
        let (sound, shown) = (self.report.problems.len(), self.state.shown_name(&table.name));
        self.puts = 0;
        self.memory(table);
        for level in table.levels.iter() {
            if level.runs.windows(2).any(|w| w[0].info.max >= w[1].info.min) {
                self.problem(format!("{shown}: partitions overlap"));
            }
            for run in &level.runs {
                if let Err(e) = self.run(table, run) {
                    self.problem(format!("{shown}, run {}: {e}", run.info.id));
                }
                self.done += run.info.bytes();
                progress(Progress { done: self.done.min(self.total), total: self.total });
            }
        }
        self.count(table, sound, &shown);
        self.indexes(table, sound);
        if *table.name == *FEED_NAME {
            self.feed(table.id, sound);
        }
    }

    /// Counts what a scan of the table would give. The other versions are hidden. `sound`: how many problems
    /// there were before the table.
    fn count(&mut self, table: &Arc<TableState>, sound: usize, shown: &str) {
        let counted = match table.levels.as_slice() {
            [] if table.memtable_is_empty() => Ok(table.few.as_ref().map_or(0, |few| few.records())),
            [one] if table.memtable_is_empty() && one.deletes() == 0 && !one.may_be_past(self.now) => {
                Ok(one.records())
            }
            _ => Cursor::new(
                self.db.clone(),
                self.state.clone(),
                table.clone(),
                self.seq,
                self.now,
                Vec::new(),
                Limits::none(),
            )
            .and_then(|mut cursor| cursor.count_rest()),
        };
        match counted {
            Ok(records) => {
                if !is_hidden(&table.name) {
                    self.report.records += records;
                }
                self.report.hidden += self.puts.saturating_sub(records);
            }
            // What stops a scan was mostly found before.
            Err(e) if self.report.problems.len() == sound => {
                self.problem(format!("{shown}: {e}"));
            }
            Err(_) => {}
        }
    }

    /// Counts the records in memory (those of the memtable, and of a table without runs). Reads the large
    /// values to which they refer.
    fn memory(&mut self, table: &TableState) {
        let (seq, seed) = (self.seq, self.engine.store.hash_seed);
        let shown = self.state.shown_name(&table.name);
        let mut refer = |key: &[u8], tag: Tag, stored: &[u8]| {
            let Content { tag, value: reference, .. } = Content::of(tag, stored);
            if !table.kind.makes(key, seed) {
                self.problem(format!("{shown}, in memory: {NO_SORT_KEY}"));
            }
            self.puts += u64::from(tag != Tag::Tombstone);
            self.report.deletes += u64::from(tag == Tag::Tombstone);
            let one = (tag == Tag::Large).then_some(reference);
            let gathered = (tag == Tag::Operand).then(|| references(reference)).into_iter().flatten();
            for reference in one.into_iter().chain(gathered) {
                if let Err(e) = self.value(reference, &mut BTreeMap::new()) {
                    self.problem(format!("{shown}, in the log: {e}"));
                }
            }
        };
        if let Some(active) = &table.active {
            let mut cursor = active.list.cursor();
            cursor.seek_first();
            while let Some(entry) = cursor.entry() {
                if entry.seq <= seq {
                    refer(entry.key, entry.tag(), entry.value);
                }
                cursor.next();
            }
        }
        for chunk in table.chunks.iter().chain(table.frozen.iter()) {
            for i in 0..chunk.block.len() {
                let (tag, value) = chunk.record(i);
                refer(chunk.block.key(i, &mut [0; 8]), tag, value);
            }
        }
        table.few.iter().flat_map(|few| few.rows()).for_each(|(key, value)| refer(key, Tag::Put, value));
    }

    /// Reads a run from end to end: checksums, order, counts, fence, filter, references.
    fn run(&mut self, table: &TableState, run: &Arc<Run>) -> Result<()> {
        run.extents_end_inside(
            self.engine.store.file.len().map_err(|e| Error::io("reading the file's length", e))?,
        )?;
        let mut reader = RunReader::new(vec![run.clone()]);
        let mut block = Block::new(None);
        let (mut records, mut deletes, mut page) = (0u64, 0u64, 0usize);
        let mut last: Option<Vec<u8>> = None;
        let (mut expiring, mut operands) = (Expiring::default(), Operands::default());
        let mut large: BTreeMap<u32, u64> = BTreeMap::new();
        let mut tmp = [0; 8];
        while reader.next_block(&mut block)? {
            for i in 0..block.len() {
                let key = block.key(i, &mut tmp);
                if last.as_ref().is_some_and(|l| l.as_slice() >= key) {
                    return Err(bad(run, format!("page {page}: keys out of order")));
                }
                if !table.kind.makes(key, self.engine.store.hash_seed) {
                    return Err(bad(run, format!("page {page}: {NO_SORT_KEY}")));
                }
                if run.meta()?.page_of(SortKey::new(key)) != Some(page) {
                    return Err(bad(run, format!("page {page}: the fence leads elsewhere")));
                }
                if !run.may_contain(table.kind.filter_hash(SortKey::new(key)))? {
                    return Err(bad(run, format!("page {page}: the filter denies a key that is there")));
                }
                let content = block.content(i);
                match content.tag {
                    Tag::Large => self.value(content.value, &mut large)?,
                    Tag::Operand => {
                        if let Some(reference) = check_stored(content.value)? {
                            self.value(reference, &mut large)?;
                        }
                    }
                    _ => {}
                }
                deletes += u64::from(block.tag(i) == Tag::Tombstone);
                let kept = last.get_or_insert_default();
                kept.clear();
                kept.extend_from_slice(key);
            }
            expiring = expiring.and(block.expiring());
            operands = operands.and(block.operands());
            records += block.len() as u64;
            page += 1;
        }
        self.puts += records - deletes;
        self.report.deletes += deletes;
        self.report.pages += page as u64;
        for (id, bytes) in &large {
            *self.referred.entry(*id).or_default() += bytes;
        }
        let is_last = last.is_none_or(|l| l == run.info.max);
        let large = large.into_iter().collect();
        let counted = RunInfo { records, deletes, expiring, operands, large, ..run.info.clone() };
        is_as_said(run, &counted, page, is_last)
    }

    fn value(&mut self, reference: &[u8], large: &mut BTreeMap<u32, u64>) -> Result<()> {
        let at = ValuePointer::decode(reference)?;
        if fault!("blind_check") {
            *large.entry(at.segment).or_default() += u64::from(at.len);
            return Ok(());
        }
        let value = self.engine.values.read(reference)?;
        debug_assert_eq!(value.len(), usize_of(at.len));
        *large.entry(at.segment).or_default() += u64::from(at.len);
        self.report.values += 1;
        Ok(())
    }

    /// The file's end. A handle that writes was refused if the file was cut, and may have shortened it since.
    fn length(&mut self) -> Result<()> {
        let file_bytes =
            self.engine.store.file.len().map_err(|e| Error::io("reading the file's length", e))?;
        let least_bytes = self.engine.opened.least_bytes;
        if self.engine.config.read_only && file_bytes < least_bytes {
            self.problem(format!(
                "the file was cut: it has {file_bytes} bytes, its contents need {least_bytes} at least"
            ));
        }
        Ok(())
    }

    /// The log, as the file has it.
    fn log(&mut self) {
        match self.engine.log_check().read() {
            Ok(found) => {
                self.report.log_commits = found.commits;
                self.report.log_records = found.records;
                self.report.log_bytes = found.bytes;
            }
            Err(e) => self.problem(e.to_string()),
        }
    }

    /// Both superblocks, and the manifest that the newer one names.
    fn superblocks(&mut self) -> Result<()> {
        let held = self.engine.checkpointer.lock();
        let file = self.engine.store.file.as_ref();
        let mut newest: Option<Superblock> = None;
        for (name, at) in [("A", 0), ("B", ALIGN_BYTES)] {
            let mut bytes = vec![0; superblock::BYTES];
            match file.read_at(&mut bytes, at) {
                // That the file was cut has been said.
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => continue,
                read => read.map_err(|e| Error::io("reading a superblock", e))?,
            }
            match Superblock::parse(&bytes)? {
                Parsed::Valid(b) => {
                    if newest.as_ref().is_none_or(|n| b.number > n.number) {
                        newest = Some(b);
                    }
                }
                _ => self
                    .problem(format!("superblock {name} at file offset {at} is damaged; its twin is in use")),
            }
        }
        if let Some(Superblock { manifest: ManifestAt::Extent { offset, len, crc }, .. }) = newest {
            let mut bytes = vec![0; usize_of(len)];
            file.read_at(&mut bytes, offset).map_err(|e| Error::io("reading the manifest", e))?;
            if crate::base::checksum::crc(0, &bytes) != crc {
                self.problem(format!("the manifest at file offset {offset} is damaged"));
            }
        }
        drop(held);
        Ok(())
    }

    /// Every extent is in use once or free.
    fn extents(&mut self, state: &State) {
        let engine = self.engine;
        let look = || {
            // While these and the state are held, nothing new is put there. The one exception is the end of a
            // segment that is being closed.
            let segments = engine.values.segments();
            let places: Vec<_> = segments.iter().map(|s| s.place()).collect();
            let mut live: Vec<Extent> = places.iter().flat_map(|p| p.extents().iter().copied()).collect();
            live.extend(engine.checkpoints().live_extents());
            if engine.config.read_only {
                // What the log has dropped the newest checkpoint still names, and no other one follows.
                live.extend(engine.checkpointer.pending_extents());
            }
            let runs = state.tables.with_runs().flat_map(|t| t.levels.iter().flat_map(|l| l.runs.iter()));
            live.extend(runs.flat_map(|r| r.info.extents.iter().copied()));
            let (extents, bytes) = (live.len() as u64, live.iter().map(|e| e.len).sum::<u64>());
            (extents, bytes, Space::from_live(SUPERBLOCKS_BYTES, live))
        };
        // What overlaps once is looked at again.
        let mut looks = (0..OVERLAP_LOOKS).map(|_| look());
        let found = looks.find(|(_, _, space)| space.is_ok());
        let (extents, live_bytes, space) = found.unwrap_or_else(look);
        self.report.extents = extents;
        match space {
            Ok(space) => {
                self.report.live_bytes = live_bytes + SUPERBLOCKS_BYTES;
                self.report.free_bytes = engine.space.free_bytes();
                // With nobody writing, what nothing refers to must be what the allocator holds free.
                if engine.config.read_only
                    && (space.end(), space.free_bytes()) != (engine.space.end(), engine.space.free_bytes())
                {
                    let text = format!(
                        "{} bytes are free and end at {}, but the allocator says {} and {}",
                        space.free_bytes(),
                        space.end(),
                        engine.space.free_bytes(),
                        engine.space.end()
                    );
                    self.problem(text);
                }
            }
            Err((a, b)) => {
                self.problem(format!("extents {}+{} and {}+{} overlap", a.offset, a.len, b.offset, b.len));
            }
        }
    }
}

/// Compares what was counted in a run, with so many pages, with what the manifest says.
fn is_as_said(run: &Run, counted: &RunInfo, pages: usize, is_last: bool) -> Result<()> {
    let (said, RunInfo { records, deletes, .. }) = (&run.info, counted);
    let same = *records == said.records && *deletes == said.deletes && pages == run.meta()?.pages();
    if !same || counted.large != said.large {
        let found = format!("{records} records, {deletes} deletes, {pages} pages");
        return Err(bad(run, format!("its contents ({found}) are not what the manifest says")));
    }
    if !is_last {
        return Err(bad(run, "its last key is not what the manifest says".into()));
    }
    if counted.expiring != said.expiring {
        return Err(bad(run, "its records expire at other times than the manifest says".into()));
    }
    if counted.operands != said.operands {
        return Err(bad(run, "its operands are not those that the manifest says".into()));
    }
    Ok(())
}

fn bad(run: &Run, detail: String) -> Error {
    Error::corrupt("run", run.file_offset(0), detail)
}
