//! What a type must say to be a key or a value.

use crate::base::error::{Error, Result};
use crate::engine::Table;
use std::marker::PhantomData;

/// A type of keys: how a key becomes bytes that have the order of the keys, and how it is read again.
///
/// A type has three forms. `Given` is what a call takes (`&str`). `View` is what is read where it stands.
/// `Owned` (`String`) is a copy. So a table of `str` takes `&str` and gives `String`. For numbers all three
/// are the same. A program's own type of keys is written by means of another one:
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-key-{}.azk", std::process::id()));
/// use azekura::{Db, Key, Options, Result, TableDefinition};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct UserId(u32);
///
/// impl Key for UserId {
///     type Given<'a> = UserId;
///     type View<'a> = UserId;
///     type Owned = UserId;
///
///     fn with_bytes<R>(key: UserId, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
///         <u32 as Key>::with_bytes(key.0, f)
///     }
///
///     fn view(bytes: &[u8]) -> Result<UserId> {
///         <u32 as Key>::view(bytes).map(UserId)
///     }
///
///     fn own(view: UserId) -> UserId {
///         view
///     }
///
///     fn lend(owned: &UserId) -> UserId {
///         *owned
///     }
/// }
///
/// const NAMES: TableDefinition<UserId, str> = TableDefinition::ordered("names");
/// let db = Db::open(&path, Options::new())?;
/// let names = db.typed_table(&NAMES)?;
/// names.put(UserId(7), "ada")?;
/// assert_eq!(names.first()?, Some((UserId(7), "ada".to_owned())));
/// # drop(names); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait Key {
    /// What a call takes.
    type Given<'a>: Copy;
    /// What is read where it stands.
    type View<'a>;
    /// A copy.
    type Owned;

    /// Calls `f` with the bytes of a key. Of two keys the smaller has the smaller bytes.
    ///
    /// # Errors
    /// What `f` gives; `Invalid` for what cannot be a key.
    fn with_bytes<R>(key: Self::Given<'_>, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R>;

    /// Reads a key.
    ///
    /// # Errors
    /// `WrongType` if the bytes are none of this type.
    fn view(bytes: &[u8]) -> Result<Self::View<'_>>;

    /// Copies what was read.
    fn own(view: Self::View<'_>) -> Self::Owned;

    /// A copy, as a call takes it.
    fn lend(owned: &Self::Owned) -> Self::Given<'_>;
}

/// A key that can be a part of a tuple: where it ends can be told from its bytes.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-keypart-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::{Key, KeyBytes, KeyPart, Result, TableDefinition};
///
/// /// A year, the newest first.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Newest(u32);
///
/// impl Key for Newest {
///     type Given<'a> = Newest;
///     type View<'a> = Newest;
///     type Owned = Newest;
///
///     fn with_bytes<R>(key: Newest, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
///         <u32 as Key>::with_bytes(!key.0, f)
///     }
///
///     fn view(bytes: &[u8]) -> Result<Newest> {
///         <u32 as Key>::view(bytes).map(|year| Newest(!year))
///     }
///
///     fn own(view: Newest) -> Newest {
///         view
///     }
///
///     fn lend(owned: &Newest) -> Newest {
///         *owned
///     }
/// }
///
/// impl KeyPart for Newest {
///     fn push(part: Newest, key: &mut KeyBytes) -> Result<()> {
///         <u32 as KeyPart>::push(!part.0, key)
///     }
///
///     fn take<'a>(rest: &mut &'a [u8]) -> Result<Newest> {
///         <u32 as KeyPart>::take(rest).map(|year| Newest(!year))
///     }
/// }
///
/// const FILMS: TableDefinition<(Newest, String), ()> = TableDefinition::ordered("films");
/// let films = db.typed_table(&FILMS)?;
/// films.put((Newest(1954), "Seven Samurai"), ())?;
/// films.put((Newest(1985), "Ran"), ())?;
/// assert_eq!(films.first()?, Some(((Newest(1985), "Ran".to_owned()), ())));
/// # drop(films); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait KeyPart: Key {
    /// Adds the part to a key.
    ///
    /// # Errors
    /// `Invalid` for what cannot be a key.
    fn push(part: Self::Given<'_>, key: &mut KeyBytes) -> Result<()>;

    /// Reads the first part of `rest`, and leaves what follows it.
    ///
    /// # Errors
    /// `WrongType` if there is none of this type.
    fn take<'a>(rest: &mut &'a [u8]) -> Result<Self::View<'a>>;
}

/// What keys of type `K` can begin with: text and bytes with some of theirs, tuples with their first parts.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-prefix-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::TableDefinition;
/// const HEAT: TableDefinition<(String, i64), f64> = TableDefinition::ordered("heat");
/// let heat = db.typed_table(&HEAT)?;
/// heat.put_many([(("kitchen", 8), 19.5), (("kitchen", 9), 21.0), (("hall", 8), 17.0)])?;
/// assert_eq!(heat.prefix(("kitchen",))?.count(), 2);
/// # drop(heat); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait Prefix<K: ?Sized> {
    /// Calls `f` with the bytes.
    ///
    /// # Errors
    /// As [`Key::with_bytes`].
    fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R>;
}

/// A type of values: how it becomes bytes, and how it is read again. The forms are those of a [`Key`].
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-value-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::{Result, TableDefinition, Value};
///
/// /// A price in cents.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Cents(u32);
///
/// impl Value for Cents {
///     type Given<'a> = Cents;
///     type View<'a> = Cents;
///     type Owned = Cents;
///
///     fn with_bytes<R>(value: Cents, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
///         <u32 as Value>::with_bytes(value.0, f)
///     }
///
///     fn view(bytes: &[u8]) -> Result<Cents> {
///         <u32 as Value>::view(bytes).map(Cents)
///     }
///
///     fn own(view: Cents) -> Cents {
///         view
///     }
///
///     fn lend(owned: &Cents) -> Cents {
///         *owned
///     }
/// }
///
/// const PRICES: TableDefinition<str, Cents> = TableDefinition::ordered("prices");
/// let prices = db.typed_table(&PRICES)?;
/// prices.put("tea", Cents(350))?;
/// assert_eq!(prices.get("tea")?, Some(Cents(350)));
/// # drop(prices); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait Value {
    /// What a call takes.
    type Given<'a>: Copy;
    /// What is read where it stands.
    type View<'a>;
    /// A copy.
    type Owned;

    /// Calls `f` with the bytes of a value.
    ///
    /// # Errors
    /// What `f` gives; `Invalid` for what cannot be written.
    fn with_bytes<R>(value: Self::Given<'_>, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R>;

    /// Reads a value.
    ///
    /// # Errors
    /// `WrongType` if the bytes are none of this type.
    fn view(bytes: &[u8]) -> Result<Self::View<'_>>;

    /// Copies what was read.
    fn own(view: Self::View<'_>) -> Self::Owned;

    /// A copy, as a call takes it.
    fn lend(owned: &Self::Owned) -> Self::Given<'_>;
}

/// The types of keys and values, of which nothing is held.
pub(super) type Types<K, V> = PhantomData<(fn(&K), fn(&V))>;

/// Keys of so many bytes are put together without an allocation.
const INLINE_BYTES: usize = 64;

/// The bytes of a key that is put together from parts.
///
/// ```
/// use azekura::{KeyBytes, KeyPart, Result};
///
/// /// What an implementation of `KeyPart` may do for a part of two bytes.
/// fn push(code: [u8; 2], key: &mut KeyBytes) -> Result<()> {
///     key.push(&code);
///     <u32 as KeyPart>::push(7, key)
/// }
/// # let _ = push;
/// ```
pub struct KeyBytes {
    inline: [u8; INLINE_BYTES],
    len: usize,
    /// All bytes, once there is no room for them in `array`.
    long: Vec<u8>,
}

impl KeyBytes {
    pub(super) fn new() -> KeyBytes {
        KeyBytes { inline: [0; INLINE_BYTES], len: 0, long: Vec::new() }
    }

    /// Adds bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if !self.long.is_empty() {
            self.long.extend_from_slice(bytes);
        } else if end <= INLINE_BYTES {
            self.inline[self.len..end].copy_from_slice(bytes);
        } else {
            self.long.reserve(end * 2);
            self.long.extend_from_slice(&self.inline[..self.len]);
            self.long.extend_from_slice(bytes);
        }
        self.len = end;
    }

    /// The bytes so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.inline[..self.len] } else { &self.long }
    }
}

/// The error for bytes that are none of a type.
#[cold]
pub(super) fn none_of(bytes: &[u8], what: &str) -> Error {
    Error::WrongType { detail: format!("{} bytes are no {what}", bytes.len()) }
}

/// The same error, and where it was met.
#[cold]
pub(super) fn in_record(table: &Table, key: &[u8], e: Error) -> Error {
    /// So many bytes of a key are shown.
    const SHOWN: usize = 32;
    let Error::WrongType { detail } = e else { return e };
    let shown: String = key.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
    let more = if key.len() > SHOWN { "…" } else { "" };
    Error::WrongType { detail: format!("table {:?}, key {shown}{more}: {detail}", table.name()) }
}
