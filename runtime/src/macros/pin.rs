//! `pin!`.

/// Pins values to the stack of the function, or the future, that they live in.
///
/// Each name given is moved into place and from then on means the pinned reference. Needed for futures that are polled
/// by reference: `&mut future` is a future only if the future is [`Unpin`], and one made by an `async fn` is not.
///
/// [`std::pin::pin!`] does the same as an expression.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// # async fn work() -> u32 { rt::task::yield_now().await; 7 }
/// # #[rt::main]
/// # async fn main() {
/// let work = work();
/// rt::pin!(work);
/// let result = loop {
///     rt::select! {
///         result = &mut work => break result,
///         _ = rt::time::sleep(Duration::from_secs(5)) => println!("still at it"),
///     }
/// };
/// assert_eq!(result, 7);
/// # }
/// ```
///
/// Made and pinned in one go:
///
/// ```
/// # async fn work() {}
/// # #[rt::main]
/// # async fn main() {
/// rt::pin! {
///     let first = work();
///     let second = work();
/// }
/// rt::select! {
///     _ = &mut first => {}
///     _ = &mut second => {}
/// }
/// # }
/// ```
///
/// Only what has a name can be pinned so:
///
/// ```compile_fail
/// # async fn work() {}
/// # #[rt::main]
/// # async fn main() {
/// rt::pin!(work());
/// # }
/// ```
// `allow`, not `expect`: whether the lint fires depends on what the user does with the name.
#[macro_export]
macro_rules! pin {
    ($($name:ident),* $(,)?) => {
        $(
            #[allow(unused_mut)]
            let mut $name = $crate::macros::support::pin!($name);
        )*
    };

    ($(let $name:ident = $value:expr;)*) => {
        $(
            #[allow(unused_mut)]
            let mut $name = $crate::macros::support::pin!($value);
        )*
    };
}
