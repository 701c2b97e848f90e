//! Measurements as lines of JSON: one object a measurement, its figures at the top level.

use super::machine;
use crate::failure::{Failure, Result};
use crate::workloads::{Job, Outcome};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file of lines.
#[derive(Debug)]
pub struct Lines {
    file: File,
    path: PathBuf,
}

impl Lines {
    /// Appends to a file, beginning with a line that describes the machine.
    pub fn append(path: &Path) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(Failure::io(format!("opening {}", path.display())))?;
        let mut lines = Self { file, path: path.to_owned() };
        lines.write(&machine::describe())?;
        Ok(lines)
    }

    /// Adds a measurement, or the failure of one.
    pub fn measurement(&mut self, job: &Job, result: &Result<Outcome>) -> Result<()> {
        self.write(&object(job, result))
    }

    fn write(&mut self, value: &Value) -> Result<()> {
        let line = format!("{value}\n");
        self.file.write_all(line.as_bytes()).map_err(Failure::io(format!("writing {}", self.path.display())))
    }
}

fn object(job: &Job, result: &Result<Outcome>) -> Value {
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("measurement"));
    object.insert("peer".to_owned(), json!(job.peer));
    object.insert("run".to_owned(), json!(job.run));
    if let Ok(Value::Object(case)) = serde_json::to_value(&job.case) {
        object.extend(case);
    }
    match result {
        Ok(outcome) => {
            object.insert("version".to_owned(), json!(outcome.version));
            object.insert("configuration".to_owned(), json!(outcome.configuration));
            let numbers = &outcome.measured.numbers;
            object.extend(
                numbers
                    .iter()
                    .filter(|(name, _)| name.as_str() != "records")
                    .map(|(name, value)| (name.clone(), number(*value))),
            );
            if !outcome.measured.series.is_empty() {
                object.insert("series".to_owned(), json!(outcome.measured.series));
            }
        }
        Err(failure) => {
            object.insert("error".to_owned(), json!(failure.to_string()));
        }
    }
    Value::Object(object)
}

/// Whole numbers without a point.
fn number(value: f64) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match format!("{value:.0}").parse::<i64>() {
        Ok(whole) if value.fract() == 0.0 && value.abs() < EXACT_MAX => json!(whole),
        _ => json!(value),
    }
}
