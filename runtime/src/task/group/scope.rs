//! `Scope`: a group's body, and the wait for its children.
//!
//! # The phases
//! 1. The body is polled. It goes when it is ready, when it panics, or, without another poll, when a child has failed.
//! 2. The owner waits until no child is left; more may join meanwhile, unless the group has failed.
//! 3. The value of the body, or the failures, or the panic of the body, is handed out.
//!
//! In phases 1 and 2 a request to end that the owning task gets is handed on to the children.
//!
//! # User code
//! Destructors of the body and of its value run inside `catch_unwind`: their panics are failures like others.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use rt_sync::coop;
use rt_sync::primitive::Arc;
use rt_sync::wait::{self, WaitKind};

use super::GroupOutput;
use super::core::{self, Core};
use super::error::{Failure, GroupError};
use crate::task::{Cancelled, cancelled};

pin_project! {
    /// Future of [`TaskGroup::scope`](super::TaskGroup::scope).
    ///
    /// `B` is the body, `T` its value, `E` the error of the group.
    #[must_use = "futures do nothing unless awaited; dropping the scope cancels its children"]
    pub struct Scope<B, T, E> {
        #[pin]
        body: Option<B>,
        // The request to end of the task that polls the scope. Made when the scope waits for the first time.
        #[pin]
        request: Option<Cancelled>,
        state: State<T, E>,
    }

    impl<B, T, E> PinnedDrop for Scope<B, T, E> {
        fn drop(this: Pin<&mut Self>) {
            let state = this.project().state;
            if state.phase != Phase::Over {
                state.core.abandon();
                state.core.unregister();
            }
        }
    }
}

struct State<T, E> {
    core: Arc<Core<E>>,
    value: Option<T>,
    panic: Option<Box<dyn Any + Send>>,
    phase: Phase,
    /// The children were asked to end, or there is no task that could be asked.
    asked: bool,
    site: &'static Location<'static>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Body,
    Children,
    Over,
}

impl<B, T, E> Scope<B, T, E> {
    pub(super) fn new(body: B, core: Arc<Core<E>>, site: &'static Location<'static>) -> Self {
        Self {
            body: Some(body),
            request: None,
            state: State {
                core,
                value: None,
                panic: None,
                phase: Phase::Body,
                asked: false,
                site,
            },
        }
    }
}

// That `T` is a parameter of its own, and not said by way of `B`, keeps the bound on `B::Output` out of the type: a task
// that holds a scope would not be `Send` to the compiler where `E` has a lifetime in it (`&'static str`).
impl<B, T, E> Future for Scope<B, T, E>
where
    B: Future,
    B::Output: GroupOutput<E, Value = T>,
{
    type Output = Result<T, GroupError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let state = this.state;
        let unit = ready!(coop::poll_proceed(cx));
        wait::around(WaitKind::TaskGroup, state.site, || {
            if state.phase == Phase::Body {
                let body = this.body.as_mut().as_pin_mut();
                if body.is_some_and(|body| state.poll_body(body, cx).is_pending()) {
                    state.pass_request_on(this.request, cx);
                    return Poll::Pending;
                }
                state.phase = Phase::Children;
                let site = state.site;
                state.contain(|| this.body.set(None), site);
            }
            assert!(
                state.phase != Phase::Over,
                "the TaskGroup scope made at {} was polled after it had ended",
                state.site
            );
            if !state.core.try_end() {
                state.core.register(cx.waker());
                state.core.watch();
                if !state.core.try_end() {
                    // Whatever the body has recorded, it is over.
                    wait::record(WaitKind::TaskGroup, state.site);
                    state.pass_request_on(this.request, cx);
                    return Poll::Pending;
                }
            }
            state.phase = Phase::Over;
            state.core.unregister();
            unit.made_progress();
            this.request.set(None);
            Poll::Ready(state.finish())
        })
    }
}

impl<T, E> State<T, E> {
    /// Phase 1. Ready: the body has to go.
    fn poll_body<B>(&mut self, body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<()>
    where
        B: Future,
        B::Output: GroupOutput<E, Value = T>,
    {
        if self.core.is_closed() {
            return Poll::Ready(());
        }
        match catch_unwind(AssertUnwindSafe(|| body.poll(cx))) {
            Ok(Poll::Pending) => {
                self.core.register(cx.waker());
                if !self.core.is_closed() {
                    return Poll::Pending;
                }
            }
            Ok(Poll::Ready(output)) => match output.into_result() {
                Ok(value) => self.value = Some(value),
                Err(error) => drop(self.core.fail(Failure::of_body(error))),
            },
            Err(payload) => {
                self.panic = Some(payload);
                self.core.cancel();
            }
        }
        Poll::Ready(())
    }

    /// Runs a destructor. Its panic is a failure of the body.
    fn contain(&self, f: impl FnOnce(), site: &'static Location<'static>) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
            drop(self.core.fail(Failure::body_panic(payload, site)));
        }
    }

    fn pass_request_on(&mut self, mut request: Pin<&mut Option<Cancelled>>, cx: &mut Context<'_>) {
        if self.asked {
            return;
        }
        if request.is_none() {
            request.set(Some(cancelled()));
        }
        let Some(request) = request.as_pin_mut() else {
            return;
        };
        if !request.has_task() {
            self.asked = true;
        } else if request.poll_request(cx).is_ready() {
            self.asked = true;
            self.core.ask();
        }
    }

    /// Phase 3.
    fn finish(&mut self) -> Result<T, GroupError<E>> {
        if let Some(payload) = self.panic.take() {
            core::forget(self.core.take_failures());
            panic::resume_unwind(payload);
        }
        let value = self.value.take();
        let mut failures = self.core.take_failures();
        match value {
            Some(value) if failures.is_empty() => Ok(value),
            value => {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
                    failures.push(Failure::body_panic(payload, self.site));
                }
                Err(GroupError::new(failures))
            }
        }
    }
}

impl<B, T, E> fmt::Debug for Scope<B, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("phase", &self.state.phase)
            .field("children", &self.state.core.len())
            .field("made_at", &format_args!("{}", self.state.site))
            .finish_non_exhaustive()
    }
}
