//! Values and keys as the user knows them: sections 6 and 8.

use super::hashes::{hash, head, mix, unmix};
use super::words::without_word;
use super::{File, Records, Sorted, Tagged};

impl<'a> File<'a> {
    /// The records as the user knows them: sections 6 and 8.
    pub(super) fn user(&mut self, is_hash: bool, sorted: &Sorted) -> Records {
        let doc = self.doc;
        let said: Vec<(&Vec<u8>, Tagged, bool)> = sorted
            .iter()
            .map(|(key, tagged)| {
                let (tagged, time) = without_word(doc, tagged);
                (key, tagged, time.is_some_and(|time| time <= self.clock))
            })
            .collect();
        self.seen.expired += said.iter().filter(|(.., is_past)| *is_past).count();
        // (Who reads a clash gets an error.)
        let is_none = |tag| tag == doc.constant("tag_tombstone") || tag == doc.constant("tag_expiring");
        let live = said.into_iter().filter(|(_, (tag, _), is_past)| !is_none(*tag) && !is_past);
        live.map(|(key, (tag, value), _)| {
            let user = match key.len() {
                _ if !is_hash => key.clone(),
                8 => (unmix(doc, head(key)) ^ self.hash_seed).to_be_bytes().to_vec(),
                16 => Vec::new(),
                _ => key[8..].to_vec(),
            };
            let expected = if user.len() == 8 {
                mix(doc, head(&user) ^ self.hash_seed)
            } else {
                hash(&user, self.hash_seed)
            };
            assert!(!is_hash || head(key) == expected, "the hash of {user:?}");
            assert!(user.len() as u64 <= doc.constant("key_bytes_max"));
            if tag == doc.constant("tag_put") {
                return (user, value);
            }
            assert_eq!(tag, doc.constant("tag_large"));
            (user, self.large(&value))
        })
        .collect()
    }

    /// The value to which a reference leads: section 8.
    pub(super) fn large(&mut self, reference: &[u8]) -> Vec<u8> {
        self.seen.large += 1;
        let at = self.doc.layout("reference", reference);
        let value = self.value(at.num("segment"), at.num("offset"), at.num("bytes"));
        assert_eq!(u64::from(crc32c::crc32c(&value)), at.num("checksum"));
        value
    }

    /// Bytes of a value segment, from as many of its parts as they stand in.
    fn value(&mut self, segment: u64, offset: u64, length: u64) -> Vec<u8> {
        let parts = &self.segments[&segment];
        self.seen.parted += usize::from(parts.len() > 1);
        let (mut value, mut before) = (Vec::new(), 0);
        for &(at, bytes) in parts {
            let (from, to) = (offset.max(before), (offset + length).min(before + bytes));
            if from < to {
                value.extend_from_slice(self.slice(at + from - before, to - from));
            }
            before += bytes;
        }
        assert_eq!(value.len() as u64, length, "a value that passes the end of its segment");
        value
    }

    pub(super) fn slice(&self, offset: u64, length: u64) -> &'a [u8] {
        &self.bytes[offset as usize..(offset + length) as usize]
    }
}
