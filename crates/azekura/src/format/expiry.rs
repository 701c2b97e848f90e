//! When a record expires, and how that is stored.
//!
//! A record with the tag `Expiring` has a word in front of its value: the time at which it expires, in
//! milliseconds since the beginning of 1970, times two, and one more if the value is a reference to a value
//! segment. In memory and in the log the word stands before the value. In a page the words are a column of
//! their own, packed like all others. Records that do not expire have no word, and pages without such records
//! no column.

use super::tag::Tag;
use crate::base::clock::{millis, time_of};
use crate::base::codec::u64_at;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the word in front of a value.
pub(crate) const WORD_BYTES: usize = 8;
/// The word of an operand (see `operand`). Times are far below.
pub(crate) const OPERAND_WORD: u64 = 1 << 63;
/// Times from here on are never: the year 4,199.
const TIME_END_MS: u64 = 1 << 46;

/// A time at which a record expires, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expiry(u64);

impl Expiry {
    /// The record stays.
    pub(crate) const NEVER: Expiry = Expiry(u64::MAX);

    /// A time in milliseconds since the beginning of 1970.
    pub(crate) fn at(ms: u64) -> Expiry {
        if ms < TIME_END_MS { Expiry(ms) } else { Expiry::NEVER }
    }

    /// What expires at a time of the system. What is before 1970 has expired.
    pub(crate) fn at_time(time: SystemTime) -> Expiry {
        Expiry::at(time.duration_since(UNIX_EPOCH).map_or(0, millis))
    }

    /// The time as the system says it; none if it never comes.
    pub(crate) fn time(self) -> Option<SystemTime> {
        self.time_ms().map(time_of)
    }

    /// The time in milliseconds; none if it never comes.
    pub(crate) fn time_ms(self) -> Option<u64> {
        (self != Expiry::NEVER).then_some(self.0)
    }

    /// Whether a record that expires then is gone at `now`.
    #[inline(always)]
    pub(crate) fn is_past(self, now: u64) -> bool {
        self.0 <= now && !crate::base::fault::fault!("show_expired")
    }

    /// The word of a record with this tag. REQUIRES: a time; `tag` is `Put` or `Large`.
    pub(crate) fn word(self, tag: Tag) -> u64 {
        debug_assert!(self != Expiry::NEVER, "what never expires has no word");
        self.0 << 1 | u64::from(tag == Tag::Large)
    }

    /// The time in a word, and what the value behind it is. An operand has no time.
    #[inline(always)]
    pub(crate) fn read(word: u64) -> (Expiry, Tag) {
        if word >= OPERAND_WORD {
            return (Expiry::NEVER, Tag::Operand);
        }
        (Expiry(word >> 1), if word & 1 == 0 { Tag::Put } else { Tag::Large })
    }
}

/// What a record says, without the tag `Expiring`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) tag: Tag,
    /// The value, or the reference to it.
    pub(crate) value: &'a [u8],
    pub(crate) expiry: Expiry,
}

impl<'a> Content<'a> {
    /// Reads a record as it stands in memory. One with the tag `Expiring` begins with a word. If it is too
    /// short for that it counts as absent.
    #[inline(always)]
    pub(crate) fn of(tag: Tag, stored: &'a [u8]) -> Content<'a> {
        if tag != Tag::Expiring {
            return Content { tag, value: stored, expiry: Expiry::NEVER };
        }
        if stored.len() < WORD_BYTES {
            return Content { tag: Tag::Tombstone, value: &[], expiry: Expiry::NEVER };
        }
        let (expiry, tag) = Expiry::read(u64_at(stored, 0));
        Content { tag, value: &stored[WORD_BYTES..], expiry }
    }

    /// What it says at `now`. What has expired says that the key is absent.
    #[inline(always)]
    pub(crate) fn at(self, now: u64) -> Content<'a> {
        if self.expiry.is_past(now) {
            Content { tag: Tag::Tombstone, value: &[], expiry: Expiry::NEVER }
        } else {
            self
        }
    }

    /// The tag with which it is stored. `out` receives what stands in memory, if that is not the value alone.
    pub(crate) fn stored<'b>(&self, out: &'b mut Vec<u8>) -> (Tag, &'b [u8])
    where
        'a: 'b,
    {
        if self.tag == Tag::Operand {
            out.clear();
            out.extend_from_slice(&OPERAND_WORD.to_le_bytes());
            out.extend_from_slice(self.value);
            return (Tag::Expiring, out);
        }
        if self.expiry == Expiry::NEVER || self.tag == Tag::Tombstone {
            return (self.tag, self.value);
        }
        out.clear();
        out.extend_from_slice(&self.expiry.word(self.tag).to_le_bytes());
        out.extend_from_slice(self.value);
        (Tag::Expiring, out)
    }
}

/// How many records of a run expire, and when the first and the last of them do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Expiring {
    pub(crate) records: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

impl Expiring {
    /// Adds a record, by its word.
    #[inline(always)]
    pub(crate) fn add(&mut self, word: u64) {
        let ms = word >> 1;
        self.first_ms = if self.records == 0 { ms } else { self.first_ms.min(ms) };
        self.last_ms = self.last_ms.max(ms);
        self.records += 1;
    }

    /// These and others.
    pub(crate) fn and(self, other: Expiring) -> Expiring {
        match (self.records, other.records) {
            (_, 0) => self,
            (0, _) => other,
            (a, b) => Expiring {
                records: a + b,
                first_ms: self.first_ms.min(other.first_ms),
                last_ms: self.last_ms.max(other.last_ms),
            },
        }
    }

    /// How many of them have likely expired at `now`: as if they did so evenly.
    pub(crate) fn past(&self, now: u64) -> f64 {
        let records = self.records as f64;
        match (now.checked_sub(self.first_ms), self.last_ms - self.first_ms) {
            _ if self.records == 0 => 0.0,
            (None, _) => 0.0,
            (Some(gone), span) if gone >= span => records,
            (Some(gone), span) => records * gone as f64 / span as f64,
        }
    }

    /// Whether some may have expired at `now`.
    pub(crate) fn any_past(&self, now: u64) -> bool {
        self.records > 0 && self.first_ms <= now
    }

    /// Whether all have expired at `now`.
    pub(crate) fn all_past(&self, now: u64) -> bool {
        self.records > 0 && self.last_ms <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back() {
        let mut out = Vec::new();
        for (tag, value) in [(Tag::Put, &b"value"[..]), (Tag::Put, b""), (Tag::Large, &[7; 16])] {
            for expiry in [Expiry::at(0), Expiry::at(1), Expiry::at(TIME_END_MS - 1), Expiry::NEVER] {
                let content = Content { tag, value, expiry };
                let (stored_tag, stored) = content.stored(&mut out);
                assert_eq!(stored_tag == Tag::Expiring, expiry != Expiry::NEVER);
                let back = Content::of(stored_tag, stored);
                assert_eq!((back.tag, back.value, back.expiry), (tag, value, expiry));
            }
        }
        assert_eq!(Expiry::at(TIME_END_MS), Expiry::NEVER);
        assert_eq!(Content::of(Tag::Expiring, b"short").tag, Tag::Tombstone);
    }

    #[test]
    fn a_record_is_there_until_its_time_and_not_at_it() {
        let content = Content { tag: Tag::Put, value: b"v", expiry: Expiry::at(100) };
        assert_eq!((content.at(99).tag, content.at(100).tag), (Tag::Put, Tag::Tombstone));
        assert!(!Expiry::NEVER.is_past(u64::MAX - 1));
    }

    #[test]
    fn the_part_that_is_past_grows_from_none_to_all() {
        let mut expiring = Expiring::default();
        assert!(!expiring.any_past(u64::MAX) && !expiring.all_past(u64::MAX));
        [300, 100, 200].into_iter().for_each(|ms| expiring.add(Expiry::at(ms).word(Tag::Put)));
        assert_eq!((expiring.first_ms, expiring.last_ms, expiring.records), (100, 300, 3));
        assert_eq!([50, 100, 200, 300, 400].map(|now| expiring.past(now)), [0.0, 0.0, 1.5, 3.0, 3.0]);
        assert_eq!([99, 100, 300].map(|now| expiring.any_past(now)), [false, true, true]);
        assert_eq!([299, 300].map(|now| expiring.all_past(now)), [false, true]);
    }
}
