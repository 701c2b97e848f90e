//! A history: what each transaction appended to which list, what it read, and when it ran.
//!
//! Lists are what makes a history telling (Kingsbury and Alvaro, *Elle*, 2020): whoever reads a list sees
//! the order of all that was appended to it, so that who came before whom is not guessed but known.

use std::fmt;

/// The name of a list.
pub type Key = u32;
/// An element. No two appends of a history have the same.
pub type Element = u32;

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Adds an element to the end of a list.
    Append(Key, Element),
    /// Found a list to be this.
    Read(Key, Vec<Element>),
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// When it was begun, by a clock that all share: at the latest.
    pub begun: u64,
    /// When its end was known: at the earliest.
    pub ended: u64,
    /// What it did, in order; of one that was rolled back, what it would have done.
    pub ops: Vec<Op>,
    /// Whether it was committed. There is no third: every outcome is known.
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

/// Transactions in no particular order. For every list that was appended to, somebody must have read all
/// of it at the end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All of them, those that failed too.
    pub txns: Vec<Txn>,
}
