//! Which figures are better.

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates.
    Higher,
    /// Times and sizes.
    Lower,
    /// Neither.
    Neither,
}
