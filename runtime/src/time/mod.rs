//! Time: waiting for a deadline, limiting how long something may take, ticking, and a clock that tests can stop.
//!
//! * [`sleep`] and [`sleep_until`] wait.
//! * [`timeout`] and [`timeout_at`] give another future a limit; [`timeout_with`] one that can be moved from inside.
//! * [`interval`] ticks.
//! * `boottime` (on Linux) waits by a clock that goes on while the machine is suspended.
//! * [`pause`], [`advance`] and [`resume`] take the clock in hand, in tests.
//!
//! Names and meanings are those of tokio's `time`, except where the documentation of an item says so.
//!
//! # How it works
//! Each seat of the runtime (what a worker sits on) has a wheel (`wheel`) behind a lock of its own (`timers`). A future
//! that waits has its `entry` in its own memory and links it into the wheel of the seat that polls it first (`timer`).
//! The wheel counts ticks of 262 µs; the scheduler fires what is due once a turn and, before it parks, asks until when
//! it may sleep. Timers are never early.
//!
//! ```text
//! sleep, timeout, interval ──▶ timer (waiting side) ──▶ entry ◀── list ◀── wheel ◀── timers ◀── scheduler
//!                                                                                      │
//!                              instant ◀── clock (real or virtual line) ◀──────────────┘
//! ```

#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod boottime;
pub(crate) mod clock;
pub(crate) mod current;
mod entry;
pub mod error;
mod instant;
mod interval;
mod list;
mod pause;
mod send_timeout;
mod sleep;
mod timeout;
mod timeout_with;
pub(crate) mod timer;
pub(crate) mod timers;
mod wheel;

pub(crate) use self::clock::Clock;
pub use self::instant::Instant;
pub use self::interval::{Interval, MissedTickBehavior, Tick, interval, interval_at};
pub use self::pause::{Advance, advance, pause, resume};
pub use self::send_timeout::{SendTimeout, SendTimeoutExt};
pub use self::sleep::{Sleep, sleep, sleep_until};
pub use self::timeout::{Timeout, timeout, timeout_at};
pub use self::timeout_with::{TimeoutHandle, TimeoutWith, timeout_at_with, timeout_with};
pub(crate) use self::timers::Timers;
#[doc(no_inline)]
pub use std::time::Duration;

#[cfg(all(test, not(rt_loom)))]
mod tests;
