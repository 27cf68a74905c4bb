//! Macros of the facade. They are exported at the root of the crate.

mod join;
mod pin;
mod select;
pub mod support;

/// Declares values that belong to a task, or to any future: see [`LocalKey`](crate::task::LocalKey).
///
/// # Examples
/// ```
/// rt::task_local! {
///     /// Who is served.
///     pub static USER: String;
///     static DEPTH: u32;
/// }
///
/// # #[rt::main]
/// # async fn main() {
/// let name = USER.scope("ada".to_owned(), async { USER.with(|user| user.len()) }).await;
/// assert_eq!(name, 3);
/// assert_eq!(DEPTH.sync_scope(1, || DEPTH.get()), 1);
/// # }
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};

    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $crate::task_local!($(#[$attribute])* $visible static $name: $type);
        $crate::task_local!($($rest)*);
    };

    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty) => {
        $(#[$attribute])*
        $visible static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static SLOT: ::std::cell::RefCell<::std::option::Option<$type>> =
                    const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }
            $crate::task::LocalKey::new(SLOT)
        };
    };
}
