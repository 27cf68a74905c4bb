//! Deadlines that do not stand still while the machine is suspended: [`sleep`] and [`Instant`] on the boot clock.
//!
//! A laptop that is closed for the night stops the clock of [`rt::time`](super) with it: what was to happen in an hour
//! happens an hour after the lid is opened. On the boot clock of Linux (`CLOCK_BOOTTIME`) that hour has passed, and the
//! future is ready as soon as the machine is up. As the other clock, it is not that of the wall: nobody can set it back.
//!
//! # How it works
//! Each sleep has a timer of the system's (`timerfd`) in the selector of its worker, armed at its first poll. That is a
//! descriptor and some system calls, for jobs of minutes and hours; [`rt::time::sleep`](super::sleep()) costs a
//! hundredth of it. With no descriptor left, it waits by the other clock, and looks at this one each ten seconds.
//!
//! # In tests
//! On a runtime whose clock was paused the boot clock is virtual too, and goes on with the other. [`suspend`] moves it on
//! alone.

mod instant;
mod line;
mod sleep;

pub(super) use self::line::Line;

pub use self::instant::Instant;
pub use self::line::suspend;
pub use self::sleep::{Sleep, sleep, sleep_until};
