//! Tests of the whole room.

use super::{IndexSpec, IndexValue};

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
