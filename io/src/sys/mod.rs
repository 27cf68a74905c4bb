//! What differs between operating systems and is not covered by mio.

pub mod fence;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(rt_loom)))]
mod cores;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod timerfd;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::timerfd::Timer;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod no_timer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use self::no_timer::Timer;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod thread;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "no_thread.rs"]
pub mod thread;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod udp;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "no_udp.rs"]
pub(crate) mod udp;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) mod stack;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "no_stack.rs"]
pub(crate) mod stack;
