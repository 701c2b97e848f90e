//! Sorts writes: of each key the last one is left.

use crate::base::codec::{u32_of, usize_of};
use crate::base::key::{common_prefix, head_after};
use crate::format::block::Block;
use crate::memtable::pool::Pool;

/// The last write of each key, in the order of the keys.
pub(super) fn sort_newest(mut ops: Block, pool: &Pool) -> Block {
    let sorted = match ops.fixed {
        Some(_) => sort_fixed(&ops, pool),
        None => sort_general(&ops, pool),
    };
    pool.give(&mut ops);
    sorted
}

/// Places that fit the low bits of a packed sort key.
const PLACE_BITS: u32 = 16;

/// The order of the writes by (key, place).
fn order_fixed(heads: &[u64]) -> Vec<u32> {
    let low = heads.iter().copied().min().unwrap_or(0);
    let high = heads.iter().copied().max().unwrap_or(0);
    if heads.len() > 1 << PLACE_BITS {
        let mut pairs: Vec<(u64, u32)> = heads.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        return pairs.into_iter().map(|p| p.1).collect();
    }
    // One number holds the significant bits of the key and the place: a sort of plain numbers.
    let shift = (high - low).leading_zeros().min(63);
    let mask = (1u64 << PLACE_BITS) - 1;
    let mut packed: Vec<u64> =
        heads.iter().zip(0u64..).map(|(&h, i)| ((h - low) << shift) & !mask | i).collect();
    packed.sort_unstable();
    let mut order: Vec<u32> = packed.iter().map(|&p| (p & mask) as u32).collect();
    if shift < PLACE_BITS {
        // Bits of the key were cut off; where the rest is equal, the whole key decides.
        let mut from = 0;
        for to in 1..=packed.len() {
            if to == packed.len() || packed[to] & !mask != packed[from] & !mask {
                if to - from > 1 {
                    order[from..to].sort_unstable_by_key(|&i| (heads[usize_of(i)], i));
                }
                from = to;
            }
        }
    }
    order
}

fn sort_fixed(ops: &Block, pool: &Pool) -> Block {
    let order = order_fixed(&ops.heads);
    let mut out = Block::new(ops.fixed);
    pool.reserve(&mut out, ops.len(), ops.heap.len());
    let stride = ops.fixed.map_or(0, |f| usize_of(f.stride));
    if stride == 8 {
        gather::<8>(ops, &order, &mut out);
    } else {
        let last_of_key = |w: usize| {
            w + 1 == order.len() || ops.heads[usize_of(order[w + 1])] != ops.heads[usize_of(order[w])]
        };
        for w in (0..order.len()).filter(|&w| last_of_key(w)) {
            let i = usize_of(order[w]);
            out.heads.push(ops.heads[i]);
            out.heap.extend_from_slice(&ops.heap[i * stride..(i + 1) * stride]);
        }
    }
    out
}

/// Copies the last write of each key, with values of `N` bytes.
fn gather<const N: usize>(ops: &Block, order: &[u32], out: &mut Block) {
    let mut last: Option<u64> = None;
    let values = ops.heap.as_chunks::<N>().0;
    for &i in order {
        let (head, value) = (ops.heads[usize_of(i)], values[usize_of(i)]);
        if last == Some(head) {
            let start = out.heap.len() - N;
            out.heap[start..].copy_from_slice(&value);
        } else {
            out.heads.push(head);
            out.heap.extend_from_slice(&value);
            last = Some(head);
        }
    }
}

/// The order of general writes by (key, place), in the manner of a radix sort. Eight bytes of each key are
/// sorted as numbers, then those that tie by the next eight. Each key is looked at once for every eight bytes
/// that it shares with others, and never by a comparison, which would be a miss.
pub(super) fn order_general(ops: &Block) -> Vec<u32> {
    let mut order: Vec<(u64, u32)> = (0..u32_of(ops.len())).map(|i| (0, i)).collect();
    let mut groups = vec![(0, order.len(), 0)];
    while let Some((from, to, depth)) = groups.pop() {
        let group = &mut order[from..to];
        let depth = shared(ops, group, depth);
        // Keys that end here are prefixes of the others: the shorter (and earlier) come first.
        let ends = |i: u32| ops.general_key(usize_of(i)).len() <= depth + 8;
        for (head, i) in group.iter_mut() {
            *head = head_after(ops.general_key(usize_of(*i)), depth);
        }
        group.sort_unstable();
        let mut start = 0;
        for end in 1..=group.len() {
            if end < group.len() && group[end].0 == group[start].0 {
                continue;
            }
            let tied = &mut group[start..end];
            if tied.len() > 1 {
                tied.sort_unstable_by_key(|&(_, i)| {
                    (!ends(i), if ends(i) { ops.general_key(usize_of(i)).len() } else { 0 }, i)
                });
                let longer = tied.partition_point(|&(_, i)| ends(i));
                if tied.len() - longer > 1 {
                    groups.push((from + start + longer, from + end, depth + 8));
                }
            }
            start = end;
        }
    }
    order.into_iter().map(|(_, i)| i).collect()
}

/// How many leading bytes the keys of a group share, knowing that they share `depth`.
fn shared(ops: &Block, group: &[(u64, u32)], depth: usize) -> usize {
    let first = ops.general_key(usize_of(group[0].1));
    let mut len = first.len();
    for &(_, i) in &group[1..] {
        if len <= depth {
            return depth.min(len);
        }
        len = depth + common_prefix(&first[depth..len], &ops.general_key(usize_of(i))[depth..]);
    }
    len
}

fn sort_general(ops: &Block, pool: &Pool) -> Block {
    let order = order_general(ops);
    let mut out = Block::with_capacity(None, order.len(), 0);
    pool.reserve(&mut out, 0, ops.heap.len());
    for (w, &i) in order.iter().enumerate() {
        let key = ops.general_key(usize_of(i));
        let repeats = order.get(w + 1).is_some_and(|&next| ops.general_key(usize_of(next)) == key);
        if !repeats {
            out.append_general(ops, usize_of(i), usize_of(i) + 1);
        }
    }
    out
}
