//! The operand of a key, while a merge looks for what is older.

use crate::base::error::Result;
use crate::base::fault::fault;
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::format::operand::{Folded, Gathering, Operand, is_long};

/// The operand of a key, as long as older records may have its base.
pub(super) enum Pending {
    Number(Folded),
    Long(Gathering),
}

impl Pending {
    pub(super) fn begin(operand: &[u8]) -> Result<Pending> {
        if is_long(operand) {
            return Gathering::begin(operand).map(Pending::Long);
        }
        Operand::decode(operand).map(|operand| Pending::Number(Folded::Operand(operand)))
    }

    /// Adds the next older record, if it counts.
    pub(super) fn add(&mut self, base: Content<'_>) -> Result<()> {
        match self {
            Pending::Number(folded) => {
                let Folded::Operand(operand) = *folded else { return Ok(()) };
                *folded = match operand.onto(base)? {
                    Folded::Value(number, expiry) if fault!("fold_twice") => {
                        operand.onto(Content { tag: Tag::Put, value: &number, expiry })?
                    }
                    folded => folded,
                };
            }
            Pending::Long(gathering) if gathering.goes_on() => {
                gathering.add(base)?;
                if !gathering.goes_on() && fault!("fold_twice") {
                    gathering.repeat();
                }
            }
            Pending::Long(_) => {}
        }
        Ok(())
    }
}
