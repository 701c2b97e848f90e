//! A table of every peer: what it is, whether it is available, and how it is configured.

use super::{About, Peer, PeerPlace, all};
use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};

/// Columns of a terminal that does not tell its width.
const WIDTH: u16 = 160;

/// The table, in the order in which peers are run.
pub fn render() -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table.set_header(["--peers", "peer", "keys", "transactions", "memory", "runs", "configuration"]);
    for (about, peer) in all() {
        table.add_row(row(&about, peer.as_deref()));
    }
    table.to_string()
}

fn row(about: &About, peer: Option<&dyn Peer>) -> [Cell; 7] {
    let keys = if about.ordered { "in order" } else { "by hash" };
    let transactions = if about.transactions { "atomic" } else { "none" };
    let memory = if about.bounded { "budget" } else { "unbounded" };
    let title = match peer {
        Some(peer) => format!("{}\n{}", about.title, peer.version()),
        None => about.title.to_owned(),
    };
    let name = Cell::new(about.name).add_attribute(Attribute::Bold);
    let [title, keys, transactions, memory, runs] =
        [title, keys.to_owned(), transactions.to_owned(), memory.to_owned(), place(about)].map(Cell::new);
    [name, title, keys, transactions, memory, runs, Cell::new(configuration(about, peer))]
}

fn place(about: &About) -> String {
    match about.place {
        PeerPlace::Here => "in this process".to_owned(),
        PeerPlace::Helper(language) => format!("in a {language} helper"),
        PeerPlace::Server => "in a server".to_owned(),
    }
}

fn configuration(about: &About, peer: Option<&dyn Peer>) -> String {
    let mut text = match peer {
        Some(peer) => peer.configuration(),
        None => return format!("not here: {}", about.get),
    };
    let limits = [
        (about.numbers_only, "keys and values of 8 bytes only"),
        (about.ascending_only, "ascending keys only"),
        (!about.caveat.is_empty(), about.caveat),
    ];
    for (_, limit) in limits.iter().filter(|(applies, _)| *applies) {
        text.push_str("\nNote: ");
        text.push_str(limit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_row_that_says_how_it_is_configured_or_got() {
        let text = render();
        let lines: Vec<&str> = text.lines().collect();
        let width = lines.first().map(|line| line.chars().count());
        assert!(lines.iter().all(|line| Some(line.chars().count()) == width), "{text}");
        for (about, peer) in all() {
            assert!(text.contains(about.name), "{text}");
            let missing = configuration(&about, None);
            assert!(missing.starts_with("not here: ") && missing.ends_with(about.get), "{missing}");
            if let Some(peer) = peer {
                let said = configuration(&about, Some(peer.as_ref()));
                assert!(said.contains(about.caveat) && !said.is_empty(), "{said}");
            }
        }
    }
}
