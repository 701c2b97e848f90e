//! Making, opening, listing and dropping the indexes of a table.

use super::index::Index;
use super::stats::{TableStats, figures};
use super::transact::pause;
use crate::base::error::{Error, Result};
use crate::engine::state::State;
use crate::engine::{Durability, IndexSlot, Progress, Table};
use crate::format::hidden::{IndexState, name_of};
use crate::index::IndexSpec;
use crate::txn::build::Step;
use crate::txn::indexed::state_of;
use crate::txn::{Isolation, WriteOptions};
use std::sync::Arc;

/// The first step of building reads so many records. A step that meets no conflict is followed by one of
/// twice as many.
const STEP_RECORDS: u64 = 4096;

/// An index of a table, as [`Table::indexes`] gives it.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-indexinfo-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.create_index("by_city", "v./city")?;
/// let all = t.indexes()?;
/// assert_eq!((all[0].name.as_str(), all[0].spec.as_str(), all[0].is_ready), ("by_city", "v./city", true));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// The canonical text of its [`IndexSpec`].
    pub spec: String,
    /// Whether it is complete. Writes keep an incomplete one too, and [`Table::create_index`] goes on
    /// building it.
    pub is_ready: bool,
    /// Its figures, as those of a table. Its records are the entries. It has no indexes.
    pub stats: TableStats,
}

impl Table {
    /// Makes an index of the table. Returns when it is complete and durable. Others may read and write while
    /// it is built. From now on every write to the table keeps the index, in the same transaction. So do
    /// writes through other handles of the table, with types, and in other languages.
    ///
    /// If the table has an index of this name and specification, that is opened. If it is not complete, it is
    /// built to its end first.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-index-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let users = db.table("users", TableKind::Hash)?;
    /// users.put("u1", r#"{"mail": "Ada@example.org", "born": 1815}"#)?;
    /// let by_mail = users.create_index("by_mail", "v./mail:lower unique where present")?;
    /// assert_eq!(by_mail.first(&["ada@example.org".into()])?.map(|(key, _)| key), Some(b"u1".to_vec()));
    /// let taken = users.put("u2", r#"{"mail": "ada@example.org"}"#);
    /// assert!(matches!(taken, Err(Error::NotUnique { .. })));
    /// # drop(by_mail); drop(users); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// A write to a table with indexes reads the old value of the record. So a transaction that only writes
    /// to such a table has a snapshot too, and may get [`Error::Conflict`]. A transaction that wrote to the
    /// table before the index was made, and commits afterwards, may get it too.
    ///
    /// # Errors
    /// `Invalid` if the specification has no meaning, or there is another index of this name. `NotUnique` if
    /// two records have the same values in a unique index; `TooLarge` or another error that the specification
    /// has for a record. Then the index is given up, and dropped if the disk is not full. `TooLarge` also if
    /// the table has 64 indexes. As [`put`](Table::put): after `NoSpace`, `Io` and the like what is built may
    /// stay. Writes keep it and nobody reads it. `create_index` with the same specification goes on with it.
    pub fn create_index(&self, name: &str, spec: &str) -> Result<Index> {
        self.create_index_with(name, spec, |_| {})
    }

    /// As [`create_index`](Table::create_index). After each step `progress` is told how many records are
    /// done, and about how many there are.
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// let users = db.table("users", TableKind::Ordered)?;
    /// users.put_many([("ada", "London"), ("grace", "New York")])?;
    /// let mut done = 0;
    /// users.create_index_with("by_city", "v", |progress| done = progress.done)?;
    /// assert_eq!(done, 2);
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`create_index`](Table::create_index).
    pub fn create_index_with(
        &self,
        name: &str,
        spec: &str,
        mut progress: impl FnMut(Progress),
    ) -> Result<Index> {
        let spec = IndexSpec::parse(spec)?;
        loop {
            let id = match self.known(name)? {
                Some((id, known)) => {
                    same_spec(name, &spec, &known.spec)?;
                    if known.is_ready {
                        return Ok(self.ready(id, name, spec));
                    }
                    id
                }
                None => match self
                    .db
                    .engine
                    .table_changer()
                    .create_index(self.id, name, &spec)
                    .map_err(|e| self.named(e))?
                {
                    Some(id) => id,
                    // Another thread was faster.
                    None => continue,
                },
            };
            let entries = self.entries(id, name);
            match self.build(&entries, &spec, &mut progress) {
                Ok(()) => return Ok(self.ready(id, name, spec)),
                // Somebody has dropped it, perhaps for an error that this builder meets too.
                Err(Error::NoSuchTable { .. }) => {}
                Err(e) if is_of_the_records(&e) => match self.give_up(&entries) {
                    Ok(true) => return Ok(self.ready(id, name, spec)),
                    // On a full disk it may stay, incomplete.
                    Ok(false) | Err(_) => return Err(e),
                },
                Err(e) => return Err(e),
            }
        }
    }

    /// Drops an index that cannot be completed, so that writers need not keep it. If the records have changed
    /// meanwhile and another builder has completed it, it stays. Then this is true.
    fn give_up(&self, entries: &Table) -> Result<bool> {
        self.db.engine.table_changer().drop_index_unless(entries.id, |state| {
            let known = state_of(&self.db, state, state.visible(), entries.id)?;
            Ok(known.is_some_and(|known| known.next.is_none()))
        })
    }

    /// An index that is complete by now.
    fn ready(&self, id: u32, name: &str, spec: IndexSpec) -> Index {
        let ready_at = self.db.engine.state.load().visible();
        Index::new(self.clone(), self.entries(id, name), name.into(), Arc::new(spec), ready_at)
    }

    /// Builds an index to its end.
    fn build(&self, entries: &Table, spec: &IndexSpec, progress: &mut impl FnMut(Progress)) -> Result<()> {
        let options =
            WriteOptions { durability: Some(Durability::Eventual), isolation: Isolation::Serializable };
        let (mut most, mut conflicts, mut done) = (STEP_RECORDS, 0, 0);
        loop {
            let mut txn = self.db.write_with(options);
            let stepped = txn.build_step(self, entries, spec, most);
            let commit = |step: Step| {
                // Either whoever gives the index up sees that it is ready, or this commit sees that it is
                // gone.
                let _stays = step.is_ready.then(|| self.db.engine.table_changer().keep());
                txn.commit().map(|()| step)
            };
            match stepped.and_then(commit) {
                Ok(step) => {
                    done += step.records;
                    let total = self.stats()?.records_estimate.max(done);
                    progress(Progress { done, total: if step.is_ready { done } else { total } });
                    if step.is_ready {
                        return Ok(());
                    }
                    conflicts = 0;
                    // A step may have ended before it had read so many.
                    most = step.records.max(1).saturating_mul(2);
                }
                // Somebody has changed one of these records. In a smaller step that is less likely.
                Err(Error::Conflict { .. }) => {
                    conflicts += 1;
                    most = (most / 4).max(1);
                    pause(conflicts);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// An index of the table.
    ///
    /// # Errors
    /// `NoSuchIndex`; `Invalid` if it is not complete; as [`get`](Table::get).
    pub fn index(&self, name: &str) -> Result<Index> {
        let engine = &self.db.engine;
        let state = engine.newest_full()?;
        let seq = state.visible();
        let list = &self.of(&state)?.indexes;
        let slot = list.iter().flat_map(|list| list.iter()).find(|slot| *slot.name == *name);
        let slot = slot.ok_or_else(|| self.no_index(name))?;
        let known = state_of(&self.db, &state, seq, slot.id)?.ok_or_else(|| self.no_index(name))?;
        if known.next.is_some() {
            let detail =
                format!("index {name:?} of table {:?} is not complete: create_index goes on", self.name);
            return Err(Error::Invalid { detail });
        }
        let spec = Arc::new(IndexSpec::parse(&known.spec)?);
        Ok(Index::new(self.clone(), self.entries(slot.id, name), name.into(), spec, seq))
    }

    /// The table's indexes, by name.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn indexes(&self) -> Result<Vec<IndexInfo>> {
        let engine = &self.db.engine;
        let state = engine.newest_full()?;
        let list = &self.of(&state)?.indexes;
        let mut all = Vec::new();
        for slot in list.iter().flat_map(|list| list.iter()) {
            all.extend(self.info(&state, slot)?);
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Removes an index. Its space is free once no snapshot sees it.
    ///
    /// # Errors
    /// `NoSuchIndex`, as [`put`](Table::put).
    pub fn drop_index(&self, name: &str) -> Result<()> {
        let state = self.db.engine.state.load_full();
        self.db.engine.life.check()?;
        let list = &self.of(&state)?.indexes;
        let slot = list.iter().flat_map(|list| list.iter()).find(|slot| *slot.name == *name);
        let id = slot.ok_or_else(|| self.no_index(name))?.id;
        match self.db.engine.table_changer().drop_index(id) {
            Err(Error::NoSuchTable { .. }) => Err(self.no_index(name)),
            done => done,
        }
    }

    /// What a state says of an index. None if the index has no state record.
    fn info(&self, state: &State, slot: &IndexSlot) -> Result<Option<IndexInfo>> {
        let known = state_of(&self.db, state, state.visible(), slot.id)?;
        let mut stats = figures(state.table(slot.id)?);
        // The state record is no entry.
        stats.records_estimate = stats.records_estimate.saturating_sub(1);
        let info = |k: IndexState| IndexInfo {
            name: slot.name.to_string(),
            spec: k.spec,
            is_ready: k.next.is_none(),
            stats,
        };
        Ok(known.map(info))
    }

    /// The id of an index and what is known of it. An index that has lost its state record is dropped.
    fn known(&self, name: &str) -> Result<Option<(u32, IndexInfo)>> {
        let engine = &self.db.engine;
        let mut is_settled = false;
        loop {
            let state = engine.state.load_full();
            engine.life.check()?;
            let list = &self.of(&state)?.indexes;
            let slot = list.iter().flat_map(|list| list.iter()).find(|slot| *slot.name == *name);
            let Some(slot) = slot else { return Ok(None) };
            if let Some(info) = self.info(&state, slot)? {
                return Ok(Some((slot.id, info)));
            }
            if is_settled {
                return match engine.table_changer().drop_index(slot.id) {
                    Ok(()) | Err(Error::NoSuchTable { .. }) => Ok(None),
                    Err(e) => Err(e),
                };
            }
            // Perhaps another thread is making it.
            drop(engine.table_changer().keep());
            is_settled = true;
        }
    }

    /// The hidden table of an index.
    fn entries(&self, id: u32, name: &str) -> Table {
        let kind = crate::base::key::TableKind::Ordered;
        Table { db: self.db.clone(), id, kind, name: name_of(self.id, name).into() }
    }

    #[cold]
    fn no_index(&self, name: &str) -> Error {
        Error::NoSuchIndex { table: self.name.to_string(), name: name.into() }
    }
}

/// Whether the index cannot be because of the table's records.
fn is_of_the_records(e: &Error) -> bool {
    use Error::{Invalid, NotUnique, TooLarge, WrongType};
    matches!(e, NotUnique { .. } | TooLarge { .. } | Invalid { .. } | WrongType { .. })
}

/// Refuses an index of another specification.
fn same_spec(name: &str, wanted: &IndexSpec, known: &str) -> Result<()> {
    if IndexSpec::parse(known)? == *wanted {
        return Ok(());
    }
    let detail = format!(
        "there is an index {name:?} already, and it is of {known:?}, not of {:?}",
        wanted.to_string()
    );
    Err(Error::Invalid { detail })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::storage::MemStorage;
    use crate::{Db, Error, Options, TableKind};

    #[test]
    fn a_builder_that_gives_up_leaves_what_another_has_completed() {
        let options = Options::new().memory_bytes(8 << 20);
        let db = Db::open_on(&MemStorage::default(), "/g.azk", options).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.create_index("ready", "v unique").unwrap();
        let (id, _) = t.known("ready").unwrap().unwrap();
        assert!(t.give_up(&t.entries(id, "ready")).unwrap());
        assert_eq!(t.index("ready").unwrap().count(&[]).unwrap(), 0);
        let id =
            db.engine.table_changer().create_index(t.id, "begun", &"v".parse().unwrap()).unwrap().unwrap();
        assert!(!t.give_up(&t.entries(id, "begun")).unwrap());
        let names: Vec<String> = t.indexes().unwrap().into_iter().map(|index| index.name).collect();
        assert_eq!(names, ["ready"]);
    }

    #[test]
    fn a_builder_finds_no_duplicates_in_an_index_that_another_has_given_up() {
        let options = Options::new().memory_bytes(8 << 20);
        let db = Db::open_on(&MemStorage::default(), "/g.azk", options).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put_many([("a", "1"), ("b", "1")]).unwrap();
        let spec = "v unique".parse().unwrap();
        let id = db.engine.table_changer().create_index(t.id, "u", &spec).unwrap().unwrap();
        let entries = t.entries(id, "u");
        let mut txn = db.write();
        txn.build_step(&t, &entries, &spec, 10).unwrap();
        assert!(!t.give_up(&entries).unwrap());
        let refused = txn.commit();
        assert!(matches!(refused, Err(Error::NoSuchTable { .. })), "{refused:?}");
    }
}
