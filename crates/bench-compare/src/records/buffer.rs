//! Keys, built in place.

const KEY_BYTES_MAX: usize = 48;

/// Room for one key.
#[derive(Debug, Clone, Copy)]
pub struct KeyBuffer {
    bytes: [u8; KEY_BYTES_MAX],
    len: usize,
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self { bytes: [0; KEY_BYTES_MAX], len: 0 }
    }
}

impl KeyBuffer {
    /// The key.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }
}
