//! Records on their way to whoever writes their shard, many in one byte string.
//!
//! What distributes the work (Spark, say) has a cost for each row that it moves and sorts, a hundred times
//! that of writing a record. So it moves packs. A shard is divided into slices, ranges of hashes of one size,
//! and a pack has records of one slice, in no order. Where they are written the packs come in the order of
//! their slices. All packs of a slice are gathered there, their records sorted, and given out.
//!
//! ```text
//! slice                             4 bytes, little-endian
//! records, each:  length of the key      4 bytes, if keys differ in it
//!                 length of the value    4 bytes, if values differ in it
//!                 key, value
//! ```

use crate::error::invalid;
use crate::order::shown;
use crate::row::RowForm;
use crate::spec::{Spec, shard_of_hash};
use azekura::{Result, TableKind, hash_of};

/// All shards together have so many slices, if they are fewer: a slice is in memory where it is sorted.
const SLICES: u32 = 1 << 14;
/// A shard has so many at most.
const SLICES_OF_SHARD_MAX: u32 = 64;
/// A pack is full when it has so many bytes.
const PACK_BYTES: usize = 256 << 10;
/// When all packs at hand have so many bytes, they are given out.
const PACKS_BYTES: usize = 64 << 20;
const SLICE_BYTES: usize = 4;

/// How records are laid out in packs, and which slice is theirs.
#[derive(Debug, Clone)]
struct Form {
    seed: u64,
    /// How many there are of a shard, and of all shards.
    slices_of_shard: u32,
    slices: u32,
    /// The lengths of keys and of values, where all have one.
    lengths: [Option<usize>; 2],
}

impl Form {
    fn of(spec: &Spec) -> Result<Form> {
        spec.check()?;
        if spec.kind != TableKind::Hash {
            return Err(invalid("records of ordered tables have no hashes: they are not packed".to_owned()));
        }
        let slices_of_shard = (SLICES / spec.shards).clamp(1, SLICES_OF_SHARD_MAX);
        let key = if let [one] = &*spec.key { one.of.width() } else { None };
        let lengths = [key, RowForm::of(&spec.value).width()];
        let slices = spec.shards * slices_of_shard;
        Ok(Form { seed: spec.hash_seed, slices_of_shard, slices, lengths })
    }
}

/// Records of one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// The shard that has them.
    pub shard: u32,
    /// Their slice, of all shards' slices in the order of hashes.
    pub slice: u32,
    /// The pack.
    pub bytes: Vec<u8>,
}

/// Makes packs of records, which come in any order.
#[derive(Debug)]
pub struct Packer {
    form: Form,
    /// The pack at hand of each slice. An empty one has no bytes at all.
    open: Vec<Vec<u8>>,
    bytes: usize,
    full: Vec<Pack>,
}

impl Packer {
    /// A packer for a set of hash tables.
    ///
    /// # Errors
    /// `Invalid` if the set is of ordered tables, or can be none.
    pub fn new(spec: &Spec) -> Result<Packer> {
        let form = Form::of(spec)?;
        let open = (0..form.slices).map(|_| Vec::new()).collect();
        Ok(Packer { form, open, bytes: 0, full: Vec::new() })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `Invalid` if the key or the value has not the length that the set's columns say, or 4 GiB.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let slice = shard_of_hash(hash_of(key, self.form.seed), self.form.slices);
        let pack = &mut self.open[place(slice)];
        let before = pack.len();
        if before == 0 {
            pack.extend_from_slice(&slice.to_le_bytes());
        }
        for (part, due) in [key, value].into_iter().zip(self.form.lengths) {
            match (due, u32::try_from(part.len())) {
                (Some(due), _) if due == part.len() => {}
                (None, Ok(len)) => pack.extend_from_slice(&len.to_le_bytes()),
                _ => {
                    pack.truncate(before);
                    return Err(wrong_length(part, due));
                }
            }
        }
        pack.extend_from_slice(key);
        pack.extend_from_slice(value);
        let len = pack.len();
        self.bytes += len - before;
        if len >= PACK_BYTES {
            self.close(slice);
        } else if self.bytes >= PACKS_BYTES {
            self.close_all();
        }
        Ok(())
    }

    fn close(&mut self, slice: u32) {
        let bytes = self.open.get_mut(place(slice)).map(std::mem::take).unwrap_or_default();
        if !bytes.is_empty() {
            self.bytes -= bytes.len();
            self.full.push(Pack { shard: slice / self.form.slices_of_shard, slice, bytes });
        }
    }

    fn close_all(&mut self) {
        (0..self.form.slices).for_each(|slice| self.close(slice));
    }

    /// The packs that have become full since the last call.
    pub fn take_full(&mut self) -> Vec<Pack> {
        std::mem::take(&mut self.full)
    }

    /// All packs that are left.
    pub fn finish(mut self) -> Vec<Pack> {
        self.close_all();
        self.full
    }
}

/// Where the pack of a slice is.
fn place(slice: u32) -> usize {
    usize::try_from(slice).unwrap_or(usize::MAX)
}

#[cold]
fn wrong_length(part: &[u8], due: Option<usize>) -> azekura::Error {
    let due = due.map_or_else(|| "less than 4 GiB".to_owned(), |due| due.to_string());
    invalid(format!("{} has {} bytes, and {due} are due", shown(part), part.len()))
}

/// Gives out the records of packs in the order of their hashes. The packs come in the order of their slices.
#[derive(Debug)]
pub struct Unpacker {
    form: Form,
    /// The slice that is gathered, if any is.
    slice: Option<u32>,
    bytes: Vec<u8>,
    /// Of each record its hash, and where it begins in `bytes`.
    records: Vec<(u64, usize)>,
}

impl Unpacker {
    /// An unpacker of what a [`Packer`] for such a set has made.
    ///
    /// # Errors
    /// As [`Packer::new`].
    pub fn new(spec: &Spec) -> Result<Unpacker> {
        Ok(Unpacker { form: Form::of(spec)?, slice: None, bytes: Vec::new(), records: Vec::new() })
    }

    /// Takes a pack. `put` gets the records of the slice before, if this is of another one: their shard, keys
    /// and values.
    ///
    /// # Errors
    /// `Invalid` if it is no pack, or its slice comes before the last one. What `put` returns.
    pub fn add(&mut self, pack: &[u8], put: impl FnMut(u32, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let Some((slice, records)) = pack.split_first_chunk::<SLICE_BYTES>() else {
            return Err(no_pack(pack));
        };
        let slice = u32::from_le_bytes(*slice);
        if slice >= self.form.slices {
            return Err(no_pack(pack));
        }
        if let Some(before) = self.slice.filter(|&before| before != slice) {
            if before > slice {
                return Err(invalid(format!(
                    "a pack of slice {slice} comes after one of slice {before}: packs have to be sorted"
                )));
            }
            self.give(put)?;
        }
        self.slice = Some(slice);
        self.gather(records).ok_or_else(|| no_pack(pack))
    }

    /// Adds the records of a pack to those that are gathered, or none of them.
    fn gather(&mut self, records: &[u8]) -> Option<()> {
        let (base, before) = (self.bytes.len(), self.records.len());
        let mut rest = records;
        while !rest.is_empty() {
            let at = base + (records.len() - rest.len());
            let Some((key, _, after)) = record(&self.form.lengths, rest) else {
                self.records.truncate(before);
                return None;
            };
            self.records.push((hash_of(key, self.form.seed), at));
            rest = after;
        }
        self.bytes.extend_from_slice(records);
        Some(())
    }

    /// Gives out what is gathered.
    fn give(&mut self, mut put: impl FnMut(u32, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let Some(slice) = self.slice.take() else { return Ok(()) };
        let shard = slice / self.form.slices_of_shard;
        self.records.sort_unstable();
        let given = self.records.iter().try_for_each(|&(_, at)| {
            let (key, value, _) =
                record(&self.form.lengths, &self.bytes[at..]).ok_or_else(|| no_pack(&[]))?;
            put(shard, key, value)
        });
        self.records.clear();
        self.bytes.clear();
        given
    }

    /// Gives out the last slice.
    ///
    /// # Errors
    /// What `put` returns.
    pub fn finish(mut self, put: impl FnMut(u32, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.give(put)
    }
}

#[cold]
fn no_pack(pack: &[u8]) -> azekura::Error {
    invalid(format!("{} of {} bytes is no pack of this set", shown(pack), pack.len()))
}

/// A record, and what follows it.
#[inline]
fn record<'a>(lengths: &[Option<usize>; 2], mut rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let mut len = |due: Option<usize>| match due {
        Some(due) => Some(due),
        None => {
            let (len, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            usize::try_from(u32::from_le_bytes(*len)).ok()
        }
    };
    let (key, value) = (len(lengths[0])?, len(lengths[1])?);
    let (key, rest) = rest.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    Some((key, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Column, ColumnType};
    use std::collections::BTreeMap;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        fn bytes(&mut self, len: usize) -> Vec<u8> {
            (0..len).map(|_| u8::try_from(self.below(256)).unwrap()).collect()
        }
    }

    fn spec(shards: u32, key: ColumnType, values: &[(ColumnType, bool)]) -> Spec {
        let column = |(i, &(of, nullable)): (usize, &(ColumnType, bool))| Column {
            name: format!("v{i}"),
            of,
            nullable,
        };
        let value = values.iter().enumerate().map(column).collect();
        Spec { key: vec![Column::new("k", key)], value, hash_seed: 77, ..Spec::hash(shards) }
    }

    /// All records come back, by shards, in the order of their hashes, each in its shard.
    fn goes_there_and_back(spec: &Spec, records: &BTreeMap<Vec<u8>, Vec<u8>>, random: &mut Random) {
        let mut packs = Vec::new();
        for half in 0..2 {
            let mut packer = Packer::new(spec).expect("a packer");
            for (key, value) in records.iter().skip(half).step_by(2) {
                packer.put(key, value).expect("a record");
                packs.extend(packer.take_full());
            }
            packs.extend(packer.finish());
        }
        for i in (1..packs.len()).rev() {
            packs.swap(i, usize::try_from(random.below(i as u64 + 1)).unwrap());
        }
        packs.sort_by_key(|pack| pack.slice);
        let mut unpacker = Unpacker::new(spec).expect("an unpacker");
        let (mut back, mut last) = (BTreeMap::new(), None);
        let mut put = |shard: u32, key: &[u8], value: &[u8]| {
            assert_eq!(spec.shard_of(key), Some(shard));
            let hash = hash_of(key, spec.hash_seed);
            assert!(last.is_none_or(|last| last <= hash));
            last = Some(hash);
            assert!(back.insert(key.to_vec(), value.to_vec()).is_none());
            Ok(())
        };
        for pack in &packs {
            assert!(!pack.bytes.is_empty() && pack.shard < spec.shards);
            unpacker.add(&pack.bytes, &mut put).expect("a pack");
        }
        unpacker.finish(&mut put).expect("the last");
        assert!(back == *records);
    }

    #[test]
    fn records_come_back_in_the_order_of_their_hashes() {
        let mut random = Random(0x5eed_1234_5678);
        for shards in [1, 3, 512, 65_536] {
            let fixed = spec(shards, ColumnType::I64, &[(ColumnType::I32, false), (ColumnType::U16, false)]);
            let records = (0..5000).map(|_| (random.bytes(8), random.bytes(6))).collect();
            goes_there_and_back(&fixed, &records, &mut random);
            let varied = spec(shards, ColumnType::Str, &[(ColumnType::I32, true)]);
            let mut of = |max| {
                let len = usize::try_from(random.below(max)).unwrap();
                random.bytes(len)
            };
            let records = (0..5000).map(|_| (of(20), of(9))).collect();
            goes_there_and_back(&varied, &records, &mut random);
            goes_there_and_back(&varied, &BTreeMap::new(), &mut random);
            let keys_only = spec(shards, ColumnType::I16, &[]);
            let records = (0..2000).map(|_| (random.bytes(2), Vec::new())).collect();
            goes_there_and_back(&keys_only, &records, &mut random);
        }
    }

    #[test]
    fn long_values_fill_packs_and_memory_is_bounded() {
        let spec = spec(2, ColumnType::I64, &[(ColumnType::Bytes, false)]);
        let mut packer = Packer::new(&spec).expect("a packer");
        let value = vec![7; 100_000];
        let mut most = 0;
        for i in 0..3000_u64 {
            packer.put(&i.to_be_bytes(), &value).expect("a record");
            most = most.max(packer.bytes);
            let full = packer.take_full();
            assert!(full.iter().all(|pack| pack.bytes.len() < PACK_BYTES + 200_000));
        }
        assert!(most < PACKS_BYTES + 200_000, "{most}");
    }

    #[test]
    fn what_is_no_pack_is_an_error() {
        let spec = spec(4, ColumnType::I64, &[(ColumnType::Str, false)]);
        let mut packer = Packer::new(&spec).expect("a packer");
        assert!(packer.put(b"short", b"").expect_err("refused").to_string().contains("8 are due"));
        for i in 0..500_u64 {
            packer.put(&i.to_be_bytes(), b"text").expect("a record");
        }
        let packs = packer.finish();
        let none = |_: u32, _: &[u8], _: &[u8]| Ok(());
        let refused = |bytes: &[u8]| {
            let mut unpacker = Unpacker::new(&spec).expect("an unpacker");
            unpacker.add(bytes, none).expect_err("refused").to_string()
        };
        let pack = &packs[0].bytes;
        for cut in (0..pack.len()).filter(|cut| *cut < 4 || (cut - 4) % 16 != 0) {
            assert!(refused(&pack[..cut]).contains("is no pack"), "{cut}");
        }
        assert!(refused(&u32::MAX.to_le_bytes()).contains("is no pack"));
        let mut wrong = pack.clone();
        wrong[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(refused(&wrong).contains("is no pack"));
        let mut unpacker = Unpacker::new(&spec).expect("an unpacker");
        unpacker.add(&packs[0].bytes, none).expect("a pack");
        unpacker.add(&wrong, none).expect_err("no pack");
        let mut given = 0;
        let count = |_: u32, _: &[u8], _: &[u8]| {
            given += 1;
            Ok(())
        };
        unpacker.finish(count).expect("the good pack");
        assert_eq!(given, (packs[0].bytes.len() - 4) / 16);
        let mut unpacker = Unpacker::new(&spec).expect("an unpacker");
        unpacker.add(&packs[1].bytes, none).expect("a pack");
        assert!(unpacker.add(&packs[0].bytes, none).expect_err("late").to_string().contains("to be sorted"));
        assert!(Packer::new(&Spec::ordered(2)).is_err() && Unpacker::new(&Spec::hash(0)).is_err());
    }
}
