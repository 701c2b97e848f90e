//! Misuse of handles, by one thread and by several at once.

use super::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the threads of a test run against each other.
const WHILE: Duration = Duration::from_millis(300);

/// A counter that only works if one thread uses it at a time.
struct Alone;

impl Handle for Alone {
    type Held = Cell<u64>;
    const TAG: u8 = 14;
    fn slots() -> &'static HandleSlots<Cell<u64>> {
        static SLOTS: HandleSlots<Cell<u64>> = HandleSlots::new();
        &SLOTS
    }
}

/// Tests that look at the slots of handles take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something for all threads, which notes when it is dropped.
struct Common;

struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Handle for Common {
    type Held = Noted;
    const TAG: u8 = 15;
    fn slots() -> &'static HandleSlots<Noted> {
        static SLOTS: HandleSlots<Noted> = HandleSlots::new();
        &SLOTS
    }
}

fn status<T>(outcome: Outcome<T>) -> azk_status {
    outcome.map_or_else(|failure| failure.status(), |_| azk_status::AZK_OK)
}

/// A handle that is sent to other threads, as in C.
#[derive(Clone, Copy)]
struct Sent(usize);

impl Sent {
    fn new<H>(handle: *mut H) -> Sent {
        Sent(handle.addr())
    }

    fn handle<H>(self) -> *const H {
        std::ptr::without_provenance(self.0)
    }
}

#[test]
fn only_the_number_itself_is_good_and_only_once() {
    let _turn = turn();
    let handle = own::<Alone>(Cell::new(7)).expect("a handle").cast_const();
    assert_eq!(owned(handle).expect("it is good").get(), 7);
    for bit in 0..64 {
        let other: *const Alone = std::ptr::without_provenance(handle.addr() ^ 1 << bit);
        assert_eq!(status(owned(other)), azk_status::AZK_BAD_HANDLE, "bit {bit}");
        assert_eq!(status(end(other)), azk_status::AZK_BAD_HANDLE, "bit {bit}");
    }
    assert_eq!(take(handle).expect("it is good").get(), 7);
    assert_eq!(status(end(handle)), azk_status::AZK_BAD_HANDLE);
    let next = own::<Alone>(Cell::new(8)).expect("a handle").cast_const();
    assert_ne!(next, handle);
    assert_eq!(status(owned(handle)), azk_status::AZK_BAD_HANDLE);
    assert_eq!(take(next).expect("it is good").get(), 8);
}

#[test]
fn a_slot_without_generations_left_is_not_used_again() {
    let _turn = turn();
    let handle = own::<Alone>(Cell::new(1)).expect("a handle").cast_const();
    let found = Found::of(handle).expect("it is good");
    let last = GENERATION_MAX - 1;
    found.slot.word.store(pack(last, seat::mine().id), Ordering::Release);
    let number = usize::try_from(number(Alone::TAG, last, found.index)).expect("64 bits");
    let handle: *const Alone = std::ptr::without_provenance(number);
    assert_eq!(take(handle).expect("it is good").get(), 1);
    assert_eq!(status(end(handle)), azk_status::AZK_BAD_HANDLE);
    for _ in 0..1000 {
        let next = own::<Alone>(Cell::new(2)).expect("a handle").cast_const();
        assert_ne!(Found::of(next).expect("it is good").index, found.index);
        end(next).expect("it is good");
    }
}

#[test]
fn what_is_in_use_is_busy() {
    let _turn = turn();
    let handle = own::<Alone>(Cell::new(1)).expect("a handle");
    let sent = Sent::new(handle);
    let held = owned(handle.cast_const()).expect("it is good");
    assert_eq!(status(owned(handle.cast_const())), azk_status::AZK_BUSY);
    let elsewhere = move || [status(owned::<Alone>(sent.handle())), status(end::<Alone>(sent.handle()))];
    assert_eq!(thread::spawn(elsewhere).join().expect("it ends"), [azk_status::AZK_BUSY; 2]);
    drop(held);
    let elsewhere = move || [status(owned::<Alone>(sent.handle())), status(end::<Alone>(sent.handle()))];
    assert_eq!(thread::spawn(elsewhere).join().expect("it ends"), [azk_status::AZK_OK; 2]);
}

#[test]
fn one_thread_at_a_time_has_a_handle_of_one() {
    let _turn = turn();
    let sent = Sent::new(own::<Alone>(Cell::new(0)).expect("a handle"));
    let count = move || {
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < WHILE {
            if let Ok(held) = owned::<Alone>(sent.handle()) {
                let n = held.get();
                (0..50).for_each(|_| std::hint::spin_loop());
                held.set(n + 1);
                done += 1;
            }
        }
        done
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(count)).collect();
    let total: u64 = threads.into_iter().map(|t| t.join().expect("it ends")).sum();
    assert!(total > 0);
    assert_eq!(take::<Alone>(sent.handle()).expect("it is good").get(), total);
}

/// Tells threads that the test is over, also if it has failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Other threads want each handle while it is made, used and freed. A handle that is freed stays so.
#[test]
fn no_handle_comes_back_while_others_take_it_over() {
    let _turn = turn();
    let (newest, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let takes = || {
        let mut used = 0_u64;
        while !over.load(Ordering::Relaxed) {
            let handle: *const Alone = std::ptr::without_provenance(newest.load(Ordering::Relaxed));
            used += owned(handle).map_or(0, |held| held.get());
        }
        used
    };
    thread::scope(|scope| {
        let takers = [scope.spawn(takes), scope.spawn(takes)];
        let ends = Ends(&over);
        let (began, mut last, mut made) = (Instant::now(), 0, 0);
        while began.elapsed() < 3 * WHILE {
            let handle = own::<Alone>(Cell::new(1)).expect("a handle").cast_const();
            assert_ne!(handle.addr(), last, "handle {made}");
            (last, made) = (handle.addr(), made + 1);
            newest.store(last, Ordering::Relaxed);
            (0..made % 64).for_each(|_| std::hint::spin_loop());
            while let Err(failure) = end(handle) {
                assert_eq!(failure.status(), azk_status::AZK_BUSY, "handle {made}");
            }
            assert_eq!(status(owned(handle)), azk_status::AZK_BAD_HANDLE, "handle {made}");
        }
        drop(ends);
        assert!(takers.into_iter().map(|taker| taker.join().expect("it ends")).sum::<u64>() > 0);
    });
}

#[test]
fn what_threads_share_is_there_as_long_as_they_use_it() {
    let began = Instant::now();
    let (mut used, first) = (0, Arc::new(AtomicBool::new(false)));
    while began.elapsed() < WHILE {
        let gone = Arc::new(AtomicBool::new(false));
        let sent = Sent::new(share::<Common>(Noted(gone.clone())).expect("a handle"));
        let first_use = first.clone();
        let uses = move || {
            let mut uses = 0_u64;
            loop {
                match shared::<Common>(sent.handle()) {
                    Ok(held) => {
                        first_use.store(true, Ordering::Relaxed);
                        (0..20).for_each(|_| std::hint::spin_loop());
                        assert!(!held.0.load(Ordering::Acquire));
                        uses += 1;
                    }
                    Err(failure) if failure.status() == azk_status::AZK_BUSY => {}
                    Err(_ended) => return uses,
                }
            }
        };
        let threads: Vec<_> = (0..2).map(|_| thread::spawn(uses.clone())).collect();
        // On a busy machine the handle may else be gone before anybody has used it, in each round.
        while !first.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        while status(end_shared::<Common>(sent.handle())) != azk_status::AZK_OK {}
        assert!(gone.load(Ordering::Acquire));
        used += threads.into_iter().map(|t| t.join().expect("it ends")).sum::<u64>();
    }
    assert!(used > 0);
}
