//! The measures of the list that its parts share.

/// Levels of the list. With a branching of 4 they serve 16 million entries.
pub(super) const HEIGHT_MAX: usize = 12;

/// The node that ends every level.
pub(super) const NIL: u32 = 0;
/// The node that begins every level. It has links for all levels, and a head that is never compared.
pub(super) const HEAD: u32 = 72;
/// Links that an entry may have beyond its first one while the budget is full.
pub(super) const LINK_CREDIT_MAX: usize = 16;
