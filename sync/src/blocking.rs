//! Waiting with a whole thread: what the `blocking_` methods are made of.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::coop;
use crate::primitive::thread::{self, Thread};

/// Panics inside a task, where to block would keep a worker from polling anything else, maybe the task that is waited
/// for. `method` and `instead` are names for the message.
#[inline]
#[track_caller]
pub(crate) fn forbid_in_task(method: &str, instead: &str) {
    if coop::in_task() {
        refuse(method, instead);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse(method: &str, instead: &str) -> ! {
    panic!(
        "`{method}` was called inside a task, whose worker it would block: await `{instead}` there, or call it from a \
         plain thread or `spawn_blocking`"
    );
}

/// Polls `future` to its end on this thread, which sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            // May return early; then the next round comes here again.
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
