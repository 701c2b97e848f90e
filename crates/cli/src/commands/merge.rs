//! `azekura merge`: changes a number, a list or a set, durably. It looks first, so that a mistyped key costs
//! no value.

use std::ffi::OsString;

use azekura::{Db, Durability, ELEMENT_BYTES_MAX, Error, KEY_BYTES_MAX, Merge};

use crate::arguments;
use crate::failure::{Failure, Outcome};
use crate::keys::KeyArg;
use crate::store;
use crate::units;

/// Arguments of `merge`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The value of the key is a number of eight bytes, little-endian; a key that is not there gets OPERAND\n\
                  as its value. With append it is any value, and OPERAND (or - for standard input) is put behind\n\
                  it. With union it is a set: OPERAND and ELEMENTs, all of one length, are added. They stand one\n\
                  after the other, in the order of their bytes. Others that merge into the same key do not disturb\n\
                  each other.\n\n\
                  Example:\n  azekura merge hits.azk /index.html add 1\n  \
                  azekura merge hits.azk slowest max 0.25 --type f64\n  \
                  azekura merge hits.azk visitors union ada bob"
)]
pub struct Args {
    #[command(flatten)]
    pub of: KeyArg,
    /// What is done
    #[arg(value_enum)]
    operator: Operator,
    /// With what it is done: a number, or bytes, or an element
    #[arg(allow_hyphen_values = true)]
    operand: OsString,
    /// More elements, for union (one that begins with - : after --)
    #[arg(value_name = "ELEMENT")]
    more: Vec<OsString>,
    /// What kind of number the value is
    #[arg(long = "type", value_enum, default_value_t = Kind::I64)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Operator {
    /// Adds OPERAND
    Add,
    /// Leaves the smaller of both
    Min,
    /// Leaves the larger of both
    Max,
    /// Sets the bits of OPERAND (u64)
    Or,
    /// Puts OPERAND behind the value
    Append,
    /// Adds elements to a set
    Union,
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
    let given = given(args)?;
    let merge = given.merge();
    let name = &args.of.table.table;
    let look = |db: &Db| store::open_table(db, name).map(drop);
    let db = store::open_to_write(&args.of.file.path, Durability::Sync, look)?;
    let table = store::open_table(&db, name)?;
    db.transact(|txn| {
        // What is read here was not written by others when it is committed.
        let bytes = txn.get_with(&table, &key, <[u8]>::len)?;
        match bytes.and_then(|bytes| given.refuses(bytes)) {
            Some(detail) => Err(Error::WrongType { detail }),
            None => txn.merge(&table, &key, merge),
        }
    })?;
    drop(table);
    store::close(db);
    Ok(())
}

/// What is merged.
enum Given {
    Number(Merge<'static>),
    Bytes(Vec<u8>),
    Elements(usize, Vec<u8>),
}

impl Given {
    fn merge(&self) -> Merge<'_> {
        match self {
            Given::Number(merge) => *merge,
            Given::Bytes(bytes) => Merge::Append(bytes),
            Given::Elements(width, elements) => Merge::Union { width: *width, elements },
        }
    }

    /// Why a value of so many bytes is none for it.
    fn refuses(&self, bytes: usize) -> Option<String> {
        match self {
            Given::Number(_) if bytes != 8 => Some(format!("the value has {bytes} bytes, a number has 8")),
            Given::Elements(width, _) if !bytes.is_multiple_of(*width) => {
                Some(format!("the value has {bytes} bytes, and an element of the set has {width}"))
            }
            _ => None,
        }
    }
}

fn given(args: &Args) -> Outcome<Given> {
    let form = args.of.form.form();
    let operands = || std::iter::once(&args.operand).chain(&args.more);
    let many = operands().chain([&args.of.key]).filter(|text| **text == "-").count();
    if matches!(args.operator, Operator::Append | Operator::Union) && many > 1 {
        return Err(Failure::Usage("only one argument can be standard input".into()));
    }
    let parse = |text: &OsString| arguments::argument(text, form);
    match args.operator {
        Operator::Union => {
            let elements = operands().map(parse).collect::<Outcome<Vec<_>>>()?;
            let width = elements.first().map_or(0, Vec::len);
            if !(1..=ELEMENT_BYTES_MAX).contains(&width) || elements.iter().any(|one| one.len() != width) {
                let text = format!("elements are of one length, of 1 to {ELEMENT_BYTES_MAX} bytes");
                return Err(Failure::Usage(text));
            }
            Ok(Given::Elements(width, elements.concat()))
        }
        _ if !args.more.is_empty() => Err(Failure::Usage("only union takes more than one OPERAND".into())),
        Operator::Append => parse(&args.operand).map(Given::Bytes),
        operator => merge_of(operator, args.kind, &args.operand.to_string_lossy()).map(Given::Number),
    }
}

fn merge_of(operator: Operator, kind: Kind, text: &str) -> Result<Merge<'static>, Failure> {
    let kind = if matches!(operator, Operator::Or) && kind == Kind::I64 { Kind::U64 } else { kind };
    let bad = || Failure::Usage(format!("{text:?} is no number of this type"));
    Ok(match kind {
        Kind::I64 => {
            let n: i64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Min => Merge::MinI64(n),
                Operator::Max => Merge::MaxI64(n),
                Operator::Add | Operator::Or | Operator::Append | Operator::Union => Merge::AddI64(n),
            }
        }
        Kind::U64 => {
            let n: u64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Add | Operator::Append | Operator::Union => Merge::AddU64(n),
                Operator::Min => Merge::MinU64(n),
                Operator::Max => Merge::MaxU64(n),
                Operator::Or => Merge::BitOr(n),
            }
        }
        Kind::F64 => {
            let n: f64 = text.parse().map_err(|_| bad())?;
            match operator {
                Operator::Add | Operator::Append | Operator::Union => Merge::AddF64(n),
                Operator::Min => Merge::MinF64(n),
                Operator::Max => Merge::MaxF64(n),
                Operator::Or => return Err(Failure::Usage("bits are set in integers only".into())),
            }
        }
    })
}
