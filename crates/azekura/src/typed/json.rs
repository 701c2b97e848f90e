//! Values that `serde` knows, as JSON text.

use super::codec::Value;
use crate::base::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Values of a type that `serde` can write and read, as JSON text. The text names the parts of a value, so a
/// type may get more of them later. Needs the feature `serde`.
///
/// Another format of `serde`'s takes no more lines than this type: implement [`Value`].
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-json-{}.azk", std::process::id()));
/// use azekura::{Db, Json, Options, TableDefinition};
///
/// #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
/// struct Person {
///     born: u16,
///     works: Vec<String>,
/// }
///
/// const PEOPLE: TableDefinition<str, Json<Person>> = TableDefinition::hash("people");
/// let db = Db::open(&path, Options::new())?;
/// let people = db.typed_table(&PEOPLE)?;
/// let ada = Person { born: 1815, works: vec!["Notes".into()] };
/// people.put("ada", &ada)?;
/// assert_eq!(people.get("ada")?, Some(ada));
/// assert_eq!(people.table().get("ada")?.unwrap(), br#"{"born":1815,"works":["Notes"]}"#);
/// # drop(people); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Json<T>(PhantomData<fn(&T)>);

impl<T: Serialize + DeserializeOwned + 'static> Value for Json<T> {
    type Given<'a> = &'a T;
    type View<'a> = T;
    type Owned = T;

    fn with_bytes<R>(value: &T, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let invalid = |e| Error::Invalid { detail: format!("the value cannot be JSON: {e}") };
        f(&serde_json::to_vec(value).map_err(invalid)?)
    }

    fn view(bytes: &[u8]) -> Result<T> {
        let wrong =
            |e| Error::WrongType { detail: format!("no JSON of {}: {e}", std::any::type_name::<T>()) };
        serde_json::from_slice(bytes).map_err(wrong)
    }

    fn own(view: T) -> T {
        view
    }

    fn lend(owned: &T) -> &T {
        owned
    }
}
