//! Order, and what comes back.

use super::*;
use crate::base::error::{Error, Result};
use crate::index::IndexSpec;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::fmt::Debug;

fn key_bytes<K: Key + ?Sized>(key: K::Given<'_>) -> Vec<u8> {
    K::with_bytes(key, |bytes| Ok(bytes.to_vec())).unwrap()
}

fn value_bytes<V: Value + ?Sized>(value: V::Given<'_>) -> Vec<u8> {
    V::with_bytes(value, |bytes| Ok(bytes.to_vec())).unwrap()
}

/// Two keys stand in the order of their bytes, and come back.
fn keeps_order<K: Key + ?Sized>(a: &K::Owned, b: &K::Owned) -> std::result::Result<(), TestCaseError>
where
    K::Owned: PartialOrd + Debug,
{
    let (x, y) = (key_bytes::<K>(K::lend(a)), key_bytes::<K>(K::lend(b)));
    prop_assert_eq!(Some(x.cmp(&y)), a.partial_cmp(b), "{:?} {:?}", a, b);
    for (key, bytes) in [(a, &x), (b, &y)] {
        let back = K::own(K::view(bytes).unwrap());
        prop_assert_eq!(back.partial_cmp(key), Some(Ordering::Equal), "{:?} came back as {:?}", key, back);
    }
    Ok(())
}

/// Text with many bytes 00 in it, and with what escapes look like.
fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), any::<char>()], 0..8)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Every float but those that are no number.
fn float() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn numbers_keep_their_order(
        a in any::<(u8, u16, u32, u64, u128)>(), b in any::<(u8, u16, u32, u64, u128)>(),
        c in any::<(i8, i16, i32, i64, i128)>(), d in any::<(i8, i16, i32, i64, i128)>(),
        near in any::<i64>(),
    ) {
        keeps_order::<u8>(&a.0, &b.0)?;
        keeps_order::<u16>(&a.1, &b.1)?;
        keeps_order::<u32>(&a.2, &b.2)?;
        keeps_order::<u64>(&a.3, &b.3)?;
        keeps_order::<u128>(&a.4, &b.4)?;
        keeps_order::<i8>(&c.0, &d.0)?;
        keeps_order::<i16>(&c.1, &d.1)?;
        keeps_order::<i32>(&c.2, &d.2)?;
        keeps_order::<i64>(&c.3, &d.3)?;
        keeps_order::<i64>(&near, &near.wrapping_add(1))?;
        keeps_order::<i128>(&c.4, &d.4)?;
        keeps_order::<bool>(&(a.0 > 9), &(b.0 > 9))?;
    }

    #[test]
    fn floats_keep_their_order(a in float(), b in float(), c in float(), d in float()) {
        keeps_order::<f64>(&a, &b)?;
        keeps_order::<f64>(&a, &-a)?;
        keeps_order::<f32>(&(c as f32), &(d as f32))?;
    }

    #[test]
    fn text_and_bytes_keep_their_order(a in text(), b in text(), c in bytes(), d in bytes(), e: [u8; 5], f: [u8; 5]) {
        keeps_order::<str>(&a, &b)?;
        keeps_order::<[u8]>(&c, &d)?;
        keeps_order::<[u8; 5]>(&e, &f)?;
    }

    #[test]
    fn tuples_keep_their_order(
        a in (text(), any::<i16>(), bytes()), b in (text(), any::<i16>(), bytes()),
        c in ((bytes(), text()), any::<bool>()), d in ((bytes(), text()), any::<bool>()),
    ) {
        keeps_order::<(String, i16, Vec<u8>)>(&a, &b)?;
        keeps_order::<(String, i16, Vec<u8>)>(&a, &(a.0.clone(), b.1, b.2.clone()))?;
        keeps_order::<(String, i16, Vec<u8>)>(&a, &(a.0.clone(), a.1, b.2.clone()))?;
        keeps_order::<((Vec<u8>, String), bool)>(&c, &d)?;
        keeps_order::<((Vec<u8>, String), bool)>(&c, &((c.0.0.clone(), d.0.1.clone()), d.1))?;
        keeps_order::<(f64, f32)>(&(f64::from(a.1), 0.0), &(f64::from(b.1), -0.0))?;
    }

    #[test]
    fn first_parts_are_a_prefix(a in (text(), any::<u32>(), text()), other in text()) {
        let key = key_bytes::<(String, u32, String)>((&a.0, a.1, &a.2));
        let begins = |prefix: Result<Vec<u8>>| key.starts_with(&prefix.unwrap());
        let one = |text: &str| Prefix::<(String, u32, String)>::with_bytes((text,), |b| Ok(b.to_vec()));
        prop_assert!(begins(one(&a.0)));
        prop_assert_eq!(begins(one(&other)), other == a.0);
        let two = |n: u32| Prefix::<(String, u32, String)>::with_bytes((a.0.as_str(), n), |b| Ok(b.to_vec()));
        prop_assert!(begins(two(a.1)));
        prop_assert!(!begins(two(a.1 ^ 1)));
    }

    #[test]
    fn values_come_back(a in any::<(u64, i32)>(), b in proptest::num::f64::ANY, c in text(), d in bytes()) {
        prop_assert_eq!(<u64 as Value>::view(&value_bytes::<u64>(a.0)).unwrap(), a.0);
        prop_assert_eq!(<f64 as Value>::view(&value_bytes::<f64>(b)).unwrap().to_bits(), b.to_bits());
        let text = value_bytes::<str>(&c);
        prop_assert_eq!(<str as Value>::view(&text).unwrap(), &c);
        let pair = value_bytes::<(i32, Vec<u8>)>((a.1, &d));
        prop_assert_eq!(<(i32, Vec<u8>) as Value>::own(<(i32, Vec<u8>) as Value>::view(&pair).unwrap()), (a.1, d));
    }

    /// Whatever stands in a file, reading it as a type is a value or an error.
    #[test]
    fn any_bytes_are_read_without_harm(found in bytes()) {
        type Key3 = (String, Vec<u8>, u16);
        if let Ok(key) = <Key3 as Key>::view(&found) {
            let key = <Key3 as Key>::own(key);
            prop_assert_eq!(key_bytes::<Key3>(<Key3 as Key>::lend(&key)), found.clone());
        }
        let text = <str as Key>::view(&found);
        prop_assert_eq!(text.is_ok(), std::str::from_utf8(&found).is_ok());
        prop_assert_eq!(<u16 as Value>::view(&found).is_ok(), found.len() == 2);
        prop_assert_eq!(<bool as Value>::view(&found).is_ok(), found == [0] || found == [1]);
    }
}

#[test]
fn keys_are_those_of_the_documentation() {
    assert_eq!(key_bytes::<i64>(-2), (i64::MAX - 1).to_be_bytes());
    assert_eq!(key_bytes::<u16>(258), [1, 2]);
    assert_eq!(key_bytes::<f64>(-0.0), key_bytes::<f64>(0.0));
    assert_eq!(key_bytes::<f64>(1.0), [0xbf, 0xf0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(key_bytes::<(&str, u8)>(("a\0b", 7)), b"a\0\xffb\0\x01\x07");
    assert_eq!(value_bytes::<i64>(-2), (-2i64).to_le_bytes());
    assert_eq!(value_bytes::<()>(()), b"");
}

#[test]
fn what_is_no_key_is_refused() {
    let refused = <f64 as Key>::with_bytes(f64::NAN, |_| Ok(()));
    assert!(matches!(&refused, Err(Error::Invalid { detail }) if detail.contains("NaN")), "{refused:?}");
    for damaged in [&b"a"[..], b"a\0", b"a\0\x02\x07", b"a\0\x01", b"a\0\x01\x07\x07"] {
        let read = <(&str, u8) as Key>::view(damaged);
        assert!(matches!(&read, Err(Error::WrongType { .. })), "{damaged:?}: {read:?}");
    }
}

#[test]
fn long_keys_are_put_together_whole() {
    for n in [60, 61, 62, 63, 64, 65, 200, 5000] {
        let text = "x".repeat(n);
        let key = key_bytes::<(&str, &str)>((&text, "\0y"));
        assert_eq!(key.len(), n + 2 + 3 + 2);
        assert_eq!(
            <(&str, &str) as Key>::own(<(&str, &str) as Key>::view(&key).unwrap()),
            (text, "\0y".to_owned())
        );
    }
}

/// Behind the byte that says what it is, a field of an index is a part of a tuple.
#[test]
fn indexes_have_the_same_forms() {
    let spec = IndexSpec::parse("v:text, v:bytes, v:u64, v:i64, v:f64").unwrap();
    type Tuple = (String, Vec<u8>, u64, i64, f64);
    let (text, bytes) = ("a\0b", &b"\0\xff\0"[..]);
    let fields =
        spec.encode(&[text.into(), bytes.into(), u64::MAX.into(), (-7).into(), (-0.5).into()]).unwrap();
    let tuple = key_bytes::<Tuple>((text, bytes, u64::MAX, -7, -0.5));
    let (mut rest, mut without) = (&fields[..], Vec::new());
    for len in [6, 7, 8, 8, 8] {
        without.extend_from_slice(&rest[1..=len]);
        rest = &rest[len + 1..];
    }
    assert_eq!((without, rest), (tuple, &[][..]));
}
