//! Random numbers of the system.

use std::io;

/// Eight random bytes from the system.
pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(target_os = "linux")]
fn fill(bytes: &mut [u8; 8]) -> io::Result<()> {
    let n = rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())?;
    debug_assert!(n == 8, "so few random bytes come at once");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8; 8]) -> io::Result<()> {
    use std::io::Read as _;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}
