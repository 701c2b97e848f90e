//! Tests of the whole room.

mod documents;
mod order;

use super::{IndexSpec, IndexValue};
use crate::base::error::Error;
use crate::base::limits::KEY_BYTES_MAX;
use proptest::prelude::*;

#[test]
fn text_is_read_and_written_canonically() {
    for (text, canonical) in [
        ("v", "v"),
        ("k[0..4]:bytes,v[0..8]:u64le", "k[0..4], v[0..8]:u64le"),
        ("k[..4], v[3..] unique", "k[0..4], v[3..] unique"),
        ("v[0..]", "v"),
        (" v./user/email  unique where  present ", "v./user/email unique where present"),
        ("v.json./user/email:text where present unique", "v./user/email unique where present"),
        ("v.json:u64", "v.json:u64"),
        (r"v.split('\t', 2):lower", r"v.split('\t', 2):lower"),
        (
            r"v.split( '\x00\xffä\'\\\n\x09\xc2\x85' ,4294967295 ):f64",
            r"v.split('\x00\xffä\'\\\n\t\xc2\x85', 4294967295):f64",
        ),
        ("v.msgpack./user/age:i64", "v.msgpack./user/age:i64"),
        ("v.msgpack:bool", "v.msgpack:bool"),
        ("v./a~1b/0//~0", "v./a~1b/0//~0"),
        ("v.'/a b,c:d':lower", "v.'/a b,c:d':lower"),
        ("v.'/ab'", "v./ab"),
        (
            "v[0..4]:f32be, v[0..2]:u16le, v[1..2]:i8, v[1..2]:u8",
            "v[0..4]:f32be, v[0..2]:u16le, v[1..2]:i8, v[1..2]:u8",
        ),
    ] {
        let spec = IndexSpec::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(IndexSpec::parse(canonical).unwrap(), spec);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_column() {
    for (text, column, said) in [
        ("", 1, "a field expected"),
        ("x", 1, "a field expected"),
        ("v,", 3, "a field expected"),
        ("vv", 2, "the end of the field"),
        ("v[4..4]", 3, "one byte at least"),
        ("v[4..3]", 3, "one byte at least"),
        ("v[a..3]", 3, "a number expected"),
        ("v[0..4294967296]", 6, "a number expected"),
        ("v[0-3]", 4, "`..` expected"),
        ("v[0..3", 7, "`]` expected"),
        ("v.split('', 1)", 9, "a separator"),
        ("v.split('a 1)", 14, "`'` expected"),
        (r"v.split('\q', 1)", 10, r"`\xNN` expected"),
        (r"v.split('\x1', 1)", 10, "two hexadecimal digits"),
        (r"v.split('\x+1', 1)", 10, "two hexadecimal digits"),
        ("v.split(',', x)", 14, "a number expected"),
        ("v.email", 3, "a pointer"),
        ("v./a~2", 3, "`~0` for each `~`"),
        ("v.'a'", 3, "begins with `/`"),
        (r"v.'/\xff'", 3, "UTF-8"),
        ("v./a:u64le", 6, "a type of documents"),
        ("v:u63", 3, "a type expected"),
        ("v:", 3, "a type expected"),
        ("v:f8", 3, "a type expected"),
        ("v unique unique", 10, "said twice"),
        ("v where", 8, "`present` expected"),
        ("v.'/ä' where absent", 14, "`present` expected"),
        ("v uniq", 3, "the end expected"),
        ("v unique, k", 9, "the end expected"),
    ] {
        let error = IndexSpec::parse(text).unwrap_err().to_string();
        assert!(error.contains(&format!("column {column}: ")) && error.contains(said), "{text}: {error}");
    }
    assert!(IndexSpec::parse(&["v"; 17].join(",")).is_err());
    assert!(IndexSpec::parse(&format!("v.{}", "/a".repeat(129))).is_err());
    assert!(IndexSpec::parse(&format!("v./{}", "a".repeat(4096))).is_err());
}

fn fields(spec: &str, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let some = IndexSpec::parse(spec).unwrap().fields(key, value, &mut out).unwrap();
    assert!(some || out == b"before");
    some.then(|| out.split_off(6))
}

fn encoded(spec: &str, values: &[IndexValue<'_>]) -> Option<Vec<u8>> {
    Some(IndexSpec::parse(spec).unwrap().encode(values).unwrap())
}

#[test]
fn slices_and_parts() {
    let value = b"\x01\0\0\0\0\0\0\0one\ttwo\t";
    let one = |spec, expected| assert_eq!(fields(spec, b"key", value), encoded(spec, &[expected]), "{spec}");
    one("k", "key".into());
    one("k[..2]", "ke".into());
    one("k[..4]", IndexValue::Null);
    one("k[3..]", "".into());
    one("k[4..]", IndexValue::Null);
    one("v[0..8]:u64le", 1.into());
    one("v[0..8]:u64be", (1u64 << 56).into());
    one("v[0..7]:u64be", IndexValue::Null);
    one("v[8..11]:text", "one".into());
    one(r"v.split('\t', 1):text", "two".into());
    one(r"v.split('\t', 2)", "".into());
    one(r"v.split('\t', 3)", IndexValue::Null);
    assert_eq!(fields("k[4..] where present", b"key", b""), None);
}

#[test]
fn numbers_in_bytes() {
    for (kind, bytes, expected) in [
        ("u8", &b"\xff"[..], IndexValue::from(255)),
        ("i8", b"\xff", (-1).into()),
        ("u16le", b"\x01\x02", 0x201.into()),
        ("u16be", b"\x01\x02", 0x102.into()),
        ("i16be", b"\xff\xfe", (-2).into()),
        ("u32le", b"\x01\0\0\x80", 0x8000_0001u32.into()),
        ("i32le", b"\x01\0\0\x80", (i32::MIN + 1).into()),
        ("u64be", b"\xff\xff\xff\xff\xff\xff\xff\xff", u64::MAX.into()),
        ("i64le", b"\0\0\0\0\0\0\0\x80", i64::MIN.into()),
        ("f32be", b"\x3f\x80\0\0", 1.0.into()),
        ("f32le", b"\0\0\xc0\x7f", IndexValue::Null),
        ("f64be", b"\x80\0\0\0\0\0\0\0", 0.0.into()),
        ("f64le", b"\0\0\0\0\0\0\xf8\xff", IndexValue::Null),
        ("f64le", b"\0\0\0\0\0\0\xf0\xff", f64::NEG_INFINITY.into()),
        ("u64le", b"\0\0\0\0\0\0\0\0\0", IndexValue::Null),
        ("u64le", b"", IndexValue::Null),
        ("u64", b"18446744073709551615", u64::MAX.into()),
        ("u64", b"007", 7.into()),
        ("u64", b"-1", IndexValue::Null),
        ("i64", b"-9223372036854775808", i64::MIN.into()),
        ("i64", b" 1", IndexValue::Null),
        ("f64", b"-1.5e3", (-1500).into()),
        ("f64", b"nan", IndexValue::Null),
        ("bool", b"true", true.into()),
        ("bool", b"false", false.into()),
        ("bool", b"1", IndexValue::Null),
        ("text", b"\xff", IndexValue::Null),
        ("lower", b"A\0B", "a\0b".into()),
        ("lower", "Ä\0Σ".as_bytes(), "ä\0σ".into()),
        ("lower", b"ABC", "abC".into()),
    ] {
        let spec = format!("v:{kind}");
        assert_eq!(fields(&spec, b"", bytes), encoded(&spec, &[expected]), "{spec} {bytes:?}");
    }
}

#[test]
fn separators_of_more_than_a_byte() {
    let one = |spec, value: &[u8], expected| {
        assert_eq!(fields(spec, b"", value), encoded(spec, &[expected]), "{spec} {value:?}");
    };
    one("v.split('::', 1)", b"a::b::c", "b".into());
    one("v.split('::', 1)", b"a:::b", ":b".into());
    one("v.split('::', 1)", b"a:", IndexValue::Null);
    one("v.split('::', 0)", b"a:", "a:".into());
    one("v.split('::', 0)", b"", "".into());
    one("v.split('::', 4294967295)", b"a::b", IndexValue::Null);
}

#[test]
fn a_null_decides_what_is_checked_and_kept() {
    let spec = IndexSpec::parse("k, v./a unique").unwrap();
    assert!(spec.is_unique());
    let mut out = Vec::new();
    assert!(spec.fields(b"k", b"{}", &mut out).unwrap());
    assert!(!spec.is_checked(&out));
    out.clear();
    assert!(spec.fields(b"k", br#"{"a":"b"}"#, &mut out).unwrap());
    assert!(spec.is_checked(&out));
    assert!(!spec.is_checked(&out[..out.len() - 1]), "damaged");
    assert_eq!(fields("k, v./a where present", b"k", b"{}"), None);
    assert!(fields("k, v./a where present", b"k", br#"{"a":"b"}"#).is_some());
}

#[test]
fn values_that_a_field_cannot_have() {
    for (kind, value) in [
        ("u64", IndexValue::from(-1)),
        ("i64", u64::MAX.into()),
        ("f64", f64::NAN.into()),
        ("f64", u64::MAX.into()),
        ("f64", i64::MAX.into()),
        ("f64", ((1u64 << 53) + 1).into()),
        ("u64", 1.0.into()),
        ("u64", "1".into()),
        ("text", 1.into()),
        ("text", b"\xff".into()),
        ("bytes", 1.into()),
    ] {
        let spec = IndexSpec::parse(&format!("v:{kind}")).unwrap();
        assert!(spec.encode(&[value]).is_err(), "{kind} {value:?}");
    }
    let spec = IndexSpec::parse("v:f64").unwrap();
    assert_eq!(
        spec.encode(&[(1i64 << 60).into()]).unwrap(),
        spec.encode(&[((1u64 << 60) as f64).into()]).unwrap()
    );
    assert!(spec.encode(&[1.into(), 1.into()]).is_err());
    assert!(spec.encode_beginning(&[1.into()]).is_err());
    assert!(spec.encode_beginning(&[]).is_err());
}

#[test]
fn values_are_given_as_text() {
    let spec = IndexSpec::parse("k, v./a:bool, v[0..4]:i32le, v./b:f64").unwrap();
    assert_eq!(spec.value_of(0, b"\xff").unwrap(), b"\xff".into());
    assert_eq!(spec.value_of(1, b"true").unwrap(), true.into());
    assert_eq!(spec.value_of(2, b"-7").unwrap(), (-7i64).into());
    assert_eq!(spec.value_of(3, b"1e3").unwrap(), 1000.0.into());
    for (place, text) in [(1, &b"1"[..]), (2, b"1.0"), (2, b"\xff"), (3, b""), (4, b"a")] {
        assert!(spec.value_of(place, text).is_err(), "{place} {text:?}");
    }
    assert!(spec.is_bytes(0) && !spec.is_bytes(1) && !spec.is_bytes(4));
}

#[test]
fn an_entry_is_as_long_as_a_key_at_most() {
    let spec = IndexSpec::parse("v").unwrap();
    let mut out = b"before".to_vec();
    assert!(spec.fields(b"", &[1; 65_533], &mut out).unwrap());
    out.truncate(6);
    assert!(spec.fields(b"", &[1; 65_534], &mut out).is_err());
    assert_eq!(out, b"before");
}

#[test]
fn what_is_too_long_takes_no_memory() {
    let most = 8 * KEY_BYTES_MAX;
    let long = vec![b'a'; 32 << 20];
    let json = format!("\"\\n{}\"", "a".repeat(32 << 20));
    let capitals = "\u{212a}".repeat(8 << 20);
    let of = |field: &str, n, rest: &str| IndexSpec::parse(&(vec![field; n].join(", ") + rest)).unwrap();
    for (field, value) in [
        ("v", &long[..]),
        ("v", &vec![0; 1 << 20]),
        ("v:lower", &long),
        ("v:lower", capitals.as_bytes()),
        ("v.json", json.as_bytes()),
        ("v.json:lower", json.as_bytes()),
    ] {
        let mut out = b"before".to_vec();
        let refused = of(field, 16, "").fields(b"", value, &mut out);
        assert!(matches!(refused, Err(Error::TooLarge { what: "entry of an index", .. })), "{field}");
        assert!(out == b"before" && out.capacity() < most, "{field}: {}", out.capacity());
        // A record with a null has no entry, however long its other fields are.
        let some = of(field, 15, ", k[0..1] where present").fields(b"", value, &mut out);
        assert!(!some.unwrap() && out == b"before" && out.capacity() < most, "{field}: {}", out.capacity());
        // What is looked up is not there either.
        let spec = IndexSpec::parse("v").unwrap();
        assert!((KEY_BYTES_MAX..most).contains(&spec.encode(&[value.into()]).unwrap().len()));
    }
}

#[test]
fn text_that_is_shorter_in_lower_case_is_not_too_long() {
    let sign = "\u{212a}".repeat(60_000);
    let spec = IndexSpec::parse("v:lower").unwrap();
    let mut out = Vec::new();
    assert!(spec.fields(b"", sign.as_bytes(), &mut out).unwrap());
    assert_eq!(out.len(), 60_003);
    let escaped = format!("\"{}\"", "\\u212a".repeat(60_000));
    let spec = IndexSpec::parse("v.json:lower").unwrap();
    let mut other = Vec::new();
    assert!(spec.fields(b"", escaped.as_bytes(), &mut other).unwrap());
    assert!(out == other);
    // Damage behind the end of what is kept still counts.
    let damaged = escaped.replacen("\\u212a", &"x".repeat(300_000), 1).replace("2a\"", "2a\\q\"");
    other.clear();
    assert!(spec.fields(b"", damaged.as_bytes(), &mut other).unwrap());
    assert_eq!(other, [0]);
}

/// The text of a field of any kind.
fn any_field() -> impl Strategy<Value = String> {
    let bytes =
        proptest::collection::vec(prop_oneof![Just(b'\''), Just(b'\\'), Just(b','), any::<u8>()], 1..4);
    let quoted = |bytes: Vec<u8>| bytes.iter().map(|b| format!("\\x{b:02x}")).collect::<String>();
    let pointer = "(/([a-c,:' ~/é\u{7}]{0,3})){1,3}".prop_map(|p| p.replace('~', "~0"));
    let piece = prop_oneof![
        Just((String::new(), false)),
        (0u32..9, 0u32..9).prop_map(|(a, b)| (format!("[{a}..{}]", a + b + 1), false)),
        any::<u32>().prop_map(|a| (format!("[{a}..]"), false)),
        (bytes, any::<u32>()).prop_map(move |(b, n)| (format!(".split('{}',{n})", quoted(b)), false)),
        (prop_oneof![Just(".json"), Just(".msgpack")], pointer).prop_map(move |(format, pointer)| {
            (format!("{format}.'{}'", quoted(pointer.into_bytes())), true)
        }),
    ];
    let kinds = [
        "", ":bytes", ":text", ":lower", ":bool", ":u64", ":i64", ":f64", ":u8", ":i16le", ":f32be", ":u64le",
    ];
    (prop_oneof![Just('k'), Just('v')], piece, 0..kinds.len(), 0usize..8).prop_map(
        move |(source, (piece, document), any, of_document)| {
            format!("{source}{piece}{}", kinds[if document { of_document } else { any }])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_specification_comes_back(
        fields in proptest::collection::vec(any_field(), 1..4),
        options in "( unique)?|( unique)? where present|( where present)? unique",
        records in proptest::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 3),
    ) {
        let spec = IndexSpec::parse(&(fields.join(" ,") + &options)).unwrap();
        let text = spec.to_string();
        let again: IndexSpec = text.parse().unwrap();
        prop_assert_eq!(again.to_string(), text);
        prop_assert_eq!(&again, &spec);
        for (key, value) in records {
            let mut out = Vec::new();
            if spec.fields(&key, &value, &mut out).unwrap() {
                prop_assert_eq!(spec.fields_len(&out).unwrap(), out.len());
                prop_assert!(!options.contains("where") || spec.is_checked(&out));
            }
        }
    }

    #[test]
    fn other_text_is_an_error_or_a_specification(
        source in "[kv]?",
        piece in r"\[[0-9.]{0,5}\]?|\.split\('[\\xnt,':]{0,4}'?,? ?[0-9]?\)?|\.?(json|msgpack)?\.?/[a~01/:,' ]{0,5}",
        kind in "(:[uif]?[0-9]{1,2}[lb]?e?)?,? ?(unique)?[ -~]{0,3}",
        any: String,
    ) {
        for text in [format!("{source}{kind}"), source + &piece + &kind, any] {
            if let Ok(spec) = IndexSpec::parse(&text) {
                prop_assert_eq!(IndexSpec::parse(&spec.to_string()).unwrap(), spec);
            }
        }
    }
}
