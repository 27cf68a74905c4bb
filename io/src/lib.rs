//! Selector driver, sockets and I/O helpers of the `rt` runtime.
//!
//! Users depend on the facade crate `rt`, which re-exports what is public as `rt::io` and `rt::net`.

pub mod util;
