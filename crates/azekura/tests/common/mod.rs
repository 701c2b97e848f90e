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

/// Ends the process with a message if a thread of the engine panics (nobody would be told) or the test says
/// nothing for `limit` (`AZEKURA_PATIENCE=n`: `n` times that): an engine that hangs is as wrong as one that
/// errs.
pub fn watch(limit: Duration) {
    let patience =
        std::env::var("AZEKURA_PATIENCE").map_or(1, |n| n.parse().expect("AZEKURA_PATIENCE is a number"));
    let limit = limit * patience;
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        doing("starting".into());
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            usual(info);
            if std::thread::current().name().is_some_and(|n| n.starts_with("azekura")) {
                eprintln!("a thread of the engine panicked while {}", was_doing());
                std::process::exit(101);
            }
        }));
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(250));
                if now_ms().saturating_sub(SAID.load(Ordering::Relaxed)) > limit.as_millis() as u64 {
                    eprintln!("nothing has happened for {limit:?} while {}", was_doing());
                    if std::env::var_os("AZEKURA_HANG").is_some() {
                        std::thread::park(); // Stay, so that a debugger can look.
                    }
                    std::process::exit(102);
                }
            }
        });
    });
}
