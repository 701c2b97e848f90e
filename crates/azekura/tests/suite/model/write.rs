//! Random writes, done to the engine and to the model alike.

use super::data::Family;
use super::walk::{Map, above, as_bound, below, random_bound};
use crate::common::Rng;
use azekura::{Error, Result, Table, TableKind, WriteTxn};
use std::ops::Bound;
use std::sync::Arc;

/// Where to write to.
pub enum Writer<'a> {
    /// Each write as its own transaction.
    Table,
    /// An open transaction.
    Txn(&'a mut WriteTxn),
}

macro_rules! each {
    ($writer:expr, $table:expr, $method:ident ( $($arg:expr),* )) => {
        match $writer {
            Writer::Table => $table.$method($($arg),*),
            Writer::Txn(w) => w.$method($table, $($arg),*),
        }
    };
}

fn number(value: Option<&Arc<[u8]>>) -> Option<i64> {
    value.map_or(Some(0), |v| <[u8; 8]>::try_from(&v[..]).ok().map(i64::from_le_bytes))
}

fn set(model: &mut Map, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => model.insert(key, value.into()),
        None => model.remove(&key),
    };
}

/// One random write; says what it was.
pub fn write(mut w: Writer<'_>, t: &Table, family: &mut Family, model: &mut Map, rng: &mut Rng) -> String {
    let key = family.random_key(rng);
    let there = model.get(&key).cloned();
    match rng.below(28) {
        0..=3 => {
            let value = family.value(rng);
            each!(&mut w, t, put(&key, &value)).unwrap();
            set(model, key, Some(value));
            "put".into()
        }
        4..=6 => {
            each!(&mut w, t, remove(&key)).unwrap();
            set(model, key, None);
            "remove".into()
        }
        7 => {
            let value = family.value(rng);
            let done = each!(&mut w, t, add(&key, &value)).unwrap();
            assert_eq!(done, there.is_none(), "add");
            if done {
                set(model, key, Some(value));
            }
            "add".into()
        }
        8 => {
            let value = family.value(rng);
            let done = each!(&mut w, t, replace(&key, &value)).unwrap();
            assert_eq!(done, there.is_some(), "replace");
            if done {
                set(model, key, Some(value));
            }
            "replace".into()
        }
        9 => {
            let suffix = family.value(rng);
            each!(&mut w, t, append(&key, &suffix)).unwrap();
            set(model, key, Some([there.as_deref().unwrap_or_default(), &suffix].concat()));
            "append".into()
        }
        10 => {
            let delta = rng.number() as i64;
            let found = each!(&mut w, t, increment(&key, delta));
            match number(there.as_ref()) {
                Some(old) => {
                    assert_eq!(found.unwrap(), old.wrapping_add(delta), "increment");
                    set(model, key, Some(old.wrapping_add(delta).to_le_bytes().to_vec()));
                }
                None => assert!(matches!(found, Err(Error::WrongType { .. })), "increment gave {found:?}"),
            }
            "increment".into()
        }
        11 => {
            let right = rng.one_in(2);
            let expected = if right { there.as_deref().map(<[u8]>::to_vec) } else { Some(family.value(rng)) };
            let new = (!rng.one_in(3)).then(|| family.value(rng));
            let done = each!(&mut w, t, compare_and_swap(&key, expected.as_deref(), new.as_deref())).unwrap();
            assert_eq!(done, expected.as_deref() == there.as_deref(), "compare_and_swap");
            if done {
                set(model, key, new);
            }
            "compare_and_swap".into()
        }
        12 => {
            let new = (!rng.one_in(3)).then(|| family.value(rng));
            each!(
                &mut w,
                t,
                update(&key, |old| {
                    assert_eq!(old, there.as_deref(), "update");
                    new.clone()
                })
            )
            .unwrap();
            set(model, key, new);
            "update".into()
        }
        13 => {
            let found = each!(&mut w, t, take(&key)).unwrap();
            assert_eq!(found.as_deref(), there.as_deref(), "take");
            set(model, key, None);
            "take".into()
        }
        14..=19 => many(w, t, family, model, rng),
        20 => {
            let n = rng.below(2000);
            remove_many(w, t, family, model, n, rng).unwrap();
            format!("remove {n}")
        }
        21 if rng.one_in(4) => {
            each!(w, t, clear()).unwrap();
            model.clear();
            "clear".into()
        }
        21..=23 => remove_range(w, t, family, model, rng),
        24 => {
            let done = each!(w, t, remove_existing(&key)).unwrap();
            assert_eq!(done, there.is_some(), "remove_existing");
            set(model, key, None);
            "remove_existing".into()
        }
        25 => pop(w, t, model, rng),
        26 => drain(w, t, family, model, rng),
        _ => retain(w, t, family, model, rng),
    }
}

/// Puts 1 to 5000 records: new ones in ascending order, or any.
fn many(w: Writer<'_>, t: &Table, family: &mut Family, model: &mut Map, rng: &mut Rng) -> String {
    let most = [3, 60, 800, 5000][rng.below(4) as usize].min(family.space);
    let n = 1 + rng.below(most);
    let form = rng.below(4);
    let mut keys: Vec<Vec<u8>> = match form {
        // The next ones after all there are.
        0 => {
            let from = family.space;
            family.space += n;
            (from..from + n).map(|i| family.key(i)).collect()
        }
        // A stretch of old ones.
        1 => {
            let from = rng.below(family.space - n + 1);
            (from..from + n).map(|i| family.key(i)).collect()
        }
        _ => (0..n).map(|_| family.key(rng.below(family.space))).collect(),
    };
    if form == 1 || form == 2 {
        keys.sort();
    }
    let records: Vec<(Vec<u8>, Vec<u8>)> = keys.into_iter().map(|k| (k, family.value(rng))).collect();
    match w {
        Writer::Table => t.put_many(records.iter().map(|(k, v)| (k, v))).unwrap(),
        Writer::Txn(w) => records.iter().for_each(|(k, v)| w.put(t, k, v).unwrap()),
    }
    model.extend(records.into_iter().map(|(k, v)| (k, v.into())));
    format!("put {n} in form {form}")
}

fn remove_many(w: Writer<'_>, t: &Table, f: &Family, model: &mut Map, n: u64, rng: &mut Rng) -> Result<()> {
    let keys: Vec<Vec<u8>> = (0..n).map(|_| f.key(rng.below(f.space))).collect();
    match w {
        Writer::Table => {
            let mut txn = t_db_write(t);
            keys.iter().try_for_each(|k| txn.remove(t, k))?;
            txn.commit()?;
        }
        Writer::Txn(w) => keys.iter().try_for_each(|k| w.remove(t, k))?,
    }
    keys.iter().for_each(|k| drop(model.remove(k)));
    Ok(())
}

thread_local! {
    /// The database under test: tables do not give theirs.
    pub static DB: std::cell::RefCell<Option<azekura::Db>> = const { std::cell::RefCell::new(None) };
}

fn t_db_write(_: &Table) -> WriteTxn {
    DB.with_borrow(|db| db.as_ref().expect("the database is open").write())
}

/// Two bounds, mostly of some records.
fn bounds(family: &Family, model: &Map, rng: &mut Rng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (a, b) = (family.random_key(rng), family.random_key(rng));
    let (mut a, mut b) = if rng.one_in(20) { (a, b) } else { (a.clone().min(b.clone()), a.max(b)) };
    if rng.one_in(2) {
        // A short one.
        b = model.range(a.clone()..).nth(rng.below(40) as usize).map_or(b, |(k, _)| k.clone());
    } else if rng.one_in(8) {
        a = Vec::new();
    }
    (random_bound(a, rng), random_bound(b, rng))
}

fn remove_range(w: Writer<'_>, t: &Table, family: &Family, model: &mut Map, rng: &mut Rng) -> String {
    let (start, end) = bounds(family, model, rng);
    let (start, end) = (as_bound(&start), as_bound(&end));
    let done = each!(w, t, remove_range((start, end)));
    if t.kind() == TableKind::Hash {
        assert!(matches!(done, Err(Error::WrongType { .. })), "remove_range of a hash table gave {done:?}");
        return "no remove_range".into();
    }
    done.unwrap();
    let before = model.len();
    model.retain(|k, _| !(above(k, start) && below(k, end)));
    format!("remove_range of {}", before - model.len())
}

/// Takes one to three records from an end.
fn pop(mut w: Writer<'_>, t: &Table, model: &mut Map, rng: &mut Rng) -> String {
    let (n, last) = (1 + rng.below(3), rng.one_in(2));
    for _ in 0..n {
        let popped = if last { each!(&mut w, t, pop_last()) } else { each!(&mut w, t, pop_first()) }.unwrap();
        let wanted = match &popped {
            // Which one is the hash's business.
            Some((key, _)) if t.kind() == TableKind::Hash => model.remove_entry(key),
            _ if last => model.pop_last(),
            _ => model.pop_first(),
        };
        let wanted = wanted.map(|(key, value)| (key, value.to_vec()));
        assert!(popped == wanted, "pop (last: {last}) gave {popped:?}, should be {wanted:?}");
    }
    format!("pop {n} (last: {last})")
}

/// A range to walk through: of a hash table the whole.
fn walked(t: &Table, f: &Family, model: &Map, rng: &mut Rng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bounds = bounds(f, model, rng);
    if t.kind() == TableKind::Hash { (Bound::Unbounded, Bound::Unbounded) } else { bounds }
}

fn drain(mut w: Writer<'_>, t: &Table, family: &mut Family, model: &mut Map, rng: &mut Rng) -> String {
    let (start, end) = walked(t, family, model, rng);
    let (start, end) = (as_bound(&start), as_bound(&end));
    let drained = each!(&mut w, t, drain((start, end))).unwrap();
    let gone: Map = model.extract_if(.., |k, _| above(k, start) && below(k, end)).collect();
    if rng.one_in(2) {
        // What was drained is read from the table as it was.
        let (key, value) = (family.random_key(rng), family.value(rng));
        each!(&mut w, t, put(&key, &value)).unwrap();
        set(model, key, Some(value));
    }
    let given: Map = drained.map(|r| r.map(|(k, v)| (k, Arc::from(v))).unwrap()).collect();
    assert!(given == gone, "drain gave {} records, should be {}", given.len(), gone.len());
    format!("drain {}", gone.len())
}

fn retain(w: Writer<'_>, t: &Table, family: &Family, model: &mut Map, rng: &mut Rng) -> String {
    let (start, end) = walked(t, family, model, rng);
    let (start, end) = (as_bound(&start), as_bound(&end));
    let one_in = [1, 2, 2, 50][rng.below(4) as usize];
    let keep = |key: &[u8], value: &[u8]| {
        let sum: u64 = key.iter().chain(value.iter().take(9)).map(|&b| u64::from(b)).sum();
        !sum.is_multiple_of(one_in)
    };
    let gone = each!(w, t, retain((start, end), keep)).unwrap();
    let before = model.len();
    model.retain(|k, v| !(above(k, start) && below(k, end)) || keep(k, v));
    assert_eq!(gone as usize, before - model.len(), "retain");
    format!("retain, without {gone}")
}
