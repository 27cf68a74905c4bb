//! Procedural macros of the `rt` runtime: `#[rt::main]` and `#[rt::test]`, and what `select!`, `join!` and `try_join!`
//! are made of.
//!
//! Users write `#[rt::main]` and never depend on this crate. The entry points here only convert token streams; the
//! work is done by `entry`, `select` and `join` on `proc_macro2` types, so that it can be tested without a compiler
//! around it.

mod entry;
mod join;
mod select;
mod tree;

use proc_macro::TokenStream;

use crate::entry::Kind;

/// Turns an async function into a plain one that starts a runtime and blocks on the body.
///
/// Meant for `fn main`, but any function may carry it; each call then starts a runtime of its own and shuts it down
/// when the body has returned. Whatever the function returns, a `Result` for instance, is passed through.
///
/// # Options
///
/// | option | value | meaning |
/// |---|---|---|
/// | `flavor` | `"multi_thread"` (default) | worker threads of its own |
/// | | `"current_thread"` | everything runs on the calling thread |
/// | `worker_threads` | a number above 0 | how many workers; only with `multi_thread`; one per core by default |
/// | `start_paused` | `true` or `false` (default) | start with the clock paused; only with `current_thread` |
/// | `name` | a string | what errors and reports call the runtime |
/// | `crate` | `"path"` | where the crate `rt` is found, if not at `::rt` |
///
/// # Examples
///
/// ```ignore
/// #[rt::main(flavor = "current_thread")]
/// async fn main() -> std::io::Result<()> {
///     let text = rt::spawn(async { "hello" }).await?;
///     println!("{text}");
///     Ok(())
/// }
/// ```
///
/// The body runs as what `Runtime::block_on` drives: it may hold values that are not `Send`.
///
/// ```ignore
/// fn main() {
///     let body = async { /* ... */ };
///     rt::runtime::Builder::new_multi_thread()
///         .enable_all()
///         .build()
///         .unwrap()
///         .block_on(body)
/// }
/// ```
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(Kind::Main, args.into(), item.into()).into()
}

/// Turns an async function into a test that starts a runtime and blocks on the body.
///
/// The options are those of [`main`](macro@main), but the default flavor is `"current_thread"`: a test then runs the
/// same way each time, and many tests at once do not fill the machine with threads. Each test has its own runtime.
///
/// Other attributes of tests (`#[ignore]`, `#[should_panic]`) work as usual; `#[test]` itself must not be written, since
/// the macro adds it.
///
/// # Examples
///
/// ```ignore
/// #[rt::test]
/// async fn adds() {
///     assert_eq!(rt::spawn(async { 1 + 1 }).await.unwrap(), 2);
/// }
///
/// #[rt::test(flavor = "multi_thread", worker_threads = 2)]
/// async fn reads() -> std::io::Result<()> {
///     Ok(())
/// }
///
/// // An hour passes at once, as nothing else is left to do.
/// #[rt::test(start_paused = true)]
/// async fn waits() {
///     rt::time::sleep(std::time::Duration::from_secs(3600)).await;
/// }
/// ```
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(Kind::Test, args.into(), item.into()).into()
}

/// What `rt::select!` is made of: its input with the path of `rt` and a semicolon in front.
#[doc(hidden)]
#[proc_macro]
pub fn select_at(input: TokenStream) -> TokenStream {
    select::expand(input.into()).into()
}

/// What `rt::join!` is made of: its input with the path of `rt` and a semicolon in front.
#[doc(hidden)]
#[proc_macro]
pub fn join_at(input: TokenStream) -> TokenStream {
    join::expand(join::Kind::Join, input.into()).into()
}

/// What `rt::try_join!` is made of: its input with the path of `rt` and a semicolon in front.
#[doc(hidden)]
#[proc_macro]
pub fn try_join_at(input: TokenStream) -> TokenStream {
    join::expand(join::Kind::TryJoin, input.into()).into()
}
