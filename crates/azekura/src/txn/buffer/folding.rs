//! Sorts writes of which some are operands that have a length: those of a key are folded only now. If each
//! was folded when it came, a key with many would take the square of their bytes.

use super::sort::{order_general, sort_newest};
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::format::block::{Block, Tag};
use crate::format::operand::{Gathering, is_long};
use crate::memtable::pool::Pool;

/// The last write of each key, in the order of the keys. `folds`: with those before it, if it is an operand.
pub(super) fn sort(mut ops: Block, pool: &Pool, folds: bool) -> Block {
    if !folds {
        return sort_newest(ops, pool);
    }
    let sorted = sort_folding(&ops);
    pool.give(&mut ops);
    sorted
}

fn sort_folding(ops: &Block) -> Block {
    let general;
    let ops = if ops.fixed.is_some() {
        general = ops.to_general();
        &general
    } else {
        ops
    };
    let order: Vec<usize> = order_general(ops).into_iter().map(usize_of).collect();
    let mut out = Block::with_capacity(None, order.len(), ops.heap.len());
    for writes in order.chunk_by(|&a, &b| ops.general_key(a) == ops.general_key(b)) {
        let Some((&newest, older)) = writes.split_last() else { continue };
        let content = ops.content(newest);
        let is_operand = content.tag == Tag::Operand && is_long(content.value);
        // (What a transaction has written itself makes sense.)
        let folded = if is_operand { fold(ops, content.value, older).ok() } else { None };
        match folded {
            Some(gathering) => {
                let mut bytes = Vec::new();
                let (tag, stored) = gathering.end().stored(&mut bytes);
                out.push(ops.general_key(newest), tag, stored);
            }
            None => out.append_general(ops, newest, newest + 1),
        }
    }
    out
}

/// Folds an operand onto older writes, the oldest of which is the first.
fn fold(ops: &Block, newest: &[u8], older: &[usize]) -> Result<Gathering> {
    let mut gathering = Gathering::begin(newest)?;
    for &i in older.iter().rev() {
        if !gathering.goes_on() {
            break;
        }
        gathering.add(ops.content(i))?;
    }
    Ok(gathering)
}
