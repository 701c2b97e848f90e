//! Going somewhere. The sources follow at the next step.

use super::{Cursor, CursorPosition};
use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, TableKind};

impl Cursor {
    /// Goes before the first record.
    pub fn seek_first(&mut self) {
        self.send(CursorPosition::Start);
    }

    /// Goes after the last record.
    pub fn seek_last(&mut self) {
        self.send(CursorPosition::End);
    }

    /// Goes to a key: `next` then gives the first record at or above it, `prev` the last below.
    /// Ordered tables only.
    ///
    /// # Errors
    /// `WrongType` for a hash table.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        if self.kind != TableKind::Ordered {
            return Err(Error::WrongType { detail: "a hash table has no order to seek in".into() });
        }
        self.at.clear();
        self.at.extend_from_slice(key.as_ref());
        self.send(CursorPosition::Before);
        Ok(())
    }

    /// Goes to the place of a key in the table's own order, also of a hash table. `next` then gives the
    /// record of the key, or the one after its place if there is none. `prev` gives the one before its place.
    /// So a walk can be resumed by another cursor, after the key that the first one has given last.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-seek-place-{}.azk", std::process::id()));
    /// use azekura::{Db, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let t = db.table("t", TableKind::Hash)?;
    /// t.put_many([("ada", "1"), ("alan", "2"), ("grace", "3")])?;
    /// let keys: Vec<Vec<u8>> = t.iter()?.map(|record| record.unwrap().0).collect();
    /// t.remove(&keys[1])?;
    /// let mut cursor = t.cursor()?;
    /// cursor.seek_place(&keys[1]);
    /// assert_eq!(cursor.next()?.unwrap().0, keys[2]);
    /// cursor.seek_place(&keys[1]);
    /// assert_eq!(cursor.prev()?.unwrap().0, keys[0]);
    /// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn seek_place(&mut self, key: impl AsRef<[u8]>) {
        let mut buf = KeyBuf::new();
        let place = self.kind.sort_key(key.as_ref(), self.db.engine.store.hash_seed, &mut buf);
        self.at.clear();
        self.at.extend_from_slice(place.bytes);
        self.send(CursorPosition::Before);
    }

    fn send(&mut self, place: CursorPosition) {
        self.place = place;
        self.open = 0;
        self.failed = None;
        self.reader.turn_away();
    }
}
