//! Encoded fields are in the order of their values, and tell where they end.

use crate::index::{IndexSpec, IndexValue};
use proptest::prelude::*;
use std::cmp::Ordering;

/// A value of a record's field.
#[derive(Clone, Debug)]
enum Model {
    Null,
    Bytes(Vec<u8>),
    Text(String),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Model {
    fn given(&self) -> IndexValue<'_> {
        match self {
            Model::Null => IndexValue::Null,
            Model::Bytes(bytes) => bytes.into(),
            Model::Text(text) => text.into(),
            Model::U64(n) => (*n).into(),
            Model::I64(n) => (*n).into(),
            Model::F64(n) => (*n).into(),
        }
    }

    fn order(&self, other: &Model) -> Ordering {
        match (self, other) {
            (Model::Null, Model::Null) => Ordering::Equal,
            (Model::Null, _) => Ordering::Less,
            (_, Model::Null) => Ordering::Greater,
            (Model::Bytes(a), Model::Bytes(b)) => a.cmp(b),
            (Model::Text(a), Model::Text(b)) => a.cmp(b),
            (Model::U64(a), Model::U64(b)) => a.cmp(b),
            (Model::I64(a), Model::I64(b)) => a.cmp(b),
            (Model::F64(a), Model::F64(b)) => a.partial_cmp(b).expect("no NaN"),
            _ => panic!("two types in one field"),
        }
    }
}

const TYPES: [&str; 5] = ["bytes", "text", "u64", "i64", "f64"];

/// Values of the type of that place that are often equal, often begin each other, and often stand at an edge.
fn value(kind: usize) -> BoxedStrategy<Model> {
    let byte = || prop_oneof![Just(0u8), Just(1), Just(0xff), any::<u8>()];
    let c = || prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), any::<char>()];
    let some = match kind {
        0 => proptest::collection::vec(byte(), 0..5).prop_map(Model::Bytes).boxed(),
        1 => proptest::collection::vec(c(), 0..5).prop_map(|c| Model::Text(c.iter().collect())).boxed(),
        2 => prop_oneof![0u64..3, Just(u64::MAX), any::<u64>()].prop_map(Model::U64).boxed(),
        3 => prop_oneof![-2i64..3, Just(i64::MIN), Just(i64::MAX), any::<i64>()].prop_map(Model::I64).boxed(),
        _ => {
            let edge = prop_oneof![Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY)];
            let any = any::<f64>().prop_filter("a number", |n| !n.is_nan());
            prop_oneof![edge, -2.0..2.0, any].prop_map(Model::F64).boxed()
        }
    };
    prop_oneof![1 => Just(Model::Null), 6 => some].boxed()
}

/// The types of an index, and two lists of values.
fn pairs() -> impl Strategy<Value = (Vec<usize>, Vec<Model>, Vec<Model>)> {
    proptest::collection::vec(0..TYPES.len(), 1..4).prop_flat_map(|kinds| {
        let list = kinds.iter().map(|&kind| value(kind)).collect::<Vec<_>>();
        (Just(kinds), list.clone(), list)
    })
}

fn spec(kinds: &[usize]) -> IndexSpec {
    let fields: Vec<_> = kinds.iter().map(|&kind| format!("v:{}", TYPES[kind])).collect();
    IndexSpec::parse(&fields.join(", ")).unwrap()
}

fn given(values: &[Model]) -> Vec<IndexValue<'_>> {
    values.iter().map(Model::given).collect()
}

fn order(a: &[Model], b: &[Model]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn bytes_are_in_the_order_of_values((kinds, a, b) in pairs(), key_a: [u8; 2], key_b: [u8; 2]) {
        let spec = spec(&kinds);
        let [mut entry_a, mut entry_b] = [&a, &b].map(|values| spec.encode(&given(values)).unwrap());
        prop_assert_eq!(entry_a.cmp(&entry_b), order(&a, &b));
        let nulls = |values: &[Model]| values.iter().any(|value| matches!(value, Model::Null));
        prop_assert_eq!(spec.is_checked(&entry_a), !nulls(&a));
        let len = entry_a.len();
        entry_a.extend_from_slice(&key_a);
        entry_b.extend_from_slice(&key_b);
        prop_assert_eq!(entry_a.cmp(&entry_b), order(&a, &b).then(key_a.cmp(&key_b)));
        prop_assert_eq!(spec.fields_len(&entry_a).unwrap(), len);
    }

    #[test]
    fn the_first_values_select((kinds, a, b) in pairs(), len in 0usize..4) {
        let (spec, len) = (spec(&kinds), len.min(kinds.len()));
        let start = spec.encode(&given(&a[..len])).unwrap();
        let entry = spec.encode(&given(&b)).unwrap();
        prop_assert_eq!(entry.starts_with(&start), order(&a[..len], &b[..len]).is_eq());
    }

    #[test]
    fn a_beginning_selects(a in value(1), b in value(1), first in 0u64..2) {
        let spec = IndexSpec::parse("k:u64, v:text").unwrap();
        let entry = spec.encode(&[0.into(), b.given()]).unwrap();
        if let Model::Text(a) = &a {
            let start = spec.encode_beginning(&[first.into(), a.into()]).unwrap();
            let expected = first == 0 && matches!(&b, Model::Text(b) if b.starts_with(a.as_str()));
            prop_assert_eq!(entry.starts_with(&start), expected);
        } else {
            prop_assert!(spec.encode_beginning(&[first.into(), IndexValue::Null]).is_err());
        }
    }

    #[test]
    fn damage_is_an_error_or_another_entry(
        (kinds, a, _) in pairs(), at: prop::sample::Index, byte: u8, cut: bool
    ) {
        let spec = spec(&kinds);
        let mut entry = spec.encode(&given(&a)).unwrap();
        let at = at.index(entry.len());
        if cut {
            entry.truncate(at);
            prop_assert!(spec.fields_len(&entry).is_err());
        } else {
            entry[at] = byte;
        }
        let _checked = spec.is_checked(&entry);
        if let Ok(len) = spec.fields_len(&entry) {
            prop_assert!(len <= entry.len());
        }
    }

    #[test]
    fn garbage_is_an_error_or_an_entry((kinds, ..) in pairs(), entry: Vec<u8>) {
        let spec = spec(&kinds);
        let _checked = spec.is_checked(&entry);
        if let Ok(len) = spec.fields_len(&entry) {
            prop_assert!(len <= entry.len());
        }
    }
}
