//! Merges of values: numbers, lists and sets that are changed without being read.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::{azk_table, azk_write};
use crate::slots::{owned, shared};
use crate::status::{Outcome, azk_status, invalid};
use azekura::Merge;
use std::ffi::c_void;

/// What a merge does to a value. Numbers have eight bytes, little-endian: integers in two's complement, or
/// floating-point numbers of IEEE 754.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_operator {
    /// Adds to an integer, with or without sign. Sums wrap around.
    AZK_ADD = 1,
    /// Adds to a floating-point number. In which order sums are rounded is not said.
    AZK_ADD_F64 = 2,
    /// The smaller of two integers.
    AZK_MIN_I64 = 3,
    /// The larger of two integers.
    AZK_MAX_I64 = 4,
    /// The smaller of two integers without sign.
    AZK_MIN_U64 = 5,
    /// The larger of two integers without sign.
    AZK_MAX_U64 = 6,
    /// The smaller of two floating-point numbers, in their total order.
    AZK_MIN_F64 = 7,
    /// The larger of two floating-point numbers, in their total order.
    AZK_MAX_F64 = 8,
    /// All bits that are set in one of both.
    AZK_OR = 9,
    /// Puts bytes behind the value, which may be any.
    AZK_APPEND = 10,
    /// Unites a set with elements of one byte each. For elements of n bytes, 1 to 255, it is AZK_UNION and
    /// n - 1 times 256. The operand is elements one after the other, in any order; the value has them in the
    /// order of their bytes, each once.
    AZK_UNION = 11,
}

/// What is added to AZK_UNION for each further byte of an element.
const ELEMENT_BYTE: i32 = 256;

fn merge_of(operator: i32, operand: &[u8]) -> Outcome<Merge<'_>> {
    match (operator % ELEMENT_BYTE, operator / ELEMENT_BYTE) {
        (10, 0) => Ok(Merge::Append(operand)),
        (11, more @ 0..=254) => {
            let width = usize::try_from(more + 1).unwrap_or_default();
            Ok(Merge::Union { width, elements: operand })
        }
        _ => number_of(operator, operand),
    }
}

fn number_of(operator: i32, number: &[u8]) -> Outcome<Merge<'static>> {
    let Ok(bytes) = <[u8; 8]>::try_from(number) else {
        return Err(invalid(format!("a number has 8 bytes, not {}", number.len())));
    };
    Ok(match operator {
        1 => Merge::AddU64(u64::from_le_bytes(bytes)),
        2 => Merge::AddF64(f64::from_le_bytes(bytes)),
        3 => Merge::MinI64(i64::from_le_bytes(bytes)),
        4 => Merge::MaxI64(i64::from_le_bytes(bytes)),
        5 => Merge::MinU64(u64::from_le_bytes(bytes)),
        6 => Merge::MaxU64(u64::from_le_bytes(bytes)),
        7 => Merge::MinF64(f64::from_le_bytes(bytes)),
        8 => Merge::MaxF64(f64::from_le_bytes(bytes)),
        9 => Merge::BitOr(u64::from_le_bytes(bytes)),
        other => return Err(invalid(format!("{other} is no azk_operator"))),
    })
}

/// Changes the value of a key, as an azk_operator says: a number by another one, of eight bytes too, a list
/// by bytes that are put behind it, a set by elements. An absent key gets the operand as its value. Nothing
/// is read, so this costs what a put costs, and never waits for others or conflicts with them (docs/merges.md
/// says where it must read). Errors: AZK_INVALID for another operator or length, and as azk_table_put. If the
/// value is no number, or no whole number of elements, who reads it gets AZK_WRONG_TYPE from then on, until
/// the key is put or removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_merge(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    operation: i32,
    operand: *const c_void,
    operand_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let merge = merge_of(operation, c.bytes(operand, operand_len, "operand")?)?;
        Ok(shared(table)?.merge(key, merge)?)
    })
}

/// As azk_table_merge, in a transaction. Errors: AZK_INVALID for another operator or length; AZK_WRONG_TYPE
/// if it is known now that the value is none for it; as azk_write_put, and as azk_write_get where it reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_merge(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    operation: i32,
    operand: *const c_void,
    operand_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let merge = merge_of(operation, c.bytes(operand, operand_len, "operand")?)?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.merge(&table, key, merge)?)
    })
}

/// The merges of several keys, by one operator.
fn merges_of<'b>(
    c: Caller,
    keys: *const azk_bytes,
    operation: i32,
    operands: *const azk_bytes,
    count: usize,
) -> Outcome<Vec<(&'b [u8], Merge<'b>)>> {
    let (keys, operands) = (c.many(keys, count, "a key")?, c.many(operands, count, "an operand")?);
    keys.into_iter().zip(operands).map(|(key, operand)| Ok((key, merge_of(operation, operand)?))).collect()
}

/// Changes the values of `count` keys in one transaction, each by its operand, as azk_table_merge changes
/// one. If keys are equal all count. Errors: as azk_table_merge; nothing is written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_merge_many(
    table: *const azk_table,
    keys: *const azk_bytes,
    operation: i32,
    operands: *const azk_bytes,
    count: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let merges = merges_of(c, keys, operation, operands, count)?;
        Ok(shared(table)?.merge_many(merges)?)
    })
}

/// As azk_table_merge_many, within a transaction. Errors: as azk_write_merge; the changes before the failed
/// one are in the transaction then, unless it is an operand's length or the operator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_merge_many(
    write: *mut azk_write,
    table: *const azk_table,
    keys: *const azk_bytes,
    operation: i32,
    operands: *const azk_bytes,
    count: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let merges = merges_of(c, keys, operation, operands, count)?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        for (key, merge) in merges {
            write.changed()?.merge(&table, key, merge)?;
        }
        Ok(())
    })
}
