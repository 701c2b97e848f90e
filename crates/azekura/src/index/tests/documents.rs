//! What is found in documents is what a tree of them has there.

use crate::index::{IndexSpec, IndexValue};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};
use std::fmt::Write;

/// Few names, so that they meet, and some that pointers escape or that are places in arrays.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab01~/]{0,2}",
        1 => proptest::sample::select(&["é\u{1f980}", "a b,c:d'\\", "\0\t\"", "01"]).prop_map(str::to_owned),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number)),
        name().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((name(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The pointers to everything in a document.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(elements) => {
            for (i, element) in elements.iter().enumerate() {
                pointers(element, &format!("{at}/{i}"), all);
            }
            all.push(format!("{at}/{}", elements.len()));
            all.push(format!("{at}/00"));
        }
        Value::Object(members) => {
            for (name, member) in members {
                pointers(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), all);
            }
            all.push(format!("{at}/none"));
        }
        _ => all.push(format!("{at}/0")),
    }
}

/// A field with that pointer.
fn field(format: &str, pointer: &str, kind: &str) -> String {
    if pointer.is_empty() {
        return format!("v.{format}:{kind}");
    }
    let mut quoted = String::new();
    for byte in pointer.bytes() {
        write!(quoted, "\\x{byte:02x}").unwrap();
    }
    format!("v.{format}.'{quoted}':{kind}")
}

fn encoded(spec: &IndexSpec, document: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(spec.fields(b"", document, &mut out).unwrap());
    out
}

/// Compares all that a document has with what is found in its bytes.
fn compare(format: &str, document: &Value, bytes: &[u8]) {
    let mut all = Vec::new();
    pointers(document, "", &mut all);
    for pointer in all {
        let there = document.pointer(&pointer);
        let expected: [(&str, Option<IndexValue<'_>>); 6] = [
            ("text", there.and_then(Value::as_str).map(Into::into)),
            ("bytes", there.and_then(Value::as_str).map(|text| text.as_bytes().into())),
            ("bool", there.and_then(Value::as_bool).map(Into::into)),
            ("u64", there.and_then(Value::as_u64).map(Into::into)),
            ("i64", there.and_then(Value::as_i64).map(Into::into)),
            ("f64", there.and_then(Value::as_f64).map(Into::into)),
        ];
        for (kind, value) in expected {
            let spec = IndexSpec::parse(&field(format, &pointer, kind)).unwrap();
            assert_eq!(IndexSpec::parse(&spec.to_string()).unwrap(), spec);
            let value = spec.encode(&[value.unwrap_or(IndexValue::Null)]);
            // A float of an integer is rounded, which a lookup does not do.
            let Ok(value) = value else { continue };
            assert_eq!(encoded(&spec, bytes), value, "{spec} in {document}");
        }
    }
}

/// The same text with every character in strings that can be one as an escape.
fn with_escapes(json: &str) -> String {
    let (mut out, mut quoted, mut chars) = (String::new(), false, json.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => {
                out.push(c);
                let escape = chars.next().unwrap();
                out.push(escape);
                out.extend(chars.by_ref().take(if escape == 'u' { 4 } else { 0 }));
                continue;
            }
            _ if quoted => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04X}").unwrap();
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A writer of MessagePack that takes the narrowest form, or the widest.
fn msgpack(value: &Value, wide: bool, out: &mut Vec<u8>) {
    let mut head = |len: usize, narrow: Option<u8>, widest: u8| match narrow {
        Some(byte) if !wide && len < 16 => out.push(byte + len as u8),
        _ => {
            out.push(widest);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    };
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(value) => out.push(0xc2 + u8::from(*value)),
        Value::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n @ 0..0x80), _) if !wide => out.push(n as u8),
            (Some(n @ 0..0x1_0000), _) if !wide => {
                out.push(0xcd);
                out.extend_from_slice(&(n as u16).to_be_bytes());
            }
            (_, Some(n @ -32..0)) if !wide => out.push(n as u8),
            (_, Some(n @ -0x8000..0)) if !wide => {
                out.push(0xd1);
                out.extend_from_slice(&(n as i16).to_be_bytes());
            }
            (Some(n), _) => {
                out.push(0xcf);
                out.extend_from_slice(&n.to_be_bytes());
            }
            (_, Some(n)) => {
                out.push(0xd3);
                out.extend_from_slice(&n.to_be_bytes());
            }
            _ => {
                out.push(0xcb);
                out.extend_from_slice(&n.as_f64().unwrap().to_be_bytes());
            }
        },
        Value::String(text) => {
            head(text.len(), Some(0xa0), 0xdb);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(elements) => {
            head(elements.len(), Some(0x90), 0xdd);
            elements.iter().for_each(|element| msgpack(element, wide, out));
        }
        Value::Object(members) => {
            head(members.len(), Some(0x80), 0xdf);
            for (name, member) in members {
                // A name that is an integer may be one.
                match name.parse::<u8>() {
                    Ok(n @ 0..0x80) if n.to_string() == *name => out.push(n),
                    _ => msgpack(&Value::from(name.as_str()), wide, out),
                }
                msgpack(member, wide, out);
            }
        }
    }
}

/// Fields that look deep, at a place and at the whole.
fn looks(format: &str) -> Vec<IndexSpec> {
    ["", "/a", "/0", "/a/0/b", "/0/0/0", "/~1~0"]
        .iter()
        .flat_map(|pointer| ["text", "u64", "f64"].map(|kind| field(format, pointer, kind)))
        .map(|text| IndexSpec::parse(&text).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn json_is_read_as_by_a_parser(document in document()) {
        let plain = document.to_string();
        compare("json", &document, plain.as_bytes());
        compare("json", &document, serde_json::to_string_pretty(&document).unwrap().as_bytes());
        compare("json", &document, with_escapes(&plain).as_bytes());
    }

    #[test]
    fn msgpack_is_read_as_a_tree(document in document(), wide in any::<bool>()) {
        let mut bytes = Vec::new();
        msgpack(&document, wide, &mut bytes);
        compare("msgpack", &document, &bytes);
    }

    #[test]
    fn a_damaged_document_is_no_panic(
        document in document(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut bytes = [document.to_string().into_bytes(), Vec::new()];
        msgpack(&document, false, &mut bytes[1]);
        for (mut bytes, format) in bytes.into_iter().zip(["json", "msgpack"]) {
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            for spec in looks(format) {
                let found = encoded(&spec, &bytes);
                // What is no document at all is null.
                if format == "json" && spec.to_string() == "v.json" && found != [0] {
                    prop_assert!(serde_json::from_slice::<String>(&bytes).is_ok());
                }
            }
        }
    }

    #[test]
    fn garbage_is_no_panic(bytes: Vec<u8>, text in r#"[\[\]{}",:\\ua0-9eE.+\- tf]{0,60}"#) {
        for spec in looks("json").into_iter().chain(looks("msgpack")) {
            encoded(&spec, &bytes);
            encoded(&spec, text.as_bytes());
        }
    }

    /// The reader takes what a parser takes, if it must read it all, and nothing else.
    #[test]
    fn json_is_passed_over_as_by_a_parser(text in r#"[\[\]{}",: 10.eE\-]{0,12}"#) {
        let found = encoded(&IndexSpec::parse("v./1:u64").unwrap(), format!("[{text},7]").as_bytes());
        if let Ok(Value::Array(list)) = serde_json::from_str(&format!("[{text},7]")) {
            let expected = if list.len() == 2 { 7 } else { list[1].as_u64().unwrap_or(u64::MAX) };
            let expected = IndexSpec::parse("v:u64").unwrap().encode(&[expected.into()]).unwrap();
            prop_assert!(found == expected || found == [0], "{text}");
            prop_assert!(list.len() != 2 || found == expected, "{text}");
        } else if serde_json::from_str::<Value>(&text).is_err() {
            // A part of it may still be an element.
            prop_assert!(found == [0] || text.contains(','), "{text}");
        }
    }
}

#[test]
fn json_that_is_no_json() {
    let one = |text: &str, kind: &str| {
        encoded(&IndexSpec::parse(&format!("v./a:{kind}")).unwrap(), text.as_bytes())
    };
    let number = |n: u64| IndexSpec::parse("v:u64").unwrap().encode(&[n.into()]).unwrap();
    assert_eq!(one(r#"{"a":1}"#, "u64"), number(1));
    assert_eq!(one(r#"{"a":1,"a":2}"#, "u64"), number(1), "the first of two");
    assert_eq!(one(r#"{"a":1, what follows"#, "u64"), number(1), "nobody looks there");
    assert_eq!(one(r#"{"b":tru,"a":1}"#, "u64"), [0]);
    for text in [
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":1.}"#,
        r#"{"a":.1}"#,
        r#"{"a":1e}"#,
        r#"{"a":1x}"#,
        r#"{"a":"#,
        r#"{"a"1}"#,
        r#"{'a':1}"#,
        r#"{,"a":1}"#,
        r#"{"b":[1,],"a":1}"#,
        r#"{"b":{"c":1,},"a":1}"#,
        r#"{"b":{]},"a":1}"#,
        r#"{"b":{"c":1],"a":1}"#,
        r#"{"b":[1},"a":1}"#,
        r#"{"b":-,"a":1}"#,
        r#"{"a":1.0}"#,
        r#"{"a":18446744073709551616}"#,
        r#"{"a":"1"}"#,
        r#"{"a":null}"#,
        r#"{"a":[1]}"#,
        "[1]",
        "",
        "1",
    ] {
        assert_eq!(one(text, "u64"), [0], "{text}");
    }
    for text in [
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        r#"{"a":"\u00"}"#,
        r#"{"a":"\x"}"#,
    ] {
        assert_eq!(one(text, "text"), [0], "{text}");
    }
    assert_eq!(encoded(&IndexSpec::parse("v./a").unwrap(), b"{\"a\":\"\xff\"}"), [0], "no UTF-8");
    assert_eq!(encoded(&IndexSpec::parse("v.json:u64").unwrap(), b" 7 "), number(7));
    assert_eq!(encoded(&IndexSpec::parse("v.json:u64").unwrap(), b"7 8"), [0]);
}

#[test]
fn deep_documents_end() {
    let spec = IndexSpec::parse("v./1:u64").unwrap();
    let nested = |levels: usize| format!("[{}{}, 7]", "[".repeat(levels), "]".repeat(levels));
    let seven = IndexSpec::parse("v:u64").unwrap().encode(&[7.into()]).unwrap();
    assert_eq!(encoded(&spec, nested(127).as_bytes()), seven);
    assert_eq!(encoded(&spec, nested(128).as_bytes()), [0]);
    assert_eq!(encoded(&spec, "[".repeat(1 << 20).as_bytes()), [0]);
    assert_eq!(encoded(&spec, "[{\"a\":".repeat(1 << 18).as_bytes()), [0]);
    let packed = IndexSpec::parse("v.msgpack./1:u64").unwrap();
    assert_eq!(encoded(&packed, &[0x92].repeat(1 << 20)), [0]);
    assert_eq!(encoded(&packed, b"\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff"), [0]);
    let deepest = format!("v.{}:u64", "/0".repeat(128));
    let text = format!("{}7{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(encoded(&IndexSpec::parse(&deepest).unwrap(), text.as_bytes()), seven);
}

#[test]
fn msgpack_of_every_kind() {
    let one = |bytes: &[u8], kind: &str| {
        let mut document = b"\x92\xc0".to_vec();
        document.extend_from_slice(bytes);
        let spec = IndexSpec::parse(&format!("v.msgpack./1:{kind}")).unwrap();
        encoded(&spec, &document)
    };
    let is = |kind: &str, value: IndexValue<'_>| {
        IndexSpec::parse(&format!("v:{kind}")).unwrap().encode(&[value]).unwrap()
    };
    assert_eq!(one(b"\xc4\x02\x00\xff", "bytes"), is("bytes", b"\x00\xff".into()));
    assert_eq!(one(b"\xc4\x02ab", "text"), [0], "bytes are no text");
    assert_eq!(one(b"\xd9\x02ab", "bytes"), is("bytes", "ab".into()));
    assert_eq!(one(b"\xda\x00\x02ab", "lower"), is("lower", "AB".into()));
    assert_eq!(one(b"\xa1\xff", "text"), [0], "no UTF-8");
    assert_eq!(one(b"\xcc\xff", "i64"), is("i64", 255.into()));
    assert_eq!(one(b"\xd0\xff", "i64"), is("i64", (-1).into()));
    assert_eq!(one(b"\xd0\x07", "u64"), is("u64", 7.into()));
    assert_eq!(one(b"\xd2\xff\xff\xff\xff", "u64"), [0], "negative");
    assert_eq!(one(b"\xca\x3f\x80\x00\x00", "f64"), is("f64", 1.into()));
    assert_eq!(one(b"\xcb\x7f\xf8\0\0\0\0\0\0", "f64"), [0], "NaN");
    assert_eq!(one(b"\xd6\xff\0\0\0\0", "u64"), [0], "a timestamp");
    assert_eq!(one(b"\xc1", "u64"), [0], "never used");
    let skipped = b"\x95\xc7\x01\x05a\xd8\x01aaaaaaaaaaaaaaaa\xc8\x00\x02\x01aa\x81\x01\x91\x02\x07";
    let spec = IndexSpec::parse("v.msgpack./4:u64").unwrap();
    assert_eq!(encoded(&spec, skipped), is("u64", 7.into()));
    let keys = b"\x83\xff\x01\xc4\x01a\x02\x00\x03";
    for (pointer, value) in [("-1", 1), ("a", 2), ("0", 3)] {
        let spec = IndexSpec::parse(&format!("v.msgpack./{pointer}:u64")).unwrap();
        assert_eq!(encoded(&spec, keys), is("u64", value.into()));
    }
}
