//! What the tests share: a small random number generator, and a watchdog that ends a hanging test.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Xorshift with a multiplier (Vigna's xorshift64*): fast, and the same on every machine.
#[derive(Clone)]
pub struct Rng(u64);

#[allow(dead_code, reason = "each test uses some of it")]
impl Rng {
    /// A generator for a seed; any seed will do.
    pub fn new(seed: u64) -> Rng {
        Rng((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd134_2543_de82_ef95) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.number() >> 11) % n.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What the test is doing, for the message that ends it.
static DOING: Mutex<String> = Mutex::new(String::new());
/// When it last said so, in milliseconds since `START`.
static SAID: AtomicU64 = AtomicU64::new(0);

/// Says what the test is doing now.
pub fn doing(text: String) {
    SAID.store(now_ms(), Ordering::Relaxed);
    *DOING.lock().unwrap_or_else(|e| e.into_inner()) = text;
}

/// What was said last.
pub fn was_doing() -> String {
    DOING.lock().unwrap_or_else(|e| e.into_inner()).clone()
}

fn now_ms() -> u64 {
    static START: Mutex<Option<Instant>> = Mutex::new(None);
    let start = *START.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_with(Instant::now);
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The longest silence that any test of this process has asked for, in milliseconds.
static LIMIT_MS: AtomicU64 = AtomicU64::new(0);

/// A test that is watched; that it ends is news, too.
struct Watched;

impl Drop for Watched {
    fn drop(&mut self) {
        SAID.store(now_ms(), Ordering::Relaxed);
    }
}

thread_local! {
    /// Dropped with the thread of the test.
    static WATCHED: Watched = const { Watched };
}

/// Ends the process with a message if a thread of the engine panics (nobody would be told), or if no test of
/// the process says anything, or ends, for `limit` (the longest that one has asked for;
/// `AZEKURA_PATIENCE=n`: `n` times that): an engine that hangs is as wrong as one that errs.
pub fn watch(limit: Duration) {
    let patience: u32 =
        std::env::var("AZEKURA_PATIENCE").map_or(1, |n| n.parse().expect("AZEKURA_PATIENCE is a number"));
    let limit_ms = u64::try_from((limit * patience).as_millis()).unwrap_or(u64::MAX);
    LIMIT_MS.fetch_max(limit_ms, Ordering::Relaxed);
    WATCHED.with(|_| doing("starting".into()));
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        exit_when_the_engine_panics();
        std::thread::spawn(exit_when_nothing_happens);
    });
}

fn exit_when_the_engine_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
        if std::thread::current().name().is_some_and(|n| n.starts_with("azekura")) {
            eprintln!("a thread of the engine panicked while {}", was_doing());
            std::process::exit(101);
        }
    }));
}

fn exit_when_nothing_happens() {
    loop {
        std::thread::sleep(Duration::from_millis(250));
        let limit_ms = LIMIT_MS.load(Ordering::Relaxed);
        if now_ms().saturating_sub(SAID.load(Ordering::Relaxed)) > limit_ms {
            eprintln!("nothing has happened for {limit_ms} ms while {}", was_doing());
            if std::env::var_os("AZEKURA_HANG").is_some() {
                std::thread::park(); // Stay, so that a debugger can look.
            }
            std::process::exit(102);
        }
    }
}
