//! The feed of changes: it has all that its marks count, and nothing that is gone.

use super::Check;
use crate::api::feed::FeedRecords;
use crate::base::error::Result;
use crate::format::feed::{FeedMark, PartPlace, mark_key, parse_part_key, part_key};

impl Check<'_> {
    /// Looks at the feed's table.
    pub(super) fn feed(&mut self, table: u32, sound: usize) {
        match self.feed_problem(table) {
            // What stops the comparison was mostly found before.
            Err(_) if self.report.problems.len() > sound => {}
            Err(e) => self.problem(format!("the feed: {e}")),
            Ok(Some(problem)) => self.problem(format!("the feed: {problem}")),
            Ok(None) => {}
        }
    }

    fn feed_problem(&self, table: u32) -> Result<Option<String>> {
        let records = FeedRecords { db: self.db, state: &self.state, table, seq: self.seq };
        let (config, is_new) = records.config()?;
        if is_new {
            // What is there is of another life of the file, and goes.
            return Ok(None);
        }
        let gone = records.trimmed()?;
        let mut marks = records.walk(mark_key(0), b"n".to_vec())?;
        let mut mark = next_mark(&mut marks)?;
        let mut parts = records.walk(part_key(0, 0).to_vec(), b"e".to_vec())?;
        let (mut bytes, mut last) = (gone.total_bytes, (0, 0));
        loop {
            let part = parts.next()?;
            let commit = match &part {
                Some((key, _)) => parse_part_key(key)?,
                None => (u64::MAX, 0),
            };
            while let Some(passed) = mark.filter(|mark| mark.commit < commit.0) {
                if passed.commit <= gone.commit || passed.total_bytes != bytes {
                    let FeedMark { commit, total_bytes, .. } = passed;
                    return Ok(Some(format!(
                        "{bytes} bytes up to commit {commit}, and its mark says {total_bytes}; all up to {} is gone",
                        gone.commit
                    )));
                }
                mark = next_mark(&mut marks)?;
            }
            let Some((_, value)) = part else { return Ok(None) };
            let is_next = if commit.0 == last.0 { commit.1 == last.1 + 1 } else { commit.1 == 0 };
            if commit.0 <= gone.commit || commit.0 > self.seq + config.base || !is_next {
                return Ok(Some(format!("part {} of commit {} cannot be there", commit.1, commit.0)));
            }
            last = commit;
            let value = value.bytes()?;
            bytes += value.len() as u64;
            let mut place = PartPlace::first(value)?;
            while place.next(value)?.is_some() {}
        }
    }
}

fn next_mark(marks: &mut crate::cursor::Cursor) -> Result<Option<FeedMark>> {
    marks.next()?.map(|(key, value)| FeedMark::decode(key, value.bytes()?)).transpose()
}
