//! The list of all peers.

use super::{About, Peer, azekura, crates, helper, mariadb, shim};

/// Every peer by name. The peer itself is there if its library was found when this program was built.
pub fn all() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let mut peers = azekura::peers();
    peers.extend(shim::peers());
    peers.extend(crates::peers());
    peers.extend(helper::peers());
    peers.extend(mariadb::peers());
    peers
}
