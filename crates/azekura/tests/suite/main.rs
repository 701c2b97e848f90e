//! The tests of the public interface, one file for each subject. They are one program, for each program costs
//! a compilation of what it shares with the others. Tests that count the threads or the memory of their
//! process, fork it, mount file systems, or look at what idle time does have programs of their own beside
//! this one.

mod callbacks;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod compaction;
mod concurrent;
mod copies;
mod corruption;
mod cut;
mod expiry;
mod faults;
mod feed;
mod follow;
mod follow_limits;
mod format;
mod full_disk;
mod handles;
mod indexes;
mod log_end;
mod log_waiting;
mod mapped;
mod merges;
mod merging;
mod model;
mod not_durable;
mod pages;
mod reader;
mod reading;
mod readme;
mod recovery;
mod savepoints;
mod table_changes;
mod transactions;
mod typed_exchange;
