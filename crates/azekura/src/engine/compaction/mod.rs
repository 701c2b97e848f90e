//! Merges of levels. The other parts ask for them at `merges`. `pick` says which are due; `turns` and
//! `guards`, whose turn it is. `run` does one: `output` is what it writes, `prefix` what of its inputs goes
//! meanwhile, and `install` puts the result in place.

pub(super) mod closing;
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
