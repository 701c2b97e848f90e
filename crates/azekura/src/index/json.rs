//! stub
use super::extract::Found;
use super::field::Pointer;
pub(super) const DEPTH_MAX: usize = 128;
pub(super) fn find<'a>(_bytes: &'a [u8], _pointer: &Pointer) -> Found<'a> {
    Found::Null
}
