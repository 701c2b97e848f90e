//! Merges of levels: which are due (`pick`), whose turn it is (`turns`, `guards`), how one goes (`run`), what
//! of its inputs goes meanwhile (`prefix`), what it writes (`output`), and how that is put in place
//! (`install`). The other parts ask for merges at `merges`.

pub(super) mod compactor;
pub(super) mod guards;
pub(super) mod install;
pub(super) mod merges;
pub(super) mod output;
pub(super) mod pick;
pub(super) mod prefix;
pub(super) mod run;
pub(super) mod sizes;
pub(super) mod turns;
