//! Sets become the next version of one of them: one pass over all of them in their common order, which is
//! also how the number of shards is changed. Of each set one shard is open at a time.

use crate::Result;
use crate::draft::Draft;
use crate::error::{damaged, invalid};
use crate::manifest::ShardFile;
use crate::order::hash_in;
use crate::row::RowForm;
use crate::spec::{Column, Spec, shard_of_hash};
use crate::version::{ReadOptions, Version, newest};
use crate::writer::ShardWriter;
use azekura::{Cursor, TableKind};
use std::cmp::Ordering;
use std::path::Path;

/// The attempt's name of what a merge writes.
const ATTEMPT: &str = "merge";
/// Progress is told after so many records.
const TELL_EVERY: u64 = 1 << 16;

/// What a merge has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeReport {
    /// The new version.
    pub version: u32,
    /// Its records.
    pub records: u64,
    /// The records of sets before the last that another one has replaced.
    pub replaced: u64,
}

/// The records of a version, in the order of its shards and of each of them.
struct Source {
    version: Version,
    place: usize,
    cursor: Option<Cursor>,
    /// How many records the cursor has given.
    read: u64,
    /// None at the end.
    hash: Option<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The form of its values and that of the merged set's, if these are not one.
    forms: Option<[RowForm; 2]>,
}

impl Source {
    fn of(version: Version, merged: &Spec) -> Result<Source> {
        let (key, value) = (Vec::new(), Vec::new());
        let forms = [&version.manifest().spec, merged].map(|spec| RowForm::of(&spec.value));
        let forms = (forms[0] != forms[1]).then_some(forms);
        let mut source = Source { version, place: 0, cursor: None, read: 0, hash: None, key, value, forms };
        source.next()?;
        Ok(source)
    }

    fn next(&mut self) -> Result<()> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                let named = |error| self.version.named(self.place, error);
                if let Some((key, value)) = cursor.next().map_err(named)? {
                    let spec = &self.version.manifest().spec;
                    self.read += 1;
                    self.hash = Some(hash_in(spec.kind, key, spec.hash_seed));
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    self.value.clear();
                    let value = value.bytes().map_err(named)?;
                    match &self.forms {
                        None => self.value.extend_from_slice(value),
                        Some(forms) => recode(forms, value, &mut self.value)
                            .map_err(|detail| damaged(&self.version.path_of(self.place), detail))?,
                    }
                    return Ok(());
                }
                self.end_shard()?;
            }
            if self.place == self.version.manifest().files.len() {
                self.hash = None;
                return Ok(());
            }
            self.cursor = Some(self.version.cursor(self.place)?);
        }
    }

    /// Closes the shard that was read, which had all its records.
    fn end_shard(&mut self) -> Result<()> {
        let (read, said) = (self.read, self.version.manifest().files[self.place].records);
        if read != said {
            let path = self.version.path_of(self.place);
            return Err(damaged(&path, format!("it has {read} records, and the manifest says {said}")));
        }
        self.cursor = None;
        self.version.close(self.place);
        self.read = 0;
        self.place += 1;
        Ok(())
    }

    /// The order of the records at which two sources stand: that of their tables. Those at their end come
    /// last.
    fn order(&self, other: &Source) -> Ordering {
        let kind = self.version.manifest().spec.kind;
        match (self.hash, other.hash) {
            (Some(own), Some(its)) => own.cmp(&its).then_with(|| among_equals(kind, &self.key, &other.key)),
            (own, its) => its.is_some().cmp(&own.is_some()),
        }
    }
}

/// Adds a row of the first form to `out` in the second one.
fn recode([from, to]: &[RowForm; 2], row: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), String> {
    let mut cells = Vec::with_capacity(from.columns());
    let decoded = from.decode(row, |_, cell| {
        cells.push(cell);
        Some(())
    });
    decoded.ok_or_else(|| format!("a value of {} bytes is no row of the set", row.len()))?;
    to.encode(&cells, out)
}

/// The order of two keys of one hash in a table of this kind.
fn among_equals(kind: TableKind, a: &[u8], b: &[u8]) -> Ordering {
    if kind == TableKind::Ordered {
        return a.cmp(b);
    }
    // Keys of eight bytes stand there as their hash alone, the empty key as eight zeros behind it.
    let rank = |key: &[u8]| key.len() != 8;
    let bytes = |key: &[u8]| if key.is_empty() { vec![0; 8] } else { key.to_vec() };
    rank(a).cmp(&rank(b)).then_with(|| bytes(a).cmp(&bytes(b)))
}

/// Makes a new version of the set `root`, of the records of its newest version, if it has one, and of those
/// of the newest versions of `others`. Of records with one key the one of the last set counts. The new
/// version has `shards` shards, or as many as the first set. So without others it is how that number is
/// changed. A column may have nulls if it may in one of the sets. `progress` gets how many records of how
/// many were read.
///
/// # Errors
/// `Invalid` if the sets differ in kind, hash seed or columns, if there is none, or if another version was
/// committed meanwhile; `Corrupt` if a shard has not as many records as its manifest says; what reading them
/// meets; `NoSpace`, `Io`. There is no new version then.
pub fn merge(
    root: impl AsRef<Path>,
    others: &[impl AsRef<Path>],
    shards: Option<u32>,
    progress: impl FnMut(u64, u64),
) -> Result<MergeReport> {
    let root = root.as_ref();
    let first = newest(root)?.map(|_| root);
    let paths = first.into_iter().chain(others.iter().map(AsRef::as_ref));
    let versions: Vec<Version> =
        paths.map(|path| Version::open(path, ReadOptions::default())).collect::<Result<_>>()?;
    let base = versions.first().filter(|_| first.is_some()).map(Version::number);
    let mut spec = common(&versions)?;
    spec.shards = shards.unwrap_or(spec.shards);
    let mut sources: Vec<Source> =
        versions.into_iter().map(|version| Source::of(version, &spec)).collect::<Result<_>>()?;
    let draft = Draft::begin(root, &spec)?;
    let merged = write(&draft, &mut sources, progress);
    let committed = merged.and_then(|(files, replaced)| {
        let records = files.iter().map(|file| file.records).sum();
        let version = draft.commit_if(&files, || expect_newest(root, base), |_| Ok(()))?;
        Ok(MergeReport { version, records, replaced })
    });
    if committed.is_err() {
        // The first error is the one to report.
        let _left_behind = draft.abort();
    }
    committed
}

/// Fails if others have committed a version since the merge has begun: it would hide theirs.
fn expect_newest(root: &Path, base: Option<u32>) -> Result<()> {
    match newest(root)? {
        now if now == base => Ok(()),
        Some(now) => Err(invalid(format!("version {now} was committed meanwhile; merge again"))),
        None => Err(invalid("the version that was read was removed meanwhile; merge again".to_owned())),
    }
}

/// What a set is that takes the records of all versions.
fn common(versions: &[Version]) -> Result<Spec> {
    let Some(first) = versions.first() else {
        return Err(invalid("there is no version of a set of shards to merge".to_owned()));
    };
    let mut all = first.manifest().spec.clone();
    for spec in versions.iter().map(|version| &version.manifest().spec) {
        if all.kind != spec.kind {
            return Err(invalid("one set is of hash tables, and another of ordered tables".to_owned()));
        }
        if all.kind == TableKind::Hash && all.hash_seed != spec.hash_seed {
            let seeds = format!("{:016x} and {:016x}", all.hash_seed, spec.hash_seed);
            return Err(invalid(format!("the sets have different hash seeds: {seeds}")));
        }
        expect_alike("key", &all.key, &spec.key)?;
        expect_alike("value", &all.value, &spec.value)?;
        for (column, own) in all.value.iter_mut().zip(&spec.value) {
            column.nullable |= own.nullable;
        }
    }
    Ok(all)
}

fn expect_alike(of: &str, a: &[Column], b: &[Column]) -> Result<()> {
    let said = |column: &Column| format!("{:?} ({:?})", column.name, column.of);
    if a.len() != b.len() {
        return Err(invalid(format!("the {of} of one set has {} columns, of another {}", a.len(), b.len())));
    }
    match a.iter().zip(b).find(|(a, b)| (&a.name, a.of) != (&b.name, b.of)) {
        None => Ok(()),
        Some((a, b)) => {
            let (a, b) = (said(a), said(b));
            Err(invalid(format!("a column of the {of} is {a} in one set, and {b} in another")))
        }
    }
}

fn write(
    draft: &Draft,
    sources: &mut [Source],
    mut progress: impl FnMut(u64, u64),
) -> Result<(Vec<ShardFile>, u64)> {
    let total: u64 = sources.iter().map(|source| source.version.manifest().records).sum();
    let (mut read, mut replaced) = (0, 0);
    let mut out =
        Output { draft, each: total.div_ceil(draft.spec().shards.into()), now: None, files: Vec::new() };
    loop {
        let least = (0..sources.len()).min_by(|&a, &b| sources[a].order(&sources[b])).unwrap_or(0);
        let Some(hash) = sources[least].hash else { break };
        let equal: Vec<usize> =
            (0..sources.len()).filter(|&i| sources[i].order(&sources[least]) == Ordering::Equal).collect();
        let last = equal[equal.len() - 1];
        out.put(hash, &sources[last].key, &sources[last].value)?;
        for &i in &equal {
            sources[i].next()?;
            read += 1;
            if read % TELL_EVERY == 0 {
                progress(read, total);
            }
        }
        replaced += u64::try_from(equal.len() - 1).unwrap_or(0);
    }
    progress(read, total);
    Ok((out.finish()?, replaced))
}

/// The shards of the new version, one after the other.
struct Output<'a> {
    draft: &'a Draft,
    /// How many records a shard of an ordered set has.
    each: u64,
    now: Option<ShardWriter>,
    files: Vec<ShardFile>,
}

impl Output<'_> {
    fn put(&mut self, hash: u64, key: &[u8], value: &[u8]) -> Result<()> {
        let spec = self.draft.spec();
        let shard = match (spec.kind, &self.now) {
            (TableKind::Hash, _) => shard_of_hash(hash, spec.shards),
            (TableKind::Ordered, None) => 0,
            (TableKind::Ordered, Some(now)) => now.shard() + u32::from(now.records() >= self.each),
        };
        if self.now.as_ref().is_none_or(|now| now.shard() != shard) {
            self.close()?;
            self.now = Some(self.draft.writer(shard, ATTEMPT)?);
        }
        self.now.as_mut().map_or(Ok(()), |now| now.put(key, value))
    }

    fn close(&mut self) -> Result<()> {
        self.files.extend(self.now.take().map(ShardWriter::finish).transpose()?);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ShardFile>> {
        self.close()?;
        Ok(self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_hash_are_ordered_as_tables_order_them() {
        let before = |a: &[u8], b: &[u8]| among_equals(TableKind::Hash, a, b) == Ordering::Less;
        assert!(before(b"eight by", b"a"));
        assert!(before(b"\0", b""));
        assert!(before(b"", b"\x01"));
        assert!(before(b"a", b"aa"));
        assert_eq!(among_equals(TableKind::Ordered, b"", b"\0"), Ordering::Less);
    }
}
