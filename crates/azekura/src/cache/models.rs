//! The cache under loom. loom runs the cache's own code in every order of its threads' steps (with a bound on
//! preemptions), with every value that the memory model lets a load see. It watches every access to a page
//! for races.

use super::*;
use crate::base::limits::PAGE_BYTES;
use loom::thread;

/// Runs a model in every order of its threads, with up to three preemptions.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The first and the last byte of page `page` of run `run`.
fn stamp(run: u8, page: u32) -> u8 {
    run << 4 | u8::try_from(page).unwrap()
}

fn load(run: u8, page: u32) -> impl FnOnce(&mut [u8], &mut Guide) -> Result<()> {
    move |buf, _guide| {
        buf[0] = stamp(run, page);
        buf[PAGE_BYTES - 1] = stamp(run, page);
        Ok(())
    }
}

/// Slots that are made already. The lock that makes them at their first use is the standard library's, whose
/// order loom does not know.
fn new_slots(cache: &Arc<Cache>, pages: u32) -> PageSlots {
    let slots = PageSlots::new(cache.clone(), pages);
    slots.slots.get_or_init(|| slots.new_slots());
    slots
}

/// Reads a page twice. It must not change while it is held.
fn read(slots: &PageSlots, run: u8, page: u32) {
    let held = slots.get(page, load(run, page)).unwrap();
    assert_eq!(held[0], stamp(run, page), "the wrong page");
    thread::yield_now();
    assert_eq!(held[PAGE_BYTES - 1], stamp(run, page), "the page changed while it was held");
}

#[test]
fn two_pages_share_one_frame() {
    explore(|| {
        let cache = Cache::new(PAGE_BYTES).unwrap();
        let slots = Arc::new(new_slots(&cache, 2));
        let other = slots.clone();
        let evictor = thread::spawn(move || read(&other, 1, 1));
        read(&slots, 1, 0);
        read(&slots, 1, 0);
        evictor.join().unwrap();
    });
}

#[test]
fn a_page_is_evicted_while_two_read_it() {
    explore(|| {
        let cache = Cache::new(PAGE_BYTES).unwrap();
        let slots = Arc::new(new_slots(&cache, 2));
        drop(slots.get(0, load(1, 0)).unwrap());
        let (one, two) = (slots.clone(), slots.clone());
        let evictor = thread::spawn(move || read(&one, 1, 1));
        let reader = thread::spawn(move || {
            if let Some(held) = two.get_cached(0) {
                assert_eq!(held[0], stamp(1, 0));
                thread::yield_now();
                assert_eq!(held[PAGE_BYTES - 1], stamp(1, 0));
            }
        });
        if let Some(held) = slots.get_cached(0) {
            assert_eq!(held[0], stamp(1, 0));
        }
        evictor.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn two_load_the_same_page() {
    explore(|| {
        let cache = Cache::new(2 * PAGE_BYTES).unwrap();
        let slots = Arc::new(new_slots(&cache, 1));
        let other = slots.clone();
        let twin = thread::spawn(move || read(&other, 1, 0));
        read(&slots, 1, 0);
        twin.join().unwrap();
        assert_eq!(cache.stats().bytes, PAGE_BYTES as u64, "the second loader gives its frame back");
    });
}

#[test]
fn a_run_goes_while_its_frame_is_wanted() {
    explore(|| {
        let cache = Cache::new(PAGE_BYTES).unwrap();
        let gone = new_slots(&cache, 1);
        drop(gone.get(0, load(2, 0)).unwrap());
        let stays = Arc::new(new_slots(&cache, 1));
        let other = stays.clone();
        let evictor = thread::spawn(move || read(&other, 1, 0));
        drop(gone);
        evictor.join().unwrap();
        read(&stays, 1, 0);
        drop(stays);
        assert_eq!(cache.stats().bytes, 0, "all frames are free again");
    });
}
