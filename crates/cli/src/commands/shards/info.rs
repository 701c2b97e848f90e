//! `azekura shards info`: what the versions of a set have.

use azekura_shards::{Column, Manifest, ReadOptions, Version, versions};

use super::of::SetArg;
use crate::bytes::harmless;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::store::{JsonArg, kind_name};
use crate::units;

/// Arguments of `shards info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Only the manifests are read; azekura shards verify reads the shards.\n\n\
                  Example:\n  azekura shards info t.azs")]
pub struct Args {
    #[command(flatten)]
    pub set: SetArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `shards info`.
pub fn run(args: &Args) -> Outcome {
    let all = versions(&args.set.path)?;
    if all.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: there is no version of a set of shards",
            args.set.path.display()
        )));
    }
    let mut output = Output::new();
    for (i, version) in all.iter().enumerate() {
        let options = ReadOptions { version: Some(*version), ..ReadOptions::default() };
        let opened = Version::open(&args.set.path, options)?;
        let manifest = opened.manifest();
        if args.json.json {
            output.json(manifest)?;
            continue;
        }
        if i > 0 {
            output.line("")?;
        }
        output.labelled(&described(manifest))?;
    }
    output.finish()
}

fn described(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let spec = &manifest.spec;
    let columns = |columns: &[Column]| {
        let one = |column: &Column| {
            let of = serde_json::to_value(column.of).unwrap_or_default();
            let nulls = if column.nullable { " or null" } else { "" };
            format!("{} {}{nulls}", harmless(&column.name), of.as_str().unwrap_or("?"))
        };
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let with_records = manifest.files.len();
    vec![
        ("version", manifest.version.to_string()),
        ("kind", kind_name(spec.kind).to_owned()),
        ("shards", format!("{}, {with_records} of them with records", spec.shards)),
        ("key", columns(&spec.key)),
        ("value", columns(&spec.value)),
        ("records", units::grouped(manifest.records)),
        ("bytes", format!("{} ({} bytes)", units::bytes(manifest.bytes), units::grouped(manifest.bytes))),
    ]
}
