//! Which file systems keep locks where all who open a file find them: in this machine's kernel.
//!
//! Pins and acknowledgements are locks of the system. The file system of a server, or of a program, may keep
//! locks there, for each client apart, or nowhere. Then a writer would not see a pin, and would write over
//! what it should keep. So they are used only where a file system is known to leave its locks to the kernel.

use std::fs;
use std::io;
use std::sync::OnceLock;

/// Those that do. `linux/magic.h` and the systems' own headers have these numbers.
const LOCAL: [u64; 17] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
    0x7366_746e, // NTFS
    0x7371_7368, // SquashFS
    0xe0f5_e1e2, // EROFS
];

/// Some that do not, by the names that users know.
const ELSEWHERE: [(u64, &str); 12] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x7461_636f, "OCFS2"),
];

fn is_local(kind: u64) -> bool {
    LOCAL.contains(&kind)
}

/// What an error says of a kind.
fn described(kind: Option<u64>) -> String {
    let Some(kind) = kind else { return "the file system is not known, and perhaps".into() };
    match ELSEWHERE.iter().find(|named| named.0 == kind) {
        Some((_, name)) => format!("its file system, {name},"),
        None => format!("its file system, of the type {kind:#x},"),
    }
}

/// The file system of one open file. It is asked once.
#[derive(Default)]
pub(super) struct FileSystem {
    kind: OnceLock<Option<u64>>,
}

impl FileSystem {
    /// One of this kind, whatever the system says.
    #[cfg(test)]
    pub(super) fn of_kind(kind: u64) -> FileSystem {
        FileSystem { kind: OnceLock::from(Some(kind)) }
    }

    fn kind(&self, file: &fs::File) -> Option<u64> {
        *self.kind.get_or_init(|| platform::kind(file))
    }

    /// Whether this machine's kernel sees all who lock the file.
    pub(super) fn has_local_locks(&self, file: &fs::File) -> bool {
        self.kind(file).is_some_and(is_local)
    }

    /// `Unsupported` unless this machine's kernel sees all who lock the file.
    pub(super) fn check_locks(&self, file: &fs::File) -> io::Result<()> {
        if self.has_local_locks(file) {
            return Ok(());
        }
        let who = described(self.kind(file));
        let text = format!("{who} keeps no locks that every reader and writer would see");
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod platform {
    pub(super) fn kind(file: &std::fs::File) -> Option<u64> {
        let found = rustix::fs::fstatfs(file).ok()?;
        u64::try_from(found.f_type).ok()
    }
}

/// Elsewhere there are no such locks.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod platform {
    pub(super) fn kind(_: &std::fs::File) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::acks::Acks;
    use super::super::pins::Pins;
    use super::*;

    /// As in `linux/magic.h`, with names of that file.
    const MAGIC: [(&str, u64, bool); 21] = [
        ("EXT4_SUPER_MAGIC", 0xEF53, true),
        ("XFS_SUPER_MAGIC", 0x5846_5342, true),
        ("BTRFS_SUPER_MAGIC", 0x9123_683E, true),
        ("F2FS_SUPER_MAGIC", 0xF2F5_2010, true),
        ("TMPFS_MAGIC", 0x0102_1994, true),
        ("RAMFS_MAGIC", 0x8584_58f6, true),
        ("OVERLAYFS_SUPER_MAGIC", 0x794c_7630, true),
        ("NFS_SUPER_MAGIC", 0x6969, false),
        ("CIFS_SUPER_MAGIC", 0xFF53_4D42, false),
        ("SMB2_SUPER_MAGIC", 0xFE53_4D42, false),
        ("SMB_SUPER_MAGIC", 0x517B, false),
        ("FUSE_SUPER_MAGIC", 0x6573_5546, false),
        ("V9FS_MAGIC", 0x0102_1997, false),
        ("AFS_SUPER_MAGIC", 0x5346_414F, false),
        ("AFS_FS_MAGIC", 0x6B41_4653, false),
        ("CODA_SUPER_MAGIC", 0x7375_7245, false),
        ("CEPH_SUPER_MAGIC", 0x00c3_6400, false),
        ("OCFS2_SUPER_MAGIC", 0x7461_636f, false),
        ("NCP_SUPER_MAGIC", 0x564c, false),
        ("HOSTFS_SUPER_MAGIC", 0x00c0_ffee, false),
        ("nobody's", 0, false),
    ];

    fn scratch() -> fs::File {
        let path = std::env::temp_dir().join(format!("azekura-file-system-{}", std::process::id()));
        let file = fs::File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let _first_alone = fs::remove_file(&path);
        file.unwrap()
    }

    #[test]
    fn those_of_servers_and_programs_are_not_local() {
        for (name, kind, expected) in MAGIC {
            assert_eq!(is_local(kind), expected, "{name}");
        }
        assert!(ELSEWHERE.iter().all(|named| !is_local(named.0)), "what has a name in an error is refused");
    }

    #[test]
    fn where_locks_are_elsewhere_nothing_is_pinned_or_acknowledged() {
        let file = scratch();
        for (name, kind, is_local) in MAGIC {
            let pinned = Pins::on(FileSystem::of_kind(kind)).pin(&file, 5);
            let acknowledged = Acks::on(FileSystem::of_kind(kind)).acknowledge(&file, Some(5));
            if is_local && cfg!(all(target_os = "linux", target_pointer_width = "64")) {
                pinned.and(acknowledged).unwrap_or_else(|e| panic!("{name}: {e}"));
                continue;
            }
            for refused in [pinned, acknowledged] {
                let e = refused.expect_err(name);
                assert_eq!(e.kind(), io::ErrorKind::Unsupported, "{name}");
                assert!(e.to_string().ends_with("no locks that every reader and writer would see"), "{e}");
            }
            assert_eq!(Acks::on(FileSystem::of_kind(kind)).of_others(&file).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn an_error_names_the_file_system() {
        let text = |kind| {
            let system = FileSystem { kind: OnceLock::from(kind) };
            system.check_locks(&scratch()).unwrap_err().to_string()
        };
        assert!(text(Some(0x6969)).starts_with("its file system, NFS, keeps no locks"));
        assert!(text(Some(0x1234)).starts_with("its file system, of the type 0x1234, keeps no locks"));
        assert!(text(None).starts_with("the file system is not known, and perhaps keeps no locks"));
    }
}
