//! A thread of low priority that does the bulk of a copy. So on a busy machine writers keep their processors.
//! It holds no lock that others wait for.

use crate::base::error::Result;
use crate::engine::{Engine, Progress, lower_priority};
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{Builder, scope};
use std::time::Duration;

/// Beside one busy thread it gets a fifteenth of a processor. It gets all of an idle one.
const NICE: i32 = 12;
/// How often progress is told at least.
const TICK: Duration = Duration::from_millis(50);

/// Does `work` in a thread of its own, while this thread tells the progress. Without threads, or if the
/// system refuses one, this thread does the work.
pub(super) fn aside<T: Send>(
    engine: &Engine,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T> + Send,
    progress: &mut dyn FnMut(Progress),
) -> Result<T> {
    // Taken by the thread that does it.
    let mut left = Some(work);
    if engine.config.threads
        && let Some(done) = in_thread(&mut left, progress)
    {
        return done;
    }
    let work = left.expect("a thread that was not started has left the work");
    work(progress)
}

/// Tells each step as it comes, and the last one again and again until the next, for those who do something
/// of their own meanwhile.
fn tell_on(told: &mpsc::Receiver<Progress>, progress: &mut dyn FnMut(Progress)) {
    let mut last = None;
    loop {
        match told.recv_timeout(TICK) {
            Ok(step) => last = Some(step),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        last.into_iter().for_each(&mut *progress);
    }
}

/// None if this thread does the work.
fn in_thread<T: Send>(
    left: &mut Option<impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T> + Send>,
    progress: &mut dyn FnMut(Progress),
) -> Option<Result<T>> {
    scope(|scope| {
        let (tell, told) = mpsc::channel();
        let run = move || {
            lower_priority(NICE);
            let work = left.take()?;
            Some(work(&mut |step| {
                // If the listener has panicked, that is reported when this has ended.
                let _unheard = tell.send(step);
            }))
        };
        let worker = Builder::new().name("azekura-copy".into()).spawn_scoped(scope, run).ok()?;
        tell_on(&told, progress);
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
