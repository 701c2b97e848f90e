//! What handles hold, by type.

use crate::cursor::Walk;
use crate::handles::{
    azk_cursor, azk_db, azk_feed, azk_index, azk_lookup, azk_options, azk_read, azk_shards, azk_table,
    azk_write,
};
use crate::lookup::Lookup;
use crate::read::Reading;
use crate::slots::{Handle, HandleSlots};
use crate::write::Writing;
use azekura::{Db, Feed, Index, Options, Table};
use azekura_shards::ShardedReader;

impl Handle for azk_options {
    type Held = Options;
    const TAG: u8 = 1;
    fn slots() -> &'static HandleSlots<Options> {
        static SLOTS: HandleSlots<Options> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_db {
    type Held = Db;
    const TAG: u8 = 2;
    fn slots() -> &'static HandleSlots<Db> {
        static SLOTS: HandleSlots<Db> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_table {
    type Held = Table;
    const TAG: u8 = 3;
    fn slots() -> &'static HandleSlots<Table> {
        static SLOTS: HandleSlots<Table> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_read {
    type Held = Reading;
    const TAG: u8 = 4;
    fn slots() -> &'static HandleSlots<Reading> {
        static SLOTS: HandleSlots<Reading> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_write {
    type Held = Writing;
    const TAG: u8 = 5;
    fn slots() -> &'static HandleSlots<Writing> {
        static SLOTS: HandleSlots<Writing> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_cursor {
    type Held = Walk;
    const TAG: u8 = 6;
    fn slots() -> &'static HandleSlots<Walk> {
        static SLOTS: HandleSlots<Walk> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_index {
    type Held = Index;
    const TAG: u8 = 7;
    fn slots() -> &'static HandleSlots<Index> {
        static SLOTS: HandleSlots<Index> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_lookup {
    type Held = Lookup;
    const TAG: u8 = 8;
    fn slots() -> &'static HandleSlots<Lookup> {
        static SLOTS: HandleSlots<Lookup> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_shards {
    type Held = ShardedReader;
    const TAG: u8 = 9;
    fn slots() -> &'static HandleSlots<ShardedReader> {
        static SLOTS: HandleSlots<ShardedReader> = HandleSlots::new();
        &SLOTS
    }
}

impl Handle for azk_feed {
    type Held = Feed;
    const TAG: u8 = 10;
    fn slots() -> &'static HandleSlots<Feed> {
        static SLOTS: HandleSlots<Feed> = HandleSlots::new();
        &SLOTS
    }
}
