//! How each peer looks on every plot: a colour for its family, and a mark and a dash within it.
//!
//! The hues are Paul Tol's "muted" scheme, which can be told apart with the common kinds of colour blindness.
//! Vermilion is kept for Azekura. There are more peers than hues that can be told apart, so mark and dash
//! show the difference as well.

use crate::report::plot::Mark;
use std::fmt::Write as _;

/// How a peer looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Classes of the style sheet: the family's and the peer's own.
    pub class: String,
    /// The class of its lines: solid, dash or dots.
    pub dash: &'static str,
    /// Its mark.
    pub mark: Mark,
}

/// Peers that share a colour.
struct Family {
    /// The prefix of the names of its peers.
    prefix: &'static str,
    /// Its colour on a light ground.
    light: &'static str,
    /// Its colour on a dark ground.
    dark: &'static str,
    mark: Mark,
}

const fn family(prefix: &'static str, light: &'static str, dark: &'static str, mark: Mark) -> Family {
    Family { prefix, light, dark, mark }
}

/// The last one is for names that fit no other.
const FAMILIES: [Family; 17] = [
    family("azekura", "#d1410c", "#ff7a3d", Mark::Disc),
    family("ceda", "#1d2126", "#e8e6e1", Mark::Star),
    family("kyoto", "#332288", "#9a8cf0", Mark::Square),
    family("tokyo", "#2b8cc4", "#88ccee", Mark::Square),
    family("tkrzw", "#2a9184", "#44c2ae", Mark::Up),
    family("lmdb", "#117733", "#4fc274", Mark::Diamond),
    family("bbolt", "#117733", "#4fc274", Mark::Cross),
    family("leveldb", "#7d7d24", "#c4c44a", Mark::Up),
    family("goleveldb", "#7d7d24", "#c4c44a", Mark::Cross),
    family("rocksdb", "#b5942c", "#e6cd6f", Mark::Down),
    family("berkeley", "#aa4499", "#d97fc9", Mark::Diamond),
    family("sqlite", "#5c6670", "#aab4be", Mark::Square),
    family("redb", "#882255", "#d4679b", Mark::Disc),
    family("fjall", "#3b66b0", "#7fa8ec", Mark::Down),
    family("codernity", "#8a6d4b", "#c9a57c", Mark::Cross),
    family("mariadb", "#b8596b", "#e58d9c", Mark::Star),
    family("", "#80868c", "#9aa0a6", Mark::Disc),
];

impl Look {
    /// The name of its shape in legends.
    pub fn swatch(&self) -> String {
        let own = self.class.rsplit(' ').next().unwrap_or_default();
        format!("key-{own}")
    }

    /// Whether it is Azekura's.
    pub fn ours(&self) -> bool {
        self.class.contains(OURS)
    }
}

/// The class that Azekura's kinds share.
const OURS: &str = " us ";

/// The look of the peer with this name.
pub fn look(name: &str) -> Look {
    let (number, family) = FAMILIES
        .iter()
        .enumerate()
        .find(|(_, family)| name.starts_with(family.prefix))
        .expect("the last family has every name");
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let dash = match () {
        () if ends(&["-hash", "-aria", "-aria-bulk", "-append", "-overwrite"]) => "dash",
        () if ends(&["-myisam", "-myisam-bulk", "-lss"]) => "dots",
        () => "solid",
    };
    let mark = match (name, family.mark) {
        ("azekura-hash", _) => Mark::Diamond,
        (name, _) if name.ends_with("-bulk") => Mark::Square,
        (_, mark) if dash == "solid" => mark,
        (_, Mark::Square) => Mark::Diamond,
        (_, Mark::Diamond) => Mark::Square,
        (_, Mark::Up) => Mark::Down,
        (_, mark) => mark,
    };
    let ours = if name.starts_with("azekura") { OURS } else { " " };
    Look { class: format!("f{number}{ours}{}", own_class(name)), dash, mark }
}

/// The class of this one peer, made of letters, digits and hyphens.
pub fn own_class(name: &str) -> String {
    let safe = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    std::iter::once('p').chain(std::iter::once('-')).chain(safe).collect()
}

/// The rules that colour the families, in light and dark, and that let a legend single out a peer.
pub fn style<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let rules = |pick: fn(&Family) -> &'static str| {
        FAMILIES.iter().enumerate().fold(String::new(), |mut rules, (number, family)| {
            let _ = write!(rules, ".f{number}{{--c:{}}}", pick(family));
            rules
        })
    };
    let mut style = rules(|family| family.light);
    let _ = write!(style, "\n@media (prefers-color-scheme:dark){{{}}}\n", rules(|family| family.dark));
    for name in names {
        let own = own_class(name);
        let _ = write!(style, ".plot:has(.key.{own}:hover) .s:not(.{own}){{opacity:.1}}");
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relatives_share_a_colour_and_differ_otherwise() {
        let (tree, hash) = (look("kyoto-tree"), look("kyoto-hash"));
        assert_eq!(tree.class.split(' ').next(), hash.class.split(' ').next());
        assert!(tree.dash != hash.dash && tree.mark != hash.mark);
        assert_ne!(look("azekura-ordered").mark, look("azekura-hash").mark);
        assert!(look("goleveldb").class.starts_with("f8 "));
    }

    #[test]
    fn any_name_has_a_look_that_is_safe_in_a_style_sheet() {
        let look = look("x\"}</style>");
        assert!(
            look.class.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ' '),
            "{}",
            look.class
        );
    }
}
