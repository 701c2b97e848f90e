//! Which parts of a merge's newer inputs may go while the merge goes on.

use crate::base::error::Result;
use crate::engine::state::Level;
use crate::run::Run;
use std::sync::Arc;

/// What comes to stand in a level's place, if anything does.
pub(in crate::engine) type Successor = Option<Arc<Level>>;

/// Which partitions of the newer inputs may go when the output has all keys up to `end`.
///
/// A partition may go only if no input between it and the output keeps any of its keys. Such an input has
/// older versions than the partition, and they would hide the output. So this goes from the oldest input to
/// the newest. Each may let go only of what is below all that those before have kept. Range deletes hide keys
/// of other partitions too. So an input that has some keeps all, as if it had their keys.
pub(in crate::engine) struct ReplaceablePrefix<'a> {
    end: &'a [u8],
    /// The smallest key that an older input keeps.
    kept_from: Option<Vec<u8>>,
}

impl<'a> ReplaceablePrefix<'a> {
    pub(in crate::engine) fn new(end: &'a [u8]) -> ReplaceablePrefix<'a> {
        ReplaceablePrefix { end, kept_from: None }
    }

    /// What is left of each, newest first, and the partitions that go.
    pub(super) fn levels(mut self, newer: &[Arc<Level>]) -> Result<(Vec<Successor>, Vec<Arc<Run>>)> {
        let (mut next, mut gone) = (Vec::with_capacity(newer.len() + 1), Vec::new());
        for level in newer.iter().rev() {
            let passed = self.passed(level);
            gone.extend_from_slice(&level.runs[..passed]);
            let left = &level.runs[passed..];
            next.push(match (passed, left) {
                (0, _) => Some(level.clone()),
                (_, []) => None,
                (_, left) => Some(Arc::new(Level::new(left.to_vec(), level.updates, level.newest)?)),
            });
        }
        next.reverse();
        Ok((next, gone))
    }

    /// How many bytes go.
    pub(in crate::engine) fn bytes(mut self, newer: &[Arc<Level>]) -> u64 {
        let of =
            |level: &Arc<Level>| level.runs[..self.passed(level)].iter().map(|r| r.info.bytes()).sum::<u64>();
        newer.iter().rev().map(of).sum()
    }

    /// How many partitions of the next newer input go.
    fn passed(&mut self, level: &Level) -> usize {
        let may_go = |r: &&Arc<Run>| level.ranges.is_empty() && self.may_go(r);
        let passed = level.runs.iter().take_while(may_go).count();
        let kept = level
            .runs
            .get(passed)
            .map(|r| &r.info.min)
            .into_iter()
            .chain(level.ranges.iter().map(|r| &r.start));
        self.kept_from = kept.chain(&self.kept_from).min().cloned();
        passed
    }

    fn may_go(&self, run: &Run) -> bool {
        let max = &run.info.max;
        max.as_slice() <= self.end && self.kept_from.as_ref().is_none_or(|k| max < k)
    }
}
