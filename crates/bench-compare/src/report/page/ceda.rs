//! The published figures of the CEDA comparison, as a reference.
//!
//! They were measured on another machine, so they are scaled by Kyoto Cabinet's HashDB. That comparison
//! measured it beside them, and this one measures it in the same run.

use crate::case::Workload;
use crate::report::summary::Figure;
use crate::results::CaseResult;

/// The length of the values in the published figures.
const VALUE_BYTES: usize = 4;
/// The peer used for scaling.
const SCALE: &str = "kyoto-hash";

/// A published series, in thousands of operations a second.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The name for its look.
    pub name: &'static str,
    /// The name in legends.
    pub title: &'static str,
    written: f64,
    read: f64,
}

const KYOTO: Published = Published { name: SCALE, title: "Kyoto HashDB", written: 450.0, read: 2815.0 };

/// The published series.
pub const SERIES: [Published; 2] = [
    Published { name: "ceda-btree", title: "CEDA B+Tree, published, scaled", written: 5111.0, read: 9003.0 },
    Published { name: "ceda-lss", title: "CEDA LSS, published, scaled", written: 2191.0, read: 2481.0 },
];

impl Published {
    /// The figure of this name as it might be on this machine. `None` if it was not published, or the scale
    /// was not measured.
    pub fn scaled(&self, result: &CaseResult, figure: &str) -> Option<f64> {
        if result.case.workload != Workload::Sequential || result.case.value_bytes != VALUE_BYTES {
            return None;
        }
        let kyoto = Figure::in_row(result.row(SCALE)?, figure)?.median;
        let ratio = match figure {
            "write_per_s" | "write_flush_per_s" => self.written / KYOTO.written,
            "read_per_s" => self.read / KYOTO.read,
            _ => return None,
        };
        Some(kyoto * ratio)
    }

    /// The explanation of a scaled figure.
    pub fn told(&self, figure: &str) -> String {
        let (ours, theirs) =
            if figure == "read_per_s" { (self.read, KYOTO.read) } else { (self.written, KYOTO.written) };
        format!(
            "published as {ours:.0}K/s beside {theirs:.0}K/s of {}; scaled by the latter measured here",
            KYOTO.title
        )
    }
}
