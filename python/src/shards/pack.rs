//! The class `ShardPacker`: rows on their way to the tasks of their shards.

use super::draft::columns;
use super::form::{Form, raised, spec_of};
use super::reader::ShardBatch;
use crate::arrow::layout::Column;
use crate::arrow::read::Batches;
use crate::arrow::write::{Buffer, array, schema};
use crate::shared::Shared;
use azekura_shards::{Pack, Packer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A batch of packs has so many bytes, or one pack.
const BATCH_BYTES: usize = 64 << 20;

/// Makes packs of rows, many in one byte string, which are quick to move and to sort.
/// `ShardWriter.write_packed` takes them. Used by one thread at a time.
///
/// >>> import azekura, json, os, tempfile
/// >>> folder = tempfile.mkdtemp()
/// >>> db = azekura.Database(os.path.join(folder, "t.azk"))
/// >>> squares = db.table("squares", key=int, value=int)
/// >>> squares.put_many((n, n * n) for n in range(100))
/// >>> column = {"type": "i64", "nullable": False}
/// >>> columns = {"key": [{"name": "key", **column}], "value": [{"name": "value", **column}]}
/// >>> spec = json.dumps({"kind": "hash", "shards": 1, "hash_seed": "0" * 16, **columns})
/// >>> packer = azekura.ShardPacker(spec)
/// >>> packs = packer.add(squares.to_arrow()) + packer.finish()
/// >>> path = os.path.join(folder, "t.azs")
/// >>> draft = azekura.ShardDraft.begin(path, spec)
/// >>> writer = draft.writer("attempt-1")
/// >>> for pack in packs:
/// ...     writer.write_packed(pack)
/// >>> draft.commit(writer.finish()), azekura.ShardedReader(path)[9]
/// (1, 81)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct ShardPacker {
    form: Form,
    state: Shared<Packer>,
}

#[pymethods]
impl ShardPacker {
    /// A packer for a set of hash tables. `spec` is what `ShardDraft.begin` takes.
    #[new]
    fn new(spec: &str) -> PyResult<ShardPacker> {
        let spec = spec_of(spec)?;
        let state = Shared::new(raised(Packer::new(&spec))?);
        Ok(ShardPacker { form: Form::of(&spec), state })
    }

    /// Adds rows of Arrow data with the set's columns. Returns batches of the packs that are full: their
    /// `shard`, their `slice`, by which they are to be sorted, and the packs.
    fn add(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Vec<ShardBatch>> {
        let Some(mut batches) = Batches::of(data)? else {
            return Err(PyTypeError::new_err("Arrow data are due here"));
        };
        let places = Form::places(&batches.layout, &self.form.names)?;
        while let Some(array) = batches.next(py)? {
            let batch = Column::of(&batches.layout, &array).map_err(PyValueError::new_err)?;
            let columns = columns(&batch, &places)?;
            py.detach(|| {
                self.form.encode(&columns, batch.rows(), |keys, values, count| {
                    Ok(self
                        .state
                        .with(|packer| (0..count).try_for_each(|i| packer.put(keys.get(i), values.get(i))))?)
                })
            })?;
            py.check_signals()?;
        }
        py.detach(|| batches_of(self.state.with(|packer| Ok(packer.take_full()))?))
    }

    /// The batches of all packs that are left. The packer is over then.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<ShardBatch>> {
        py.detach(|| batches_of(self.state.take()?.finish()))
    }
}

fn batches_of(packs: Vec<Pack>) -> PyResult<Vec<ShardBatch>> {
    let (mut made, mut now, mut bytes) = (Vec::new(), Vec::new(), 0);
    for pack in packs {
        bytes += pack.bytes.len();
        now.push(pack);
        if bytes >= BATCH_BYTES {
            made.push(batch_of(&std::mem::take(&mut now))?);
            bytes = 0;
        }
    }
    if !now.is_empty() {
        made.push(batch_of(&now)?);
    }
    Ok(made)
}

fn batch_of(packs: &[Pack]) -> PyResult<ShardBatch> {
    let mut columns: [Vec<u8>; 3] = Default::default();
    let mut offsets = vec![0];
    for pack in packs {
        columns[0].extend_from_slice(&pack.shard.to_ne_bytes());
        columns[1].extend_from_slice(&pack.slice.to_ne_bytes());
        columns[2].extend_from_slice(&pack.bytes);
        let end = i32::try_from(columns[2].len());
        offsets.push(end.map_err(|_| PyValueError::new_err("a row of 2 GiB, which no batch can have"))?);
    }
    let column = |format: &str, name: &str| schema(format, name.to_owned(), Vec::new());
    let parts = vec![column("i", "shard"), column("i", "slice"), column("z", "pack")];
    let [shards, slices, bytes] = columns;
    let numbers = |column| array(packs.len(), vec![Buffer::Bytes(column)], Vec::new());
    let bytes = array(packs.len(), vec![Buffer::ShortOffsets(offsets), Buffer::Bytes(bytes)], Vec::new());
    let children = vec![numbers(shards), numbers(slices), bytes];
    Ok(ShardBatch::of(schema("+s", String::new(), parts), array(packs.len(), Vec::new(), children)))
}
