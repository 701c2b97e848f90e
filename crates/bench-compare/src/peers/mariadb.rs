//! MariaDB. Each store has its own server, on its own socket, in its own directory, without a network. It is
//! driven through shim/mariadb.c.

use super::engines::Engine;
use super::helper::process::Process;
use super::libraries;
use super::shim::{self, RawPeer, ShimPeer};
use super::{About, Open, Peer, PeerPlace, Reader, Store, Writer};
use crate::counters;
use crate::failure::{Failure, Result};
use std::env;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to answer, including recovery, and how often it is tried.
const START: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(5);

const MIB: u64 = 1 << 20;

/// Each engine, once filled with its index in place and once in bulk.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let crash = "a crash may leave a batch in part";
    let last = |name, title| About { numbers_only: true, ..About::new(name, title) };
    let in_place = |name, title| About { indexes: true, ..last(name, title) };
    [
        (
            Engine::MyIsam,
            false,
            About { transactions: false, caveat: crash, ..in_place("mariadb-myisam", "MariaDB MyISAM") },
        ),
        (
            Engine::MyIsam,
            true,
            About { transactions: false, caveat: crash, ..last("mariadb-myisam-bulk", "MyISAM, index last") },
        ),
        (
            Engine::Aria,
            false,
            About { transactions: false, caveat: crash, ..in_place("mariadb-aria", "MariaDB Aria") },
        ),
        (
            Engine::Aria,
            true,
            About { transactions: false, caveat: crash, ..last("mariadb-aria-bulk", "Aria, index last") },
        ),
        (Engine::InnoDb, false, in_place("mariadb-innodb", "MariaDB InnoDB")),
        (Engine::InnoDb, true, last("mariadb-innodb-bulk", "InnoDB, index last")),
    ]
    .into_iter()
    .map(|(engine, bulk, about)| {
        let about = About { place: PeerPlace::Server, get: libraries::get("mariadb"), ..about };
        let there = shim::mariadb(engine, bulk).zip(program());
        let peer = there.map(|(raw, program)| -> Box<dyn Peer> {
            Box::new(ServerPeer { about, engine, bulk, raw, program })
        });
        (about, peer)
    })
    .collect()
}

/// The server's program, looked for once.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(libraries::mariadb_server).as_deref()
}

struct ServerPeer {
    about: About,
    engine: Engine,
    bulk: bool,
    raw: &'static RawPeer,
    program: &'static Path,
}

impl ServerPeer {
    /// The server's options. Half of the budget or more is the engine's cache. The memory of the other
    /// engines is kept small.
    fn options(&self, how: &Open) -> Vec<String> {
        let budget = how.budget_bytes;
        let option = |name: &str, value: u64| format!("--{name}={value}");
        let mut options = vec![
            option("performance-schema", 0),
            option("query-cache-size", 0),
            option("max-connections", 64),
            option("local-infile", 1),
            option("lock-wait-timeout", 60),
        ];
        if self.engine != Engine::InnoDb {
            options.push("--skip-innodb".to_owned());
            options.push("--default-storage-engine=MyISAM".to_owned());
            options.push(option("bulk-insert-buffer-size", budget / 8));
        }
        match self.engine {
            Engine::MyIsam => {
                options.push(option("key-buffer-size", budget / 2));
                options.push(option("myisam-sort-buffer-size", budget / 4));
                options.push(option("aria-pagecache-buffer-size", 2 * MIB));
                options.push(format!("--delay-key-write={}", if how.durable { "OFF" } else { "ALL" }));
            }
            Engine::Aria => {
                options.push(option("key-buffer-size", MIB));
                options.push(option("aria-pagecache-buffer-size", budget / 2));
                options.push(option("aria-sort-buffer-size", budget / 4));
                options.push(option("aria-log-file-size", (budget / 2).max(16 * MIB)));
                if !how.durable {
                    options.push("--aria-group-commit=soft".to_owned());
                    options.push(option("aria-group-commit-interval", 1_000_000));
                }
            }
            Engine::InnoDb => {
                options.push(option("key-buffer-size", MIB));
                options.push(option("aria-pagecache-buffer-size", 2 * MIB));
                options.push(option("innodb-buffer-pool-size", budget - budget / 8));
                options.push(option("innodb-log-file-size", (budget / 2).max(16 * MIB)));
                options.push(option("innodb-flush-log-at-trx-commit", u64::from(how.durable)));
                options.push(option("innodb-flush-neighbors", 0));
                options.push(option("innodb-io-capacity", 2000));
                options.push(option("innodb-buffer-pool-dump-at-shutdown", 0));
                options.push(option("innodb-buffer-pool-load-at-startup", 0));
            }
        }
        options
    }

    fn failed(&self, call: &'static str) -> impl Fn(std::io::Error) -> Failure {
        let name = self.about.name;
        move |error| Failure::peer(name, call, &error)
    }

    fn start(&self, how: &Open, data: &Path, socket: &Path) -> Result<Process> {
        let log = data.join("server.log");
        let output = File::options().create(true).append(true).open(&log).map_err(self.failed("open"))?;
        let errors = output.try_clone().map_err(self.failed("open"))?;
        let mut command = Command::new(self.program);
        command
            .args(["--no-defaults", "--skip-networking", "--skip-grant-tables", "--skip-name-resolve"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", data.join("server.pid").display()))
            .args(self.options(how))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        if rustix::process::getuid().is_root() {
            command.arg("--user=root");
        }
        let mut process = Process::start(&mut command).map_err(self.failed("open: starting mariadbd"))?;
        let began = Instant::now();
        while UnixStream::connect(socket).is_err() {
            let ended = process.has_ended().map_err(self.failed("open: waiting for mariadbd"))?;
            if ended || began.elapsed() > START {
                return Err(Failure::peer(self.about.name, "open: mariadbd", &last_error(&log)));
            }
            std::thread::sleep(POLL);
        }
        Ok(process)
    }
}

/// The last error that a server wrote to its log.
fn last_error(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = text.lines().rev().find(|line| line.contains("[ERROR]"));
    line.or(text.lines().last()).unwrap_or("it does not answer").to_owned()
}

impl Peer for ServerPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        static VERSION: OnceLock<String> = OnceLock::new();
        let ask = || {
            let output = Command::new(self.program).arg("--version").stderr(Stdio::null()).output();
            let said =
                output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            let version =
                said.split_whitespace().skip_while(|word| *word != "Ver").nth(1).unwrap_or_default();
            version.split('-').next().unwrap_or_default().to_owned()
        };
        VERSION.get_or_init(ask).clone()
    }

    fn configuration(&self) -> String {
        let own = match self.engine {
            Engine::MyIsam => {
                "key_buffer_size budget / 2, myisam_sort_buffer_size budget / 4, bulk_insert_buffer_size budget / 8, \
                 delay_key_write ALL unless durable; rows are in the page cache"
            }
            Engine::Aria => {
                "aria_pagecache_buffer_size budget / 2, aria_sort_buffer_size budget / 4, bulk_insert_buffer_size \
                 budget / 8, aria_log_file_size budget / 2, aria_group_commit soft at 1 s unless durable"
            }
            Engine::InnoDb => {
                "innodb_buffer_pool_size 7/8 of the budget, innodb_log_file_size budget / 2, \
                 innodb_flush_log_at_trx_commit 0, or 1 when durable, innodb_flush_neighbors 0, innodb_io_capacity 2000"
            }
        };
        let load = if self.bulk {
            "LOAD DATA LOCAL a transaction into a table without an index, ALTER TABLE ADD PRIMARY KEY before the \
             first sync or get"
        } else {
            "LOAD DATA LOCAL REPLACE a transaction into a table with its primary key"
        };
        format!(
            "a server on a socket, performance_schema and query cache off; {own}; a table of BIGINT UNSIGNED and two \
             INT UNSIGNED, or for the index workload a BIGINT UNSIGNED, an indexed BINARY(8) and a VARBINARY; {load}; SELECT by prepared statement, IN (…) for many; opening starts the server, closing \
             ends it"
        )
    }

    fn file_bytes(&self, dir: &Path) -> u64 {
        // The rest of the directory is logs and system tables. They do not grow with the records.
        counters::directory_bytes(&dir.join("mariadb/bench"))
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let data = how.dir.join("mariadb");
        if how.create {
            fs::create_dir(&data).map_err(self.failed("open"))?;
        }
        // The path of a socket may have at most 107 bytes. So it is not in the store's directory.
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let socket = Socket(env::temp_dir().join(format!("bench-{}-{number}.sock", std::process::id())));
        let process = self.start(how, &data, &socket.0)?;
        let shim = ShimPeer { about: self.about, raw: self.raw };
        let client = shim.open(&Open { dir: socket.0.clone(), ..how.clone() })?;
        Ok(Box::new(ServerStore { name: self.about.name, client, process, _socket: socket }))
    }
}

/// Removes the socket that a killed server leaves behind.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The fields are dropped in this order: the connections, the server, its socket.
struct ServerStore {
    name: &'static str,
    client: Box<dyn Store>,
    process: Process,
    _socket: Socket,
}

impl Store for ServerStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        self.client.writer()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        self.client.reader()
    }

    fn sync(&self) -> Result<()> {
        self.client.sync()
    }

    fn settle(&self) -> Result<bool> {
        self.client.settle()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { name, client, mut process, _socket } = *self;
        process.note_memory();
        client.close()?;
        process.wait().map_err(|error| Failure::peer(name, "close: waiting for mariadbd", &error))
    }
}
