//! The superblock: two copies at the start of the file, 4 KiB each.
//!
//! ```text
//! offset size
//!  0     8   magic "AZEKURA\0"
//!  8     4   CRC32C of bytes 12..4096
//! 12     2   format version     14  2  role: 0 = a database, 1 = a mirror, 2 = replaced
//! 16     8   file id, random
//! 24     8   number, one more for each checkpoint
//! 32     8   hash seed of the file's hash tables
//! 40     8   manifest: offset in the file, 0 = it stands inline
//! 48     4   manifest: length     52  4  manifest: CRC32C
//! 56     8   lineage, 0 = it was made here; random in a file that a backup was restored to
//! 64  4008   the manifest, if it fits
//! 4072  8   from this checkpoint on, pins may be revoked
//! 4080  8   pins below this checkpoint are; 4088  8  the same number with every bit turned, or 0 for 0
//! ```
//!
//! The last number is read alone, while somebody may be writing the superblock. Its twin tells whether it is
//! whole. (In files of earlier writers the manifest may take these bytes too. Then they say nothing.)
//!
//! A checkpoint writes copy A, syncs, then writes copy B, which the next checkpoint's first sync makes
//! durable. So after a torn write the other copy is whole, and a damaged copy has a twin.

use crate::base::checksum::crc;
use crate::base::codec::{u16_at, u32_at, u32_of, u64_at, usize_of};
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, COUNT_END};
use std::ops::Range;

/// The newest version that this library reads and writes: of files with operands that have a length.
pub(crate) const VERSION: u32 = 3;
/// Of files in which something expires, or with operands of numbers.
pub(crate) const WORDS_VERSION: u32 = 2;
/// The version of all others.
pub(crate) const PLAIN_VERSION: u32 = 1;
/// The first bytes of the file.
pub(crate) const MAGIC: &[u8; 8] = b"AZEKURA\0";
/// Bytes of one copy.
pub(crate) const BYTES: usize = ALIGN_BYTES as usize;
/// Where its number stands in copy A.
pub(crate) const NUMBER_AT: u64 = 24;
/// Where an inline manifest begins.
const INLINE_AT: usize = 64;
/// A manifest up to this size is stored in the superblock.
pub(crate) const INLINE_BYTES_MAX: usize = REVOCABLE_AT - INLINE_AT;
/// One up to this size is read there.
const INLINE_BYTES_READ: usize = BYTES - INLINE_AT;
/// Where `PinRules` stand.
const REVOCABLE_AT: usize = BYTES - 24;
/// Where `PinRules::honoured_from` and its twin stand in copy A.
pub(crate) const HONOURED_AT: u64 = ALIGN_BYTES - 16;

/// Where the manifest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestAt {
    /// In the superblock itself.
    Inline(Vec<u8>),
    /// In an extent of its own.
    Extent { offset: u64, len: u32, crc: u32 },
}

/// Which pins of followers the writers of the file honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PinRules {
    /// Pins of this checkpoint, and of all from this number on, may be revoked. 0: not those of this one.
    pub(crate) revocable_from: u64,
    /// Pins of lower checkpoints are revoked, if they may be. It never becomes lower.
    pub(crate) honoured_from: u64,
}

/// The number that stands before its twin, and 0 if neither is there. None if they do not fit: one of them is
/// being written.
pub(crate) fn twin_number(bytes: [u8; 16]) -> Option<u64> {
    let (number, twin) = (u64_at(&bytes, 0), u64_at(&bytes, 8));
    (twin == !number || (number, twin) == (0, 0)).then_some(number)
}

impl PinRules {
    /// The checkpoints whose pins are not honoured.
    pub(crate) fn revoked(self) -> Range<u64> {
        let from = if self.revocable_from == 0 { self.honoured_from } else { self.revocable_from };
        from..self.honoured_from
    }

    /// Whether the pins of a checkpoint are revoked, as far as these rules tell who does not write. A writer
    /// without limits says nothing of what was revoked before it.
    pub(crate) fn is_revoked(self, checkpoint: u64) -> Option<bool> {
        let is_told = self.revocable_from > 0 || checkpoint >= self.honoured_from;
        is_told.then(|| self.revoked().contains(&checkpoint))
    }

    fn encode(self, b: &mut [u8]) {
        if self != PinRules::default() {
            b[..8].copy_from_slice(&self.revocable_from.to_le_bytes());
            b[8..16].copy_from_slice(&self.honoured_from.to_le_bytes());
            b[16..24].copy_from_slice(&(!self.honoured_from).to_le_bytes());
        }
    }

    fn parse(b: &[u8; 24]) -> PinRules {
        if u64_at(b, 16) != !u64_at(b, 8) {
            return PinRules::default();
        }
        PinRules { revocable_from: u64_at(b, 0), honoured_from: u64_at(b, 8) }
    }
}

/// Who may write to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// Whoever holds its lock.
    #[default]
    Database,
    /// What mirrors another file to this one, and nobody else.
    Mirror,
    /// Nobody: a mirror that was built anew beside it has its name now.
    Replaced,
}

/// The bytes of a role.
const ROLE_DATABASE: u16 = 0;
const ROLE_MIRROR: u16 = 1;
const ROLE_REPLACED: u16 = 2;

impl Role {
    fn code(self) -> u16 {
        match self {
            Role::Database => ROLE_DATABASE,
            Role::Mirror => ROLE_MIRROR,
            Role::Replaced => ROLE_REPLACED,
        }
    }
}

/// A superblock whose checksum held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) file_id: u64,
    /// Which life of the file this is: a restored one has the file's id, and a lineage of its own.
    pub(crate) lineage: u64,
    pub(crate) number: u64,
    pub(crate) hash_seed: u64,
    pub(crate) manifest: ManifestAt,
    pub(crate) pins: PinRules,
    /// The version of the format that the file has: see `Manifest::version`.
    pub(crate) version: u32,
    pub(crate) role: Role,
}

/// What one copy turned out to be.
#[derive(Debug)]
pub(crate) enum Parsed {
    Valid(Superblock),
    /// The bytes are not of Azekura.
    Foreign,
    /// Azekura's, but torn or damaged.
    Damaged,
}

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = vec![0; BYTES];
        b[..8].copy_from_slice(MAGIC);
        b[12..14].copy_from_slice(&self.version.to_le_bytes()[..2]);
        b[14..16].copy_from_slice(&self.role.code().to_le_bytes());
        b[16..24].copy_from_slice(&self.file_id.to_le_bytes());
        b[24..32].copy_from_slice(&self.number.to_le_bytes());
        b[32..40].copy_from_slice(&self.hash_seed.to_le_bytes());
        b[56..64].copy_from_slice(&self.lineage.to_le_bytes());
        match &self.manifest {
            ManifestAt::Inline(bytes) => {
                b[48..52].copy_from_slice(&u32_of(bytes.len()).to_le_bytes());
                b[INLINE_AT..INLINE_AT + bytes.len()].copy_from_slice(bytes);
            }
            ManifestAt::Extent { offset, len, crc } => {
                b[40..48].copy_from_slice(&offset.to_le_bytes());
                b[48..52].copy_from_slice(&len.to_le_bytes());
                b[52..56].copy_from_slice(&crc.to_le_bytes());
            }
        }
        self.pins.encode(&mut b[REVOCABLE_AT..]);
        let sum = crc(0, &b[12..]);
        b[8..12].copy_from_slice(&sum.to_le_bytes());
        b
    }

    /// Reads one copy. A valid copy of a newer version is an error. REQUIRES: `b` has `BYTES`.
    pub(crate) fn parse(b: &[u8]) -> Result<Parsed> {
        if &b[..8] != MAGIC {
            return Ok(Parsed::Foreign);
        }
        if !crate::base::checksum::is_ignored() && crc(0, &b[12..]) != u32_at(b, 8) {
            return Ok(Parsed::Damaged);
        }
        let version = u32::from(u16_at(b, 12));
        let role = match u16_at(b, 14) {
            ROLE_DATABASE => Role::Database,
            ROLE_MIRROR => Role::Mirror,
            ROLE_REPLACED => Role::Replaced,
            // Readers that know no roles take both numbers as one version.
            _ => return Err(newer(u32_at(b, 12))),
        };
        if version > VERSION {
            return Err(newer(version));
        }
        if u64_at(b, 24) >= COUNT_END {
            return Ok(Parsed::Damaged);
        }
        let (offset, len) = (u64_at(b, 40), u32_at(b, 48));
        let manifest = if offset == 0 {
            let len = usize_of(len);
            if len > INLINE_BYTES_READ {
                return Ok(Parsed::Damaged);
            }
            ManifestAt::Inline(b[INLINE_AT..INLINE_AT + len].to_vec())
        } else {
            ManifestAt::Extent { offset, len, crc: u32_at(b, 52) }
        };
        let is_theirs = matches!(&manifest, ManifestAt::Inline(bytes) if bytes.len() > INLINE_BYTES_MAX);
        let pins = b.last_chunk().filter(|_| !is_theirs).map(PinRules::parse).unwrap_or_default();
        Ok(Parsed::Valid(Superblock {
            pins,
            role,
            file_id: u64_at(b, 16),
            lineage: u64_at(b, 56),
            number: u64_at(b, 24),
            hash_seed: u64_at(b, 32),
            manifest,
            version,
        }))
    }
}

fn newer(found: u32) -> Error {
    Error::NewerVersion { found, supported: VERSION }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the fuzzer: the next checkpoint's number overflowed.
    #[test]
    fn a_number_to_which_nobody_has_counted_is_damage() {
        let of = |number| Superblock {
            file_id: 5,
            lineage: 6,
            number,
            hash_seed: 77,
            manifest: ManifestAt::Inline(vec![1]),
            pins: PinRules::default(),
            version: PLAIN_VERSION,
            role: Role::Database,
        };
        let parse = |number| Superblock::parse(&of(number).encode()).unwrap();
        assert!(matches!(parse(COUNT_END - 1), Parsed::Valid(b) if b == of(COUNT_END - 1)));
        assert!(matches!(parse(COUNT_END), Parsed::Damaged));
        assert!(matches!(parse(u64::MAX), Parsed::Damaged));
    }

    #[test]
    fn rules_for_pins_stand_where_no_manifest_does() {
        let of = |bytes, pins| Superblock {
            file_id: 5,
            lineage: 6,
            number: 9,
            hash_seed: 77,
            manifest: ManifestAt::Inline(vec![0xa5; bytes]),
            pins,
            version: PLAIN_VERSION,
            role: Role::Database,
        };
        let rules = |revocable_from, honoured_from| PinRules { revocable_from, honoured_from };
        for pins in [rules(0, 0), rules(4, 0), rules(0, 8), rules(4, 9)] {
            let block = of(INLINE_BYTES_MAX, pins);
            let bytes = block.encode();
            assert!(matches!(Superblock::parse(&bytes).unwrap(), Parsed::Valid(b) if b == block));
            let at = usize::try_from(HONOURED_AT).unwrap();
            assert_eq!(twin_number(*bytes[at..].first_chunk().unwrap()), Some(pins.honoured_from));
        }
        // An earlier writer's manifest may be longer.
        let mut bytes = of(INLINE_BYTES_MAX, rules(4, 9)).encode();
        bytes[48..52].copy_from_slice(&u32_of(INLINE_BYTES_READ).to_le_bytes());
        let sum = crc(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        let parsed = Superblock::parse(&bytes).unwrap();
        assert!(matches!(parsed, Parsed::Valid(b) if b.pins == PinRules::default()));
        assert_eq!((twin_number([0xa5; 16]), twin_number([0; 16])), (None, Some(0)));
    }

    #[test]
    fn rules_tell_which_pins_are_revoked_unless_a_writer_without_limits_has_come_since() {
        let told = |revocable_from, honoured_from| {
            let rules = PinRules { revocable_from, honoured_from };
            [3, 4, 7, 8].map(|checkpoint| rules.is_revoked(checkpoint))
        };
        assert_eq!(told(0, 0), [Some(false); 4]);
        assert_eq!(told(4, 0), [Some(false); 4]);
        assert_eq!(told(4, 8), [Some(false), Some(true), Some(true), Some(false)]);
        assert_eq!(told(0, 8), [None, None, None, Some(false)]);
        assert_eq!(told(9, 8), [Some(false); 4], "all that was revoked is honoured again");
    }

    #[test]
    fn a_role_that_is_not_known_is_of_a_newer_version() {
        let block = Superblock {
            file_id: 5,
            lineage: 6,
            number: 9,
            hash_seed: 77,
            manifest: ManifestAt::Inline(vec![1]),
            pins: PinRules::default(),
            version: WORDS_VERSION,
            role: Role::Mirror,
        };
        let mut bytes = block.encode();
        assert!(matches!(Superblock::parse(&bytes).unwrap(), Parsed::Valid(b) if b == block));
        bytes[14] = 3;
        let sum = crc(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        assert!(matches!(Superblock::parse(&bytes), Err(Error::NewerVersion { found: 0x3_0002, .. })));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let block = Superblock {
            file_id: 5,
            lineage: 6,
            number: 9,
            hash_seed: 77,
            manifest: ManifestAt::Inline(vec![1, 2, 3]),
            pins: PinRules { revocable_from: 3, honoured_from: 7 },
            version: WORDS_VERSION,
            role: Role::Mirror,
        };
        let good = block.encode();
        assert!(matches!(Superblock::parse(&good).unwrap(), Parsed::Valid(b) if b == block));
        for bit in 0..BYTES * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Superblock::parse(&bad), Ok(Parsed::Valid(_))), "bit {bit}");
        }
    }
}
