//! Text and bytes.

use super::codec::{Key, KeyBytes, KeyPart, Prefix, Value, none_of};
use super::numbers::copied;
use crate::base::error::{Error, Result};
use std::borrow::Cow;

/// In a tuple this is a byte 00,
const ESCAPED: [u8; 2] = [0, 0xff];
/// and this is the end: smaller than whatever may come instead, so that what is shorter comes first.
const END: [u8; 2] = [0, 1];

fn text_of(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| Error::WrongType { detail: format!("no UTF-8: {e}") })
}

fn push_escaped(bytes: &[u8], key: &mut KeyBytes) {
    for (i, stretch) in bytes.split(|&b| b == 0).enumerate() {
        if i > 0 {
            key.push(&ESCAPED);
        }
        key.push(stretch);
    }
    key.push(&END);
}

/// The bytes up to their end; `rest` is what follows it. Copied only if there is a 00 in them.
fn take_escaped<'a>(rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>> {
    let all = *rest;
    let mut bytes = Cow::Borrowed(&all[..0]);
    loop {
        let stretch = rest.iter().position(|&b| b == 0).and_then(|zero| {
            let (mark, after) = rest[zero..].split_first_chunk::<2>()?;
            Some((&rest[..zero], *mark, after))
        });
        let Some((stretch, mark, after)) = stretch else {
            return Err(none_of(all, "part of a tuple: its end is missing"));
        };
        *rest = after;
        // `bytes` is empty and borrowed before the first stretch.
        if matches!(bytes, Cow::Borrowed(_)) {
            bytes = Cow::Borrowed(stretch);
        } else {
            bytes.to_mut().extend_from_slice(stretch);
        }
        match mark {
            ESCAPED => bytes.to_mut().push(0),
            END => return Ok(bytes),
            _ => return Err(none_of(all, "part of a tuple: its escapes are damaged")),
        }
    }
}

/// Types that stand for text.
macro_rules! text {
    ($($type:ty),*) => {
        $(impl Key for $type {
            type Given<'a> = &'a str;
            type View<'a> = Cow<'a, str>;
            type Owned = String;

            #[inline(always)]
            fn with_bytes<R>(key: &str, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(key.as_bytes())
            }

            fn view(bytes: &[u8]) -> Result<Cow<'_, str>> {
                text_of(bytes).map(Cow::Borrowed)
            }

            fn own(view: Cow<'_, str>) -> String {
                view.into_owned()
            }

            fn lend(owned: &String) -> &str {
                owned
            }
        }

        impl KeyPart for $type {
            fn push(part: &str, key: &mut KeyBytes) -> Result<()> {
                push_escaped(part.as_bytes(), key);
                Ok(())
            }

            fn take<'a>(rest: &mut &'a [u8]) -> Result<Cow<'a, str>> {
                match take_escaped(rest)? {
                    Cow::Borrowed(bytes) => text_of(bytes).map(Cow::Borrowed),
                    Cow::Owned(bytes) => text_of(&bytes).map(|text| Cow::Owned(text.to_owned())),
                }
            }
        }

        impl Prefix<$type> for &str {
            fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(self.as_bytes())
            }
        }

        impl Value for $type {
            type Given<'a> = &'a str;
            type View<'a> = &'a str;
            type Owned = String;

            #[inline(always)]
            fn with_bytes<R>(value: &str, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(value.as_bytes())
            }

            fn view(bytes: &[u8]) -> Result<&str> {
                text_of(bytes)
            }

            fn own(view: &str) -> String {
                view.to_owned()
            }

            fn lend(owned: &String) -> &str {
                owned
            }
        })*
    };
}

/// Types that stand for any bytes.
macro_rules! bytes {
    ($($type:ty),*) => {
        $(impl Key for $type {
            type Given<'a> = &'a [u8];
            type View<'a> = Cow<'a, [u8]>;
            type Owned = Vec<u8>;

            #[inline(always)]
            fn with_bytes<R>(key: &[u8], f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(key)
            }

            fn view(bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
                Ok(Cow::Borrowed(bytes))
            }

            fn own(view: Cow<'_, [u8]>) -> Vec<u8> {
                view.into_owned()
            }

            fn lend(owned: &Vec<u8>) -> &[u8] {
                owned
            }
        }

        impl KeyPart for $type {
            fn push(part: &[u8], key: &mut KeyBytes) -> Result<()> {
                push_escaped(part, key);
                Ok(())
            }

            fn take<'a>(rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>> {
                take_escaped(rest)
            }
        }

        impl Prefix<$type> for &[u8] {
            fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(self)
            }
        }

        impl Value for $type {
            type Given<'a> = &'a [u8];
            type View<'a> = &'a [u8];
            type Owned = Vec<u8>;

            #[inline(always)]
            fn with_bytes<R>(value: &[u8], f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(value)
            }

            fn view(bytes: &[u8]) -> Result<&[u8]> {
                Ok(bytes)
            }

            fn own(view: &[u8]) -> Vec<u8> {
                view.to_vec()
            }

            fn lend(owned: &Vec<u8>) -> &[u8] {
                owned
            }
        })*
    };
}

text!(str, &str, String);
bytes!([u8], &[u8], Vec<u8>);

impl<const N: usize> Key for [u8; N] {
    copied!([u8; N]);

    #[inline(always)]
    fn with_bytes<R>(key: [u8; N], f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        f(&key)
    }

    #[inline(always)]
    fn view(bytes: &[u8]) -> Result<[u8; N]> {
        bytes.try_into().map_err(|_| none_of(bytes, &format!("[u8; {N}]")))
    }
}

impl<const N: usize> KeyPart for [u8; N] {
    fn push(part: [u8; N], key: &mut KeyBytes) -> Result<()> {
        key.push(&part);
        Ok(())
    }

    fn take(rest: &mut &[u8]) -> Result<[u8; N]> {
        let Some((array, after)) = rest.split_first_chunk() else {
            return Err(none_of(rest, &format!("[u8; {N}]")));
        };
        *rest = after;
        Ok(*array)
    }
}

impl<const N: usize> Value for [u8; N] {
    copied!([u8; N]);

    #[inline(always)]
    fn with_bytes<R>(value: [u8; N], f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        f(&value)
    }

    #[inline(always)]
    fn view(bytes: &[u8]) -> Result<[u8; N]> {
        <[u8; N] as Key>::view(bytes)
    }
}
