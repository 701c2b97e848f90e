//! What a system or a file system lacks.

use rustix::io::Errno;

/// Whether an error says that the system or the file system lacks the call or the flag.
pub(super) fn is_unsupported(errno: Errno) -> bool {
    errno == Errno::NOSYS || errno == Errno::INVAL || errno == Errno::NOTSUP || errno == Errno::OPNOTSUPP
}
