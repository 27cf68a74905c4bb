//! Where `spawn_local` spawns inside a pinned task: on the worker of that task.
//!
//! [`OnSeat`] is around the future of every pinned task. While that future is made, polled or dropped, the seat lies in
//! a variable of the thread; it is moved there and back, so that a poll costs no count.
//!
//! A thread finds a seat here only if it is that seat's own thread: pinned tasks run nowhere else (rule 5 of
//! `task/mod.rs`). So whoever finds it may give a future that is not `Send` to its inbox.
//!
//! A `block_on` below a pinned task hides it ([`Hidden`]): the loop there polls tasks that know nothing of the pinned one,
//! and who waits there for another task of this worker would wait for their own thread.

use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::scheduler::Seat;

thread_local! {
    /// The seat whose pinned task runs on this thread.
    static HERE: RefCell<Option<Arc<Seat>>> = const { RefCell::new(None) };
}

/// The seat whose pinned task runs on this thread, if one does.
pub(super) fn seat() -> Option<Arc<Seat>> {
    HERE.try_with(|here| here.borrow().clone()).ok().flatten()
}

/// While it lives, `seat` is this thread's, and what was there before lies in its place.
struct Entered<'a>(&'a mut Option<Arc<Seat>>);

impl<'a> Entered<'a> {
    fn new(seat: &'a mut Option<Arc<Seat>>) -> Self {
        exchange(seat);
        Self(seat)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        exchange(self.0);
    }
}

/// While it lives, no pinned task runs on this thread.
pub(in crate::scheduler) struct Hidden(Option<Arc<Seat>>);

impl Hidden {
    pub(in crate::scheduler) fn new() -> Self {
        let mut seat = None;
        exchange(&mut seat);
        Self(seat)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        exchange(&mut self.0);
    }
}

fn exchange(seat: &mut Option<Arc<Seat>>) {
    // A future may be dropped while this thread's storage is destroyed: then there is no seat.
    let _ = HERE.try_with(|here| mem::swap(&mut *here.borrow_mut(), seat));
}

pin_project! {
    /// The future of a pinned task. See the module head.
    pub(super) struct OnSeat<F> {
        seat: Option<Arc<Seat>>,
        // Gone once it is dropped.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for OnSeat<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = Entered::new(this.seat);
            this.future.set(None);
        }
    }
}

impl<F> OnSeat<F> {
    pub(super) fn new(seat: Arc<Seat>, future: F) -> Self {
        Self {
            seat: Some(seat),
            future: Some(future),
        }
    }
}

impl<F: Future> Future for OnSeat<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let _entered = Entered::new(this.seat);
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            unreachable!("it is taken away in the destructor only")
        };
        // Its destructor runs in ours, where a panic does not cost the output.
        future.poll(cx)
    }
}
