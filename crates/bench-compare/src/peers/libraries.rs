//! The C and C++ libraries that peers need: what the build looks for, and which packages have it. The build
//! script, the peers and `cargo xtask peers` share this list.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// A library that a shim drives.
pub struct Library {
    /// Sets `cfg(has_<name>)`, and names the shim's static library.
    pub name: &'static str,
    /// As printed.
    pub title: &'static str,
    pub shim: &'static str,
    /// One of its headers, tried with the compiler.
    pub header: &'static str,
    pub link: &'static str,
    /// How to get it: Debian's packages.
    pub get: &'static str,
}

/// All of them. For MariaDB's server this is not the package that would run it all the time.
pub const LIBRARIES: [Library; 9] = [
    Library {
        name: "kyoto",
        title: "Kyoto Cabinet",
        shim: "shim/kyoto.cc",
        header: "kchashdb.h",
        link: "kyotocabinet",
        get: "apt install libkyotocabinet-dev",
    },
    Library {
        name: "tkrzw",
        title: "Tkrzw",
        shim: "shim/tkrzw.cc",
        header: "tkrzw_dbm_hash.h",
        link: "tkrzw",
        get: "apt install libtkrzw-dev",
    },
    Library {
        name: "lmdb",
        title: "LMDB",
        shim: "shim/lmdb.c",
        header: "lmdb.h",
        link: "lmdb",
        get: "apt install liblmdb-dev",
    },
    Library {
        name: "leveldb",
        title: "LevelDB",
        shim: "shim/leveldb.cc",
        header: "leveldb/db.h",
        link: "leveldb",
        get: "apt install libleveldb-dev",
    },
    Library {
        name: "tokyo",
        title: "Tokyo Cabinet",
        shim: "shim/tokyo.c",
        header: "tcbdb.h",
        link: "tokyocabinet",
        get: "apt install libtokyocabinet-dev",
    },
    Library {
        name: "berkeley",
        title: "Berkeley DB",
        shim: "shim/berkeley.c",
        header: "db.h",
        link: "db-5.3",
        get: "apt install libdb5.3-dev",
    },
    Library {
        name: "rocksdb",
        title: "RocksDB",
        shim: "shim/rocksdb.cc",
        header: "rocksdb/db.h",
        link: "rocksdb",
        get: "apt install librocksdb-dev",
    },
    Library {
        name: "sqlite",
        title: "SQLite",
        shim: "shim/sqlite.c",
        header: "sqlite3.h",
        link: "sqlite3",
        get: "apt install libsqlite3-dev",
    },
    Library {
        name: "mariadb",
        title: "MariaDB",
        shim: "shim/mariadb.c",
        header: "mariadb/mysql.h",
        link: "mariadb",
        get: "apt install mariadb-server-core libmariadb-dev",
    },
];

/// How to get a library.
pub fn get(name: &str) -> &'static str {
    LIBRARIES.iter().find(|library| library.name == name).map_or("", |library| library.get)
}

impl Library {
    /// Whether its shim is C++.
    pub fn is_cpp(&self) -> bool {
        !self.shim.ends_with(".c")
    }

    /// Where a compiler finds the header, with whatever flags it was given. `None` if it does not.
    pub fn header_at(&self, mut compiler: Command) -> Option<String> {
        // Prints the names of the included files, with a dot for each level of depth.
        compiler
            .args(["-E", "-H", "-x", if self.is_cpp() { "c++" } else { "c" }, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = compiler.spawn().ok()?;
        // Closed after writing, so that the compiler sees the end.
        let written =
            child.stdin.take().is_some_and(|mut stdin| writeln!(stdin, "#include <{}>", self.header).is_ok());
        let output = child.wait_with_output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let place = said.lines().find_map(|line| line.strip_prefix(". "))?;
        (written && output.status.success()).then(|| place.trim().to_owned())
    }
}

/// MariaDB's server program: on the path, or in places outside a user's path.
pub fn mariadb_server() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(std::path::PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|dir| dir.join("mariadbd"))
        .find(|program| program.is_file())
}
