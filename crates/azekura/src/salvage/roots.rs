//! Where reading a file begins: superblocks and manifest, as far as they are whole.

use super::input::Input;
use super::report::SalvageReport;
use crate::base::codec::{u64_at, usize_of};
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::format::manifest::Manifest;
use crate::format::superblock::{self, ManifestAt, Parsed, Superblock};

/// What is at the start of the file.
#[derive(Default)]
pub(super) struct Roots {
    /// The newest superblock that is whole.
    pub(super) newest: Option<Superblock>,
    /// The newest manifest that is whole.
    pub(super) manifest: Option<Manifest>,
    /// Whether `manifest` is that of the newest superblock.
    pub(super) is_newest: bool,
    /// File id and hash seed, as the damaged copies have them.
    pub(super) claims: Vec<(u64, u64)>,
}

/// Reads both superblocks, and their manifests.
pub(super) fn find(input: &Input, report: &mut SalvageReport) -> Result<Roots> {
    let mut roots = Roots::default();
    let mut whole: Vec<Superblock> = Vec::new();
    for (name, at) in [("A", 0), ("B", ALIGN_BYTES)] {
        let mut bytes = vec![0; superblock::BYTES];
        input.read(at, &mut bytes);
        match Superblock::parse(&bytes) {
            Ok(Parsed::Valid(block)) => whole.push(block),
            Ok(Parsed::Damaged | Parsed::Foreign) => {
                report.notes.push(format!("superblock {name} is damaged"));
                roots.claims.push((u64_at(&bytes, 16), u64_at(&bytes, 32)));
            }
            Err(e @ Error::NewerVersion { .. }) => return Err(e),
            Err(_) => {}
        }
    }
    whole.sort_by_key(|b| std::cmp::Reverse(b.number));
    for (i, block) in whole.iter().enumerate() {
        if let Some(manifest) = manifest_of(input, &block.manifest) {
            roots.is_newest = i == 0 || block.number == whole[0].number;
            roots.manifest = Some(manifest);
            break;
        }
        if i == 0 {
            report.notes.push(format!("the manifest of checkpoint {} is damaged", block.number));
        }
    }
    roots.newest = whole.into_iter().next();
    Ok(roots)
}

fn manifest_of(input: &Input, at: &ManifestAt) -> Option<Manifest> {
    match at {
        ManifestAt::Inline(bytes) => Manifest::decode(bytes, 64).ok(),
        ManifestAt::Extent { offset, len, crc } => {
            if offset.checked_add(u64::from(*len)).is_none_or(|end| end > input.len()) {
                return None;
            }
            let mut bytes = vec![0; usize_of(*len)];
            input.read(*offset, &mut bytes);
            let whole = crate::base::checksum::is_ignored() || crate::base::checksum::crc(0, &bytes) == *crc;
            whole.then(|| Manifest::decode(&bytes, *offset).ok()).flatten()
        }
    }
}
