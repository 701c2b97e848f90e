//! A version that is being written, by any number of processes, and its commit.
//!
//! A draft is a folder with a random name. Attempts put their files there; two attempts at one shard have two
//! files. The commit holds the set's lock (`lock.rs`), and makes the draft a version in this order, each step
//! durable before the next:
//!
//! 1. The files that it names are there, as long as was said. What else is there goes.
//! 2. The folder gets the name of the next version. Without a manifest it is seen by nobody.
//! 3. The manifest is written under another name and gets its own. From that moment the version counts.
//!
//! So a crash leaves the version whole or not at all, and `prune` removes what it leaves.

use crate::error::{damaged, invalid, io, not_there};
use crate::lock;
use crate::manifest::{Manifest, ShardFile, read_bounded};
use crate::names;
use crate::spec::Spec;
use crate::writer::ShardWriter;
use azekura::{Error, Result};
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A version that is being written.
#[derive(Debug, Clone)]
pub struct Draft {
    root: PathBuf,
    id: String,
    spec: Spec,
}

/// The steps of a commit, after which a crash is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The folder is as it will be.
    Settled,
    /// It has the version's name.
    Named,
}

impl Draft {
    /// Begins a version of a set. The set's folder is made if it is not there.
    ///
    /// # Errors
    /// `Invalid` if no set can be so, `NoSpace`, `Io`.
    pub fn begin(root: impl AsRef<Path>, spec: &Spec) -> Result<Draft> {
        spec.check()?;
        let root = root.as_ref().to_path_buf();
        let id = names::random_name();
        let draft = Draft { root, id, spec: spec.clone() };
        let folder = draft.folder();
        fs::create_dir_all(&folder).map_err(|error| io("making a set of shards", &folder, &error))?;
        let text = serde_json::to_vec_pretty(spec).map_err(|error| invalid(error.to_string()))?;
        lock::make(&draft.root)?;
        names::write_whole(&folder, names::SPEC, &text)?;
        names::sync_folder(&draft.root)?;
        Ok(draft)
    }

    /// A draft that was begun elsewhere, by its [`id`](Draft::id).
    ///
    /// # Errors
    /// `Open` if there is none, perhaps since it was committed or aborted; `Corrupt`, `Invalid`, `Io`.
    pub fn resume(root: impl AsRef<Path>, id: &str) -> Result<Draft> {
        names::check_attempt(id)?;
        let (root, id) = (root.as_ref().to_path_buf(), id.to_owned());
        let path = root.join(format!("{}{id}", names::DRAFT)).join(names::SPEC);
        let (text, _) = read_bounded(&path)?;
        let spec: Spec = serde_json::from_slice(&text).map_err(|error| damaged(&path, error))?;
        spec.check().map_err(|error| damaged(&path, error))?;
        Ok(Draft { root, id, spec })
    }

    /// What other processes resume it by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the set is.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The folder in which shards are written.
    pub fn folder(&self) -> PathBuf {
        self.root.join(format!("{}{}", names::DRAFT, self.id))
    }

    /// A writer of a shard. `attempt` is a name that no other attempt at this shard has: 1 to 64 letters,
    /// digits, `_` and `-`.
    ///
    /// # Errors
    /// `Invalid` if there is no such shard or the name cannot be one, `Open` if the file is there already or
    /// the draft is gone, `NoSpace`, `Io`.
    pub fn writer(&self, shard: u32, attempt: &str) -> Result<ShardWriter> {
        ShardWriter::create(&self.folder(), &self.spec, shard, attempt)
    }

    /// Makes these shards a version, and returns its number. Shards without records may be left out. What
    /// other attempts have written is removed. Commits of one set, what removes drafts and versions, and the
    /// end of a merge wait for each other.
    ///
    /// # Errors
    /// `Invalid` if the shards cannot be a version: one is there twice, the keys of two overlap, a file is
    /// missing or has another length, the manifest would be longer than 64 MiB. `NoSpace`, `Io`. The draft is
    /// still there then. `Open` if it is gone: it was committed, aborted or pruned.
    pub fn commit(&self, files: &[ShardFile]) -> Result<u32> {
        self.commit_if(files, || Ok(()), |_| Ok(()))
    }

    /// Commits if `allowed` says so, whom nobody else can prove wrong meanwhile. `step` is called between the
    /// steps.
    pub(crate) fn commit_if(
        &self,
        files: &[ShardFile],
        allowed: impl FnOnce() -> Result<()>,
        mut step: impl FnMut(Step) -> Result<()>,
    ) -> Result<u32> {
        let full: Vec<ShardFile> = files.iter().filter(|file| file.records > 0).cloned().collect();
        // The number is not known yet. No manifest is longer than that of the greatest.
        Manifest::of(u32::MAX, &self.spec, full.clone()).and_then(|all| all.encode()).map_err(invalid)?;
        let _alone = lock::alone(&self.root)?;
        allowed()?;
        self.settle(&full)?;
        step(Step::Settled)?;
        let version = self.name()?;
        let manifest = Manifest::of(version, &self.spec, full).and_then(|manifest| manifest.encode());
        let written = manifest.map_err(invalid).and_then(|bytes| {
            names::sync_folder(&self.root)?;
            step(Step::Named)?;
            names::write_whole(&self.root, &names::manifest(version), &bytes)
        });
        if let Err(error) = written {
            self.unname(version);
            return Err(error);
        }
        Ok(version)
    }

    /// Makes a draft again of what could not become a version. If that fails too, the folder has a name that
    /// no other version gets, and counts for nothing.
    fn unname(&self, version: u32) {
        if !self.root.join(names::manifest(version)).exists() {
            let _stays = fs::rename(self.root.join(names::folder(version)), self.folder());
        }
    }

    /// Looks for the files, and removes all others.
    fn settle(&self, files: &[ShardFile]) -> Result<()> {
        let folder = self.folder();
        if !folder.join(names::SPEC).is_file() {
            return Err(not_there(&folder, "the draft is gone: it was committed, aborted or pruned"));
        }
        for file in files {
            let path = folder.join(&file.file);
            let said = file.bytes;
            match fs::metadata(&path) {
                Ok(found) if found.is_file() && found.len() == said => {}
                Ok(found) => {
                    let (path, found) = (path.display(), found.len());
                    return Err(invalid(format!("{path} has {found} bytes, not {said} as was said")));
                }
                Err(error) => return Err(invalid(format!("{}: {error}", path.display()))),
            }
        }
        let named: HashSet<&str> = files.iter().map(|file| file.file.as_str()).chain([names::SPEC]).collect();
        for name in names::listed(&folder)?.iter().filter(|name| !named.contains(name.as_str())) {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(io("removing what another attempt has written", &path, &error));
                }
                _ => {}
            }
        }
        names::sync_folder(&folder)
    }

    /// Gives the folder the name of the next version.
    fn name(&self) -> Result<u32> {
        let known =
            |name: &String| names::version_of_folder(name).or_else(|| names::version_of_manifest(name));
        let newest = names::listed(&self.root)?.iter().filter_map(known).max().unwrap_or(0);
        let mut version = newest;
        loop {
            version = version.checked_add(1).ok_or_else(|| invalid("there is no next version".to_owned()))?;
            let to = self.root.join(names::folder(version));
            // A folder with files is never replaced, and each version's has its description.
            match fs::rename(self.folder(), &to) {
                Ok(()) => return Ok(version),
                Err(error)
                    if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {}
                Err(error) => return Err(io("naming a version", &to, &error)),
            }
        }
    }

    /// Removes the draft with all that was written. It may be gone already.
    ///
    /// # Errors
    /// `Io`.
    pub fn abort(&self) -> Result<()> {
        let _alone = match lock::alone(&self.root) {
            // The set is gone, and all of it.
            Err(Error::Open { .. }) => return Ok(()),
            other => other?,
        };
        names::remove_folder(&self.folder())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prune;
    use crate::version::{ReadOptions, Version, versions};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    fn written(root: &Path) -> (Draft, Vec<ShardFile>) {
        let draft = Draft::begin(root, &Spec::hash(1)).expect("a draft");
        let mut writer = draft.writer(0, "a").expect("a writer");
        writer.put(b"key", b"value").expect("a record");
        let files = vec![writer.finish().expect("a shard")];
        (draft, files)
    }

    /// Everything ends in the midst of a commit, as in a crash.
    fn crashed(at: Step, draft: &Draft, files: &[ShardFile]) {
        let crash = |step| if step == at { panic!("as the test wants it") } else { Ok(()) };
        catch_unwind(AssertUnwindSafe(|| draft.commit_if(files, || Ok(()), crash))).expect_err("a crash");
    }

    fn expect_value(root: &Path, version: u32) {
        let options = ReadOptions { version: Some(version), ..ReadOptions::default() };
        let value = Version::open(root, options).and_then(|version| version.get(b"key"));
        assert_eq!(value.expect("a get").as_deref(), Some(&b"value"[..]));
    }

    #[test]
    fn a_crash_before_the_folder_has_its_name_leaves_the_draft() {
        let place = tempfile::tempdir().expect("a folder");
        let (draft, files) = written(place.path());
        crashed(Step::Settled, &draft, &files);
        assert!(versions(place.path()).expect("none").is_empty());
        assert!(matches!(Version::open(place.path(), ReadOptions::default()), Err(Error::Open { .. })));
        let again = Draft::resume(place.path(), draft.id()).expect("it is there");
        assert_eq!(again.commit(&files).expect("a version"), 1);
        expect_value(place.path(), 1);
    }

    #[test]
    fn a_crash_before_the_manifest_leaves_no_version_and_its_number_is_not_used_again() {
        let place = tempfile::tempdir().expect("a folder");
        let (draft, files) = written(place.path());
        crashed(Step::Named, &draft, &files);
        assert!(place.path().join("v0001").is_dir());
        assert!(versions(place.path()).expect("none").is_empty());
        assert!(matches!(Version::open(place.path(), ReadOptions::default()), Err(Error::Open { .. })));
        let (next, files) = written(place.path());
        assert_eq!(next.commit(&files).expect("a version"), 2);
        expect_value(place.path(), 2);
        assert_eq!(prune(place.path(), 1, Duration::ZERO).expect("a report").unfinished, 1);
        assert!(!place.path().join("v0001").exists());
        expect_value(place.path(), 2);
    }

    #[test]
    fn a_commit_that_fails_can_be_tried_again() {
        let place = tempfile::tempdir().expect("a folder");
        let (draft, files) = written(place.path());
        for at in [Step::Settled, Step::Named] {
            let full = |step| if step == at { Err(Error::NoSpace { during: "the test" }) } else { Ok(()) };
            assert!(matches!(draft.commit_if(&files, || Ok(()), full), Err(Error::NoSpace { .. })));
            assert!(versions(place.path()).expect("none").is_empty());
            assert!(draft.folder().is_dir() && !place.path().join("v0001").exists());
        }
        assert_eq!(draft.commit(&files).expect("a version"), 1);
        expect_value(place.path(), 1);
    }

    /// What stands in another process's way: it runs on a thread of its own, from a step of a commit on.
    fn beside<T: Send>(
        at: Step,
        (draft, files): (&Draft, &[ShardFile]),
        other: impl FnOnce() -> T + Send,
    ) -> (Result<u32>, T) {
        std::thread::scope(|scope| {
            let (over, is_over) = std::sync::mpsc::channel::<()>();
            let mut other = Some(move || {
                let outcome = other();
                drop(over);
                outcome
            });
            let mut running = None;
            let committed = draft.commit_if(
                files,
                || Ok(()),
                |step| {
                    if step == at {
                        running = other.take().map(|other| scope.spawn(other));
                        // It has to wait, so this is over in time only if nothing holds it back.
                        let _waited = is_over.recv_timeout(Duration::from_millis(300));
                    }
                    Ok(())
                },
            );
            (committed, running.expect("the step has come").join().expect("no panic"))
        })
    }

    fn attempt(draft: &Draft, name: &str) -> Vec<ShardFile> {
        let mut writer = draft.writer(0, name).expect("a writer");
        writer.put(b"key", b"value").expect("a record");
        vec![writer.finish().expect("a shard")]
    }

    #[test]
    fn of_two_that_commit_one_draft_one_has_its_files_and_the_other_an_error() {
        for at in [Step::Settled, Step::Named] {
            let place = tempfile::tempdir().expect("a folder");
            let (draft, files) = written(place.path());
            let (again, others) = (draft.clone(), attempt(&draft, "b"));
            // The other one crashes when it has removed what it does not know.
            let removes =
                || again.commit_if(&others, || Ok(()), |_| Err(Error::NoSpace { during: "the test" }));
            let (committed, other) = beside(at, (&draft, &files), removes);
            assert_eq!(committed.expect("it was first"), 1);
            assert!(matches!(other, Err(Error::Open { .. })), "{other:?}");
            expect_value(place.path(), 1);
        }
    }

    #[test]
    fn nothing_is_pruned_or_aborted_beside_a_commit() {
        for at in [Step::Settled, Step::Named] {
            let place = tempfile::tempdir().expect("a folder");
            let (draft, files) = written(place.path());
            let (committed, pruned) = beside(at, (&draft, &files), || prune(place.path(), 1, Duration::ZERO));
            assert_eq!(committed.expect("a version"), 1);
            assert_eq!(pruned.expect("a report").unfinished, 0, "{at:?}");
            expect_value(place.path(), 1);

            let (draft, files) = written(place.path());
            let (committed, aborted) = beside(at, (&draft, &files), || draft.clone().abort());
            assert_eq!(committed.expect("a version"), 2);
            aborted.expect("there is nothing to remove");
            expect_value(place.path(), 2);
        }
    }

    #[test]
    fn a_draft_that_is_gone_is_no_version() {
        let place = tempfile::tempdir().expect("a folder");
        let draft = Draft::begin(place.path(), &Spec::hash(1)).expect("a draft");
        draft.abort().expect("it goes");
        assert!(matches!(draft.commit(&[]), Err(Error::Open { .. })));
        assert!(versions(place.path()).expect("none").is_empty());
        assert!(matches!(draft.commit(&[]), Err(Error::Open { .. })));
    }

    #[test]
    fn a_manifest_that_would_be_too_long_is_refused_before_anything_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let draft = Draft::begin(place.path(), &Spec::ordered(5)).expect("a draft");
        let key = |shard: u32| [vec![b'a' + u8::try_from(shard).unwrap()], vec![b'k'; 4 << 20]].concat();
        let files: Vec<ShardFile> = (0..5)
            .map(|shard| {
                let mut writer = draft.writer(shard, "a").expect("a writer");
                writer.put(&[b'a' + u8::try_from(shard).unwrap()], b"").expect("a record");
                let file = writer.finish().expect("a shard");
                ShardFile { keys: Some([key(shard), key(shard)]), ..file }
            })
            .collect();
        attempt(&draft, "other");
        let before = names::listed(&draft.folder()).expect("names").len();
        let said = draft.commit(&files).expect_err("it is too long").to_string();
        assert!(said.contains("67108864 are allowed"), "{said}");
        assert_eq!(names::listed(&draft.folder()).expect("names").len(), before);
    }
}
