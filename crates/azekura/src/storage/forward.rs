//! What a file or a storage that wraps another leaves to it. The schedules of the tests take this file too.

/// Passes the named methods of [`File`](super::File) on to the file in a field.
macro_rules! forward_file {
    ($file:ident: $($method:ident),+) => { $(forward_file!(@$method $file);)+ };
    (@write_back $file:ident) => { forward_file!(@fn $file write_back(offset: u64, len: u64)); };
    (@wait_written $file:ident) => { forward_file!(@fn $file wait_written(offset: u64, len: u64)); };
    (@will_read $file:ident) => { forward_file!(@fn $file will_read(offset: u64, len: u64)); };
    (@forget $file:ident) => { forward_file!(@fn $file forget(offset: u64, len: u64)); };
    (@len $file:ident) => { forward_file!(@fn $file len() -> io::Result<u64>); };
    (@identity $file:ident) => { forward_file!(@fn $file identity() -> io::Result<Option<[u64; 2]>>); };
    (@set_len $file:ident) => { forward_file!(@fn $file set_len(len: u64) -> io::Result<()>); };
    (@allocate $file:ident) => { forward_file!(@fn $file allocate(offset: u64, len: u64) -> io::Result<bool>); };
    (@punch $file:ident) => { forward_file!(@fn $file punch(offset: u64, len: u64) -> io::Result<()>); };
    (@disk_room $file:ident) => { forward_file!(@fn $file disk_room() -> io::Result<Option<DiskRoom>>); };
    (@try_lock $file:ident) => { forward_file!(@fn $file try_lock(exclusive: bool) -> io::Result<bool>); };
    (@unlock $file:ident) => { forward_file!(@fn $file unlock() -> io::Result<()>); };
    (@pin $file:ident) => { forward_file!(@fn $file pin(number: u64) -> io::Result<()>); };
    (@unpin $file:ident) => { forward_file!(@fn $file unpin(number: u64)); };
    (@pins $file:ident) => { forward_file!(@fn $file pins() -> io::Result<Vec<RangeInclusive<u64>>>); };
    (@acknowledge $file:ident) => { forward_file!(@fn $file acknowledge(commit: Option<u64>) -> io::Result<()>); };
    (@acknowledged $file:ident) => { forward_file!(@fn $file acknowledged() -> io::Result<Option<u64>>); };
    (@mapping $file:ident) => { forward_file!(@fn $file mapping() -> Option<Arc<FileMapping>>); };
    (@fn $file:ident $method:ident($($name:ident: $type:ty),*) $(-> $result:ty)?) => {
        fn $method(&self, $($name: $type),*) $(-> $result)? {
            self.$file.$method($($name),*)
        }
    };
}

/// Passes what changes names on to the storage in a field.
#[cfg(all(test, not(loom)))]
macro_rules! forward_names {
    ($files:ident) => {
        forward_names!(@names $files);

        fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
            self.$files.sync_dir_of(path)
        }
    };
    // All but the sync.
    (@names $files:ident) => {
        fn exists(&self, path: &Path) -> io::Result<bool> {
            self.$files.exists(path)
        }

        fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
            self.$files.rename(from, to, replace)
        }

        fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
            self.$files.exchange(a, b)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.$files.remove(path)
        }
    };
}

pub(crate) use forward_file;
#[cfg(all(test, not(loom)))]
pub(crate) use forward_names;
