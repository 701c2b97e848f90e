//! What is in memtables, or what a merge has folded, made fit for a run: what is long stands apart, and what
//! was gathered of parts becomes one.
//!
//! Small durable commits have large values in the log. A flush stores these apart.
//!
//! A value that stood apart is read and written anew with what was appended to it, so that takes its length
//! in memory, as moving it does. The new one is in a segment that the run refers to, and the old one goes
//! with the runs that the merge replaces: a crash leaves one or the other.
//!
//! Where a part is damaged nobody can know the value. Its reference stands for the value then, so that who
//! reads the key gets the error, and nothing else has to wait for it.

use super::OutputWriter;
use crate::base::codec::u32_of;
use crate::base::error::{Error, Result};
use crate::base::limits::INLINE_VALUE_BYTES_MAX;
use crate::format::block::{Block, Fixed, Tag};
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{
    Gathered, bytes_of, expiry_of, is_gathered, is_value, references, stored_apart, whole,
};
use crate::values::VALUE_POINTER_BYTES;

impl OutputWriter<'_> {
    /// Makes the step's records fit for a run.
    pub(super) fn settle_long(&mut self) -> Result<()> {
        let from = self.apart_from.unwrap_or(INLINE_VALUE_BYTES_MAX);
        let is_unfit = |block: &Block, i: usize| is_unfit(block, i, from);
        if !(0..self.block.len()).any(|i| is_unfit(&self.block, i)) {
            return Ok(());
        }
        if self.block.fixed.is_some_and(|f| f.tag == Tag::Put) {
            return self.store_all();
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

    /// Stores the values of the step's records, which are of one length, and leaves references to them.
    fn store_all(&mut self) -> Result<()> {
        let block = std::mem::take(&mut self.block);
        let references = Fixed { stride: u32_of(VALUE_POINTER_BYTES), tag: Tag::Large };
        let mut fit = Block::with_capacity(Some(references), block.len(), block.len() * VALUE_POINTER_BYTES);
        let mut tmp = [0; 8];
        for i in 0..block.len() {
            let reference = self.store(block.value(i))?.encode();
            fit.push(block.key(i, &mut tmp), Tag::Large, &reference);
        }
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

/// Whether a record is none for a run: it is a value of `from` bytes or more, an operand that is too long for
/// a page, or was gathered of parts that stand apart.
fn is_unfit(block: &Block, i: usize, from: usize) -> bool {
    if block.tag(i) != Tag::Expiring {
        return block.is_from(i, from);
    }
    match block.content(i) {
        Content { tag: Tag::Operand, value, .. } => {
            value.len() >= INLINE_VALUE_BYTES_MAX || is_gathered(value)
        }
        Content { value, .. } => value.len() >= from,
    }
}
