//! Which peers there are behind shims.

use super::raw::RawPeer;
use crate::peers::About;
use crate::peers::engines::Engine;
use crate::peers::libraries;

/// Declares the function table of each peer whose library build.rs found.
macro_rules! raw_peer {
    ($function:ident, $library:ident, $symbol:ident) => {
        fn $function() -> Option<&'static RawPeer> {
            #[cfg($library)]
            {
                unsafe extern "C" {
                    static $symbol: RawPeer;
                }
                // SAFETY: the shim defines the symbol as a constant of this layout.
                Some(unsafe { &$symbol })
            }
            #[cfg(not($library))]
            None
        }
    };
}

raw_peer!(kyoto_hash, has_kyoto, bench_kyoto_hash);
raw_peer!(kyoto_tree, has_kyoto, bench_kyoto_tree);
raw_peer!(tkrzw_hash, has_tkrzw, bench_tkrzw_hash);
raw_peer!(tkrzw_tree, has_tkrzw, bench_tkrzw_tree);
raw_peer!(lmdb, has_lmdb, bench_lmdb);
raw_peer!(leveldb, has_leveldb, bench_leveldb);
raw_peer!(tokyo_hash, has_tokyo, bench_tokyo_hash);
raw_peer!(tokyo_tree, has_tokyo, bench_tokyo_tree);
raw_peer!(berkeley_hash, has_berkeley, bench_berkeley_hash);
raw_peer!(berkeley_tree, has_berkeley, bench_berkeley_tree);
raw_peer!(rocksdb, has_rocksdb, bench_rocksdb);
raw_peer!(sqlite, has_sqlite, bench_sqlite);
raw_peer!(mariadb_myisam, has_mariadb, bench_mariadb_myisam);
raw_peer!(mariadb_myisam_bulk, has_mariadb, bench_mariadb_myisam_bulk);
raw_peer!(mariadb_aria, has_mariadb, bench_mariadb_aria);
raw_peer!(mariadb_aria_bulk, has_mariadb, bench_mariadb_aria_bulk);
raw_peer!(mariadb_innodb, has_mariadb, bench_mariadb_innodb);
raw_peer!(mariadb_innodb_bulk, has_mariadb, bench_mariadb_innodb_bulk);

/// The client of a MariaDB server. Its tables use this engine, filled with the index in place or in bulk.
pub fn mariadb(engine: Engine, bulk: bool) -> Option<&'static RawPeer> {
    match (engine, bulk) {
        (Engine::MyIsam, false) => mariadb_myisam(),
        (Engine::MyIsam, true) => mariadb_myisam_bulk(),
        (Engine::Aria, false) => mariadb_aria(),
        (Engine::Aria, true) => mariadb_aria_bulk(),
        (Engine::InnoDb, false) => mariadb_innodb(),
        (Engine::InnoDb, true) => mariadb_innodb_bulk(),
    }
}

/// What is known about a peer, and its functions.
pub type Known = (About, Option<&'static RawPeer>);

/// The peers behind shims. Their functions are there if build.rs found their library.
pub fn all() -> Vec<Known> {
    let mut peers = kyoto_and_tkrzw();
    peers.extend(tokyo_and_berkeley());
    peers.extend(trees());
    peers
}

fn kyoto_and_tkrzw() -> Vec<Known> {
    let one = "one transaction at a time, whose changes readers see before it commits";
    let none = "a batch is a loop of puts";
    let forward = "a batch is a loop of puts; not asked to go backward, since after reopening 1.0.25 misses most records so";
    let kyoto = |name, title| About { caveat: one, get: libraries::get("kyoto"), ..About::new(name, title) };
    let tkrzw = |name, title| About {
        transactions: false,
        bounded: false,
        caveat: none,
        get: libraries::get("tkrzw"),
        ..About::new(name, title)
    };
    vec![
        (About { ordered: false, ..kyoto("kyoto-hash", "Kyoto HashDB") }, kyoto_hash()),
        (kyoto("kyoto-tree", "Kyoto TreeDB"), kyoto_tree()),
        (About { ordered: false, ..tkrzw("tkrzw-hash", "Tkrzw HashDBM") }, tkrzw_hash()),
        (About { caveat: forward, ..tkrzw("tkrzw-tree", "Tkrzw TreeDBM") }, tkrzw_tree()),
    ]
}

fn trees() -> Vec<Known> {
    let told = "is told that keys ascend, with MDB_APPEND at every put";
    let mapped = "its tables are mapped outside the budget";
    let lmdb_about =
        |name, title| About { bounded: false, get: libraries::get("lmdb"), ..About::new(name, title) };
    let fed = |about| About { feeds: true, backs_up: true, ..about };
    let append = About { ascending_only: true, caveat: told, ..lmdb_about("lmdb-append", "LMDB, append") };
    let leveldb_about = About {
        bounded: false,
        caveat: mapped,
        get: libraries::get("leveldb"),
        ..About::new("leveldb", "LevelDB")
    };
    let plain = |name, title, get| About { get, ..About::new(name, title) };
    let rocks = plain("rocksdb", "RocksDB", libraries::get("rocksdb"));
    let lite = plain("sqlite", "SQLite", libraries::get("sqlite"));
    vec![
        (fed(lmdb_about("lmdb", "LMDB")), lmdb()),
        (append, lmdb()),
        (leveldb_about, leveldb()),
        (About { expires: true, ..fed(rocks) }, rocksdb()),
        (About { indexes: true, sleeps: true, ..fed(lite) }, sqlite()),
    ]
}

fn tokyo_and_berkeley() -> Vec<Known> {
    let one = "one transaction at a time, whose changes readers see before it commits";
    let locks = "readers wait for a transaction that changes their page";
    let tokyo = |name, title| About { caveat: one, get: libraries::get("tokyo"), ..About::new(name, title) };
    let berkeley =
        |name, title| About { caveat: locks, get: libraries::get("berkeley"), ..About::new(name, title) };
    vec![
        (About { ordered: false, ..tokyo("tokyo-hash", "Tokyo HDB") }, tokyo_hash()),
        (tokyo("tokyo-tree", "Tokyo BDB"), tokyo_tree()),
        (About { ordered: false, ..berkeley("berkeley-hash", "Berkeley DB hash") }, berkeley_hash()),
        (berkeley("berkeley-tree", "Berkeley DB btree"), berkeley_tree()),
    ]
}
