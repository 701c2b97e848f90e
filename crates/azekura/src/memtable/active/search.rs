//! The way to a place in the list: for readers, and for the writer, who needs it level by level.

use super::layout::{HEAD, HEIGHT_MAX, NIL};
use super::writer::Writer;
use super::{Active, SearchKey, after_head};
use crate::base::sync::atomic::Ordering;
use std::cmp::Ordering as Order;

/// A search that begins at a finger takes at most so many steps on a level.
const STEPS_MAX: usize = 16;
/// What a finger that led nowhere counts, beside one that led to its place.
const MISLED_COST: u32 = 4;
/// Fingers that have led nowhere so often are aimed anew. In a list that was empty some twenty do, until
/// there are enough of them.
const MISLED_MAX: u32 = 256;
/// How often the fingers of one list are aimed anew.
const AIMS_MAX: u32 = 4;

impl Active {
    /// Moves the writer's splice to the place of a new entry that is to have `height` levels.
    #[inline(always)]
    pub(super) fn find_splice(&self, writer: &mut Writer, place: &SearchKey<'_>, height: usize) {
        let list_height = self.height.load(Ordering::Relaxed);
        let known = if height <= writer.nested { list_height.min(writer.nested) } else { 0 };
        let mut level = 0;
        while level < known && !self.encloses(writer.before[level], writer.after[level], place) {
            level += 1;
        }
        let (mut node, mut bound) = (HEAD, NIL);
        if level < known {
            (node, bound) = (writer.before[level], writer.after[level]);
        } else if self.splice_by_finger(writer, place, height) {
            return;
        } else {
            level = list_height;
            writer.nested = HEIGHT_MAX;
        }
        while level > 0 {
            level -= 1;
            (node, bound) = self.walk(node, bound, level, place);
            writer.before[level] = node;
            writer.after[level] = bound;
        }
    }

    /// Moves the lowest `height` levels of the splice to a place, from a finger. False if none leads there.
    #[inline(always)]
    fn splice_by_finger(&self, writer: &mut Writer, place: &SearchKey<'_>, height: usize) -> bool {
        let found = self.descend(writer, place, height);
        // Tall nodes have few fingers, so these say nothing.
        if height == 1 && found {
            writer.misled = writer.misled.saturating_sub(1);
        } else if height == 1 {
            writer.misled += MISLED_COST;
            if writer.misled > MISLED_MAX {
                self.aim(writer);
            }
        }
        found
    }

    /// What `splice_by_finger` tries. If it is false, the splice is good for nothing.
    #[inline(always)]
    fn descend(&self, writer: &mut Writer, place: &SearchKey<'_>, height: usize) -> bool {
        let Some(mut node) = self.fingers.start(place.head, height, |n| self.precedes(n, place)) else {
            return false;
        };
        let mut bound = NIL;
        for level in (0..height).rev() {
            let Some(found) = self.walk_near(node, bound, level, place) else { return false };
            (node, bound) = found;
            writer.before[level] = node;
            writer.after[level] = bound;
        }
        writer.nested = height;
        true
    }

    /// Points the fingers at the heads that there are. If that was done in vain, they are given up.
    #[cold]
    fn aim(&self, writer: &mut Writer) {
        writer.misled = 0;
        writer.aims += 1;
        let (first, last) = (self.link(HEAD, 0).load(Ordering::Acquire), self.last());
        let aimed = last != HEAD
            && writer.aims <= AIMS_MAX
            && self.fingers.aim(self.head(first), self.head(last), self.len());
        if !aimed {
            self.fingers.give_up();
            return;
        }
        self.note_all();
    }

    /// Makes the slots of the fingers narrower, for there are many records now.
    #[cold]
    pub(super) fn refine(&self) {
        if self.fingers.refine() {
            self.note_all();
        }
    }

    /// Fills the fingers' slots, which are empty.
    fn note_all(&self) {
        // Nodes of one level first: a slot keeps the last node that was noted.
        for level in 0..self.height.load(Ordering::Relaxed) {
            let mut node = self.link(HEAD, level).load(Ordering::Acquire);
            while node != NIL {
                // Its neighbour on level 0 tells whether it is the last of its slot.
                let after = self.link(node, 0).load(Ordering::Acquire);
                self.note_finger(node, level + 1, after);
                node = self.link(node, level).load(Ordering::Acquire);
            }
        }
    }

    /// Notes a published node of `levels` levels as a finger, if it is to be one. `after` is its neighbour.
    #[inline(always)]
    pub(super) fn note_finger(&self, node: u32, levels: usize, after: u32) {
        self.fingers.note(node, levels, self.head(node), (after != NIL).then(|| self.head(after)));
    }

    /// Whether a place lies between two neighbours.
    #[inline(always)]
    fn encloses(&self, before: u32, after: u32, place: &SearchKey<'_>) -> bool {
        (before == HEAD || self.precedes(before, place)) && !self.precedes(after, place)
    }

    /// Walks along one level from `node`, which precedes the place, to the last node that does. Returns that
    /// node and its successor. `bound` is known not to precede the place, so it is not compared again.
    #[inline(always)]
    fn walk(&self, mut node: u32, bound: u32, level: usize, place: &SearchKey<'_>) -> (u32, u32) {
        loop {
            let next = self.link(node, level).load(Ordering::Acquire);
            if next == bound || !self.precedes(next, place) {
                return (node, next);
            }
            node = next;
        }
    }

    /// `walk`, if it has not far to go.
    #[inline(always)]
    fn walk_near(
        &self,
        mut node: u32,
        bound: u32,
        level: usize,
        place: &SearchKey<'_>,
    ) -> Option<(u32, u32)> {
        for _ in 0..STEPS_MAX {
            let next = self.link(node, level).load(Ordering::Acquire);
            if next == bound || !self.precedes(next, place) {
                return Some((node, next));
            }
            node = next;
        }
        None
    }

    /// The last node before a place (perhaps `HEAD`), and its successor (perhaps `NIL`).
    #[inline]
    pub(super) fn search(&self, place: &SearchKey<'_>) -> (u32, u32) {
        self.search_near(place).unwrap_or_else(|| self.search_from_top(place))
    }

    /// `search`, if a finger leads there.
    #[inline(always)]
    pub(super) fn search_near(&self, place: &SearchKey<'_>) -> Option<(u32, u32)> {
        let start = self.fingers.start(place.head, 1, |node| self.precedes(node, place))?;
        self.walk_near(start, NIL, 0, place)
    }

    /// `search` without fingers.
    pub(super) fn search_from_top(&self, place: &SearchKey<'_>) -> (u32, u32) {
        let (mut node, mut bound) = (HEAD, NIL);
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            (node, bound) = self.walk(node, bound, level, place);
        }
        (node, bound)
    }

    /// The last node of all, or `HEAD`.
    pub(super) fn last(&self) -> u32 {
        let mut node = HEAD;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            loop {
                match self.link(node, level).load(Ordering::Acquire) {
                    NIL => break,
                    next => node = next,
                }
            }
        }
        node
    }

    /// Whether a node (not `HEAD`) precedes a place. `NIL` precedes none.
    #[inline(always)]
    fn precedes(&self, node: u32, place: &SearchKey<'_>) -> bool {
        let head = self.head(node);
        if head != place.head { head < place.head } else { self.precedes_tied(node, place) }
    }

    /// `precedes` for equal heads.
    fn precedes_tied(&self, node: u32, place: &SearchKey<'_>) -> bool {
        let Some(entry) = self.entry(node) else { return false };
        let by_key =
            after_head(entry.key).cmp(after_head(place.key)).then(entry.key.len().cmp(&place.key.len()));
        match by_key.then(place.seq.cmp(&entry.seq)) {
            Order::Less => true,
            Order::Equal => node > place.offset,
            Order::Greater => false,
        }
    }
}
