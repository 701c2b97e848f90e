//! What programs hold of an engine: databases and tables. What these can do stands in `api`.

use super::Engine;
use super::state::{State, TableState};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// An open database. Clones share it; the last one to go closes it.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-db-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let users = db.table("users", TableKind::Hash)?;
/// users.put(b"ada", b"Countess of Lovelace")?;
/// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"Countess of Lovelace"[..]));
/// drop(users);
/// db.close()?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) engine: Arc<Engine>,
    closer: Arc<Closer>,
}

/// Closes the engine when the last handle goes.
struct Closer {
    engine: Arc<Engine>,
    /// Whether nobody has closed it, or is closing it.
    is_open: AtomicBool,
}

impl Closer {
    fn close(&self, last: bool) -> Result<()> {
        // First: in a forked child the thread that holds the lock may not exist.
        self.engine.life.check()?;
        let mut is_open = self.is_open.swap(false, Ordering::AcqRel);
        if !is_open {
            return Err(Error::Closed);
        }
        let closed = self.engine.close(&mut is_open, last);
        self.is_open.store(is_open, Ordering::Release);
        closed
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        if self.engine.life.is_forked() {
            // All of it belongs to the parent: the threads are not here, the file and its lock are shared.
            // What this process has of it is a copy, which goes with the process.
            std::mem::forget(self.engine.clone());
            return;
        }
        // A caller that wants to know closes the database itself. Nothing durable is lost either way.
        let _unreported = self.close(true);
    }
}

impl Db {
    /// The first handle of an engine.
    pub(crate) fn of(engine: Arc<Engine>) -> Db {
        let closer = Arc::new(Closer { engine: engine.clone(), is_open: AtomicBool::new(true) });
        Db { engine, closer }
    }

    /// Closes the engine for all its handles. `last` is as in `Engine::close`.
    pub(crate) fn close_engine(&self, last: bool) -> Result<()> {
        self.closer.close(last)
    }
}

/// A table of an open database. Clones are cheap; any thread may use one.
///
/// Each operation is a transaction of its own, with the database's default durability. Put several
/// into one transaction ([`Db::write`]) when they belong together, or to make them faster.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-table-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// let born = db.table("born", TableKind::Ordered)?;
/// born.put("ada", "1815")?;
/// born.put_many([("alan", "1912"), ("grace", "1906")])?;
/// assert_eq!(born.get("grace")?.as_deref(), Some(&b"1906"[..]));
/// for record in born.prefix("a")? {
///     let (key, value) = record?;
///     println!("{} {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone)]
pub struct Table {
    pub(crate) db: Db,
    pub(crate) id: u32,
    pub(crate) kind: TableKind,
    /// As it was called when the handle was made.
    pub(crate) name: Arc<str>,
}

impl Table {
    /// What a state says of it.
    #[inline(always)]
    pub(crate) fn of<'a>(&self, state: &'a State) -> Result<&'a Arc<TableState>> {
        state.table(self.id).map_err(|e| self.named(e))
    }

    /// An error of this table, which the engine knows by its number only.
    #[cold]
    pub(crate) fn named(&self, e: Error) -> Error {
        match e {
            Error::NoSuchTable { .. } => Error::NoSuchTable { name: self.name.to_string() },
            other => other,
        }
    }

    pub(crate) fn expect_ordered(&self, what: &str) -> Result<()> {
        match self.kind {
            TableKind::Ordered => Ok(()),
            TableKind::Hash => Err(Error::WrongType {
                detail: format!("{what} needs an ordered table; this is a hash table"),
            }),
        }
    }
}
