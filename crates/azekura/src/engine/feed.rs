//! The feed of changes: what commits add to it.
//!
//! A commit to a table that is fed has one part more, to the hidden table of the feed. So what is in the feed
//! is durable with the commit, recovered with it, copied and followed with it. The changes are gathered before
//! the commit lock is taken. Under the lock they get the commit's number.
//!
//! Which tables are fed changes under the commit lock. A commit that was gathered before, by what was fed
//! then, is refused as a conflict. So none passes the feed by.
//!
//! Now and then a commit leaves a mark: how much had been fed by then, and when. The marks since the oldest
//! change are in memory. The commit that adds one also removes, by a range, what is too much or too old.

mod gather;

use super::Engine;
use super::batch::{Batch, BatchPart};
use super::changes::TableChanges;
use super::commit::Commit;
use super::fed::{Fed, FeedTally};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::format::block::{Block, Tag};
use crate::format::feed::{
    CONFIG_KEY, FEED_NAME, FeedConfig, FeedContent, FeedMark, TRIMMED_KEY, mark_key, part_key,
};
use crate::format::frame::{NewTable, TableChange};
use crate::format::operand::Operator;
use crate::format::ranges::{Range, Ranges};
use std::collections::BTreeMap;

/// How much of the past is kept where nobody has said.
const BYTES_MAX_DEFAULT: u64 = 1 << 30;

impl Commit {
    /// Adds the changes of a commit that has got its number to what it writes.
    pub(super) fn feed(&mut self, seq: u64, batch: &mut Batch) {
        let Some(gathered) = batch.feed.take() else { return };
        let Some(table) = gathered.fed.table.filter(|_| !gathered.parts.is_empty()) else { return };
        if !gathered.segments.is_empty() {
            self.large_bytes += gathered.bytes;
        }
        let heap = gathered.parts.iter().map(|(_, value)| value.len() + 64).sum();
        let mut block = Block::with_capacity(None, gathered.parts.len() + 2, heap);
        for (i, (tag, value)) in (0..).zip(&gathered.parts) {
            block.push(&part_key(seq, i), *tag, value);
        }
        let config = &gathered.fed.config;
        let tally = &mut self.feed;
        tally.total_bytes += gathered.bytes;
        let now = FeedMark { commit: seq, total_bytes: tally.total_bytes, time_ms: gathered.time_ms };
        let mut ranges = Ranges::default();
        if tally.is_mark_due(config, &now) {
            tally.marks.push_back(now);
            let (key, value) = now.encode();
            block.push(&key, Tag::Put, &value);
            if let Some(trimmed) = tally.trim(config, &now) {
                block.push(TRIMMED_KEY, Tag::Put, &trimmed.encode_trimmed());
                for (start, end) in [
                    (part_key(0, 0), part_key(trimmed.commit + 1, 0)),
                    (mark_key(0), mark_key(trimmed.commit + 1)),
                ] {
                    ranges.add(Range { start, end: Some(end) });
                }
            }
        }
        batch.parts.push(BatchPart { table, block, ranges, segments: gathered.segments, indexes: None });
    }
}

impl Engine {
    /// Takes what the file says of the feed. REQUIRES: nobody commits yet.
    pub(crate) fn set_feed(&self, table: u32, config: FeedConfig, tally: FeedTally) {
        self.committer.lock().feed = tally;
        self.feed.set(Fed { table: Some(table), config });
    }

    /// Changes what is fed, durably. From then on every commit is by that.
    pub(crate) fn change_feed(&self, change: impl FnOnce(&mut FeedConfig)) -> Result<()> {
        self.check_writable()?;
        let _changing = self.catalog.changing.lock();
        let before = self.feed.fed();
        let mut config = before.config.clone();
        if before.table.is_none() {
            config.bytes_max = BYTES_MAX_DEFAULT;
        }
        change(&mut config);
        let table = match before.table {
            Some(table) => table,
            None => self.catalog.reserve_ids(&self.state.load(), 1)?,
        };
        // Until the file says so, all that is fed before or after it.
        let mut tables = before.config.tables.clone();
        tables.extend(config.tables.iter().map(|(&id, &table)| (id, table)));
        if before.table.is_none() {
            self.make_feed(table)?;
        }
        let both = FeedConfig { tables, ..config.clone() };
        self.turn_feed(Some(table), &both, &mut config, &before.config);
        let block = BatchPart::single(table, CONFIG_KEY, Tag::Put, &config.encode());
        let written = self.commit(Batch { parts: vec![block], durable: true, ..Batch::default() });
        if written.is_err() {
            config = before.config.clone();
        }
        let _commit = self.committer.lock();
        self.feed.set(Fed { table: Some(table), config });
        written.map(|_| ())
    }

    /// Feeds by `both` from now on, and notes in `config` from which commit on the new tables are fed.
    fn turn_feed(&self, table: Option<u32>, both: &FeedConfig, config: &mut FeedConfig, before: &FeedConfig) {
        let commit = self.committer.lock();
        self.feed.set(Fed { table, config: both.clone() });
        let since = commit.next_seq - 1;
        for (id, fed) in &mut config.tables {
            fed.since = before.tables.get(id).map_or(since, |fed| fed.since);
        }
    }

    /// Makes the hidden table. Nothing is fed yet.
    fn make_feed(&self, id: u32) -> Result<()> {
        let made = NewTable { id, kind: TableKind::Ordered, name: FEED_NAME.into(), ttl_ms: 0 };
        let config = FeedConfig { bytes_max: BYTES_MAX_DEFAULT, age_max_ms: 0, tables: BTreeMap::new() };
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
        self.commit_created(|| Batch {
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

    /// Whether an operand may be added to a table without a look at the value. (Indexes and lifetimes are those
    /// who call know.)
    pub(crate) fn takes_blind(&self, table: u32, operator: Operator) -> bool {
        let is_fed = || self.feed.fed().content_of(table) == Some(FeedContent::Values);
        self.operators.takes(table, operator) && !(self.feed.is_on() && is_fed())
    }

    /// The newest commit that is durable, of those that `state` shows.
    pub(crate) fn durable_of(&self, state: &State) -> u64 {
        let visible = state.visible();
        // What another process has committed is seen when it is durable.
        if self.config.read_only { visible } else { visible.min(self.log.durable_seq()) }
    }

    /// The hidden table of the feed in a state.
    pub(crate) fn feed_table(&self, state: &State) -> Option<u32> {
        self.behind(state).table_named(state, FEED_NAME).ok().map(|table| table.id)
    }

    /// An error if nothing was ever fed.
    pub(crate) fn no_feed(&self) -> Error {
        Error::Invalid { detail: format!("{} feeds no table: set_feed begins that", self.path.display()) }
    }
}
