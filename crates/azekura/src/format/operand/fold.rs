//! The records of one key, folded by who reads them.

use super::{Folded, Gathered, Gathering, Number, Operand, is_long};
use crate::base::error::Result;
use crate::format::expiry::{Content, Expiry};
use crate::format::tag::Tag;
use std::ops::Deref;

/// The records of one key, as a reader comes to them: the newest first.
pub(crate) struct Fold {
    /// What has expired by then is absent.
    now: u64,
    so_far: SoFar,
    /// Whether something older may count.
    goes_on: bool,
}

enum SoFar {
    Nothing,
    Number(Folded),
    Long(Gathering),
}

/// What operands have made, which stands nowhere.
pub(crate) enum FoldedBytes {
    Number(Number),
    Long(Vec<u8>),
}

impl Deref for FoldedBytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            FoldedBytes::Number(number) => number,
            FoldedBytes::Long(bytes) => bytes,
        }
    }
}

impl Fold {
    pub(crate) fn new(now: u64) -> Fold {
        Fold { now, so_far: SoFar::Nothing, goes_on: true }
    }

    /// Whether something older may count.
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether older versions in the same buffer count. (Numbers are folded with them when they are written.)
    pub(crate) fn takes_versions(&self) -> bool {
        self.goes_on && matches!(self.so_far, SoFar::Long(_))
    }

    /// Adds the next older record. It is passed over if it does not count.
    pub(crate) fn add(&mut self, content: Content<'_>) -> Result<()> {
        if !self.goes_on {
            return Ok(());
        }
        let content = content.at(self.now);
        match &mut self.so_far {
            SoFar::Long(gathering) => {
                gathering.add(content)?;
                self.goes_on = gathering.goes_on();
            }
            SoFar::Nothing if content.tag == Tag::Operand && is_long(content.value) => {
                let gathering = Gathering::begin(content.value)?;
                self.goes_on = gathering.goes_on();
                self.so_far = SoFar::Long(gathering);
            }
            SoFar::Nothing if content.tag == Tag::Operand => {
                self.number(Folded::Operand(Operand::decode(content.value)?));
            }
            SoFar::Number(Folded::Operand(newer)) => {
                let folded = newer.onto(content)?;
                self.number(folded);
            }
            // Only operands are folded.
            SoFar::Nothing | SoFar::Number(_) => self.hide(),
        }
        Ok(())
    }

    /// Keeps what numbers have made so far. A clash and a value take nothing older.
    fn number(&mut self, folded: Folded) {
        self.goes_on = matches!(folded, Folded::Operand(operand) if !operand.is_clash());
        self.so_far = SoFar::Number(folded);
    }

    /// Nothing older counts.
    pub(crate) fn hide(&mut self) {
        self.goes_on = false;
    }

    /// The value and when it expires. None if there was no operand. With the tag `Operand` it is what was
    /// gathered of a value, some of which stands apart.
    ///
    /// # Errors
    /// The clash, if it is one.
    pub(crate) fn end(self) -> std::result::Result<Option<(Tag, FoldedBytes, Expiry)>, Operand> {
        let number = |number, expiry| Ok(Some((Tag::Put, FoldedBytes::Number(number), expiry)));
        match self.so_far {
            SoFar::Nothing => Ok(None),
            SoFar::Number(Folded::Value(value, expiry)) => number(value, expiry),
            SoFar::Number(Folded::Operand(operand)) => match operand.alone() {
                Some(value) => number(value, Expiry::NEVER),
                None => Err(operand),
            },
            SoFar::Long(gathering) => {
                let expiry = gathering.expiry();
                match gathering.value() {
                    Gathered::Value(bytes, expiry) => Ok(Some((Tag::Put, FoldedBytes::Long(bytes), expiry))),
                    Gathered::Parts(bytes) | Gathered::Operand(bytes) => {
                        Ok(Some((Tag::Operand, FoldedBytes::Long(bytes), expiry)))
                    }
                    Gathered::Clash(clash) => Err(clash),
                }
            }
        }
    }
}
