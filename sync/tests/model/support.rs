//! What the models share: random numbers from a seed, and futures that are polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

/// The steps of one round.
const STEPS: usize = 200;
/// How many rounds there are, unless `RT_MODEL_ROUNDS` says otherwise.
const ROUNDS: u64 = 300;

/// Numbers that depend on the seed only.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs `round` with one seed after the other, and says which seed it was when a round fails. `RT_MODEL_SEED` runs that
/// seed alone.
pub(crate) fn rounds(name: &str, round: impl Fn(&mut Random, usize)) {
    let seeds = match from_environment("RT_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_environment("RT_MODEL_ROUNDS").unwrap_or(ROUNDS),
    };
    for seed in seeds {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            round(&mut Random(seed), STEPS);
        }));
        if let Err(payload) = caught {
            eprintln!("the model of {name} failed: run it again with RT_MODEL_SEED={seed}");
            std::panic::resume_unwind(payload);
        }
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// A future, what the model knows of it, and whether it was woken since its last poll.
pub(crate) struct Slot<'a, T, S> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    flag: Arc<Flag>,
    pub(crate) state: S,
}

impl<'a, T, S> Slot<'a, T, S> {
    pub(crate) fn new(state: S, future: impl Future<Output = T> + 'a) -> Self {
        Self {
            future: Box::pin(future),
            flag: Arc::default(),
            state,
        }
    }

    /// Polls it, now and then with the waker of another task.
    pub(crate) fn poll(&mut self, random: &mut Random) -> Poll<T> {
        if random.below(4) == 0 {
            self.flag = Arc::default();
        }
        self.flag.0.store(false, SeqCst);
        let waker = Waker::from(self.flag.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn woken(&self) -> bool {
        self.flag.0.load(SeqCst)
    }

    /// Who has a reference to the flag besides us: a waker that was left somewhere.
    pub(crate) fn wakers_left(&self) -> usize {
        Arc::strong_count(&self.flag) - 1
    }
}

/// Takes a random one out of what is there.
pub(crate) fn pick<T>(random: &mut Random, from: &mut Vec<T>) -> Option<T> {
    (!from.is_empty()).then(|| {
        let index = random.below(from.len());
        from.swap_remove(index)
    })
}
