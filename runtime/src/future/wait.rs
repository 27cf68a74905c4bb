//! `wait` and `wait_until`: what is done, and what is not.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rt_sync::coop;
use rt_sync::wait::{WaitKind, around};

use super::deadline::Deadline;
use super::pool::Pool;

/// When [`wait`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnWhen {
    /// When all are done.
    AllDone,
    /// When one is done.
    FirstDone,
    /// When one has failed, or all are done.
    FirstFailure,
}

/// Waits for some of several futures, and cancels none of them.
///
/// Gives those that are done, in the order in which they ended, and those that are not, in the order of the arguments.
/// What is done is ready to be awaited (see [`Done`]), so it can be waited for again, at once.
///
/// The futures are handles of tasks in most cases; a future that is not `Unpin` is given as `Box::pin(future)`. Who
/// wants to keep the handles gives `handles.iter_mut()`.
///
/// A failure, for [`ReturnWhen::FirstFailure`], is an `Err`: of a task's handle, that it panicked or was cancelled. For
/// tasks that themselves give a `Result`, or where something else counts as a failure, there is [`wait_until`].
///
/// When the timeout has passed (counted from the first poll that had to wait) what is done then is told apart from what
/// is not; that is no error. A timeout of zero polls each future once.
///
/// All that was done when the wait ends is in the first list, not only what ended it.
///
/// # Errors
/// [`NothingToWaitFor`] if no future was given.
///
/// # Panics
/// The future panics if it has to wait for its timeout outside a runtime.
///
/// # Cancel safety
/// Dropping the future drops the futures given to it, and the outputs of those that are done. The tasks of handles run
/// on. With `handles.iter_mut()` only outputs that were there are lost.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use rt::{ReturnWhen, wait};
///
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let quick = rt::spawn(async { "quick" });
/// let slow = rt::spawn(std::future::pending());
/// let (done, pending) = wait([quick, slow], ReturnWhen::FirstDone, None).await?;
/// assert_eq!(done[0].index(), 0);
/// assert!(!pending[0].is_finished());
///
/// let (more, pending) = wait(pending, ReturnWhen::AllDone, Duration::from_millis(5)).await?;
/// assert!(more.is_empty());
/// pending[0].abort();
///
/// for result in done {
///     assert_eq!(result.await?, "quick");
/// }
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn wait<I, T, E>(
    futures: I,
    when: ReturnWhen,
    timeout: impl Into<Option<Duration>>,
) -> Wait<I::Item, ReturnWhen>
where
    I: IntoIterator<Item: Future<Output = Result<T, E>> + Unpin>,
{
    Wait::new(futures, when, timeout.into())
}

/// As [`wait`], until `enough` says of the output of one of the futures that there is no need to wait for more.
///
/// # Errors
/// [`NothingToWaitFor`] if no future was given.
///
/// # Cancel safety
/// As [`wait`].
///
/// # Examples
/// Up to the first error of tasks that give a `Result`:
///
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::future::NothingToWaitFor> {
/// let tasks = ["7", "x"].map(|text| rt::spawn(async { text.parse::<u8>() }));
/// let (done, _) = rt::wait_until(tasks, |result| !matches!(result, Ok(Ok(_))), None).await?;
/// assert!(done.iter().any(|done| matches!(done.output(), Ok(Err(_)))));
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn wait_until<I, P, O>(
    futures: I,
    enough: P,
    timeout: impl Into<Option<Duration>>,
) -> Wait<I::Item, Until<P>>
where
    I: IntoIterator<Item: Future<Output = O> + Unpin>,
    P: FnMut(&O) -> bool,
{
    Wait::new(futures, Until(enough), timeout.into())
}

/// What decides whether [`Wait`] ends with an output.
pub trait Enough<O> {
    /// Whether this output ends the wait.
    fn enough(&mut self, output: &O) -> bool;
}

impl<T, E> Enough<Result<T, E>> for ReturnWhen {
    fn enough(&mut self, output: &Result<T, E>) -> bool {
        match self {
            ReturnWhen::AllDone => false,
            ReturnWhen::FirstDone => true,
            ReturnWhen::FirstFailure => output.is_err(),
        }
    }
}

/// The condition of [`wait_until`].
pub struct Until<P>(P);

impl<P: FnMut(&O) -> bool, O> Enough<O> for Until<P> {
    fn enough(&mut self, output: &O) -> bool {
        (self.0)(output)
    }
}

impl<P> fmt::Debug for Until<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Until").finish_non_exhaustive()
    }
}

/// [`wait`] was called without a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NothingToWaitFor {}

impl fmt::Display for NothingToWaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no future to wait for: none was given to `wait`")
    }
}

impl Error for NothingToWaitFor {}

/// The output of a future that [`wait`] has seen the end of. Awaiting it gives the output at once.
#[derive(Debug)]
#[must_use = "holds the output of a future that is done"]
pub struct Done<T> {
    index: usize,
    output: Option<T>,
}

impl<T> Done<T> {
    const TAKEN: &str = "the output was taken when this was awaited";

    /// The place of the future among the arguments of [`wait`], counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The output.
    ///
    /// # Panics
    /// If it was taken by awaiting `&mut self`.
    #[must_use]
    #[track_caller]
    pub fn output(&self) -> &T {
        self.output.as_ref().expect(Self::TAKEN)
    }

    /// The output, taken.
    ///
    /// # Panics
    /// If it was taken by awaiting `&mut self`.
    #[must_use]
    #[track_caller]
    pub fn into_output(self) -> T {
        self.output.expect(Self::TAKEN)
    }
}

impl<T> Unpin for Done<T> {}

impl<T> Future for Done<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.output.take().expect(Self::TAKEN))
    }
}

/// Future of [`wait`] and [`wait_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Wait<F: Future, P> {
    pool: Pool<F>,
    done: Vec<Done<F::Output>>,
    enough: P,
    /// Nothing more is waited for, but what is done already is taken in: in so many polls, if the budget allows no
    /// more than one future each. As many as there are futures, since those that wait to be polled stand in line.
    polls_left: Option<usize>,
    deadline: Deadline,
    site: &'static Location<'static>,
}

// Futures are pinned in boxes of their own, the rest is not pinned.
impl<F: Future, P> Unpin for Wait<F, P> {}

impl<F: Future + Unpin, P> Wait<F, P> {
    #[track_caller]
    fn new(futures: impl IntoIterator<Item = F>, enough: P, timeout: Option<Duration>) -> Self {
        let futures = futures.into_iter();
        let mut pool = Pool::with_capacity(futures.size_hint().0);
        for future in futures {
            pool.push(future);
        }
        Self {
            pool,
            done: Vec::new(),
            enough,
            polls_left: None,
            deadline: Deadline::after(timeout),
            site: Location::caller(),
        }
    }
}

impl<F: Future, P> Wait<F, P> {
    fn end(&mut self) {
        self.polls_left.get_or_insert(self.pool.len());
    }
}

impl<F: Future + Unpin, P: Enough<F::Output>> Future for Wait<F, P> {
    /// What is done, and what is not.
    type Output = Result<(Vec<Done<F::Output>>, Vec<F>), NothingToWaitFor>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.pool.is_empty() && this.done.is_empty() {
            return Poll::Ready(Err(NothingToWaitFor {}));
        }
        around(WaitKind::Other, this.site, || this.poll_inside(cx))
    }
}

impl<F: Future + Unpin, P: Enough<F::Output>> Wait<F, P> {
    fn poll_inside(&mut self, cx: &mut Context<'_>) -> Poll<<Self as Future>::Output> {
        let this = self;
        loop {
            match this.pool.poll_next(cx) {
                Poll::Ready(Some((number, output))) => {
                    if this.enough.enough(&output) {
                        this.end();
                    }
                    this.done.push(Done {
                        index: number as usize,
                        output: Some(output),
                    });
                }
                Poll::Ready(None) => break,
                Poll::Pending => {
                    if this.deadline.poll(cx, this.site) {
                        this.end();
                    }
                    match &mut this.polls_left {
                        None => return Poll::Pending,
                        // The pool has woken us.
                        Some(left) if *left > 0 && !coop::budget_left() => {
                            *left -= 1;
                            return Poll::Pending;
                        }
                        Some(_) => break,
                    }
                }
            }
        }
        let rest = this.pool.take_rest();
        let rest = rest.into_iter().map(|(_, future)| future).collect();
        Poll::Ready(Ok((std::mem::take(&mut this.done), rest)))
    }
}

impl<F: Future, P> fmt::Debug for Wait<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("open", &self.pool.len())
            .field("done", &self.done.len())
            .field("deadline", &self.deadline)
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}
