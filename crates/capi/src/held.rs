//! What handles hold, by type.

use crate::cursor::Walk;
use crate::handles::{
    azk_cursor, azk_db, azk_feed, azk_index, azk_lookup, azk_options, azk_read, azk_shards, azk_table,
    azk_write,
};
use crate::lookup::Lookup;
use crate::read::Reading;
use crate::slots::{Handle, Slots};
use crate::write::Writing;
use azekura::{Db, Feed, Index, Options, Table};
use azekura_shards::ShardedReader;

impl Handle for azk_options {
    type Held = Options;
    const TAG: u8 = 1;
    fn slots() -> &'static Slots<Options> {
        static SLOTS: Slots<Options> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_db {
    type Held = Db;
    const TAG: u8 = 2;
    fn slots() -> &'static Slots<Db> {
        static SLOTS: Slots<Db> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_table {
    type Held = Table;
    const TAG: u8 = 3;
    fn slots() -> &'static Slots<Table> {
        static SLOTS: Slots<Table> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_read {
    type Held = Reading;
    const TAG: u8 = 4;
    fn slots() -> &'static Slots<Reading> {
        static SLOTS: Slots<Reading> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_write {
    type Held = Writing;
    const TAG: u8 = 5;
    fn slots() -> &'static Slots<Writing> {
        static SLOTS: Slots<Writing> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_cursor {
    type Held = Walk;
    const TAG: u8 = 6;
    fn slots() -> &'static Slots<Walk> {
        static SLOTS: Slots<Walk> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_index {
    type Held = Index;
    const TAG: u8 = 7;
    fn slots() -> &'static Slots<Index> {
        static SLOTS: Slots<Index> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_lookup {
    type Held = Lookup;
    const TAG: u8 = 8;
    fn slots() -> &'static Slots<Lookup> {
        static SLOTS: Slots<Lookup> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_shards {
    type Held = ShardedReader;
    const TAG: u8 = 9;
    fn slots() -> &'static Slots<ShardedReader> {
        static SLOTS: Slots<ShardedReader> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_feed {
    type Held = Feed;
    const TAG: u8 = 10;
    fn slots() -> &'static Slots<Feed> {
        static SLOTS: Slots<Feed> = Slots::new();
        &SLOTS
    }
}
