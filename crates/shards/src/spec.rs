//! What a set is: its kind, its shards, and the columns of its keys and values.

use crate::error::invalid;
use azekura::{Result, TableKind, hash_of};
use serde::{Deserialize, Serialize};

/// A set has so many shards at most.
pub const SHARDS_MAX: u32 = 1 << 16;
/// It has so many columns at most.
const COLUMNS_MAX: usize = 1024;
/// The name of a column has so many bytes at most.
const COLUMN_NAME_BYTES_MAX: usize = 1024;

/// The type of a column. Its bytes are those of the engine's typed tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "they are named as Rust names them")]
pub enum ColumnType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// Text.
    Str,
    /// Any bytes.
    Bytes,
    /// Days since 1970, as `I32`.
    Date,
    /// Microseconds since 1970 (UTC), as `I64`.
    Timestamp,
    /// Microseconds since 1970 by a clock of no zone, as `I64`.
    TimestampNtz,
}

impl ColumnType {
    /// How many bytes each value has; none if they differ.
    pub fn width(self) -> Option<usize> {
        use ColumnType::*;
        match self {
            Bool | I8 | U8 => Some(1),
            I16 | U16 => Some(2),
            I32 | U32 | F32 | Date => Some(4),
            I64 | U64 | F64 | Timestamp | TimestampNtz => Some(8),
            Str | Bytes => None,
        }
    }
}

/// A column of keys or values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub of: ColumnType,
    /// Whether values may be missing. No part of a key may.
    #[serde(default)]
    pub nullable: bool,
}

impl Column {
    /// A column in which no value is missing.
    pub fn new(name: impl Into<String>, of: ColumnType) -> Column {
        Column { name: name.into(), of, nullable: false }
    }
}

/// What a set is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// How records are ordered, and so divided among the shards.
    #[serde(with = "kinds")]
    pub kind: TableKind,
    /// How many shards there are at most.
    pub shards: u32,
    /// The seed of the hashes, in all shards of all versions that are to be merged.
    #[serde(with = "crate::manifest::hex64")]
    pub hash_seed: u64,
    /// The columns of keys. Several are the parts of a tuple.
    pub key: Vec<Column>,
    /// The columns of values. [`RowForm`](crate::RowForm) says what several of them are as bytes.
    pub value: Vec<Column>,
}

impl Spec {
    /// A set of hash tables, of plain bytes.
    pub fn hash(shards: u32) -> Spec {
        let column = |name: &str| vec![Column::new(name, ColumnType::Bytes)];
        Spec { kind: TableKind::Hash, shards, hash_seed: 0, key: column("key"), value: column("value") }
    }

    /// A set of ordered tables, of plain bytes.
    pub fn ordered(shards: u32) -> Spec {
        Spec { kind: TableKind::Ordered, ..Spec::hash(shards) }
    }

    /// The shard of a key, in a set of hash tables. In a set of ordered tables a key may be in any shard
    /// until a version is committed.
    pub fn shard_of(&self, key: &[u8]) -> Option<u32> {
        (self.kind == TableKind::Hash).then(|| shard_of_hash(hash_of(key, self.hash_seed), self.shards))
    }

    /// Refuses what no set can be.
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=SHARDS_MAX).contains(&self.shards) {
            return Err(invalid(format!("{} shards: there may be 1 to {SHARDS_MAX}", self.shards)));
        }
        let columns = || self.key.iter().chain(&self.value);
        let count = columns().count();
        if self.key.is_empty() || count > COLUMNS_MAX {
            let keys = self.key.len();
            return Err(invalid(format!(
                "{count} columns, {keys} of them of the key: 1 to {COLUMNS_MAX} may be"
            )));
        }
        if let Some(column) = self.key.iter().find(|column| column.nullable) {
            return Err(invalid(format!("the column {:?} of the key may have no nulls", column.name)));
        }
        if let Some(column) = columns().find(|column| column.name.len() > COLUMN_NAME_BYTES_MAX) {
            let bytes = column.name.len();
            return Err(invalid(format!(
                "a column's name of {bytes} bytes: {COLUMN_NAME_BYTES_MAX} are allowed"
            )));
        }
        let mut names: Vec<&str> = columns().map(|column| column.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(invalid(format!("two columns are named {:?}", pair[0]))),
            None => Ok(()),
        }
    }
}

/// The shard of a hash: its top, whatever the number of shards is. So the hashes of a shard are a range.
pub(crate) fn shard_of_hash(hash: u64, shards: u32) -> u32 {
    let scaled = (u128::from(hash) * u128::from(shards)) >> 64;
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

mod kinds {
    use azekura::TableKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(kind: &TableKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match kind {
            TableKind::Hash => "hash",
            TableKind::Ordered => "ordered",
        })
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TableKind, D::Error> {
        match &*String::deserialize(from)? {
            "hash" => Ok(TableKind::Hash),
            "ordered" => Ok(TableKind::Ordered),
            other => Err(D::Error::custom(format!("a kind is hash or ordered, not {other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_a_shard_are_a_range_and_all_shards_are_of_one_size() {
        for shards in [1, 2, 3, 7, 512, 1000, SHARDS_MAX] {
            assert_eq!(shard_of_hash(0, shards), 0);
            assert_eq!(shard_of_hash(u64::MAX, shards), shards - 1);
            let step = u64::MAX / 100_003;
            let places: Vec<u32> = (0..100_003).map(|i| shard_of_hash(i * step, shards)).collect();
            assert!(places.is_sorted());
            if shards <= 1000 {
                let mut counts = vec![0_u32; usize::try_from(shards).unwrap()];
                places.iter().for_each(|&place| counts[usize::try_from(place).unwrap()] += 1);
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                assert!(most - least <= 1, "{shards} shards: {least} to {most}");
            }
        }
    }

    #[test]
    fn what_no_set_can_be_is_refused() {
        let refused = |change: &dyn Fn(&mut Spec)| {
            let mut spec = Spec::hash(4);
            change(&mut spec);
            spec.check().expect_err("refused").to_string()
        };
        assert!(refused(&|spec| spec.shards = 0).contains("0 shards"));
        assert!(refused(&|spec| spec.shards = SHARDS_MAX + 1).contains("65537 shards"));
        assert!(refused(&|spec| spec.key.clear()).contains("1 columns, 0 of them of the key"));
        assert!(refused(&|spec| spec.key[0].nullable = true).contains("no nulls"));
        assert!(refused(&|spec| spec.value[0].name = "key".into()).contains("two columns"));
        assert!(refused(&|spec| spec.value[0].name = "n".repeat(2000)).contains("2000 bytes"));
        assert!(Spec::ordered(SHARDS_MAX).check().is_ok());
    }
}
