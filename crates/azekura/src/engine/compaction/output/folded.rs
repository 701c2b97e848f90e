//! What a merge has folded, made fit for a run: what is too long for a page stands apart, and what was
//! gathered of parts becomes one.
//!
//! A value that stood apart is read and written anew with what was appended to it, so that takes its length
//! in memory, as moving it does. The new one is in a segment that the run refers to, and the old one goes
//! with the runs that the merge replaces: a crash leaves one or the other.
//!
//! Where a part is damaged nobody can know the value. Its reference stands for the value then, so that who
//! reads the key gets the error, and nothing else has to wait for it.

use super::OutputWriter;
use crate::base::error::{Error, Result};
use crate::format::block::{Block, Tag};
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{
    Gathered, bytes_of, expiry_of, is_gathered, is_value, references, stored_apart, whole,
};

impl OutputWriter<'_> {
    /// Makes the step's records fit for a run.
    pub(super) fn settle_folded(&mut self) -> Result<()> {
        if !(0..self.block.len()).any(|i| is_unfit(&self.block, i)) {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let mut fit = Block::with_capacity(None, block.len(), block.heap.len().min(1 << 20));
        let (mut from, mut tmp) = (0, [0; 8]);
        let general = if block.fixed.is_some() { block.to_general() } else { block };
        for i in 0..general.len() {
            if is_unfit(&general, i) {
                fit.append_general(&general, from, i);
                from = i + 1;
                self.settle(general.key(i, &mut tmp), general.content(i), &mut fit)?;
            }
        }
        fit.append_general(&general, from, general.len());
        self.block = fit;
        Ok(())
    }

    /// Writes a record that is not fit to `fit`.
    fn settle(&mut self, key: &[u8], content: Content<'_>, fit: &mut Block) -> Result<()> {
        let mut bytes = Vec::new();
        let Content { tag, value, expiry } = content;
        if tag != Tag::Operand {
            return self.put(key, value, expiry, fit);
        }
        let values = self.to.values;
        match whole(value, |reference| values.read(reference)) {
            Err(error @ Error::Corrupt { .. }) => self.put_damaged(key, value, fit).unwrap_or(Err(error)),
            Err(error) => Err(error),
            Ok(Gathered::Value(value, expiry)) => self.put(key, &value, expiry, fit),
            Ok(Gathered::Operand(operand)) => self.put_operand(key, &operand, fit),
            Ok(clash) => {
                let (tag, stored) = clash.stored(&mut bytes);
                fit.push(key, tag, stored);
                Ok(())
            }
        }
    }

    /// Writes what stands for a value or an operand of which a part is damaged. None if no part is.
    fn put_damaged(&self, key: &[u8], gathered: &[u8], fit: &mut Block) -> Option<Result<()>> {
        let is_damaged =
            |reference: &&[u8]| matches!(self.to.values.read(reference), Err(Error::Corrupt { .. }));
        let reference = references(gathered).find(is_damaged)?;
        let (mut bytes, apart) = (Vec::new(), stored_apart(gathered, reference).ok()?);
        let content = if is_value(gathered) {
            Content { tag: Tag::Large, value: reference, expiry: expiry_of(gathered) }
        } else {
            Content { tag: Tag::Operand, value: &apart[..], expiry: Expiry::NEVER }
        };
        let (tag, stored) = content.stored(&mut bytes);
        fit.push(key, tag, stored);
        Some(Ok(()))
    }

    /// Writes a value, apart if it is large.
    fn put(&mut self, key: &[u8], value: &[u8], expiry: Expiry, fit: &mut Block) -> Result<()> {
        let (mut bytes, reference);
        let content = if value.len() >= self.to.large_value_bytes {
            reference = self.store(value)?.encode();
            Content { tag: Tag::Large, value: &reference, expiry }
        } else {
            Content { tag: Tag::Put, value, expiry }
        };
        bytes = Vec::new();
        let (tag, stored) = content.stored(&mut bytes);
        fit.push(key, tag, stored);
        Ok(())
    }

    /// Writes an operand that has all its bytes, apart if these are many.
    fn put_operand(&mut self, key: &[u8], operand: &[u8], fit: &mut Block) -> Result<()> {
        let (mut bytes, apart) = (Vec::new(), operand.len() >= self.to.large_value_bytes);
        let stored = if apart {
            let reference = self.store(bytes_of(operand))?.encode();
            &stored_apart(operand, &reference)?
        } else {
            operand
        };
        let content = Content { tag: Tag::Operand, value: stored, expiry: Expiry::NEVER };
        let (tag, stored) = content.stored(&mut bytes);
        fit.push(key, tag, stored);
        Ok(())
    }
}

/// Whether a record is none for a run: it is too long, or was gathered of parts that stand apart.
fn is_unfit(block: &Block, i: usize) -> bool {
    let content = block.content(i);
    block.is_too_long(i) || content.tag == Tag::Operand && is_gathered(content.value)
}
