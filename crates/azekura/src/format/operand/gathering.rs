//! What operands that have a length and their base make, as they come, without reading anything.

use super::long::{Long, Part, REFERENCE_BYTES, REFERENCE_LEN_AT, apart, operand_head, set_of, united};
use super::operator::{Operator, PARTS, is_long, no_operand, two_operators};
use super::{CLASH, Operand, TOO_LONG};
use crate::base::codec::{u32_at, u32_of};
use crate::base::error::{Error, Result};
use crate::base::limits::VALUE_BYTES_MAX;
use crate::format::expiry::{Content, Expiry, OPERAND_WORD};
use crate::format::tag::Tag;
use std::ops::Deref;

/// A part of what is gathered.
enum Held {
    /// Of what is appended the last byte comes first, so that what is older goes behind it.
    Here(Vec<u8>),
    Apart([u8; REFERENCE_BYTES]),
}

/// What operands of one key and their base make, as they come: the newest first.
pub(crate) struct Gathering {
    operator: Operator,
    /// The newest first. Of sets no two side by side are of about one size.
    parts: Vec<Held>,
    /// Of all parts.
    bytes: u64,
    /// When the value expires, once the base has come.
    base: Option<Expiry>,
    clash: Option<Operand>,
}

/// What was gathered.
pub(crate) enum Gathered {
    Value(Vec<u8>, Expiry),
    /// An operand as it stands in runs, behind its word.
    Operand(Vec<u8>),
    /// The form with parts, behind its word.
    Parts(Vec<u8>),
    Clash(Operand),
}

impl Gathered {
    /// How it is stored: the tag, and what stands in memory.
    pub(crate) fn stored(self, out: &mut Vec<u8>) -> (Tag, &[u8]) {
        out.clear();
        match self {
            Gathered::Value(value, Expiry::NEVER) => {
                *out = value;
                return (Tag::Put, out);
            }
            Gathered::Value(value, expiry) => {
                out.extend_from_slice(&expiry.word(Tag::Put).to_le_bytes());
                out.extend_from_slice(&value);
            }
            Gathered::Operand(bytes) | Gathered::Parts(bytes) => {
                out.extend_from_slice(&OPERAND_WORD.to_le_bytes());
                out.extend_from_slice(&bytes);
            }
            Gathered::Clash(clash) => out.extend_from_slice(&clash.stored()),
        }
        (Tag::Expiring, out)
    }
}

impl Gathering {
    fn new(operator: Operator) -> Gathering {
        Gathering { operator, parts: Vec::new(), bytes: 0, base: None, clash: None }
    }

    /// Begins with the newest operand: its bytes behind the word.
    pub(crate) fn begin(bytes: &[u8]) -> Result<Gathering> {
        let long = Long::decode(bytes)?;
        let mut gathering = Gathering::new(long.operator);
        gathering.take(long);
        Ok(gathering)
    }

    /// Whether something older counts.
    pub(crate) fn goes_on(&self) -> bool {
        self.base.is_none() && self.clash.is_none()
    }

    /// When the value expires, as far as its base has come.
    pub(super) fn expiry(&self) -> Expiry {
        self.base.unwrap_or(Expiry::NEVER)
    }

    /// Adds what is older: an operand, or the base. REQUIRES: `goes_on`.
    pub(crate) fn add(&mut self, content: Content<'_>) -> Result<()> {
        let Content { tag, value, expiry } = content;
        match tag {
            Tag::Tombstone => self.base = Some(Expiry::NEVER),
            Tag::Put | Tag::Expiring => {
                if self.suits(value.len() as u64) {
                    self.push(Part::Here(value));
                    self.base = Some(expiry);
                }
            }
            Tag::Large => {
                if value.len() != REFERENCE_BYTES {
                    let detail = format!("{} bytes, expected {REFERENCE_BYTES}", value.len());
                    return Err(Error::corrupt("value reference", 0, detail));
                }
                if self.suits(u64::from(u32_at(value, REFERENCE_LEN_AT))) {
                    self.push(Part::Apart(value));
                    self.base = Some(expiry);
                }
            }
            Tag::Operand if value.first() == Some(&CLASH) => self.clash = Some(Operand::decode(value)?),
            Tag::Operand => {
                let older = if is_long(value) { Long::decode(value)? } else { return Err(self.other(value)) };
                if older.operator != self.operator {
                    return Err(self.other(value));
                }
                self.take(older);
            }
        }
        Ok(())
    }

    /// The error of an older operand that has another operator.
    fn other(&self, bytes: &[u8]) -> Error {
        two_operators(bytes.first().copied().unwrap_or_default(), self.operator.code)
    }

    /// Whether a base of so many bytes is one for the operator. It is a clash if not.
    fn suits(&mut self, len: u64) -> bool {
        if !self.operator.suits(len) {
            self.clash = Some(Operand::clash(len | u64::from(self.operator.width) << 32));
        }
        self.clash.is_none()
    }

    /// Adds all parts of an operand, or of what was gathered.
    fn take(&mut self, older: Long<'_>) {
        older.parts.for_each(|part| self.push(part));
        self.base = older.base;
    }

    /// Adds an older part.
    fn push(&mut self, part: Part<'_>) {
        match part {
            Part::Apart(reference) => {
                let reference: [u8; REFERENCE_BYTES] = reference.try_into().unwrap_or_default();
                self.bytes += u64::from(u32_at(&reference, REFERENCE_LEN_AT));
                self.parts.push(Held::Apart(reference));
            }
            Part::Here(bytes) => {
                self.bytes += bytes.len() as u64;
                if self.operator.width > 0 { self.unite(bytes) } else { self.put_before(bytes) }
            }
        }
        // More than that is no value. (Sets may have elements in common.)
        if self.operator.width == 0 && self.bytes > VALUE_BYTES_MAX {
            self.clash = Some(Operand::clash(TOO_LONG));
        }
    }

    /// Adds bytes that stand before those that were appended.
    fn put_before(&mut self, bytes: &[u8]) {
        if !matches!(self.parts.last(), Some(Held::Here(_))) {
            self.parts.push(Held::Here(Vec::with_capacity(bytes.len())));
        }
        if let Some(Held::Here(last)) = self.parts.last_mut() {
            last.extend(bytes.iter().rev());
        }
    }

    /// Adds the elements of a set.
    fn unite(&mut self, bytes: &[u8]) {
        let width = usize::from(self.operator.width);
        let mut set = set_of(bytes, width);
        while let Some(Held::Here(last)) = self.parts.last()
            && last.len() <= set.len() * 2
        {
            set = united(last, &set, width);
            self.parts.pop();
        }
        self.parts.push(Held::Here(set));
    }

    /// What all of it makes where nothing is older.
    pub(crate) fn value(mut self) -> Gathered {
        if self.goes_on() {
            self.base = Some(Expiry::NEVER);
        }
        self.end()
    }

    /// What all of it makes.
    pub(crate) fn end(mut self) -> Gathered {
        if let Some(clash) = self.clash {
            return Gathered::Clash(clash);
        }
        if self.parts.iter().any(|part| matches!(part, Held::Apart(_))) {
            return self.parts_or_operand();
        }
        let mut parts = std::mem::take(&mut self.parts).into_iter().map(|part| match part {
            Held::Here(bytes) => bytes,
            Held::Apart(_) => Vec::new(),
        });
        let mut bytes = if self.operator.width > 0 {
            let width = usize::from(self.operator.width);
            parts.reduce(|all, set| united(&all, &set, width)).unwrap_or_default()
        } else {
            // What is appended is one part.
            let mut bytes = parts.next().unwrap_or_default();
            bytes.reverse();
            bytes
        };
        if bytes.len() as u64 > VALUE_BYTES_MAX {
            return Gathered::Clash(Operand::clash(TOO_LONG));
        }
        match self.base {
            Some(expiry) => Gathered::Value(bytes, expiry),
            None => {
                bytes.splice(..0, operand_head(self.operator));
                Gathered::Operand(bytes)
            }
        }
    }

    /// What a part that stands apart leaves: an operand that stands apart, or the form with parts.
    fn parts_or_operand(self) -> Gathered {
        if let ([Held::Apart(reference)], None) = (&self.parts[..], self.base) {
            return Gathered::Operand(apart(self.operator, reference));
        }
        let Operator { code, width } = self.operator;
        let mut out = vec![PARTS, code, width, u8::from(self.base.is_some())];
        let expiry = self.base.and_then(Expiry::time_ms).unwrap_or(u64::MAX);
        out.extend_from_slice(&expiry.to_le_bytes());
        for part in &self.parts {
            match part {
                Held::Here(bytes) => {
                    out.push(0);
                    out.extend_from_slice(&u32_of(bytes.len()).to_le_bytes());
                    if width > 0 { out.extend_from_slice(bytes) } else { out.extend(bytes.iter().rev()) }
                }
                Held::Apart(reference) => {
                    out.push(1);
                    out.extend_from_slice(&u32_of(REFERENCE_BYTES).to_le_bytes());
                    out.extend_from_slice(reference);
                }
            }
        }
        Gathered::Parts(out)
    }

    /// Adds the newest operand once more: a fault.
    pub(crate) fn repeat(&mut self) {
        if let (Some(Held::Here(newest)), 0) = (self.parts.first_mut(), self.operator.width) {
            newest.extend_from_within(..newest.len().min(1));
        }
    }
}

/// The operand, or what was gathered, with all its bytes: `read` gives those of a reference.
pub(crate) fn whole<V: Deref<Target = [u8]>>(
    bytes: &[u8],
    mut read: impl FnMut(&[u8]) -> Result<V>,
) -> Result<Gathered> {
    let Long { operator, base, parts } = Long::decode(bytes)?;
    let mut gathering = Gathering::new(operator);
    for part in parts {
        match part {
            Part::Here(_) => gathering.push(part),
            Part::Apart(reference) => gathering.push(Part::Here(&read(reference)?)),
        }
    }
    gathering.base = base;
    Ok(gathering.end())
}

/// The value of what was gathered, for who reads it.
pub(crate) fn value_of<V: Deref<Target = [u8]>>(
    bytes: &[u8],
    read: impl FnMut(&[u8]) -> Result<V>,
) -> Result<Vec<u8>> {
    match whole(bytes, read)? {
        Gathered::Value(value, _) => Ok(value),
        Gathered::Clash(_) => Err(super::too_long()),
        Gathered::Operand(_) | Gathered::Parts(_) => Err(no_operand(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::long::{bytes_of, expiry_of, stored_apart};
    use super::super::operator::{APPEND, APPEND_APART, UNION, UNION_APART};
    use super::*;
    use crate::base::codec::usize_of;
    use crate::base::key::TableKind;
    use crate::format::expiry::WORD_BYTES;
    use crate::format::operand::{ABSENT, Fold, Given, Merge, STORED_BYTES};

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut x = seed;
        move |n| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        }
    }

    /// Bytes that stand apart, by their references.
    #[derive(Default)]
    struct Store(Vec<Vec<u8>>);

    impl Store {
        fn put(&mut self, bytes: &[u8]) -> Vec<u8> {
            self.0.push(bytes.to_vec());
            let number = u32_of(self.0.len() - 1).to_le_bytes();
            [&number[..], &[0; 4], &u32_of(bytes.len()).to_le_bytes(), &[0; 4]].concat()
        }

        fn read(&self, reference: &[u8]) -> Result<&[u8]> {
            Ok(&self.0[usize_of(u32_at(reference, 0))])
        }
    }

    /// A record behind its word, if it has one.
    #[derive(Clone, Debug, PartialEq)]
    enum Record {
        Operand(Vec<u8>),
        Put(Vec<u8>),
        Large(Vec<u8>),
        Absent,
    }

    impl Record {
        fn content(&self) -> Content<'_> {
            let (tag, value) = match self {
                Record::Operand(bytes) => (Tag::Operand, bytes),
                Record::Put(bytes) => (Tag::Put, bytes),
                Record::Large(bytes) => (Tag::Large, bytes),
                Record::Absent => return ABSENT,
            };
            Content { tag, value, expiry: Expiry::NEVER }
        }
    }

    fn record_of(gathered: Gathered) -> Record {
        match gathered {
            Gathered::Value(value, _) => Record::Put(value),
            Gathered::Operand(bytes) | Gathered::Parts(bytes) => Record::Operand(bytes),
            Gathered::Clash(clash) => Record::Operand(clash.stored()[WORD_BYTES..].to_vec()),
        }
    }

    /// One record of some, the newest first.
    fn fold(records: &[Record]) -> Record {
        let Record::Operand(newest) = &records[0] else { return records[0].clone() };
        if !is_long(newest) {
            return records[0].clone();
        }
        let mut gathering = Gathering::begin(newest).unwrap();
        for older in &records[1..] {
            if gathering.goes_on() {
                gathering.add(older.content()).unwrap();
            }
        }
        record_of(gathering.end())
    }

    /// What writes runs makes of a record.
    fn settle(record: Record, store: &mut Store) -> Record {
        let Record::Operand(bytes) = &record else { return record };
        if !is_long(bytes) {
            return record;
        }
        match record_of(whole(bytes, |reference| store.read(reference)).unwrap()) {
            Record::Operand(bytes) if bytes.len() > 20 && is_long(&bytes) => {
                let reference = store.put(bytes_of(&bytes));
                Record::Operand(stored_apart(&bytes, &reference).unwrap())
            }
            Record::Put(value) if value.len() > 20 => Record::Large(store.put(&value)),
            record => record,
        }
    }

    fn operand(merge: Merge<'_>) -> Record {
        let mut bytes = [0; STORED_BYTES];
        Record::Operand(Given::of(merge).unwrap().stored(&mut bytes)[WORD_BYTES..].to_vec())
    }

    /// What a reader finds. None: a clash.
    fn read(records: &[Record], store: &Store) -> Option<Vec<u8>> {
        let all = [records, &[Record::Absent]].concat();
        match fold(&all) {
            Record::Put(value) => Some(value),
            Record::Large(reference) => Some(store.read(&reference).unwrap().to_vec()),
            Record::Operand(bytes) if is_long(&bytes) => {
                Some(value_of(&bytes, |reference| store.read(reference)).unwrap())
            }
            Record::Operand(_) => None,
            Record::Absent => Some(Vec::new()),
        }
    }

    #[test]
    fn whatever_is_folded_first_and_stands_apart_the_value_is_the_same() {
        let mut next = random(3);
        for round in 0..4_000 {
            let width = next(4) as usize;
            let bytes = |next: &mut dyn FnMut(u64) -> u64, whole: bool| {
                let n = next(if round % 9 == 0 { 30 } else { 6 });
                let unit = if whole { width.max(1) } else { 1 };
                (0..n as usize * unit).map(|_| next(3) as u8).collect::<Vec<u8>>()
            };
            let mut store = Store::default();
            let whole = next(10) > 0;
            let base = bytes(&mut next, whole);
            let mut records = vec![match next(3) {
                0 => Record::Absent,
                1 => Record::Put(base.clone()),
                _ => Record::Large(store.put(&base)),
            }];
            let mut model = if records[0] == Record::Absent { Some(Vec::new()) } else { Some(base) };
            for _ in 0..1 + next(7) {
                let more = bytes(&mut next, true);
                records.insert(
                    0,
                    operand(match width {
                        0 => Merge::Append(&more),
                        _ => Merge::Union { width, elements: &more },
                    }),
                );
                model = model.filter(|value| width == 0 || value.len() % width == 0).map(|value| {
                    let all = [value, more].concat();
                    if width == 0 {
                        return all;
                    }
                    all.chunks(width)
                        .collect::<std::collections::BTreeSet<_>>()
                        .into_iter()
                        .flatten()
                        .copied()
                        .collect()
                });
            }
            assert_eq!(read(&records, &store), model, "round {round}");
            while records.len() > 1 {
                let from = next(records.len() as u64 - 1) as usize;
                let to = from + 2 + next((records.len() - from - 1) as u64) as usize;
                let mut one = fold(&records[from..to]);
                if next(2) == 0 {
                    one = settle(one, &mut store);
                }
                records.splice(from..to, [one]);
                assert_eq!(read(&records, &store), model, "round {round}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_operand_are_errors_and_none_is_taken_for_another() {
        let good: [&[u8]; 6] = [
            &[APPEND],
            b"\x0aabc",
            &[UNION, 2],
            b"\x0b\x02aabb",
            &[&[APPEND_APART][..], &[7; 16]].concat(),
            &[&[UNION_APART, 3][..], &[7; 16]].concat(),
        ];
        assert!(good.iter().all(|bytes| Long::decode(bytes).is_ok()));
        assert!(good[..4].iter().all(|bytes| Long::check_whole(bytes).is_ok()));
        assert!(
            good[4..].iter().all(|bytes| Long::check_whole(bytes).is_err()),
            "the log has none that stands apart"
        );
        let bad: [&[u8]; 10] = [
            &[],
            &[UNION],
            &[UNION, 0],
            b"\x0b\x02aab",
            &[APPEND_APART],
            &[&[APPEND_APART][..], &[7; 17]].concat(),
            &[&[UNION_APART, 0][..], &[7; 16]].concat(),
            &[PARTS, APPEND, 0, 1],
            &[&[PARTS, APPEND, 0, 1][..], &[255; 8], &[0, 9, 0, 0, 0, 1]].concat(),
            &[PARTS + 1, 0, 0],
        ];
        for bytes in bad {
            assert!(Long::decode(bytes).is_err(), "{bytes:?}");
        }
        for unsorted in [&b"\x0b\x01ba"[..], b"\x0b\x01aa"] {
            assert!(Long::check_whole(unsorted).is_err());
        }
        let two = Record::Operand(b"\x0b\x02aabb".to_vec());
        for other in [&b"\x0b\x01a"[..], b"\x0aab", b"\x01abcdefgh"] {
            let mut gathering =
                Gathering::begin(other).ok().unwrap_or_else(|| Gathering::begin(b"\x0a").unwrap());
            assert!(matches!(gathering.add(two.content()), Err(Error::Corrupt { .. })));
        }
        let mut append = Gathering::begin(b"\x0aab").unwrap();
        let add = Record::Operand(b"\x01abcdefgh".to_vec());
        assert!(matches!(append.add(add.content()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn what_gets_longer_than_a_value_may_be_is_said_so() {
        let reference = [&[0; 8][..], &u32::MAX.to_le_bytes(), &[0; 4]].concat();
        let large = Record::Large(reference);
        let mut append = Gathering::begin(b"\x0aab").unwrap();
        append.add(large.content()).unwrap();
        assert!(!append.goes_on());
        let Gathered::Clash(clash) = append.end() else { panic!() };
        let error = clash.clash_error("t", TableKind::Ordered, b"k");
        assert!(matches!(error, Error::TooLarge { limit: VALUE_BYTES_MAX, .. }), "{error}");
    }

    #[test]
    fn a_value_that_expires_leaves_its_time() {
        for tag in [Tag::Put, Tag::Large] {
            let content = Content { tag, value: &[0; 16], expiry: Expiry::at(77) };
            let mut append = Gathering::begin(b"\x0aab").unwrap();
            append.add(content).unwrap();
            let expiry = match append.end() {
                Gathered::Value(value, expiry) => {
                    assert_eq!(value.len(), 18);
                    expiry
                }
                Gathered::Parts(bytes) => expiry_of(&bytes),
                _ => panic!(),
            };
            assert_eq!(expiry, Expiry::at(77));
            // And a reader is told.
            let mut fold = Fold::new(0);
            fold.add(Content { tag: Tag::Operand, value: b"\x0aab", expiry: Expiry::NEVER }).unwrap();
            fold.add(content).unwrap();
            assert!(matches!(fold.end(), Ok(Some((_, _, until))) if until == Expiry::at(77)));
        }
    }
}
