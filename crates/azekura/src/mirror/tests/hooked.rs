//! A storage in memory that calls a test's hook before some calls, and fails where a test wants it.

use crate::storage::forward::{forward_file, forward_names};
use crate::storage::{File, FileMapping, MemStorage, OpenMode, Storage};
use parking_lot::Mutex;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// A call, on the file that was opened by a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mirror) enum Call {
    Lock,
    Sync,
    /// A write of the first superblock.
    First,
    /// One of the second.
    Second,
    Len,
    SyncDir,
}

type Hook = Arc<dyn Fn(&Path, Call) + Send + Sync>;

/// The storage; clones share files and hook.
#[derive(Clone, Default)]
pub(in crate::mirror) struct Hooked {
    pub(in crate::mirror) files: MemStorage,
    hook: Arc<Mutex<Option<Hook>>>,
    /// The next such call fails.
    fails: Arc<Mutex<Option<Call>>>,
}

impl Hooked {
    /// The next such call fails.
    pub(in crate::mirror) fn fail_once(&self, call: Call) {
        *self.fails.lock() = Some(call);
    }

    pub(in crate::mirror) fn hook(&self, hook: impl Fn(&Path, Call) + Send + Sync + 'static) {
        *self.hook.lock() = Some(Arc::new(hook));
    }

    /// The hook is called once for such a call.
    pub(in crate::mirror) fn hook_once(
        &self,
        path: &'static str,
        call: Call,
        hook: impl FnOnce() + Send + 'static,
    ) {
        let hook = Mutex::new(Some(hook));
        self.hook(move |at, done| {
            if at == Path::new(path) && done == call {
                let hook = hook.lock().take();
                if let Some(hook) = hook {
                    hook();
                }
            }
        });
    }
}

impl Storage for Hooked {
    forward_names!(@names files);

    fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
        fail(&self.fails, Call::SyncDir)?;
        self.files.sync_dir_of(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.files.open(path, mode)?;
        Ok(Arc::new(HookedFile {
            file,
            path: path.into(),
            hook: self.hook.clone(),
            fails: self.fails.clone(),
        }))
    }
}

fn fail(fails: &Mutex<Option<Call>>, call: Call) -> io::Result<()> {
    match fails.lock().take_if(|which| *which == call) {
        Some(_) => Err(io::Error::other("the disk has failed")),
        None => Ok(()),
    }
}

struct HookedFile {
    file: Arc<dyn File>,
    path: Box<Path>,
    hook: Arc<Mutex<Option<Hook>>>,
    fails: Arc<Mutex<Option<Call>>>,
}

impl HookedFile {
    /// The hook is called without its lock.
    fn ask(&self, call: Call) {
        let hook = self.hook.lock().clone();
        if let Some(hook) = hook {
            hook(&self.path, call);
        }
    }

    fn ask_of_write(&self, offset: u64) {
        match offset {
            0 => self.ask(Call::First),
            4096 => self.ask(Call::Second),
            _ => {}
        }
    }
}

impl File for HookedFile {
    forward_file!(file: write_back, wait_written, forget, identity, set_len, allocate, punch, unlock);
    forward_file!(file: pin, unpin, pins, acknowledge, acknowledged, mapping);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        fail(&self.fails, Call::Len)?;
        self.file.len()
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.ask_of_write(offset);
        self.file.write_at(buf, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.ask_of_write(offset);
        self.file.write_durable_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ask(Call::Sync);
        fail(&self.fails, Call::Sync)?;
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.ask(Call::Sync);
        self.file.sync_all()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.ask(Call::Lock);
        self.file.try_lock(exclusive)
    }
}
