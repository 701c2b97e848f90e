//! The tables of a state, by id.
//!
//! A state is copied whenever a table changes its structure, so the copy must not cost what all tables
//! cost. Tables stand in leaves of at most `LEAF_TABLES`, which copies share. Only the leaf of a changed
//! table is copied, once if several change in one step. Ids stand beside the references, so a search
//! touches no table but the one that it finds. Each leaf says how many of its tables have runs, so a search
//! for runs passes over leaves without any.

use super::state::TableState;
use std::sync::Arc;

/// Tables of one leaf. With 16,000 tables, copying a leaf costs as much as copying the list of leaves.
const LEAF_TABLES: usize = 128;

/// Some tables in the order of their ids, never none.
#[derive(Clone)]
struct Leaf {
    /// The smallest id.
    first: u32,
    /// How many of its tables have runs.
    with_runs: usize,
    tables: Arc<Vec<(u32, Arc<TableState>)>>,
}

/// Tables in ascending order of id.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    /// The table, if it is the only one: the shortest way to it.
    only: Option<Arc<TableState>>,
    leaves: Vec<Leaf>,
    len: usize,
}

impl Leaf {
    fn place(&self, id: u32) -> Result<usize, usize> {
        self.tables.binary_search_by_key(&id, |t| t.0)
    }
}

impl Tables {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The table of an id.
    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<TableState>> {
        match &self.only {
            Some(one) if one.id == id => Some(one),
            _ => self.find(id),
        }
    }

    #[inline]
    fn find(&self, id: u32) -> Option<&Arc<TableState>> {
        let leaf = self.leaves.get(self.leaf_of(id))?;
        leaf.place(id).ok().map(|i| &leaf.tables[i].1)
    }

    /// The leaf in which an id has its place: the last that does not begin above it.
    #[inline(always)]
    fn leaf_of(&self, id: u32) -> usize {
        match self.leaves.len() {
            0 | 1 => 0,
            _ => self.leaves.partition_point(|l| l.first <= id).saturating_sub(1),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.leaves.iter().flat_map(|l| l.tables.iter().map(|t| &t.1))
    }

    /// The tables that have runs.
    pub(crate) fn with_runs(&self) -> impl Iterator<Item = &Arc<TableState>> {
        let leaves = self.leaves.iter().filter(|l| l.with_runs > 0);
        leaves.flat_map(|l| l.tables.iter().map(|t| &t.1)).filter(|t| !t.levels.is_empty())
    }

    /// Adds a table, or puts it in the place of the one that has its id.
    pub(crate) fn set(&mut self, table: TableState) {
        let (id, with_runs) = (table.id, usize::from(!table.levels.is_empty()));
        let table = Arc::new(table);
        let at = self.leaf_of(id);
        let full = self.leaves.get(at).is_none_or(|l| l.tables.len() >= LEAF_TABLES && l.place(id).is_err());
        if full {
            self.add_to_full(at, id, with_runs, table.clone());
        } else {
            let leaf = &mut self.leaves[at];
            let place = leaf.place(id);
            let tables = Arc::make_mut(&mut leaf.tables);
            leaf.with_runs += with_runs;
            match place {
                Ok(i) => {
                    let old = std::mem::replace(&mut tables[i].1, table.clone());
                    leaf.with_runs -= usize::from(!old.levels.is_empty());
                }
                Err(i) => {
                    tables.insert(i, (id, table.clone()));
                    leaf.first = tables[0].0;
                    self.len += 1;
                }
            }
        }
        self.only = (self.len == 1).then_some(table);
    }

    /// As `set`, of a new table whose leaf is full. Most are newer than all others, and begin a leaf.
    fn add_to_full(&mut self, at: usize, id: u32, with_runs: usize, table: Arc<TableState>) {
        let newest = self
            .leaves
            .get(at)
            .is_none_or(|l| at + 1 == self.leaves.len() && l.tables.last().is_none_or(|t| t.0 < id));
        self.len += 1;
        if newest {
            self.leaves.push(Leaf { first: id, with_runs, tables: Arc::new(vec![(id, table)]) });
            return;
        }
        let mut low = self.leaves[at].tables.to_vec();
        let place = low.partition_point(|t| t.0 < id);
        low.insert(place, (id, table));
        let high = low.split_off(low.len() / 2);
        self.leaves.splice(at..=at, [leaf_of(low), leaf_of(high)]);
    }

    /// Takes a table away.
    pub(crate) fn remove(&mut self, id: u32) {
        let at = self.leaf_of(id);
        let Some(leaf) = self.leaves.get_mut(at) else { return };
        let Ok(i) = leaf.place(id) else { return };
        let (_, old) = Arc::make_mut(&mut leaf.tables).remove(i);
        leaf.with_runs -= usize::from(!old.levels.is_empty());
        match leaf.tables.first() {
            Some(first) => leaf.first = first.0,
            None => drop(self.leaves.remove(at)),
        }
        self.len -= 1;
        self.only = if self.len == 1 { self.iter().next().cloned() } else { None };
    }

    /// Whether both have the same tables by the same names.
    pub(crate) fn are_named_as(&self, other: &Tables) -> bool {
        let same = |a: &Leaf, b: &Leaf| Arc::ptr_eq(&a.tables, &b.tables);
        let alike = self.leaves.len() == other.leaves.len();
        if alike && self.leaves.iter().zip(&other.leaves).all(|(a, b)| same(a, b)) {
            return true;
        }
        self.len == other.len && self.iter().zip(other.iter()).all(|(a, b)| a.id == b.id && a.name == b.name)
    }
}

fn leaf_of(tables: Vec<(u32, Arc<TableState>)>) -> Leaf {
    let with_runs = tables.iter().filter(|t| !t.1.levels.is_empty()).count();
    Leaf { first: tables.first().map_or(0, |t| t.0), with_runs, tables: Arc::new(tables) }
}

/// By place, for tests: the first table is at 0.
#[cfg(test)]
impl std::ops::Index<usize> for Tables {
    type Output = Arc<TableState>;

    fn index(&self, place: usize) -> &Arc<TableState> {
        self.iter().nth(place).expect("there are fewer tables")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::key::TableKind;
    use std::collections::BTreeSet;

    #[test]
    fn tables_agree_with_a_set_of_ids_and_copies_stay_as_they_were() {
        let mut x = 7u64;
        let mut next = move |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (x >> 33) % n
        };
        let (mut tables, mut ids) = (Tables::default(), BTreeSet::new());
        let mut copies = Vec::new();
        for step in 0..6000u32 {
            let id = if step < 1000 { step * 3 } else { next(4000) as u32 };
            if step >= 1000 && next(3) == 0 {
                tables.remove(id);
                ids.remove(&id);
            } else {
                tables.set(TableState::new(id, TableKind::Ordered, "t".into()));
                ids.insert(id);
            }
            if step % 1000 == 0 {
                copies.push((tables.clone(), ids.clone()));
            }
        }
        copies.push((tables, ids));
        for (tables, ids) in copies {
            assert!(tables.iter().map(|t| t.id).eq(ids.iter().copied()));
            assert_eq!(tables.len(), ids.len());
            for id in 0..4000 {
                assert_eq!(tables.get(id).map(|t| t.id), ids.get(&id).copied());
            }
            assert!(tables.leaves.iter().all(|l| l.tables.len() <= LEAF_TABLES && l.first == l.tables[0].0));
        }
    }

    #[test]
    fn a_change_copies_one_leaf() {
        let mut tables = Tables::default();
        (0..10_000).for_each(|id| tables.set(TableState::new(id, TableKind::Ordered, "t".into())));
        let mut changed = tables.clone();
        changed.set(TableState::new(5000, TableKind::Ordered, "other".into()));
        let shared =
            tables.leaves.iter().zip(&changed.leaves).filter(|(a, b)| Arc::ptr_eq(&a.tables, &b.tables));
        assert_eq!(shared.count() + 1, tables.leaves.len());
        assert!(!tables.are_named_as(&changed) && tables.are_named_as(&tables.clone()));
    }
}
