//! Merges of levels: which are due (`pick`), how one goes (`run`), and what it writes (`output`).

pub(super) mod output;
pub(super) mod pick;
pub(super) mod run;
