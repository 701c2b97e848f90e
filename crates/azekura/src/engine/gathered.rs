//! What the feed of changes is to have of a commit.

use super::history::ReadSet;
use crate::format::block::Tag;
use crate::format::feed::{FeedConfig, FeedContent};
use crate::values::Segment;
use std::sync::Arc;

/// What is fed, and the hidden table that gets it.
#[derive(Default)]
pub(crate) struct Fed {
    /// None: there never was a feed.
    pub(crate) table: Option<u32>,
    pub(crate) config: FeedConfig,
}

impl Fed {
    pub(crate) fn content_of(&self, table: u32) -> Option<FeedContent> {
        self.config.tables.get(&table).map(|table| table.content)
    }
}

/// The changes of a commit.
pub(crate) struct Gathered {
    /// The tables that were fed when they were gathered.
    pub(crate) fed: Arc<Fed>,
    pub(crate) time_ms: u64,
    /// Each part, or the reference to it.
    pub(crate) parts: Vec<(Tag, Vec<u8>)>,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) bytes: u64,
    /// The commit makes room in the end.
    pub(crate) frees: bool,
    /// The tables that are told of, as they were called.
    pub(crate) names: Vec<(u32, Arc<str>)>,
    /// What must not have been written since, if old values were read.
    pub(crate) reads: Option<ReadSet>,
    /// What is fed from this commit on, if that changes: the record, or the reference to it.
    pub(super) config: Option<(Tag, Vec<u8>)>,
}

impl Gathered {
    pub(crate) fn new(fed: Arc<Fed>, time_ms: u64) -> Gathered {
        let (names, parts, segments) = (Vec::new(), Vec::new(), Vec::new());
        Gathered { fed, time_ms, parts, segments, bytes: 0, frees: false, names, reads: None, config: None }
    }

    pub(super) fn hold(&mut self, segment: Arc<Segment>) {
        if !self.segments.iter().any(|known| Arc::ptr_eq(known, &segment)) {
            self.segments.push(segment);
        }
    }
}
