//! Salvage: what still verifies in a damaged file goes to a new database.
//!
//! The file is only read. With its newest manifest, salvage reads all that this names in its place, page by
//! page and value by value, and leaves out what does not verify. Then nothing that was deleted or replaced
//! comes back, unless the newer version is what was lost. Without that manifest, salvage looks at every block
//! of the file. Pages, meta blocks and log frames say what they belong to (`scan`), and their ages say which
//! version is newer (`run::label`). Then salvage finds what is in free space too.
//!
//! ```text
//! roots ─► scan ─► log ─► plan ─► apply (runs, values)
//! superblocks,     commits   tables,   oldest version first,
//! manifest                   by age    into the new database
//! ```
//!
//! Memory is limited to a small part of the file's length and to the length of its log. A hostile file is
//! believed only as far as checksums hold and lengths fit the file.

mod apply;
mod doubt;
mod entries;
mod fates;
mod identity;
mod indexes;
mod input;
mod log;
mod plan;
mod report;
mod roots;
mod runs;
mod scan;
mod search;
mod sums;
#[cfg(all(test, not(loom)))]
mod tests;
mod values;

pub use report::{SalvageReport, SalvagedTable};

use crate::base::error::{Error, Result};
use crate::engine::Db;
use crate::engine::Progress;
use crate::storage::{OsStorage, Storage};
use identity::Identity;
use input::Input;
use roots::Roots;
use scan::Found;
use std::path::Path;
use values::Values;

/// Reads every record that still verifies from the damaged database in `file`, and writes it to `out`, which
/// should be a new database. The file is not changed. `progress` is called now and then.
///
/// No record of a whole page is lost, unless a newer version or a tombstone of its key was found. The same
/// goes for commits in whole frames of the log, also behind missing frames. If the newest version of a key
/// was lost, an older one may be found.
///
/// What was merged into a value that is lost, or into one that a lost page may have had, is there as if
/// there had been nothing before. The report names the keys of which that is so.
///
/// Indexes are made anew from the records that were found, where it can be read what they are of. How long
/// the records of a table live if nothing else is said is what the manifest or the log says.
///
/// If the newest manifest is damaged ([`SalvageReport::manifest`]), records and tables that were deleted or
/// replaced may be back: free space looks the same as the rest then. Salvage knows which of two versions is
/// newer if the meta blocks of their runs are whole. A table is left out, and reported, if a commit in the
/// log has dropped it and nothing newer of it is found. Records that only that manifest held, as those of
/// small tables, are lost with it. So is how long the records of a table live if nothing else is said,
/// unless the log has the commit that says so, and that is reported where records expire. If only commits of
/// a table are left, without the one that made it, the table gets a number for a name. If no key tells its
/// kind, it is taken for an ordered one, and the report says so.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-salvage-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (damaged, fresh) = (dir.join("damaged.azk"), dir.join("fresh.azk"));
/// use azekura::{Db, Options, TableKind, salvage};
/// # let db = Db::open(&damaged, Options::new())?;
/// # let (people, mut txn) = (db.table("people", TableKind::Ordered)?, db.write());
/// # txn.put(&people, b"ada", b"1815")?;
/// # for n in 0..1000u32 {
/// #     txn.put(&people, &n.to_be_bytes(), b"somebody")?;
/// # }
/// # txn.commit()?;
/// # db.close()?;
/// # let file = std::fs::OpenOptions::new().write(true).open(&damaged).unwrap();
/// # std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8192], 0).unwrap();
/// // Both superblocks of the damaged file are gone.
/// let out = Db::open(&fresh, Options::new())?;
/// let report = salvage(&damaged, &out, |_| {})?;
/// assert!(!report.manifest);
/// assert_eq!(out.open_table("people")?.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// out.close()?;
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
///
/// # Errors
/// `Open` if there is no such file, `Locked` if another handle writes to it, `NewerVersion`, `NotADatabase`
/// if nothing in it is part of a database, `Invalid` if it is the file of `out`, or an error of writing to
/// `out`. Damage is no error.
pub fn salvage(file: impl AsRef<Path>, out: &Db, progress: impl FnMut(Progress)) -> Result<SalvageReport> {
    let file = file.as_ref();
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if same(file, out.path()) {
        return Err(Error::Invalid { detail: format!("{} cannot be salvaged into itself", file.display()) });
    }
    salvage_on(&OsStorage, file, out, progress)
}

/// As [`salvage`], on a storage that the caller gives: for simulators and tests.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(
    storage: &dyn Storage,
    file: impl AsRef<Path>,
    out: &Db,
    mut progress: impl FnMut(Progress),
) -> Result<SalvageReport> {
    salvage_into(storage, file.as_ref(), out, &mut progress)
}

fn salvage_into(
    storage: &dyn Storage,
    path: &Path,
    out: &Db,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport> {
    let input = Input::open(storage, path)?;
    let mut report = SalvageReport::default();
    let roots = roots::find(&input, &mut report)?;
    let identity = match &roots.newest {
        Some(block) => Some(Identity::of(block.file_id)),
        None => scan::identity(&input, progress).or_else(|| claimed(&input, &roots)),
    };
    let Some(identity) = identity else {
        let reason = "nothing in it can be recognized as part of a database".into();
        return Err(Error::NotADatabase { path: path.display().to_string(), reason });
    };
    let mut found = scan::find(&input, identity, true, progress);
    report.manifest = roots.is_newest && !knows_newer(&roots, &found);
    let hash_seed = hash_seed(&roots, &found);
    let number = roots.newest.as_ref().map(|block| block.number);
    let newest = roots.manifest.as_ref().zip(number).filter(|_| report.manifest);
    let mut values = Values::new(&input);
    let log = log::read(&input, std::mem::take(&mut found.frames), newest, &mut report);
    roots.manifest.iter().for_each(|m| values.note_manifest(m));
    log.commits.values().flat_map(|commit| &commit.parts).for_each(|part| values.note_part(part));
    let plan = match &roots.manifest {
        Some(m) if report.manifest => {
            plan::by_manifest(&input, (identity, hash_seed), m, found, log, &mut report)
        }
        older => {
            let text = "the newest manifest, and the small tables' records in it: what was deleted or replaced may be back";
            report.lose(text.into());
            plan::by_identity((identity, hash_seed), older.as_ref(), found, log.commits, &mut report)
        }
    };
    apply::find_large(&input, &plan, &mut values)?;
    apply::apply(&input, &plan, &mut values, hash_seed, out, &mut report, progress)?;
    report.unreadable_bytes = input.unreadable_bytes();
    Ok(report)
}

/// Whether a frame of the log knows of a newer checkpoint than the superblock.
fn knows_newer(roots: &Roots, found: &Found) -> bool {
    roots.newest.as_ref().is_some_and(|b| found.frames.iter().any(|f| f.frame.checkpoint > b.number))
}

/// The file id that a damaged superblock has, if whole pages of the file agree with it.
fn claimed(input: &Input, roots: &Roots) -> Option<Identity> {
    let agrees = |identity: &Identity| {
        let found = scan::find(input, *identity, true, &mut |_| {});
        !found.runs.is_empty()
    };
    roots.claims.iter().map(|&(file_id, _)| Identity::of(file_id)).find(agrees)
}

/// The seed of hash tables: from a superblock, else from any meta block, else from damaged superblocks that
/// agree.
fn hash_seed(roots: &Roots, found: &Found) -> Option<u64> {
    let by_root = roots.newest.as_ref().map(|b| b.hash_seed);
    let by_label = || found.runs.values().find_map(|r| r.label.as_ref().map(|l| l.hash_seed));
    let by_claim = || match roots.claims[..] {
        [a, b] if a.1 == b.1 && a.1 != 0 => Some(a.1),
        _ => None,
    };
    by_root.or_else(by_label).or_else(by_claim)
}
