//! What pins keep from being used again.
//!
//! A reader in another process, a **follower**, has pinned a checkpoint (`storage/pins.rs`), and reads what
//! that checkpoint names, and what the log behind it leads to. The engine knows nothing of such readers. It
//! frees an extent when the newest checkpoint does not name it and nobody in this process reads it. Where
//! checkpoints are pinned that is not enough. Then the extent is **kept**: it counts as taken until the pins
//! that may mean it are gone.
//!
//! Take an extent that was taken while `born` was the newest checkpoint, and given back while `died` was. The
//! checkpoints from `born` (by its log) up to the one before `died` name it. A pin of another checkpoint does
//! not keep it. So a reader that sleeps for hours keeps what there was when it fell asleep, and not what came
//! and went meanwhile.
//!
//! Pins are asked for at each checkpoint, after the superblock was written. A pin that is found later is of
//! that checkpoint or a newer one, and keeps nothing that was freed before. So as long as none is found
//! nothing is counted here, and extents are freed at once. When one is found, all that is taken at that
//! moment counts as born before it.

use super::Extent;
use super::extent::between;
use crate::base::sync::Instant;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// An extent that waits for pins.
struct Kept {
    extent: Extent,
    born: u64,
    died: u64,
}

/// A lock on at most so many checkpoints is a number of pins. Each counts by itself.
const SINGLE_PINS_MAX: u64 = 1024;

/// A pinned checkpoint (or very many that follow each other), and since when it has not been the newest, as
/// far as this handle knows.
struct Pin {
    checkpoints: RangeInclusive<u64>,
    since: Option<Instant>,
}

/// What pins may keep at most. None: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PinLimits {
    pub(crate) bytes_max: Option<u64>,
    /// For how long a checkpoint may be pinned when it is not the newest any more.
    pub(crate) age_max: Option<Duration>,
}

impl PinLimits {
    pub(crate) fn are_set(&self) -> bool {
        *self != PinLimits::default()
    }
}

/// What is known of a pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinView {
    /// The lowest checkpoint.
    pub(crate) checkpoint: u64,
    /// How long it has not been the newest. None: only the writer knows.
    pub(crate) age: Option<Duration>,
    /// Bytes that it keeps from being used again. None: only the writer knows.
    pub(crate) bytes: Option<u64>,
    /// Whether it is not honoured any more. None: the file does not tell.
    pub(crate) is_revoked: Option<bool>,
}

impl PinView {
    /// What who does not write knows of the pins on these checkpoints. `newest` is the newest checkpoint,
    /// whose pins keep nothing yet, and `is_revoked` what the file tells of others. None: the file could not
    /// be read.
    pub(crate) fn from_outside(
        pins: &[RangeInclusive<u64>],
        newest: Option<u64>,
        is_revoked: impl Fn(u64) -> Option<bool>,
    ) -> Vec<PinView> {
        let view = |pin: RangeInclusive<u64>| {
            let checkpoint = *pin.start();
            let is_newest = newest.is_some_and(|newest| checkpoint >= newest);
            let is_revoked = if is_newest { Some(false) } else { is_revoked(checkpoint) };
            PinView {
                checkpoint,
                age: is_newest.then_some(Duration::ZERO),
                bytes: (is_newest || is_revoked == Some(true)).then_some(0),
                is_revoked,
            }
        };
        pins.iter().flat_map(single).map(view).collect()
    }
}

/// The pins of one file, and what they keep.
#[derive(Default)]
pub(super) struct Pinned {
    /// The newest checkpoint.
    newest: u64,
    pins: Vec<Pin>,
    /// Whether the system did not tell which pins there are. Then each checkpoint may be pinned.
    are_unknown: bool,
    kept: Vec<Kept>,
    kept_bytes: u64,
    /// What was taken since the first pin was found, by offset: its end, and the newest checkpoint then.
    young: BTreeMap<u64, (u64, u64)>,
}

impl Pinned {
    /// Whether nothing has to be counted.
    pub(super) fn is_idle(&self) -> bool {
        self.pins.is_empty() && !self.are_unknown
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Notes that an extent was taken.
    pub(super) fn took(&mut self, extent: Extent) {
        if !self.is_idle() {
            self.young.insert(extent.offset, (extent.end(), self.newest));
        }
    }

    /// Keeps the parts of an extent that a pin may mean. Returns the others, which are free.
    pub(super) fn give_back(&mut self, extent: Extent) -> Vec<Extent> {
        if self.is_idle() {
            return vec![extent];
        }
        let died = self.newest;
        let mut free = Vec::new();
        for (part, born) in self.take_young(extent) {
            self.keep_or(part, born, died, &mut free);
        }
        free
    }

    fn keep_or(&mut self, extent: Extent, born: u64, died: u64, free: &mut Vec<Extent>) {
        let may_be_pinned = self.are_unknown && born < died;
        if may_be_pinned || self.pins.iter().any(|pin| means(pin, born, died)) {
            self.kept_bytes += extent.len;
            self.kept.push(Kept { extent, born, died });
        } else {
            free.push(extent);
        }
    }

    /// The parts of an extent, and when each was taken. They are not young any more.
    fn take_young(&mut self, extent: Extent) -> Vec<(Extent, u64)> {
        let mut parts = Vec::new();
        let mut at = extent.offset;
        while at < extent.end() {
            let before = self.young.range(..=at).next_back().map(|(&from, &(end, born))| (from, end, born));
            if let Some((from, end, born)) = before.filter(|young| young.1 > at) {
                let until = end.min(extent.end());
                parts.push((between(at, until), born));
                self.young.remove(&from);
                if from < at {
                    self.young.insert(from, (at, born));
                }
                if until < end {
                    self.young.insert(until, (end, born));
                }
                at = until;
            } else {
                let next = self.young.range(at..).next().map_or(extent.end(), |young| *young.0);
                let until = next.min(extent.end());
                parts.push((between(at, until), 0));
                at = until;
            }
        }
        parts
    }

    /// The newest checkpoint is `newest` now, and these are pinned. (None: that is not known.) Returns what
    /// has become free.
    pub(super) fn found(
        &mut self,
        newest: u64,
        pins: Option<&[RangeInclusive<u64>]>,
        now: Instant,
    ) -> Vec<Extent> {
        self.newest = newest;
        if pins.is_some_and(|pins| pins.is_empty()) && self.is_idle() && self.kept.is_empty() {
            return Vec::new();
        }
        self.are_unknown = pins.is_none();
        let old = std::mem::take(&mut self.pins);
        let since = |checkpoints: &RangeInclusive<u64>| {
            let same = old.iter().find(|pin| pin.checkpoints.contains(checkpoints.start()));
            let outdated = || (*checkpoints.start() < newest).then_some(now);
            same.and_then(|pin| pin.since).or_else(outdated)
        };
        let pin = |range: RangeInclusive<u64>| Pin { since: since(&range), checkpoints: range };
        self.pins = match pins {
            Some(pins) => pins.iter().flat_map(single).map(pin).collect(),
            None => old.iter().map(|old| pin(old.checkpoints.clone())).collect(),
        };
        if self.is_idle() {
            self.young.clear();
        }
        let mut free = Vec::new();
        self.kept_bytes = 0;
        for Kept { extent, born, died } in std::mem::take(&mut self.kept) {
            self.keep_or(extent, born, died, &mut free);
        }
        free
    }

    /// Keeps extents of which it is not known which other checkpoint names them. A pinned one above the
    /// newest is among them: its superblock was lost.
    pub(super) fn keep_unknown(&mut self, extents: impl IntoIterator<Item = Extent>) {
        let highest = self.highest();
        let died = if highest > self.newest { highest + 1 } else { self.newest };
        for extent in extents {
            self.kept_bytes += extent.len;
            self.kept.push(Kept { extent, born: 0, died });
        }
    }

    /// Whether a pin is of another checkpoint than the newest.
    pub(super) fn has_others(&self) -> bool {
        self.pins.iter().any(|pin| pin.checkpoints != (self.newest..=self.newest))
    }

    /// The highest number that is pinned, or 0.
    pub(super) fn highest(&self) -> u64 {
        self.pins.iter().map(|pin| *pin.checkpoints.end()).max().unwrap_or(0)
    }

    /// See `Space::honoured_from`.
    pub(super) fn honoured_from(&self, from: u64, limits: PinLimits, now: Instant) -> u64 {
        if self.are_unknown {
            return 0;
        }
        // The first checkpoint that is honoured once a pin and all older ones are revoked.
        let after = |pin: &Pin| (*pin.checkpoints.end() + 1).min(self.newest);
        let may_go = from..self.newest;
        let revocable = || self.pins.iter().filter(|pin| may_go.contains(pin.checkpoints.start()));
        let age = |pin: &Pin| pin.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let is_old = |pin: &&Pin| limits.age_max.is_some_and(|most| age(pin) > most);
        let honoured = revocable().filter(is_old).map(after).max().unwrap_or(0);
        let Some(bytes_max) = limits.bytes_max.filter(|&most| self.kept_bytes > most) else {
            return honoured;
        };
        // What stays kept whatever is revoked is no reason to revoke more.
        let least = self.kept_without(from, self.newest).max(bytes_max);
        let fits = |to: u64| self.kept_without(from, to) <= least;
        let steps: Vec<u64> =
            std::iter::once(honoured).chain(revocable().map(after).filter(|&to| to > honoured)).collect();
        steps.get(steps.partition_point(|&to| !fits(to))).copied().unwrap_or(honoured)
    }

    /// What is kept if pins from `from` up to `to` do not count.
    fn kept_without(&self, from: u64, to: u64) -> u64 {
        let counts = |pin: &&Pin| *pin.checkpoints.start() < from || *pin.checkpoints.end() >= to;
        let pins: Vec<&Pin> = self.pins.iter().filter(counts).collect();
        let is_kept = |kept: &&Kept| pins.iter().any(|pin| means(pin, kept.born, kept.died));
        self.kept.iter().filter(is_kept).map(|kept| kept.extent.len).sum()
    }

    /// The pins, and what each keeps. What several keep counts for each.
    pub(super) fn view(&self, now: Instant) -> Vec<PinView> {
        let bytes = |pin: &Pin| {
            self.kept.iter().filter(|kept| means(pin, kept.born, kept.died)).map(|kept| kept.extent.len).sum()
        };
        let view = |pin: &Pin| PinView {
            checkpoint: *pin.checkpoints.start(),
            age: Some(pin.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))),
            bytes: Some(bytes(pin)),
            is_revoked: Some(false),
        };
        self.pins.iter().map(view).collect()
    }
}

/// The checkpoints of a lock.
fn single(range: &RangeInclusive<u64>) -> Vec<RangeInclusive<u64>> {
    let (first, last) = (*range.start(), *range.end());
    if last - first < SINGLE_PINS_MAX { (first..=last).map(|n| n..=n).collect() } else { vec![first..=last] }
}

/// Whether a pinned checkpoint may mean an extent.
fn means(pin: &Pin, born: u64, died: u64) -> bool {
    born < died && *pin.checkpoints.end() >= born && *pin.checkpoints.start() < died
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(from: u64, to: u64) -> Extent {
        Extent { offset: from * 4096, len: (to - from) * 4096 }
    }

    fn pinned(newest: u64, pins: &[u64]) -> Pinned {
        let mut pinned = Pinned::default();
        find(&mut pinned, newest, pins);
        pinned
    }

    fn find(pinned: &mut Pinned, newest: u64, pins: &[u64]) -> Vec<Extent> {
        let pins: Vec<_> = pins.iter().map(|&pin| pin..=pin).collect();
        pinned.found(newest, Some(&pins), Instant::now())
    }

    #[test]
    fn without_pins_everything_is_free_at_once() {
        let mut p = pinned(7, &[]);
        p.took(extent(2, 9));
        assert_eq!(p.give_back(extent(2, 9)), [extent(2, 9)]);
        assert!(p.young.is_empty(), "nothing is counted");
    }

    #[test]
    fn what_a_pinned_checkpoint_may_name_is_kept_until_the_pin_is_gone() {
        let mut p = pinned(7, &[7]);
        assert_eq!(p.give_back(extent(2, 4)), [extent(2, 4)], "checkpoint 7 does not name it any more");
        find(&mut p, 8, &[7]);
        assert_eq!(p.give_back(extent(4, 6)), []);
        assert_eq!(p.view(Instant::now())[0].bytes, Some(2 * 4096));
        assert_eq!(find(&mut p, 9, &[7, 8]), []);
        assert_eq!(find(&mut p, 9, &[8]), [extent(4, 6)], "it was not in checkpoint 8");
        assert_eq!(p.kept_bytes(), 0);
    }

    #[test]
    fn what_came_and_went_since_the_pin_is_free() {
        let mut p = pinned(7, &[7]);
        find(&mut p, 8, &[7]);
        p.took(extent(10, 20));
        find(&mut p, 9, &[7]);
        assert_eq!(p.give_back(extent(8, 22)), [extent(10, 20)], "its neighbours were there before");
        assert_eq!(p.kept_bytes(), 4 * 4096);
        // The log behind a checkpoint leads to what was taken while it was the newest.
        p.took(extent(30, 40));
        find(&mut p, 10, &[9]);
        assert_eq!(p.give_back(extent(32, 34)), []);
        assert_eq!(p.young.len(), 2, "its rest is still young");
    }

    #[test]
    fn while_pins_are_unknown_everything_is_kept() {
        let mut p = pinned(7, &[]);
        p.found(8, None, Instant::now());
        p.took(extent(10, 20));
        assert_eq!(p.give_back(extent(10, 20)), [extent(10, 20)], "no checkpoint names it");
        assert_eq!(p.give_back(extent(2, 4)), []);
        assert_eq!(p.found(9, None, Instant::now()), []);
        assert_eq!(find(&mut p, 9, &[]), [extent(2, 4)]);
        assert!(p.is_idle());
    }

    #[test]
    fn a_pin_above_the_newest_checkpoint_keeps_all_that_was_free() {
        let mut p = pinned(7, &[7]);
        assert!(!p.has_others());
        find(&mut p, 7, &[7, 12]);
        assert!(p.has_others());
        p.keep_unknown([extent(2, 4)]);
        assert_eq!((p.highest(), find(&mut p, 13, &[12])), (12, vec![]));
        assert_eq!(p.give_back(extent(5, 6)), [], "it may have been in that one");
        let free = find(&mut p, 14, &[13]);
        assert_eq!(free, [extent(2, 4), extent(5, 6)]);
    }

    #[test]
    fn the_oldest_pins_are_revoked_first_and_never_those_of_the_newest_checkpoint() {
        let mut p = pinned(3, &[3]);
        find(&mut p, 4, &[3, 4]);
        assert_eq!(p.give_back(extent(0, 10)), []);
        find(&mut p, 5, &[3, 4, 5]);
        p.took(extent(20, 25));
        assert_eq!(p.give_back(extent(10, 14)), []);
        assert_eq!(p.kept_bytes(), 14 * 4096);
        let of = |p: &Pinned, from, pages: u64| {
            let limits = PinLimits { bytes_max: Some(pages * 4096), age_max: None };
            p.honoured_from(from, limits, Instant::now())
        };
        assert_eq!((of(&p, 1, 14), of(&p, 1, 13), of(&p, 1, 4), of(&p, 1, 3)), (0, 4, 4, 5));
        assert_eq!((of(&p, 4, 0), of(&p, 5, 0)), (0, 0), "pins below `from` stay, and keep all of it");
        assert_eq!(p.honoured_from(1, PinLimits::default(), Instant::now()), 0);
        // What is revoked is as if it were not there.
        assert_eq!(find(&mut p, 6, &[4, 5]), [extent(0, 10)]);
        assert_eq!(find(&mut p, 6, &[5]), [extent(10, 14)]);
    }

    #[test]
    fn pins_are_revoked_by_their_age() {
        let (mut p, began) = (Pinned::default(), Instant::now());
        let later = |s| began + Duration::from_secs(s);
        p.found(3, Some(&[3..=3]), began);
        p.found(4, Some(&[3..=4]), later(5));
        p.found(6, Some(&[3..=4, 6..=6]), later(20));
        let of = |p: &Pinned, s, age| {
            let limits = PinLimits { bytes_max: None, age_max: Some(Duration::from_secs(age)) };
            p.honoured_from(1, limits, later(s))
        };
        assert_eq!((of(&p, 30, 25), of(&p, 30, 24), of(&p, 30, 10), of(&p, 30, 9)), (0, 4, 4, 5));
        assert_eq!(of(&p, 100, 1), 5, "the newest is honoured");
        p.found(6, None, later(100));
        assert_eq!(of(&p, 200, 1), 0, "nobody knows");
    }

    #[test]
    fn a_pin_is_as_old_as_the_checkpoint_after_it() {
        let (mut p, began) = (Pinned::default(), Instant::now());
        let later = |s| began + Duration::from_secs(s);
        p.found(3, Some(&[3..=3]), began);
        p.found(4, Some(&[3..=3]), later(5));
        p.found(5, None, later(9));
        p.found(6, Some(&[3..=4]), later(9));
        let ages: Vec<_> = p.view(later(10)).iter().map(|view| view.age.unwrap().as_secs()).collect();
        assert_eq!(ages, [5, 1]);
        assert_eq!(Pinned::default().view(began), []);
    }

    #[test]
    fn from_outside_only_pins_of_the_newest_checkpoint_and_revoked_ones_are_known_to_keep_nothing() {
        // Of checkpoint 2 the file does not tell, and those below 4 are revoked.
        let rules = |checkpoint: u64| if checkpoint == 2 { None } else { Some(checkpoint < 4) };
        let known = |newest, rules: &dyn Fn(u64) -> Option<bool>| -> Vec<_> {
            let seen = PinView::from_outside(&[2..=5, 9..=9], newest, rules);
            seen.iter().map(|view| (view.checkpoint, view.age, view.bytes, view.is_revoked)).collect()
        };
        let newest = |checkpoint| (checkpoint, Some(Duration::ZERO), Some(0), Some(false));
        let (unknown, revoked) = ((2, None, None, None), (3, None, Some(0), Some(true)));
        let honoured = (4, None, None, Some(false));
        assert_eq!(known(Some(5), &rules), [unknown, revoked, honoured, newest(5), newest(9)]);
        // Which is the newest is not known: none has an age, and none keeps nothing.
        let all = [2, 3, 4, 5, 9].map(|checkpoint| (checkpoint, None, None, None));
        assert_eq!(known(None, &|_| None), all);
        let many = PinView::from_outside(&[1..=SINGLE_PINS_MAX + 1], Some(5), |_| None);
        assert_eq!(many.len(), 1, "a lock on very many is one pin");
    }
}
