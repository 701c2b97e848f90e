//! The hidden table of an index: what it is called, and what its state record says.
//!
//! The entries of an index stand in an ordered table of their own, whose name no user can give. Its empty key
//! holds the state record; every other key is an entry: the encoded fields, then the primary key.
//!
//! ```text
//! name:         NUL "index" NUL, the table's id in decimal, NUL, the name of the index
//! state record: u8 version, 1 | u8 status: 0 = is being built, 1 = ready
//!               blob: the table's sort keys below this one are in the index; empty if it is ready
//!               blob: the text of the specification
//! ```

use crate::base::codec::{Reader, Writer};
use crate::base::error::Result;

const MARK: &str = "\0index\0";
const VERSION: u8 = 1;
const BUILDING: u8 = 0;
const READY: u8 = 1;

/// The key of the state record.
pub(crate) const STATE_KEY: &[u8] = b"";

/// The smallest key that an entry can have.
pub(crate) const FIRST_ENTRY: &[u8] = b"\0";

/// Whether a name is one that no user can give.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('\0')
}

/// The name of an index's table.
pub(crate) fn name_of(table: u32, index: &str) -> String {
    format!("{MARK}{table}\0{index}")
}

/// The table and the index for which a name stands.
pub(crate) fn parse_name(name: &str) -> Option<(u32, &str)> {
    let (table, index) = name.strip_prefix(MARK)?.split_once('\0')?;
    let id: u32 = table.parse().ok()?;
    (!index.is_empty() && id.to_string() == table).then_some((id, index))
}

/// What the state record of an index says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexState {
    /// The first sort key of the table that the builder has not come to. None if the index is ready.
    pub(crate) next: Option<Vec<u8>>,
    /// The canonical text of the specification.
    pub(crate) spec: String,
}

impl IndexState {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u8(VERSION);
        w.u8(if self.next.is_some() { BUILDING } else { READY });
        w.blob(self.next.as_deref().unwrap_or_default());
        w.blob(self.spec.as_bytes());
        w.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<IndexState> {
        let mut r = Reader::new(bytes, "state of an index", 0);
        let version = r.u8()?;
        if version != VERSION {
            return Err(r.bad(format!("version {version}, this library knows {VERSION}")));
        }
        let status = r.u8()?;
        let next = r.blob()?.to_vec();
        let next = match status {
            BUILDING => Some(next),
            READY if next.is_empty() => None,
            _ => return Err(r.bad(format!("status {status} is impossible"))),
        };
        let spec = std::str::from_utf8(r.blob()?).map_err(|_| r.bad("the specification is not UTF-8"))?;
        let state = IndexState { next, spec: spec.to_owned() };
        r.finish()?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_table_and_index() {
        assert_eq!(name_of(7, "by_mail"), "\0index\x007\0by_mail");
        for (table, index) in [(1, "a"), (u32::MAX, "\0"), (12, "x\0y")] {
            assert_eq!(parse_name(&name_of(table, index)), Some((table, index)));
        }
        for name in [
            "",
            "\0",
            "\0index\0",
            "\0index\x007\0",
            "\0index\0x\0a",
            "\0index\0+7\0a",
            "\0index\0\x307\0a",
            "index\x007\0a",
        ] {
            assert_eq!(parse_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn states_are_read_as_they_were_written_and_no_others() {
        for next in [None, Some(Vec::new()), Some(vec![0, 255, 7])] {
            let state = IndexState { next, spec: "u64 at 0".into() };
            let bytes = state.encode();
            assert_eq!(IndexState::decode(&bytes).unwrap(), state);
            assert!((0..bytes.len()).all(|n| IndexState::decode(&bytes[..n]).is_err()));
            assert!(IndexState::decode(&[bytes, vec![0]].concat()).is_err());
        }
        let ready_and_not = IndexState { next: Some(vec![1]), spec: String::new() }.encode();
        assert!(IndexState::decode(&[&[VERSION, READY], &ready_and_not[2..]].concat()).is_err());
    }
}
