//! Tuples of keys, in the order of their parts.

use super::codec::{Key, KeyBytes, KeyPart, Prefix, Value, none_of};
use crate::base::error::Result;

macro_rules! tuple {
    ($($part:ident $name:ident),*) => {
        impl<$($part: KeyPart),*> Key for ($($part,)*) {
            type Given<'a> = ($($part::Given<'a>,)*);
            type View<'a> = ($($part::View<'a>,)*);
            type Owned = ($($part::Owned,)*);

            #[inline]
            fn with_bytes<R>(key: Self::Given<'_>, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                let mut bytes = KeyBytes::new();
                <Self as KeyPart>::push(key, &mut bytes)?;
                f(bytes.bytes())
            }

            #[inline]
            fn view(bytes: &[u8]) -> Result<Self::View<'_>> {
                let mut rest = bytes;
                let view = <Self as KeyPart>::take(&mut rest)?;
                match rest {
                    [] => Ok(view),
                    _ => Err(none_of(bytes, "tuple of these parts: more follow")),
                }
            }

            fn own(($($name,)*): Self::View<'_>) -> Self::Owned {
                ($($part::own($name),)*)
            }

            fn lend(($($name,)*): &Self::Owned) -> Self::Given<'_> {
                ($($part::lend($name),)*)
            }
        }

        impl<$($part: KeyPart),*> KeyPart for ($($part,)*) {
            #[inline]
            fn push(($($name,)*): Self::Given<'_>, key: &mut KeyBytes) -> Result<()> {
                $($part::push($name, key)?;)*
                Ok(())
            }

            #[inline]
            fn take<'a>(rest: &mut &'a [u8]) -> Result<Self::View<'a>> {
                Ok(($($part::take(rest)?,)*))
            }
        }

        /// A value has the form of a key.
        impl<$($part: KeyPart),*> Value for ($($part,)*) {
            type Given<'a> = ($($part::Given<'a>,)*);
            type View<'a> = ($($part::View<'a>,)*);
            type Owned = ($($part::Owned,)*);

            #[inline]
            fn with_bytes<R>(value: Self::Given<'_>, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                <Self as Key>::with_bytes(value, f)
            }

            #[inline]
            fn view(bytes: &[u8]) -> Result<Self::View<'_>> {
                <Self as Key>::view(bytes)
            }

            fn own(view: Self::View<'_>) -> Self::Owned {
                <Self as Key>::own(view)
            }

            fn lend(owned: &Self::Owned) -> Self::Given<'_> {
                <Self as Key>::lend(owned)
            }
        }
    };
}

tuple!(A a, B b);
tuple!(A a, B b, C c);
tuple!(A a, B b, C c, D d);
tuple!(A a, B b, C c, D d, E e);
tuple!(A a, B b, C c, D d, E e, F f);

/// The first parts of a tuple.
macro_rules! prefix {
    ($($part:ident $name:ident),*; $($more:ident),*) => {
        impl<$($part: KeyPart,)* $($more: KeyPart),*> Prefix<($($part,)* $($more,)*)>
            for ($($part::Given<'_>,)*)
        {
            fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                let (mut bytes, ($($name,)*)) = (KeyBytes::new(), self);
                $($part::push($name, &mut bytes)?;)*
                f(bytes.bytes())
            }
        }
    };
}

prefix!(A a; B);
prefix!(A a; B, C);
prefix!(A a, B b; C);
prefix!(A a; B, C, D);
prefix!(A a, B b; C, D);
prefix!(A a, B b, C c; D);
prefix!(A a; B, C, D, E);
prefix!(A a, B b; C, D, E);
prefix!(A a, B b, C c; D, E);
prefix!(A a, B b, C c, D d; E);
prefix!(A a; B, C, D, E, F);
prefix!(A a, B b; C, D, E, F);
prefix!(A a, B b, C c; D, E, F);
prefix!(A a, B b, C c, D d; E, F);
prefix!(A a, B b, C c, D d, E e; F);
