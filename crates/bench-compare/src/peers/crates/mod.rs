//! Peers that are Rust crates. Each is behind a feature of this program, so that it builds without them.

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(any(feature = "fjall", feature = "redb"))]
mod locked;
#[cfg(feature = "redb")]
mod redb;

use super::{About, Peer};

/// The peers that are crates.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let about = |name, title, get| About { feeds: true, get, ..About::new(name, title) };
    let redb = about("redb", "redb", "build with --features redb");
    let fjall = about("fjall", "fjall", "build with --features fjall");
    vec![(redb, redb_peer(redb)), (fjall, fjall_peer(fjall))]
}

#[cfg(feature = "redb")]
fn redb_peer(about: About) -> Option<Box<dyn Peer>> {
    Some(Box::new(redb::RedbPeer { about }))
}

#[cfg(not(feature = "redb"))]
fn redb_peer(_: About) -> Option<Box<dyn Peer>> {
    None
}

#[cfg(feature = "fjall")]
fn fjall_peer(about: About) -> Option<Box<dyn Peer>> {
    Some(Box::new(fjall::FjallPeer { about }))
}

#[cfg(not(feature = "fjall"))]
fn fjall_peer(_: About) -> Option<Box<dyn Peer>> {
    None
}
