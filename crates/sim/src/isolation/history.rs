//! A history: what each transaction appended to which list, what it read, and when it ran.
//!
//! Lists make a history informative (Kingsbury and Alvaro, *Elle*, 2020): a reader of a list sees the order
//! of all appends to it. So the order of the transactions need not be guessed.

use std::fmt;

/// The name of a list.
pub type Key = u32;
/// An element. No two appends of a history have the same one.
pub type Element = u32;

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Appended an element to a list.
    Append(Key, Element),
    /// Read a list, with this result.
    Read(Key, Vec<Element>),
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// A time on the common clock, at or after its beginning.
    pub begun: u64,
    /// A time at or before its end was known.
    pub ended: u64,
    /// Its operations, in order. After a rollback, those that it would have done.
    pub ops: Vec<Op>,
    /// Whether it was committed. Every outcome is known.
    pub committed: bool,
}

impl fmt::Display for Txn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.committed { "committed" } else { "rolled back" };
        write!(f, "[{}..{} {end}:", self.begun, self.ended)?;
        for op in &self.ops {
            match op {
                Op::Append(key, element) => write!(f, " append {key} {element};")?,
                Op::Read(key, list) => match list.as_slice() {
                    [.., a, b] => write!(f, " read {key} ({} elements, … {a} {b});", list.len())?,
                    list => write!(f, " read {key} {list:?};")?,
                },
            }
        }
        write!(f, "]")
    }
}

/// Transactions in no particular order. For every list that was appended to, some transaction has read all of
/// it at the end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All transactions, including failed ones.
    pub txns: Vec<Txn>,
}
