//! Selector driver, sockets and I/O helpers of the `rt` runtime.
//!
//! Users depend on the facade crate `rt`, which re-exports what is public as `rt::io` and `rt::net`.

#[cfg(not(unix))]
compile_error!("rt-io registers descriptors by number and so needs a Unix");

mod async_fd;
#[cfg(any(feature = "tokio-io", feature = "hyper"))]
mod compat;
pub mod context;
pub mod driver;
pub mod error;
pub mod net;
#[doc(hidden)]
pub mod stack;
pub mod stdio;
mod sys;
#[doc(hidden)]
pub mod tell;
pub mod util;

pub use self::async_fd::{
    AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
};
pub use self::driver::{Interest, Ready};
pub use self::sys::{fence, thread};
