//! `select!`.

/// Waits for several futures at once, within the current task, and goes on with the first that is ready; the others are
/// dropped.
///
/// ```text
/// rt::select! {
///     pattern = future => handler,
///     pattern = future, if precondition => handler,
///     else => handler,
/// }
/// ```
///
/// There may be up to 64 branches. A handler is an expression; behind a block the comma may be left out. All handlers
/// give the same type, which is that of the whole.
///
/// # What happens
/// 1. All preconditions are evaluated. Where one is `false` its branch is disabled.
/// 2. All futures are made, also those of disabled branches: the expression behind `=` is always evaluated. It may be
///    anything that is [`IntoFuture`].
/// 3. The futures of the branches that are enabled are polled, beginning with a random one, until an output matches its
///    pattern. A branch whose output does not match is disabled, and the wait goes on with the others.
/// 4. When there is a match, all futures are dropped; then the handler runs, with what the pattern has bound.
/// 5. If all branches are disabled, the handler of `else` runs.
///
/// So a handler may use what the futures had borrowed, and `?`, `return`, `break`, `continue` and `.await` in it belong
/// to the function around the `select!`. While a handler runs nothing is polled: what is to go on meanwhile is a task,
/// or is kept outside and polled by `&mut`.
///
/// # Panics
/// If all branches are disabled and there is no `else`.
///
/// # Fairness
/// The branch polled first is chosen anew at each poll. With `biased;` in front it is always the first one, and the
/// order is that in which the branches are written: for a branch that must win when two are ready (a shutdown, say),
/// or where the price of the choice counts. A branch that is always ready then starves those behind it.
///
/// If the coop budget of the task is spent, nothing is polled and the task gives way.
///
/// # Cancel safety
/// The futures of the branches that have lost are dropped, as if they had been cancelled: in a loop only use what says
/// under "Cancel safety" that nothing is lost, or keep the future outside of the loop and wait for `&mut future`.
///
/// # Examples
/// Two sources of work and an end:
///
/// ```
/// use rt::sync::oneshot;
///
/// # #[rt::main]
/// # async fn main() {
/// let (stop, mut stopped) = oneshot::channel::<()>();
/// let mut clock = rt::time::interval(std::time::Duration::from_millis(1));
/// let mut stop = Some(stop);
/// let mut ticks = 0;
/// loop {
///     rt::select! {
///         _ = &mut stopped => break,
///         _ = clock.tick() => {
///             ticks += 1;
///             if ticks == 3 && let Some(stop) = stop.take() {
///                 let _ = stop.send(());
///             }
///         }
///     }
/// }
/// assert!(ticks >= 3);
/// # }
/// ```
///
/// Patterns, preconditions and `else`:
///
/// ```
/// # #[rt::main]
/// # async fn main() {
/// let mut left = vec![3, 2, 1];
/// let mut right = Vec::<u32>::new();
/// let mut sum = 0;
/// loop {
///     rt::select! {
///         Some(n) = async { left.pop() } => sum += n,
///         Some(n) = async { right.pop() }, if sum > 2 => sum += n,
///         else => break,
///     }
/// }
/// assert_eq!(sum, 6);
/// # }
/// ```
///
/// A branch without a pattern is not a branch:
///
/// ```compile_fail
/// # #[rt::main]
/// # async fn main() {
/// rt::select! {
///     std::future::ready(1) => {}
/// }
/// # }
/// ```
#[macro_export]
macro_rules! select {
    ($($input:tt)*) => {
        $crate::macros::support::select_at!($crate; $($input)*)
    };
}
