//! `azekura merge`: changes a number, durably. It looks first, so that a mistyped key costs no value.

use std::ffi::OsString;

use azekura::{Db, Durability, Error, KEY_BYTES_MAX, Merge};

use crate::failure::{Failure, Outcome};
use crate::keys::KeyArg;
use crate::store;
use crate::units;

/// Arguments of `merge`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The value of the key is a number of eight bytes, little-endian; a key that is not there gets NUMBER\n\
                  as its value. Others that merge numbers into the same key do not disturb each other.\n\n\
                  Example:\n  azekura merge hits.azk /index.html add 1\n  \
                  azekura merge hits.azk slowest max 0.25 --type f64"
)]
pub struct Args {
    #[command(flatten)]
    pub of: KeyArg,
    /// What is done
    #[arg(value_enum)]
    operator: Operator,
    /// The number with which it is done
    #[arg(allow_hyphen_values = true)]
    number: OsString,
    /// What kind of number the value is
    #[arg(long = "type", value_enum, default_value_t = Kind::I64)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Operator {
    /// Adds NUMBER
    Add,
    /// Leaves the smaller of both
    Min,
    /// Leaves the larger of both
    Max,
    /// Sets the bits of NUMBER (u64)
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// An integer
    I64,
    /// An integer without sign
    U64,
    /// A floating-point number
    F64,
}

/// Runs `merge`.
pub fn run(args: &Args) -> Outcome {
    let key = args.of.key()?;
    if key.len() > KEY_BYTES_MAX {
        let bytes = units::grouped(u64::try_from(key.len()).unwrap_or(u64::MAX));
        return Err(Failure::Usage(format!(
            "the key has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed"
        )));
    }
    let merge = merge_of(args.operator, args.kind, &args.number.to_string_lossy())?;
    let name = &args.of.table.table;
    let look = |db: &Db| store::open_table(db, name).map(drop);
    let db = store::open_to_write(&args.of.file.path, Durability::Sync, look)?;
    let table = store::open_table(&db, name)?;
    db.transact(|txn| {
        // What is read here was not written by others when it is committed.
        let bytes = txn.get_with(&table, &key, <[u8]>::len)?;
        match bytes.filter(|&bytes| bytes != 8) {
            Some(bytes) => {
                Err(Error::WrongType { detail: format!("the value has {bytes} bytes, a number has 8") })
            }
            None => txn.merge(&table, &key, merge),
        }
    })?;
    drop(table);
    store::close(db);
    Ok(())
}

fn merge_of(operator: Operator, kind: Kind, text: &str) -> Result<Merge, Failure> {
    let kind = if matches!(operator, Operator::Or) && kind == Kind::I64 { Kind::U64 } else { kind };
    let bad = || Failure::Usage(format!("{text:?} is no number of this type"));
    Ok(match kind {
        Kind::I64 => {
            let n: i64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Min => Merge::MinI64(n),
                Operator::Max => Merge::MaxI64(n),
                Operator::Add | Operator::Or => Merge::AddI64(n),
            }
        }
        Kind::U64 => {
            let n: u64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Add => Merge::AddU64(n),
                Operator::Min => Merge::MinU64(n),
                Operator::Max => Merge::MaxU64(n),
                Operator::Or => Merge::BitOr(n),
            }
        }
        Kind::F64 => {
            let n: f64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Add => Merge::AddF64(n),
                Operator::Min => Merge::MinF64(n),
                Operator::Max => Merge::MaxF64(n),
                Operator::Or => return Err(Failure::Usage("bits are set in integers only".into())),
            }
        }
    })
}
