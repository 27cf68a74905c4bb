//! What the tests share: a watchdog.

use std::sync::Arc;
use std::task::{Wake, Waker};

#[path = "../watchdog/mod.rs"]
mod watchdog;

pub(crate) use self::watchdog::{Limit, within_limit};

/// A waker, and what tells how many of its like there are.
pub(crate) fn counted_waker() -> (Arc<impl Wake + Send + Sync>, Waker) {
    struct Counted;
    impl Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }
    let count = Arc::new(Counted);
    let waker = Waker::from(count.clone());
    (count, waker)
}
