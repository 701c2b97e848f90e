//! What each thread of the background does (`crew.rs` says which of them there are).
//!
//! The longer a merge, the lower its priority. So the operating system runs readers, writers and flushes
//! first, and short merges before long ones.

mod flush;
mod log;
mod merge;

pub(super) use flush::FlushThread;
pub(super) use log::LogThread;
pub(super) use merge::MergeThread;

use super::Engine;
use super::crew::{Role, Work};
use std::time::Duration;

/// A failed flush or merge (a full disk) is tried again after this.
const RETRY: Duration = Duration::from_millis(250);

/// Gives this thread a nice value. Without the right to, it stays as it is. (Under the checker of schedules
/// all threads are one of the system's.)
#[cfg(all(target_os = "linux", not(shuttle)))]
pub(crate) fn lower_priority(nice: i32) {
    let thread = rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_nonzero().get());
    let _kept = rustix::process::setpriority_process(thread, nice);
}

/// Where threads have no priorities of their own, or none that may be changed.
#[cfg(not(all(target_os = "linux", not(shuttle))))]
pub(crate) fn lower_priority(_nice: i32) {}

impl Work for Engine {
    /// After a panic here nobody would do the thread's work. So it poisons the handle.
    fn work_as(&self, role: Role) {
        let armed = self.poison.armed(role.doing());
        match role {
            Role::Flush => self.flush_thread().run(),
            Role::Log => self.log_thread().run(),
            Role::Values => self.values.run(),
            Role::Merge(class) => self.merge_thread(class).run(),
            Role::Sweep => self.sweeper().run(),
        }
        armed.disarm();
    }
}
