//! The name of a database: its kind, its file, and parameters, as in `casket.kct#pccap=64m`.

use crate::codes::{KCEINVALID, KCENOIMPL};
use crate::errors::{Outcome, failure, told};
use azekura::TableKind;

/// A kind of database, by what Kyoto calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// As in the parameter `type`, or as a file's ending.
    word: &'static str,
    /// Kyoto's number for it.
    pub(crate) number: u8,
    /// The kind of the table.
    pub(crate) table: TableKind,
    /// Whether it is in memory only.
    pub(crate) in_memory: bool,
    /// How cursors go back.
    pub(crate) back: Back,
}

/// How cursors go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// They do not.
    Never,
    /// One step at a time.
    Steps,
    /// After a jump or a step back, calls with `step` lead back too.
    Turns,
}

const fn kind(word: &'static str, number: u8, table: TableKind, in_memory: bool, back: Back) -> Kind {
    Kind { word, number, table, in_memory, back }
}

const KINDS: [Kind; 9] = [
    kind("-", 0x10, TableKind::Hash, true, Back::Steps),
    kind("+", 0x11, TableKind::Ordered, true, Back::Steps),
    kind(":", 0x18, TableKind::Hash, true, Back::Never),
    kind("*", 0x20, TableKind::Hash, true, Back::Never),
    kind("%", 0x21, TableKind::Ordered, true, Back::Turns),
    kind("kch", 0x30, TableKind::Hash, false, Back::Never),
    kind("kct", 0x31, TableKind::Ordered, false, Back::Turns),
    kind("kcd", 0x40, TableKind::Hash, false, Back::Never),
    kind("kcf", 0x41, TableKind::Ordered, false, Back::Turns),
];

/// A database that is to be opened.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    /// The path, or the sign of a kind in memory.
    pub(crate) path: &'a [u8],
    pub(crate) kind: Kind,
}

/// Reads a name. Parameters that only tune have no effect. Parameters that change what a program sees are
/// refused, unless they ask for what is done anyway.
pub(crate) fn parse(name: &[u8]) -> Outcome<Name<'_>> {
    let mut parts = name.split(|&b| b == b'#');
    let path = parts.next().unwrap_or_default();
    let mut word = if KINDS.iter().any(|kind| kind.in_memory && kind.word.as_bytes() == path) {
        path
    } else {
        path.rsplit(|&b| b == b'.').next().filter(|ending| ending.len() < path.len()).unwrap_or_default()
    };
    for part in parts {
        let (key, value) = match part.iter().position(|&b| b == b'=') {
            Some(at) => (&part[..at], &part[at + 1..]),
            None => (part, &b""[..]),
        };
        match key {
            b"type" => word = value,
            b"rcomp" if !value.starts_with(b"lex") || value.ends_with(b"desc") => {
                return Err(refused("rcomp", value, "keys are in the order of their bytes"));
            }
            b"zcomp" if value.starts_with(b"arc") => {
                return Err(refused("zcomp", value, "there is no encryption"));
            }
            b"zkey" => return Err(refused("zkey", b"...", "there is no encryption")),
            b"capcnt" | b"capcount" | b"capsiz" | b"capsize" => {
                let key = std::str::from_utf8(key).unwrap_or_default();
                return Err(refused(key, value, "no record goes by itself"));
            }
            _ => {}
        }
    }
    if word == b"kcx" {
        return Err(failure(KCENOIMPL, c"a plain text database (kcx) is not supported"));
    }
    match KINDS.iter().find(|kind| kind.word.as_bytes() == word) {
        Some(&kind) if !path.is_empty() => Ok(Name { path, kind }),
        _ => Err(told(KCEINVALID, format!("unknown database type: {}", String::from_utf8_lossy(name)))),
    }
}

#[cold]
fn refused(key: &str, value: &[u8], why: &str) -> crate::errors::Failure {
    told(KCENOIMPL, format!("#{key}={} is not supported: {why}", String::from_utf8_lossy(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::KCENOIMPL;

    #[test]
    fn kinds_are_read() {
        let word = |name: &'static str| parse(name.as_bytes()).map(|name| (name.path, name.kind.word)).ok();
        assert_eq!(word("a.kch"), Some((&b"a.kch"[..], "kch")));
        assert_eq!(word("a.b/c.kct#bnum=5000#psiz=9#opts=lsc"), Some((&b"a.b/c.kct"[..], "kct")));
        assert_eq!(word("any#type=kcf"), Some((&b"any"[..], "kcf")));
        assert_eq!(word("%#bnum=10"), Some((&b"%"[..], "%")));
        for none in ["", "kch", "a.xyz", "a", "#type=kch", "a#type=x"] {
            assert_eq!(word(none), None, "{none}");
        }
    }

    #[test]
    fn what_would_change_the_records_is_refused() {
        let code = |name: &str| parse(name.as_bytes()).map(|_| 0).unwrap_or_else(|failure| failure.code);
        for name in [
            "a.kct#rcomp=dec",
            "a.kct#rcomp=lexdesc",
            "a.kch#zcomp=arc",
            "a.kch#zkey=x",
            "*#capcnt=9",
            "a.kcx",
        ] {
            assert_eq!(code(name), KCENOIMPL, "{name}");
        }
        for name in ["a.kct#rcomp=lex", "a.kct#zcomp=gz", "a.kch#log=-#logkinds=debug"] {
            assert_eq!(code(name), 0, "{name}");
        }
    }
}
