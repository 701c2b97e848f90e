//! The tests of the command line, one file for each subject: what is printed, where, and with which status.

mod bench;
mod common;
mod damage;
mod feed;
mod indexes;
mod keep_log;
mod mirrors;
mod output;
mod records;
mod salvage;
mod shards;
mod small_disk;
mod synchronous;
mod tables;
mod transfer;
mod unclosed;
mod wrong_files;
