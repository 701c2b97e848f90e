//! What types are as bytes, which is a part of the format: this test and one of the Python package compare
//! with the same list, and read what the other has written. The test command says in `AZEKURA_EXCHANGE` where
//! that is; without it the file is this test's own.

use azekura::{Db, Json, Key, Options, Result, TableDefinition, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

const LIST: &str = include_str!("../../../../python/tests/forms.txt");

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Person {
    born: u16,
    works: Vec<String>,
}

/// A line of the list: what its value is as bytes, as a key, as a value or both.
struct Line<'a> {
    role: &'a str,
    json: &'a str,
    bytes: Vec<u8>,
}

impl Line<'_> {
    fn read<T: Serialize + DeserializeOwned + 'static>(&self) -> T {
        <Json<T> as Value>::view(self.json.as_bytes()).unwrap()
    }

    fn is_key<K: Key<Owned: PartialEq + Debug> + ?Sized>(&self, key: &K::Owned) {
        let bytes = K::with_bytes(K::lend(key), |bytes| Ok(bytes.to_vec())).unwrap();
        assert_eq!(bytes, self.bytes, "key {}", self.json);
        assert_eq!(&K::own(K::view(&self.bytes).unwrap()), key, "{}", self.json);
    }

    fn is_value<V: Value<Owned: PartialEq + Debug> + ?Sized>(&self, value: &V::Owned) {
        let bytes = V::with_bytes(V::lend(value), |bytes| Ok(bytes.to_vec())).unwrap();
        assert_eq!(bytes, self.bytes, "value {}", self.json);
        assert_eq!(&V::own(V::view(&self.bytes).unwrap()), value, "{}", self.json);
    }

    fn is<T: Key<Owned = O> + Value<Owned = O> + ?Sized, O: PartialEq + Debug>(&self, given: &O) {
        match self.role {
            "key" => self.is_key::<T>(given),
            "value" => self.is_value::<T>(given),
            "both" => {
                self.is_key::<T>(given);
                self.is_value::<T>(given);
            }
            other => panic!("what is the role {other}?"),
        }
    }

    fn number<T>(&self)
    where
        T: Key<Owned = T> + Value<Owned = T> + Serialize + DeserializeOwned + PartialEq + Debug + 'static,
    {
        self.is::<T, T>(&self.read());
    }
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn types_have_the_bytes_of_the_list() {
    let mut tried = 0;
    for text in LIST.lines().filter(|text| !text.starts_with('#')) {
        let [name, role, json, bytes] = text.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let line = Line { role, json, bytes: bytes_of(bytes) };
        match name {
            "str" => line.is::<str, _>(&line.read()),
            "bytes" => line.is::<[u8], _>(&bytes_of(&line.read::<String>())),
            "bool" => line.number::<bool>(),
            "u8" => line.number::<u8>(),
            "u16" => line.number::<u16>(),
            "u32" => line.number::<u32>(),
            "u64" => line.number::<u64>(),
            "i8" => line.number::<i8>(),
            "i16" => line.number::<i16>(),
            "i32" => line.number::<i32>(),
            "i64" => line.number::<i64>(),
            "f32" => line.number::<f32>(),
            "f64" => line.number::<f64>(),
            "tuple[str, i64]" => line.is::<(&str, i64), _>(&line.read()),
            "tuple[bytes, bool]" => {
                let (digits, truth) = line.read::<(String, bool)>();
                line.is::<(&[u8], bool), _>(&(bytes_of(&digits), truth));
            }
            "tuple[u32, tuple[f64, str]]" => line.is::<(u32, (f64, &str)), _>(&line.read()),
            // Between the parts of JSON no blanks are written.
            "json" if json.starts_with('{') => line.is_value::<Json<Person>>(&line.read()),
            "json" => line.is_value::<Json<String>>(&line.read()),
            other => panic!("nothing is known of the type {other}"),
        }
        tried += 1;
    }
    assert!(tried > 40, "{tried} lines");
}

const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
const HEAT: TableDefinition<(&str, i64), f64> = TableDefinition::ordered("heat");
const SEEN: TableDefinition<u32, bool> = TableDefinition::hash("seen");
const PLACES: TableDefinition<f64, (&[u8], &str)> = TableDefinition::ordered("places");
const PEOPLE: TableDefinition<[u8], Json<Person>> = TableDefinition::hash("people");

fn ada() -> Person {
    Person { born: 1815, works: vec!["Notes".to_owned()] }
}

fn write(path: &Path) -> Result<()> {
    let db = Db::open(path, Options::new())?;
    db.typed_table(&BORN)?.put_many([("ada", 1815), ("grace", 1906), ("\0ä", 0)])?;
    db.typed_table(&HEAT)?.put_many([(("oslo", 1), -4.25), (("oslo", 7), 17.5), (("rome", -1), 0.0)])?;
    db.typed_table(&SEEN)?.put_many([(7, true), (u32::MAX, false)])?;
    db.typed_table(&PLACES)?.put_many([(-1.5, (&b"\0\x01"[..], "")), (2.25, (b"", "x\0"))])?;
    db.typed_table(&PEOPLE)?.put(&[0xff], &ada())?;
    db.close()
}

fn read(path: &Path) -> Result<()> {
    let db = Db::open(path, Options::new().read_only(true))?;
    let born: Vec<(String, u16)> = db.typed_table(&BORN)?.iter()?.collect::<Result<_>>()?;
    assert_eq!(born, [("\0ä".into(), 0), ("ada".into(), 1815), ("grace".into(), 1906)]);
    let heat: Vec<((String, i64), f64)> = db.typed_table(&HEAT)?.iter()?.collect::<Result<_>>()?;
    assert_eq!(heat, [(("oslo".into(), 1), -4.25), (("oslo".into(), 7), 17.5), (("rome".into(), -1), 0.0)]);
    let seen = db.typed_table(&SEEN)?;
    assert_eq!((seen.get(7)?, seen.get(u32::MAX)?, seen.count()?), (Some(true), Some(false), 2));
    let places: Vec<(f64, (Vec<u8>, String))> = db.typed_table(&PLACES)?.iter()?.collect::<Result<_>>()?;
    assert_eq!(places, [(-1.5, (vec![0, 1], String::new())), (2.25, (vec![], "x\0".into()))]);
    assert_eq!(db.typed_table(&PEOPLE)?.get(&[0xff])?, Some(ada()));
    db.close()
}

#[test]
fn files_are_read_by_the_other_language() {
    let exchange = std::env::var_os("AZEKURA_EXCHANGE").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("azekura-exchange-{}", std::process::id()));
    let folder = exchange.as_deref().unwrap_or(&own);
    std::fs::create_dir_all(folder).unwrap();
    let (rust, python) = (folder.join("rust.azk"), folder.join("python.azk"));
    if !rust.exists() {
        write(&rust).unwrap();
    }
    read(&rust).unwrap();
    if python.exists() {
        read(&python).unwrap();
        println!("read what Python has written");
    }
    if exchange.is_none() {
        std::fs::remove_dir_all(&own).unwrap();
    }
}
