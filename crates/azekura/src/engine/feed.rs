//! The feed of changes: what commits add to it.
//!
//! A commit to a table that is fed has one part more, to the hidden table of the feed. So what is in the feed
//! is durable with the commit, recovered with it, copied and followed with it. The changes are gathered
//! before the commit lock is taken (`txn/gather.rs`). Under the lock they get the commit's number.
//!
//! Which tables are fed changes under the commit lock. A commit that was gathered before, by what was fed
//! then, is gathered anew. So none passes the feed by. The commit that changes it tells readers of that.
//!
//! Now and then a commit leaves a mark: how much had been fed by then, and when. The marks since the oldest
//! change are in memory. The commit that adds one also removes, by a range, what is too much or too old.

use super::batch::{Batch, BatchPart};
use super::catalog::Catalog;
use super::changes::TableChanges;
use super::commit::{Commit, Committer};
use super::commits::Commits;
use super::fed::{FeedTally, Feeding, check_part};
use super::gathered::{Fed, Gathered};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::key::TableKind;
use crate::base::limits::INLINE_VALUE_BYTES_MAX;
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::Ordering;
use crate::format::block::{Block, Tag};
use crate::format::feed::{
    CONFIG_KEY, FEED_NAME, FeedConfig, FeedContent, FeedMark, PartWriter, TRIMMED_KEY, mark_key, part_key,
};
use crate::format::frame::{NewTable, TableChange};
use crate::format::ranges::{Range, Ranges};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What an eventual commit tells is gathered under the commit lock if its records are shorter. (Commits of
/// one record of 60 bytes: 1,220K/s, and 820K/s where it is gathered before. Not fed: 1,750K/s.)
pub(crate) const TOLD_BYTES_MAX: usize = 512;

/// How much of the past is kept where nobody has said.
const BYTES_MAX_DEFAULT: u64 = 1 << 30;

/// The time that changes have, in milliseconds.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

impl Commit {
    /// Adds the changes of a commit that has got its number to what it writes.
    pub(super) fn feed(&mut self, seq: u64, batch: &mut Batch) {
        let Some(gathered) = batch.feed.take() else { return };
        let Some(table) = gathered.fed.table else { return };
        if gathered.parts.is_empty() && gathered.config.is_none() {
            return;
        }
        if !gathered.segments.is_empty() {
            self.large_bytes += gathered.bytes;
        }
        let (config, tally) = (&gathered.fed.config, &mut self.feed);
        let commit = seq + config.base;
        let total_bytes = tally.total_bytes + gathered.bytes;
        let now = FeedMark { commit, total_bytes, time_ms: gathered.time_ms };
        let is_renewed = tally.begins_anew && gathered.config.is_some();
        let has_mark = is_renewed || tally.is_mark_due(config, &now);
        if batch.durable {
            tally.note(seq, has_mark);
        }
        tally.total_bytes = total_bytes;
        tally.begins_anew &= !is_renewed;
        let anew = is_renewed.then_some(tally.trimmed);
        let trimmed = if has_mark { tally.mark(config, now).or(anew) } else { None };

        let heap = gathered.parts.iter().map(|(_, value)| value.len() + 16).sum();
        let mut block = Block::with_capacity(None, gathered.parts.len() + 3, heap);
        if let Some((tag, record)) = &gathered.config {
            block.push(CONFIG_KEY, *tag, record);
        }
        let mut segments = gathered.segments;
        // The cursor of a reader may stand there.
        if let Some(i) = batch.parts.iter().position(|part| part.table == table) {
            let own = batch.parts.remove(i);
            let mut tmp = [0; 8];
            for i in 0..own.block.len() {
                block.push(own.block.key(i, &mut tmp), own.block.tag(i), own.block.value(i));
            }
            segments.extend(own.segments);
        }
        for (i, (tag, value)) in (0..).zip(&gathered.parts) {
            block.push(&part_key(commit, i), *tag, value);
        }
        if has_mark {
            let (key, value) = now.encode();
            block.push(&key, Tag::Put, &value);
        }
        let mut ranges = Ranges::default();
        if let Some(trimmed) = trimmed {
            block.push(TRIMMED_KEY, Tag::Put, &trimmed.encode_trimmed());
            ranges = gone(&trimmed, is_renewed);
        }
        batch.parts.push(BatchPart { table, block, ranges, segments, indexes: None });
    }
}

/// What a small commit tells the feed.
pub(super) struct Told {
    /// The table of the feed.
    pub(super) table: u32,
    /// The number of the commit in the feed, and how much was told up to it.
    pub(super) now: FeedMark,
}

impl Commit {
    /// Writes what the next commit, which is small, tells the feed. None: it tells nothing, or has to read,
    /// or it leaves a mark. REQUIRES: the part has no operands and no large values.
    pub(super) fn tell(
        &mut self,
        state: &State,
        fed: &Fed,
        part: &BatchPart,
        hash_seed: u64,
    ) -> Result<Option<Told>> {
        let content = fed.content_of(part.table).filter(|&content| content != FeedContent::Both);
        let (Some(content), Some(feed)) = (content, fed.table) else { return Ok(None) };
        let Some(table) = state.tables.get(part.table) else { return Ok(None) };
        let time_ms = now_ms();
        self.told.begin(time_ms);
        self.told.begin_section(table.kind, &table.name);
        let mut tmp = [0; 8];
        for i in 0..part.block.len() {
            table.kind.user_key(part.block.key(i, &mut tmp), hash_seed, &mut self.told_key)?;
            self.told.change(content, &self.told_key, part.block.content(i), None);
        }
        self.told.end_section();
        let total_bytes = self.feed.total_bytes + self.told.bytes().len() as u64;
        let now = FeedMark { commit: self.next_seq + fed.config.base, total_bytes, time_ms };
        let is_marked = self.feed.is_mark_due(&fed.config, &now);
        Ok((!is_marked).then_some(Told { table: feed, now }))
    }
}

/// The parts and marks up to this one, or all that there are.
fn gone(trimmed: &FeedMark, all: bool) -> Ranges {
    let end = if all { u64::MAX } else { trimmed.commit + 1 };
    let more = if fault!("trim_one_more") && !all { 1 } else { 0 };
    let parts = (part_key(0, 0).to_vec(), part_key(end + more, 0).to_vec());
    let marks = (mark_key(0), mark_key(end));
    let mut ranges = Ranges::default();
    for (start, end) in [parts, marks] {
        ranges.add(Range { start, end: Some(end) });
    }
    ranges
}

/// Changes what is fed, and writes what the feed is told.
pub(crate) struct Feeder<'a> {
    pub(super) commits: &'a dyn Commits,
    pub(super) feed: &'a Feeding,
    pub(super) catalog: &'a Catalog,
    pub(super) committer: &'a Committer,
    pub(super) state: &'a ArcSwap<State>,
    pub(super) lineage: u64,
    pub(super) large_value_bytes: usize,
}

impl Feeder<'_> {
    /// Takes what the file says of the feed. REQUIRES: nobody commits yet.
    pub(crate) fn found(&self, table: u32, config: FeedConfig, tally: FeedTally) {
        self.feed.begins_anew.store(tally.begins_anew, Ordering::Release);
        self.committer.lock().feed = tally;
        self.feed.set(Fed { table: Some(table), config });
    }

    /// Changes what is fed, durably. From then on every commit is by that, and the feed tells of it.
    pub(crate) fn change(&self, change: impl FnOnce(&State, &mut FeedConfig) -> Result<()>) -> Result<()> {
        self.commits.check_writable()?;
        let _changing = self.catalog.changing.lock();
        let state = self.state.load_full();
        if self.feed.fed().table.is_none() {
            let mut wanted = self.first_config();
            change(&state, &mut wanted)?;
            self.make()?;
            return self.turn(&state, wanted);
        }
        if self.feed.begins_anew.load(Ordering::Acquire) {
            self.write_renewed()?;
        }
        let mut config = self.feed.fed().config.clone();
        // Tables that were dropped are fed no more.
        config.tables.retain(|&id, _| state.tables.get(id).is_some());
        change(&state, &mut config)?;
        self.turn(&state, config)
    }

    /// What a database says that was never asked to feed anything.
    fn first_config(&self) -> FeedConfig {
        FeedConfig { lineage: self.lineage, bytes_max: BYTES_MAX_DEFAULT, ..FeedConfig::default() }
    }

    /// Feeds by `config` from now on. REQUIRES: nobody else changes tables, or what is fed.
    fn turn(&self, state: &State, mut config: FeedConfig) -> Result<()> {
        let before = self.feed.fed();
        if config == before.config {
            return Ok(());
        }
        // Until the file says so, all that is fed before or after it. It may never say so.
        let mut tables = before.config.tables.clone();
        for (&id, &table) in &config.tables {
            let told = tables.entry(id).or_insert(table);
            told.content = told.content.max(table.content);
        }
        let both = FeedConfig { tables, ..config.clone() };
        {
            let commit = self.committer.lock();
            self.feed.set(Fed { table: before.table, config: both });
            let since = commit.next_seq - 1 + config.base;
            for (id, fed) in &mut config.tables {
                fed.since = before.config.tables.get(id).map_or(since, |fed| fed.since);
            }
        }
        let written = self.write_config(&config, |part| tell(state, &before.config, &config, part));
        if written.is_err() {
            config = before.config.clone();
        }
        let _commit = self.committer.lock();
        self.feed.set(Fed { table: before.table, config });
        written
    }

    /// Writes what is fed, durably, and what readers are told of that.
    fn write_config(&self, config: &FeedConfig, tell: impl FnOnce(&mut PartWriter) -> bool) -> Result<()> {
        let mut gathered = Gathered::new(self.feed.fed(), now_ms());
        let mut part = PartWriter::default();
        part.begin(gathered.time_ms);
        if tell(&mut part) {
            self.add_part(&mut gathered, &mut part, false)?;
        }
        gathered.config = Some(self.feed_record(&mut gathered, &config.encode())?);
        let feed = Some(Box::new(gathered));
        self.commits.commit(Batch { durable: true, feed, ..Batch::default() }).map(|_| ())
    }

    /// Adds a part to what a commit has for the feed. `is_inline`: in its record, unless that is too long.
    pub(crate) fn add_part(
        &self,
        gathered: &mut Gathered,
        part: &mut PartWriter,
        is_inline: bool,
    ) -> Result<()> {
        gathered.bytes += part.bytes().len() as u64;
        let inline_max = if is_inline { INLINE_VALUE_BYTES_MAX } else { self.large_value_bytes };
        let is_small = part.bytes().len() < inline_max;
        let record =
            if is_small { (Tag::Put, part.take()) } else { self.feed_record(gathered, part.bytes())? };
        gathered.parts.push(record);
        Ok(())
    }

    /// A value of the feed as it stands in its record: a large one is stored now.
    fn feed_record(&self, gathered: &mut Gathered, bytes: &[u8]) -> Result<(Tag, Vec<u8>)> {
        if bytes.len() < self.large_value_bytes {
            return Ok((Tag::Put, bytes.to_vec()));
        }
        check_part(bytes)?;
        let (at, segment) = self.commits.store_large(bytes, gathered.frees)?;
        gathered.hold(segment);
        Ok((Tag::Large, at.encode().to_vec()))
    }

    /// Makes the hidden table. Nothing is fed yet.
    fn make(&self) -> Result<()> {
        let config = self.first_config();
        let id = self.catalog.reserve_ids(&self.state.load(), 1)?;
        let made = NewTable { id, kind: TableKind::Ordered, name: FEED_NAME.into(), ttl_ms: 0 };
        let begin = FeedMark { commit: self.state.load().visible(), ..FeedMark::default() };
        let mut block = Block::default();
        block.push(CONFIG_KEY, Tag::Put, &config.encode());
        block.push(TRIMMED_KEY, Tag::Put, &begin.encode_trimmed());
        let part = |block| BatchPart {
            table: id,
            block,
            ranges: Ranges::default(),
            segments: Vec::new(),
            indexes: None,
        };
        self.commits.commit_created(&|| Batch {
            tables: TableChanges::of(vec![TableChange::Made(made.clone())]),
            parts: vec![part(block.clone())],
            durable: true,
            ..Batch::default()
        })?;
        let mut commit = self.committer.lock();
        commit.feed = FeedTally { trimmed: begin, ..FeedTally::default() };
        self.feed.set(Fed { table: Some(id), config });
        Ok(())
    }

    /// If the file was restored since its feed was written, this says so in it, before more is fed.
    pub(crate) fn renew(&self) -> Result<()> {
        if !self.feed.begins_anew.load(Ordering::Acquire) {
            return Ok(());
        }
        // What is fed stays the same meanwhile.
        let _changing = self.catalog.changing.lock();
        if self.feed.begins_anew.load(Ordering::Acquire) { self.write_renewed() } else { Ok(()) }
    }

    fn write_renewed(&self) -> Result<()> {
        let config = self.feed.fed().config.clone();
        self.write_config(&config, |_| false)?;
        self.feed.begins_anew.store(false, Ordering::Release);
        Ok(())
    }
}

/// The error of those who ask for the feed of a file where nothing was ever fed.
pub(crate) fn no_feed(path: &Path) -> Error {
    Error::Invalid { detail: format!("{} feeds no table: set_feed begins that", path.display()) }
}

/// Writes which tables are fed from now on, or no longer. False if none.
fn tell(state: &State, before: &FeedConfig, now: &FeedConfig, part: &mut PartWriter) -> bool {
    let content = |config: &FeedConfig, id| config.tables.get(&id).map(|table| table.content);
    let ids = before.tables.keys().chain(now.tables.keys());
    let ids: std::collections::BTreeSet<u32> = ids.copied().collect();
    let mut any = false;
    for id in ids {
        let (was, is) = (content(before, id), content(now, id));
        let Some(table) = state.tables.get(id).filter(|_| was != is) else { continue };
        any = true;
        part.begin_section(table.kind, &table.name);
        match is {
            Some(content) => part.begin_table(content),
            None => part.stop_table(),
        }
        part.end_section();
    }
    any
}
