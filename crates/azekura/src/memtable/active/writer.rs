//! What the list's writer keeps from one insert to the next: where the last insert was, and how tall nodes
//! may be.

use super::layout::{HEAD, HEIGHT_MAX, LINK_CREDIT_MAX, NIL};
use crate::base::codec::usize_of;

/// The writer's state between two inserts.
pub(super) struct Writer {
    /// Neighbours, level by level: of the last insert, or of one before it. `after[l]` is always the link of
    /// `before[l]` at level l.
    pub(super) before: [u32; HEIGHT_MAX],
    pub(super) after: [u32; HEIGHT_MAX],
    /// How many of the lowest levels have the neighbours of the last insert. Of these, each level's pair lies
    /// within that of the level above.
    pub(super) nested: usize,
    /// How often fingers led nowhere, less a part of how often they led to a place.
    pub(super) misled: u32,
    /// How often the fingers were aimed anew.
    pub(super) aims: u32,
    /// State of the xorshift; never zero.
    pub(super) random: u64,
    /// How many links beyond one per entry may still be used.
    pub(super) link_credit: usize,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer {
            before: [HEAD; HEIGHT_MAX],
            after: [NIL; HEIGHT_MAX],
            nested: HEIGHT_MAX,
            misled: 0,
            aims: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            link_credit: LINK_CREDIT_MAX,
        }
    }

    /// Draws a height, within the budget: each further level has a quarter of the chance.
    #[inline(always)]
    pub(super) fn draw_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let cap = HEIGHT_MAX.min(2 + self.link_credit);
        let zeros = usize_of((self.random >> 32).trailing_zeros());
        (1 + zeros / 2).min(cap)
    }
}
