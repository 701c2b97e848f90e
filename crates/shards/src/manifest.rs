//! The manifest of a version: which files it has, and what must be true of them. JSON, so that anything can
//! read it; its first field is a digest of all that follows it.

use crate::error::{damaged, io, not_there};
use crate::names;
use crate::spec::Spec;
use azekura::{Result, TableKind};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// What a manifest says it is.
const FORMAT: &str = "azekura-shards";
/// The newest form of manifests that is understood.
const FORMAT_VERSION: u32 = 1;
/// No manifest is longer.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// What stands before the digest, and how long that is.
const DIGEST_AT: &str = "{\"digest\":\"";
const DIGEST_DIGITS: usize = 32;

/// A shard of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardFile {
    /// Its number.
    pub shard: u32,
    /// The name of its file, in the version's folder.
    pub file: String,
    /// How many records it has.
    pub records: u64,
    /// The length of the file.
    pub bytes: u64,
    /// The XXH3 hash (128 bits) of the file's bytes.
    #[serde(with = "hex128")]
    pub digest: u128,
    /// Its first and its last key, in a set of ordered tables.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_keys")]
    pub keys: Option<[Vec<u8>; 2]>,
}

/// What a version has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    format_version: u32,
    /// The number of the version.
    pub version: u32,
    /// What the set is.
    #[serde(flatten)]
    pub spec: Spec,
    /// How many records all shards have.
    pub records: u64,
    /// The lengths of all files.
    pub bytes: u64,
    /// The shards that have records, in their order: by number, or by their keys if these are ordered.
    pub files: Vec<ShardFile>,
}

impl Manifest {
    /// The manifest of a version with these shards. Fails if they cannot be one.
    pub(crate) fn of(
        version: u32,
        spec: &Spec,
        mut files: Vec<ShardFile>,
    ) -> std::result::Result<Manifest, String> {
        match spec.kind {
            TableKind::Hash => files.sort_by_key(|file| file.shard),
            TableKind::Ordered => files.sort_by(|a, b| a.keys.cmp(&b.keys)),
        }
        let sum = |of: fn(&ShardFile) -> u64| {
            files.iter().try_fold(0_u64, |sum, file| sum.checked_add(of(file))).ok_or("sizes without end")
        };
        let (records, bytes) = (sum(|file| file.records)?, sum(|file| file.bytes)?);
        let (format, format_version) = (FORMAT.to_owned(), FORMAT_VERSION);
        let manifest =
            Manifest { format, format_version, version, spec: spec.clone(), records, bytes, files };
        manifest.check(version)?;
        Ok(manifest)
    }

    /// What is wrong with it.
    fn check(&self, version: u32) -> std::result::Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("it is of the format {:?}", self.format));
        }
        if self.version != version {
            return Err(format!("it is of version {}", self.version));
        }
        self.spec.check().map_err(|error| error.to_string())?;
        let sum =
            |of: fn(&ShardFile) -> u64| self.files.iter().map(|file| u128::from(of(file))).sum::<u128>();
        if sum(|file| file.records) != self.records.into() || sum(|file| file.bytes) != self.bytes.into() {
            return Err("its sums are not those of its shards".to_owned());
        }
        for file in &self.files {
            if file.shard >= self.spec.shards {
                return Err(format!("shard {} of {}", file.shard, self.spec.shards));
            }
            if !names::is_of_shard(&file.file, file.shard) {
                return Err(format!("shard {} is in {:?}", file.shard, file.file));
            }
            if file.keys.is_some() != (self.spec.kind == TableKind::Ordered) {
                return Err(format!("shard {} has keys that do not fit the kind of set", file.shard));
            }
            if let Some([first, last]) = &file.keys
                && first > last
            {
                return Err(format!("shard {} ends before it begins", file.shard));
            }
        }
        self.check_pairs()
    }

    fn check_pairs(&self) -> std::result::Result<(), String> {
        let mut numbers: Vec<u32> = self.files.iter().map(|file| file.shard).collect();
        if self.spec.kind == TableKind::Hash && !numbers.is_sorted() {
            return Err("its shards are in no order".to_owned());
        }
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("it has shard {} twice", pair[0]));
        }
        for pair in self.files.windows(2) {
            if let [Some([_, last]), Some([first, _])] = [&pair[0].keys, &pair[1].keys]
                && last >= first
            {
                let (a, b) = (pair[0].shard, pair[1].shard);
                return Err(format!("the keys of shards {a} and {b} overlap"));
            }
        }
        Ok(())
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> std::result::Result<Vec<u8>, String> {
        #[derive(Serialize)]
        struct Digested<'a> {
            digest: String,
            #[serde(flatten)]
            manifest: &'a Manifest,
        }
        let digest = "0".repeat(DIGEST_DIGITS);
        let text = serde_json::to_string_pretty(&Digested { digest, manifest: self });
        let text = text.map_err(|error| error.to_string())?;
        // Nothing stands before the digest but what every manifest begins with.
        let text = text.replacen("{\n  \"digest\": \"", DIGEST_AT, 1) + "\n";
        let rest = &text[DIGEST_AT.len() + DIGEST_DIGITS..];
        if u64::try_from(text.len()).is_ok_and(|len| len <= MANIFEST_BYTES_MAX) {
            return Ok(format!("{DIGEST_AT}{:032x}{rest}", xxh3_128(rest.as_bytes())).into_bytes());
        }
        Err(format!("a manifest of {} bytes: {MANIFEST_BYTES_MAX} are allowed", text.len()))
    }

    /// The manifest that some bytes are.
    pub(crate) fn decode(bytes: &[u8], version: u32) -> std::result::Result<Manifest, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let digested = text.strip_prefix(DIGEST_AT).and_then(|text| text.split_at_checked(DIGEST_DIGITS));
        let (digest, rest) = digested.ok_or("it does not begin with a digest")?;
        if digest != format!("{:032x}", xxh3_128(rest.as_bytes())) {
            return Err("it is not what was written: its digest is another".to_owned());
        }
        #[derive(Deserialize)]
        struct Form {
            format_version: u32,
        }
        let form: Form = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if form.format_version > FORMAT_VERSION {
            return Err(format!("its form {} is newer than {FORMAT_VERSION}", form.format_version));
        }
        let manifest: Manifest = serde_json::from_str(text).map_err(|error| error.to_string())?;
        manifest.check(version)?;
        Ok(manifest)
    }

    /// Reads a manifest. `Open` if there is none.
    pub(crate) fn read(root: &Path, version: u32) -> Result<(Manifest, File)> {
        let path = root.join(names::manifest(version));
        let (bytes, file) = read_bounded(&path)?;
        let manifest = Manifest::decode(&bytes, version).map_err(|detail| damaged(&path, detail))?;
        Ok((manifest, file))
    }

    /// The shard that has a key, if any has it.
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<usize> {
        match self.spec.shard_of(key) {
            Some(shard) => self.place_of_shard(shard),
            None => {
                let after =
                    self.files.partition_point(|file| file.keys.as_ref().is_some_and(|k| &*k[0] <= key));
                let place = after.checked_sub(1)?;
                self.files[place].keys.as_ref().filter(|keys| key <= &*keys[1]).map(|_| place)
            }
        }
    }

    /// Where a shard stands among the files. It may have none.
    pub(crate) fn place_of_shard(&self, shard: u32) -> Option<usize> {
        match self.spec.kind {
            TableKind::Hash => self.files.binary_search_by_key(&shard, |file| file.shard).ok(),
            TableKind::Ordered => self.files.iter().position(|file| file.shard == shard),
        }
    }
}

/// The bytes of a file that describes something, and the file.
pub(crate) fn read_bounded(path: &Path) -> Result<(Vec<u8>, File)> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => not_there(path, "the file does not exist"),
        _ => io("reading the description of a set of shards", path, &error),
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let limit = MANIFEST_BYTES_MAX + 1;
    let read = Read::by_ref(&mut file).take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(read).is_ok_and(|read| read < limit) {
        return Ok((bytes, file));
    }
    Err(damaged(path, format!("it has more than {MANIFEST_BYTES_MAX} bytes")))
}

macro_rules! hex_numbers {
    ($name:ident, $type:ty, $digits:literal) => {
        /// Numbers as digits of base 16: JSON's own numbers are not exact everywhere.
        pub(crate) mod $name {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub fn serialize<S: Serializer>(number: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&format!(concat!("{:0", $digits, "x}"), number))
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let text = String::deserialize(from)?;
                let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
                let number = <$type>::from_str_radix(&text, 16).ok().filter(|_| digits);
                number.ok_or_else(|| D::Error::custom(format!("{text:?} is no number of base 16")))
            }
        }
    };
}

hex_numbers!(hex64, u64, "16");
hex_numbers!(hex128, u128, "32");

mod hex_keys {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use std::fmt::Write;

    pub fn serialize<S: Serializer>(keys: &Option<[Vec<u8>; 2]>, to: S) -> Result<S::Ok, S::Error> {
        let hex = |key: &Vec<u8>| {
            key.iter().fold(String::with_capacity(2 * key.len()), |mut text, byte| {
                let _never_fails = write!(text, "{byte:02x}");
                text
            })
        };
        keys.as_ref().map(|keys| keys.each_ref().map(hex)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[Vec<u8>; 2]>, D::Error> {
        let Some([first, last]) = Option::<[String; 2]>::deserialize(from)? else { return Ok(None) };
        let key = |text: &str| key_of(text).ok_or_else(|| D::Error::custom("a key is no number of base 16"));
        Ok(Some([key(&first)?, key(&last)?]))
    }

    fn key_of(text: &str) -> Option<Vec<u8>> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let key = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        if rest.is_empty() { key } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(shard: u32, keys: Option<[&str; 2]>) -> ShardFile {
        let keys = keys.map(|keys| keys.map(|key| key.as_bytes().to_vec()));
        ShardFile {
            shard,
            file: names::shard(shard, "a"),
            records: 3,
            bytes: 1 << 40,
            digest: u128::MAX - 1,
            keys,
        }
    }

    fn hash_files() -> Vec<ShardFile> {
        vec![file(2, None), file(0, None)]
    }

    #[test]
    fn what_is_written_is_read() {
        let ordered = vec![file(0, Some(["m", "z"])), file(1, Some(["", "lz"]))];
        for (spec, files) in [(Spec::hash(4), hash_files()), (Spec::ordered(2), ordered)] {
            let manifest = Manifest::of(7, &spec, files).expect("a manifest");
            let bytes = manifest.encode().expect("bytes");
            assert!(bytes.starts_with(b"{\"digest\":\""));
            assert_eq!(Manifest::decode(&bytes, 7).expect("itself"), manifest);
            assert!(Manifest::decode(&bytes, 8).expect_err("another number").contains("version 7"));
            assert_eq!((manifest.records, manifest.bytes), (6, 2 << 40));
        }
    }

    #[test]
    fn places_are_found() {
        let files = vec![file(0, Some(["m", "z"])), file(1, Some(["b", "lz"]))];
        let ordered = Manifest::of(1, &Spec::ordered(2), files).expect("a manifest");
        let shard = |key: &str| ordered.place_of(key.as_bytes()).map(|place| ordered.files[place].shard);
        let found = ["", "b", "l", "lz", "lzz", "m", "z", "za"].map(shard);
        assert_eq!(found, [None, Some(1), Some(1), Some(1), None, Some(0), Some(0), None]);
        let hash = Manifest::of(1, &Spec::hash(4), hash_files()).expect("a manifest");
        assert_eq!((hash.place_of_shard(2), hash.place_of_shard(1)), (Some(1), None));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = Manifest::of(1, &Spec::hash(4), hash_files()).and_then(|m| m.encode()).expect("bytes");
        for i in 0..bytes.len() {
            let mut other = bytes.clone();
            other[i] ^= 1;
            assert!(Manifest::decode(&other, 1).is_err(), "byte {i}");
            assert!(Manifest::decode(&bytes[..i], 1).is_err(), "{i} bytes");
        }
    }

    /// A text with a right digest, as somebody with bad intentions would write it.
    fn forged(change: impl Fn(String) -> String) -> std::result::Result<Manifest, String> {
        let bytes = Manifest::of(1, &Spec::hash(4), hash_files()).and_then(|m| m.encode()).expect("bytes");
        let text = change(String::from_utf8(bytes).expect("text"));
        let rest = &text[DIGEST_AT.len() + DIGEST_DIGITS..];
        Manifest::decode(format!("{DIGEST_AT}{:032x}{rest}", xxh3_128(rest.as_bytes())).as_bytes(), 1)
    }

    #[test]
    fn forged_manifests_are_refused() {
        let refused = |from: &str, to: &str, why: &str| {
            let said = forged(|text| {
                assert!(text.contains(from), "{text}");
                text.replacen(from, to, 1)
            });
            let said = said.expect_err(why);
            assert!(said.contains(why), "{why}: {said}");
        };
        forged(|text| text).expect("nothing is changed");
        refused("shard-00000-a.azk", "../../etc/shadow", "shard 0 is in");
        refused("shard-00000-a.azk", "shard-00000-a/../../x.azk", "shard 0 is in");
        refused("\"shard\": 2", "\"shard\": 4", "shard 4 of 4");
        refused("\"shard\": 2", "\"shard\": 0", "shard 0");
        refused("\"shards\": 4", "\"shards\": 4000000", "may be 1 to");
        refused("\"records\": 3", "\"records\": 4", "sums");
        refused("\"records\": 3", "\"records\": -3", "invalid value");
        refused("\"bytes\": 1099511627776", "\"bytes\": 18446744073709551615", "sums");
        refused("azekura-shards", "azekura-shard", "format");
        refused("\"format_version\": 1", "\"format_version\": 2", "newer");
        refused("\"hash_seed\": \"0000", "\"hash_seed\": \"-000", "base 16");
        refused("\"hash\"", "\"heap\"", "hash or ordered");
        let nested = format!("\"more\": {}{}, \"files\": [", "[".repeat(10_000), "]".repeat(10_000));
        refused("\"files\": [", &nested, "recursion limit");
        assert!(forged(|text| text.replace("\"files\"", "\"file\"")).is_err());
    }

    #[test]
    fn shards_that_are_no_version_are_refused() {
        let refused = |spec: Spec, files| Manifest::of(1, &spec, files).expect_err("refused");
        assert!(refused(Spec::hash(4), vec![file(1, None), file(1, None)]).contains("shard 1 twice"));
        assert!(refused(Spec::hash(4), vec![file(1, Some(["a", "b"]))]).contains("do not fit"));
        let overlapping = vec![file(0, Some(["b", "d"])), file(1, Some(["a", "b"]))];
        assert!(refused(Spec::ordered(2), overlapping).contains("shards 1 and 0 overlap"));
        assert!(refused(Spec::ordered(2), vec![file(0, Some(["b", "a"]))]).contains("ends before"));
    }
}
