//! A value that was read without being copied.
//!
//! The bytes stand in a page or in a memtable. What keeps them there travels with the reference. `unsafe`
//! stands here because these owners are held beside what they own.

use super::get::FoundValue;
use crate::base::error::Result;
use crate::engine::state::State;
use crate::format::block::Tag;
use crate::format::operand::{FoldedBytes, value_of};
use crate::run::PageHandle;
use crate::values::LargeValue;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Hands a record's value to `f`, whose tag is none that stands for another. A large one is what `large`
/// reads by the reference that is stored for it. With the tag `Operand` it was gathered, and some of it is
/// large.
#[inline(always)]
pub(crate) fn resolve<R>(
    tag: Tag,
    stored: &[u8],
    large: impl Fn(&[u8]) -> Result<LargeValue>,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    match tag {
        Tag::Large => large(stored).map(|value| f(&value)),
        Tag::Put | Tag::Tombstone | Tag::Expiring => Ok(f(stored)),
        Tag::Operand => value_of(stored, large).map(|value| f(&value)),
    }
}

enum Inner {
    /// In a memtable that `state` keeps.
    Memory(NonNull<[u8]>),
    /// In a page whose run `state` keeps.
    Page(PageHandle<'static>, Range<usize>),
    /// A large value, which keeps its own place.
    Large(LargeValue),
    /// What stands nowhere.
    Folded(FoldedBytes),
}

/// A value read without a copy. It dereferences to its bytes.
///
/// It keeps its page in the cache until it is dropped, so it should not be kept for long.
///
/// ```
/// # let dir = tempdir();
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(dir.join("d.azk"), Options::new())?;
/// let t = db.table("t", TableKind::Hash)?;
/// t.put(b"k", b"value")?;
/// let v = t.get_ref(b"k")?.unwrap();
/// assert_eq!(&*v, b"value");
/// # fn tempdir() -> std::path::PathBuf {
/// #     let d = std::env::temp_dir().join(format!("azekura-doc-{}", std::process::id()));
/// #     std::fs::create_dir_all(&d).unwrap(); d
/// # }
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct ValueRef<'a> {
    inner: Inner,
    /// Held when nobody else is sure to: dropped after `inner`, as fields are in order.
    _state: Option<Arc<State>>,
    _owner: std::marker::PhantomData<&'a ()>,
}

// SAFETY: the bytes are immutable while the owners live, and the owners are Send and Sync.
unsafe impl Send for ValueRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for ValueRef<'_> {}

impl<'a> ValueRef<'a> {
    /// A value that was folded.
    pub(crate) fn folded(value: FoldedBytes) -> ValueRef<'a> {
        ValueRef { inner: Inner::Folded(value), _state: None, _owner: std::marker::PhantomData }
    }

    /// As `resolve`, of a value found in the tables of a state.
    ///
    /// # Safety
    /// The state in which `slot` was found outlives `'a`, or is given as `state`.
    pub(crate) unsafe fn resolve(
        tag: Tag,
        slot: FoundValue<'_>,
        state: Option<Arc<State>>,
        large: impl Fn(&[u8]) -> Result<LargeValue>,
    ) -> Result<ValueRef<'a>> {
        let inner = match slot {
            slot if tag == Tag::Large => Inner::Large(large(slot.bytes())?),
            slot if tag == Tag::Operand => Inner::Folded(FoldedBytes::Long(value_of(slot.bytes(), large)?)),
            FoundValue::Memory(bytes) => Inner::Memory(NonNull::from(bytes)),
            FoundValue::Page(hit) => {
                // SAFETY: the run, which the page's lifetime stands for, is kept by the state.
                let page = unsafe { hit.page.extend() };
                Inner::Page(page, hit.value)
            }
            FoundValue::Folded(value) => Inner::Folded(value),
        };
        Ok(ValueRef { inner, _state: state, _owner: std::marker::PhantomData })
    }
}

impl Deref for ValueRef<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.inner {
            // SAFETY: the memtable is kept by the state (see `resolve`) and never changes.
            Inner::Memory(bytes) => unsafe { bytes.as_ref() },
            Inner::Page(page, at) => &page[at.clone()],
            Inner::Large(value) => value,
            Inner::Folded(value) => value,
        }
    }
}

impl AsRef<[u8]> for ValueRef<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueRef({} bytes)", self.len())
    }
}
