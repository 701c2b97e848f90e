//! What a write transaction is protected from, and how it commits.

use crate::engine::Durability;

/// What a transaction that reads and writes is protected from. One that has written nothing never conflicts,
/// for what it has read was true at one moment, that of its snapshot.
///
/// ```
/// # use azekura::{Db, Isolation, Options, TableKind, WriteOptions, storage::MemStorage};
/// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// // Each goes off call because the other stays. Nothing that one writes has the other written.
/// for (isolation, both_go) in [(Isolation::Snapshot, true), (Isolation::Serializable, false)] {
///     t.put_many([("ada", "on call"), ("grace", "on call")])?;
///     let options = WriteOptions { isolation, ..WriteOptions::default() };
///     let (mut ada, mut grace) = (db.write_with(options), db.write_with(options));
///     if ada.contains(&t, "grace")? {
///         ada.remove(&t, "ada")?;
///     }
///     if grace.contains(&t, "ada")? {
///         grace.remove(&t, "grace")?;
///     }
///     ada.commit()?;
///     assert_eq!(grace.commit().is_ok(), both_go);
/// }
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if transactions had run one after the other: the commit fails if anything that this one has read
    /// was changed since. Its snapshot begins with its first read; one that only writes has none, and never
    /// fails for others' sake. But a write to a table with indexes is a read too, of the old value, and the
    /// commit fails if a table that was written to has got or lost an index meanwhile.
    #[default]
    Serializable,
    /// The commit fails only if a key that this one has written (or one of a range that it has removed) was
    /// changed since the transaction began. Its snapshot begins with it, whether it reads or not: so of two
    /// that write one key at the same time, without looking, only the first to commit succeeds. With indexes
    /// it fails too if others have written records with the same values in a unique index, or a table that
    /// it has written to has got or lost an index.
    Snapshot,
}

/// How a write transaction is to behave.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-options-txn-{}.azk", std::process::id()));
/// use azekura::{Db, Durability, Error, Isolation, Options, TableKind, WriteOptions};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
/// let options = WriteOptions { durability: Some(Durability::Eventual), isolation: Isolation::Snapshot };
/// let mut txn = db.write_with(options);
/// txn.put(&t, "lamp", "on")?;
/// t.put("lamp", "off")?;                             // another was faster
/// assert!(matches!(txn.commit(), Err(Error::Conflict { .. })));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// The durability of its commit; the database's default if none.
    pub durability: Option<Durability>,
    /// Its isolation.
    pub isolation: Isolation,
}
