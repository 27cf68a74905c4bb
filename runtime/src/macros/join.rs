//! `join!` and `try_join!`.

/// Waits for several futures at once, within the current task, and gives their outputs as a tuple.
///
/// All futures are polled by this task: they make progress side by side, never in parallel. What should run in parallel
/// is spawned, and its handle joined. For a number of futures that is not known when the program is written, there is
/// [`gather`](crate::gather).
///
/// Each argument may be anything that is [`IntoFuture`], and there may be any number of them. The futures are part of
/// the caller's: nothing is allocated. Each of them is polled until it is done and then no more.
///
/// # Fairness
/// Every poll begins with another branch than the one before and goes round, so that each of them has the first call
/// on the coop budget of the task in its turn: a branch whose operations always succeed at once keeps none of the
/// others waiting for long. With `biased;` in front the order is always that in which the branches are written; whoever
/// writes it takes care that the first ones do not starve the others.
///
/// # Cancel safety
/// Dropping the future drops all branches, and the outputs of those that are done.
///
/// # Examples
/// ```
/// async fn name() -> String {
///     "ada".to_owned()
/// }
///
/// # #[rt::main]
/// # async fn main() {
/// let (name, year) = rt::join!(name(), async { 1815 });
/// assert_eq!(format!("{name}, {year}"), "ada, 1815");
///
/// let (first, second) = rt::join!(
///     biased;
///     async { 1 },
///     async { 2 },
/// );
/// assert_eq!(first + second, 3);
/// # }
/// ```
#[macro_export]
macro_rules! join {
    ($($input:tt)*) => {
        $crate::macros::support::join_at!($crate; $($input)*)
    };
}

/// As [`join!`](crate::join!), of futures that give a [`Result`]: the first error ends the wait.
///
/// Gives `Ok` with the tuple of values, or the first error; the branches that are not done are then dropped. All
/// branches have the same type of error.
///
/// A task whose [`JoinHandle`](crate::task::JoinHandle) is dropped runs on. To have the others cancelled, spawn
/// them in a [`TaskGroup`](crate::task::TaskGroup).
///
/// # Errors
/// That of the branch that failed first. If several have failed when the task is polled, it is that which is polled
/// first.
///
/// # Cancel safety
/// Dropping the future drops all branches, and the outputs of those that are done.
///
/// # Examples
/// ```
/// async fn number(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// # #[rt::main]
/// # async fn main() -> Result<(), std::num::ParseIntError> {
/// let (six, seven) = rt::try_join!(number("6"), number("7"))?;
/// assert_eq!(six * seven, 42);
/// assert!(rt::try_join!(number("6"), number("seven")).is_err());
/// # Ok(())
/// # }
/// ```
///
/// With tasks, whose handles have an error of their own:
///
/// ```
/// use rt::task::JoinHandle;
///
/// # async fn work(n: u32) -> Result<u32, String> { Ok(n) }
/// async fn flat<T>(handle: JoinHandle<Result<T, String>>) -> Result<T, String> {
///     handle.await.map_err(|error| error.to_string())?
/// }
///
/// # #[rt::main]
/// # async fn main() -> Result<(), String> {
/// let (a, b) = (rt::spawn(work(1)), rt::spawn(work(2)));
/// let (a, b) = rt::try_join!(flat(a), flat(b))?;
/// assert_eq!(a + b, 3);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! try_join {
    ($($input:tt)*) => {
        $crate::macros::support::try_join_at!($crate; $($input)*)
    };
}
