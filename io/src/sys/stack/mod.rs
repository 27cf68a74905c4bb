//! The stack of another thread, taken while that thread is blocked: for reports of polls that take too long.
//!
//! # How
//! 1. [`capture`] sends the thread a real-time signal that nobody else uses (`signal.rs`). Its handler copies the registers
//!    and the words of the stack to a buffer that is there beforehand, and returns. It does nothing else: no unwinding,
//!    no allocation, no lock, no system call.
//! 2. The copy is unwound on the thread that asked (`unwind.rs`), by the tables that the compiler put into the program for
//!    panics.
//! 3. [`symbolise`] looks names and lines up. The first time that takes some tenths of a second, since the debug
//!    information of the program is read.
//!
//! # What it does to the other thread
//! Calls that the kernel does not take up again after a handler, in spite of `SA_RESTART`, fail with `EINTR` in that thread:
//! `nanosleep` and `clock_nanosleep` (`std::thread::sleep` goes on by itself), `poll`, `ppoll`, `select`, `epoll_wait`,
//! `sigtimedwait`, `semop`, `msgrcv`, and reads, writes and connects of sockets with a timeout of their own. `std` gives
//! most of these to its caller as `ErrorKind::Interrupted`. So a capture is made at most once for each poll, and only in
//! debug mode.
//!
//! # Where it comes from
//! Unwinding inside the handler is what most do, and crashes when the thread was interrupted inside the unwinder, or
//! inside the loader's lock. Profilers of the kernel copy the stack and unwind it elsewhere, as is done here: a copy can be
//! wrong, but reading it hurts nobody. Frame pointers are rarely there.

mod modules;
mod registers;
mod signal;
mod symbols;
mod unwind;

pub use self::signal::{Thread, capture};
pub use self::symbols::symbolise;
