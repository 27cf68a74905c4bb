//! A limit on how long a combinator waits. It costs nothing before there is something to wait for.

use std::panic::Location;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use crate::time::Instant;
use crate::time::timer::{Outcome, Timer};

/// When to stop waiting, if at all.
#[derive(Debug)]
pub(super) enum Deadline {
    Never,
    /// So long after the first look.
    After(Duration),
    At(Instant),
    /// The timer runs, or has fired. Boxed: few waits have a limit, and fewer come to wait for it.
    Started(Pin<Box<Timer>>, Instant),
}

impl Deadline {
    pub(super) fn after(limit: Option<Duration>) -> Self {
        limit.map_or(Deadline::Never, Deadline::After)
    }

    /// Whether the time is over. It spends no budget: a future that has used it up must not keep the deadline from being
    /// seen.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, site: &'static Location<'static>) -> bool {
        match self {
            Deadline::Never => false,
            _ => self.poll_limit(cx, site),
        }
    }

    fn poll_limit(&mut self, cx: &mut Context<'_>, site: &'static Location<'static>) -> bool {
        let at = match *self {
            Deadline::Never => return false,
            Deadline::After(Duration::ZERO) => return true,
            Deadline::After(limit) => Some(Instant::now().saturating_add(limit)),
            Deadline::At(at) if at <= Instant::now() => return true,
            Deadline::At(at) => Some(at),
            Deadline::Started(..) => None,
        };
        if let Some(at) = at {
            *self = Deadline::Started(Box::pin(Timer::new()), at);
        }
        let Deadline::Started(timer, at) = self else {
            return false;
        };
        match timer.as_mut().poll(cx, *at) {
            Outcome::Ready => true,
            Outcome::Pending => false,
            Outcome::Closed => panic!(
                "the wait made at {site} has a time limit and was polled after its runtime had shut down, so nothing \
                 would ever fire its timer"
            ),
            Outcome::NoRuntime => panic!(
                "the wait made at {site} has a time limit and was polled outside a runtime, so no thread would fire its \
                 timer: poll it inside `Runtime::block_on` or a task of a runtime"
            ),
        }
    }
}
