//! What is stored behind a word: records that expire, and operands (sections 7.5 and 7.6).

use super::page::{Doc, little_endian};
use super::{File, Sorted, Tagged};
use std::collections::BTreeSet;

/// A record without the word of one that expires, and when it does: section 7.5.
pub(super) fn without_word(doc: &Doc, (tag, value): &Tagged) -> (Tagged, Option<u64>) {
    if *tag != doc.constant("tag_expiring") {
        return ((*tag, value.clone()), None);
    }
    let word = little_endian(&value[..8]);
    if word == doc.constant("operand_word") {
        return ((*tag, value.clone()), None);
    }
    let tag = doc.constant(if word.is_multiple_of(2) { "tag_put" } else { "tag_large" });
    ((tag, value[8..].to_vec()), Some(word / 2))
}

/// The bytes of an operand behind its word: section 7.6. None of another record.
pub(super) fn operand_of<'a>(doc: &Doc, (tag, value): &'a Tagged) -> Option<&'a [u8]> {
    let is_operand =
        *tag == doc.constant("tag_expiring") && little_endian(&value[..8]) == doc.constant("operand_word");
    is_operand.then(|| &value[8..])
}

/// Its operator, and the bytes of an element of a set: those of one that stands apart are the same.
pub(super) fn operator_of(doc: &Doc, operand: &[u8]) -> (u64, u64) {
    let operator = u64::from(operand[0]);
    let is = |name| operator == doc.constant(name);
    match () {
        () if is("operator_append_apart") => (doc.constant("operator_append"), 0),
        () if is("operator_union_apart") => (doc.constant("operator_union"), u64::from(operand[1])),
        () if is("operator_union") => (operator, u64::from(operand[1])),
        () => (operator, 0),
    }
}

/// The reference of an operand that stands apart, and what stands before it.
pub(super) fn apart<'a>(doc: &'a Doc, operand: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let operator = u64::from(operand[0]);
    if operator == doc.constant("operator_append_apart") {
        let node = doc.layout("append_apart", operand);
        assert_eq!((node.num("operator"), operand.len()), (operator, 17));
        return Some((vec![doc.constant("operator_append") as u8], node.bytes("reference")));
    }
    (operator == doc.constant("operator_union_apart")).then(|| {
        let node = doc.layout("union_apart", operand);
        assert_eq!((node.num("operator"), operand.len()), (operator, 18));
        let head = vec![doc.constant("operator_union") as u8, node.num("element") as u8];
        (head, node.bytes("reference"))
    })
}

/// The elements of two sets.
fn united(a: &[u8], b: &[u8], width: usize) -> Vec<u8> {
    let all: BTreeSet<&[u8]> = a.chunks(width).chain(b.chunks(width)).collect();
    all.into_iter().collect::<Vec<_>>().concat()
}

/// What an operand makes of a number.
fn operate(doc: &Doc, operator: u64, base: u64, number: u64) -> u64 {
    let is = |name| operator == doc.constant(name);
    let (x, y) = (base as i64, number as i64);
    let (f, g) = (f64::from_bits(base), f64::from_bits(number));
    match () {
        () if is("operator_add") => base.wrapping_add(number),
        () if is("operator_add_f64") => (f + g).to_bits(),
        () if is("operator_min_i64") => x.min(y) as u64,
        () if is("operator_max_i64") => x.max(y) as u64,
        () if is("operator_min_u64") => base.min(number),
        () if is("operator_max_u64") => base.max(number),
        () if is("operator_min_f64") => {
            if g.total_cmp(&f).is_lt() {
                number
            } else {
                base
            }
        }
        () if is("operator_max_f64") => {
            if g.total_cmp(&f).is_gt() {
                number
            } else {
                base
            }
        }
        () => {
            assert!(is("operator_or"), "operator {operator}");
            base | number
        }
    }
}

impl File<'_> {
    /// Adds records to older ones.
    pub(super) fn add(&mut self, sorted: &mut Sorted, records: impl IntoIterator<Item = (Vec<u8>, Tagged)>) {
        let doc = self.doc;
        for (key, tagged) in records {
            let operand =
                operand_of(doc, &tagged).filter(|o| u64::from(o[0]) != doc.constant("operator_clash"));
            let Some(operand) = operand else {
                sorted.insert(key, tagged);
                continue;
            };
            let base = sorted.get(&key).filter(|(tag, _)| *tag != doc.constant("tag_tombstone"));
            let made = match base {
                // (All that is older was added before, so an operand there is a clash.)
                Some(base) if operand_of(doc, base).is_some() => {
                    self.seen.operands[2] += 1;
                    base.clone()
                }
                base if operator_of(doc, operand).0 >= doc.constant("operator_append") => {
                    let base = base.cloned();
                    self.lengthen(operand, base)
                }
                base => self.operate(operand, base.cloned()),
            };
            sorted.insert(key, made);
        }
    }

    fn clash(&mut self, number: u64) -> Tagged {
        self.seen.operands[2] += 1;
        let word = self.doc.constant("operand_word").to_le_bytes();
        let operator = [self.doc.constant("operator_clash") as u8];
        (self.doc.constant("tag_expiring"), [&word[..], &operator, &number.to_le_bytes()].concat())
    }

    /// What an operand of a number makes of its base.
    fn operate(&mut self, operand: &[u8], base: Option<Tagged>) -> Tagged {
        let doc = self.doc;
        let node = doc.layout("number_operand", operand);
        let (operator, number) = (node.num("operator"), node.num("number"));
        let put = |number: u64| (doc.constant("tag_put"), number.to_le_bytes().to_vec());
        match base {
            None => {
                self.seen.operands[1] += 1;
                put(number)
            }
            Some((tag, value)) if tag == doc.constant("tag_put") && value.len() == 8 => {
                self.seen.operands[0] += 1;
                put(operate(doc, operator, little_endian(&value), number))
            }
            Some((tag, value)) => {
                self.clash(if tag == doc.constant("tag_large") { u64::MAX } else { value.len() as u64 })
            }
        }
    }

    /// What an operand with a length makes of its base.
    fn lengthen(&mut self, operand: &[u8], base: Option<Tagged>) -> Tagged {
        let doc = self.doc;
        let whole = match apart(doc, operand) {
            Some((head, reference)) => {
                self.seen.long[1] += 1;
                [head, self.large(reference)].concat()
            }
            None => operand.to_vec(),
        };
        let (operator, width) = operator_of(doc, &whole);
        self.seen.long[0] += 1;
        let base = match base {
            Some((tag, value)) if tag == doc.constant("tag_large") => {
                self.seen.long[2] += 1;
                self.large(&value)
            }
            Some((_, value)) => value,
            None => Vec::new(),
        };
        if operator == doc.constant("operator_append") {
            return (doc.constant("tag_put"), [&base[..], &whole[1..]].concat());
        }
        assert_eq!(operator, doc.constant("operator_union"));
        let (width, elements) = (width as usize, &whole[2..]);
        assert_eq!(united(elements, &[], width), elements, "elements in no order");
        if base.len() % width > 0 {
            return self.clash(base.len() as u64 | (width as u64) << 32);
        }
        (doc.constant("tag_put"), united(&base, elements, width))
    }
}
