//! A pair of fences of which one side pays for both.
//!
//! Dekker's pattern (each side writes its own word and then reads the other's) needs a fence between the write and the
//! read on both sides, and on x86 that is some 20 cycles. Where one side is taken at every poll and the other once in a
//! while, the rare side can ask the kernel to run a fence on every core that runs this process (`membarrier`, Linux
//! 4.14; a few µs), and the frequent side needs none but towards its compiler.
//!
//! # What it guarantees
//! Between a [`light`] of one thread and a [`heavy`] of another that returned `true`: either what the first wrote before its
//! `light` is seen by the second after its `heavy`, or the other way round. As between two `fence(SeqCst)`. [`prepare`]
//! comes before the first `light`.
//!
//! Likewise between those of a [`Pair`], for a frequent side that is one thread at a time: one `light` of a pair happens before
//! the next.
//!
//! Under a model, and where the kernel cannot do it, both are `fence(SeqCst)`.
//!
//! # The race
//! The kernel may refuse later what it did at first: somebody installs a filter of system calls. Then every frequent side
//! has to turn to real fences, and may be in the middle of a `light` without one. Nobody can tell when that is over: from
//! then on [`heavy`] returns `false`. But the one frequent side of a pair knows:
//! 1. The `heavy` that was refused turns the switch of the process off, and returns `false`.
//! 2. Between two `light`s, or after the fence of one, the frequent side sees that the switch is off, and says so in its
//!    pair: `real`. The switch is never turned on again, so all later ones of this pair fence; and all earlier ones are over.
//! 3. A `heavy` that finds the switch off fences, and returns `true` only if its pair is `real`.
//!
//! So one that comes between 1 and 2 fails: [`Pair::look`] keeps that time short. And a frequent side that does nothing more, or
//! that is no pair's, is not waited for for ever:
//! 4. After 1 a thread takes all others through a fence (`cores.rs`). When it has, some ms later, everybody sees what was written
//!    before any `light` that did not fence, and whoever begins another one finds the switch off. From then on a `heavy` only
//!    fences, and returns `true`.
//!
//! Should that fail as well, 2 and 3 are what is left.
//!
//! # Where it comes from
//! `membarrier(2)`; folly's `asymmetricThreadFence`.

use std::io;
use std::sync::atomic::compiler_fence;

use rt_sync::primitive::atomic::AtomicBool;
use rt_sync::primitive::atomic::Ordering::{Acquire, Release, SeqCst};
use rt_sync::primitive::atomic::fence;

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(rt_loom, miri))
))]
mod kernel {
    use std::io;
    use std::sync::Once;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicI32, AtomicU8};
    use std::thread;

    use rustix::io::Errno;
    use rustix::thread::{MembarrierCommand, membarrier};

    /// The switch of the module head.
    static SWITCH: AtomicU8 = AtomicU8::new(OFF);
    /// The kernel was not asked yet, or never did it.
    const OFF: u8 = 0;
    /// The kernel does it.
    const ON: u8 = 1;
    /// It did.
    const REFUSED: u8 = 2;
    /// The same, and all threads know. This is the end.
    const KNOWN: u8 = 3;

    static PREPARED: Once = Once::new();
    /// With which error it was refused, until somebody has heard of it.
    static ERROR: AtomicI32 = AtomicI32::new(0);

    pub(super) fn prepare() {
        PREPARED.call_once(|| {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            // Also tried: a filter of system calls may allow the one and not the other.
            if registered && membarrier(MembarrierCommand::PrivateExpedited).is_ok() {
                // Relaxed: the `Once` orders it before whatever its callers do.
                SWITCH.store(ON, Relaxed);
            }
        });
    }

    #[inline]
    pub(super) fn is_expedited() -> bool {
        SWITCH.load(Relaxed) == ON
    }

    /// It may be that somebody does not fence.
    pub(super) fn has_refused() -> bool {
        // Acquire: with the store in `tell_all`.
        SWITCH.load(Acquire) == REFUSED
    }

    /// Step 4 of the module head.
    fn tell_all() {
        if matches!(super::super::cores::visit_all(), Ok(true)) {
            // Release: with the load in `has_refused`. Whoever sees it is behind the fences of all threads.
            SWITCH.store(KNOWN, Release);
        }
    }

    pub(super) fn on_every_core() -> bool {
        match membarrier(MembarrierCommand::PrivateExpedited) {
            Ok(()) => true,
            // The kernel may have more the next time.
            Err(Errno::NOMEM) => false,
            Err(error) => {
                // Relaxed: whoever sees it only knows that they have to fence.
                if SWITCH
                    .compare_exchange(ON, REFUSED, Relaxed, Relaxed)
                    .is_ok()
                {
                    ERROR.store(error.raw_os_error(), Relaxed);
                    // Made after the exchange. Without it: see the module head.
                    let _ = thread::Builder::new()
                        .name("rt-fence".into())
                        .spawn(tell_all);
                }
                false
            }
        }
    }

    pub(super) fn take_refusal() -> Option<io::Error> {
        if ERROR.load(Relaxed) == 0 {
            return None;
        }
        match ERROR.swap(0, Relaxed) {
            0 => None,
            error => Some(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A kernel that refuses, from the first time it is asked, what a model [pretends](pretend) that it does.
#[cfg(rt_loom)]
mod kernel {
    use std::io;

    use rt_sync::primitive::atomic::{AtomicU8, Ordering::Relaxed};

    loom::lazy_static! {
        static ref SWITCH: AtomicU8 = AtomicU8::new(OFF);
    }
    const OFF: u8 = 0;
    const ON: u8 = 1;
    const REFUSED: u8 = 2;

    pub(super) fn pretend() {
        SWITCH.store(ON, Relaxed);
    }

    pub(super) fn prepare() {}

    pub(super) fn is_expedited() -> bool {
        SWITCH.load(Relaxed) == ON
    }

    pub(super) fn has_refused() -> bool {
        SWITCH.load(Relaxed) == REFUSED
    }

    pub(super) fn on_every_core() -> bool {
        SWITCH.store(REFUSED, Relaxed);
        false
    }

    pub(super) fn take_refusal() -> Option<io::Error> {
        None
    }
}

#[cfg(all(
    not(rt_loom),
    any(miri, not(any(target_os = "linux", target_os = "android")))
))]
mod kernel {
    use std::io;

    pub(super) fn prepare() {}

    pub(super) fn is_expedited() -> bool {
        false
    }

    pub(super) fn has_refused() -> bool {
        false
    }

    pub(super) fn on_every_core() -> bool {
        false
    }

    pub(super) fn take_refusal() -> Option<io::Error> {
        None
    }
}

/// For models: the next pairs rely on the kernel, which lets them down.
#[cfg(rt_loom)]
pub fn pretend() {
    kernel::pretend();
}

/// To be called by whoever makes something that uses the fences, before it is shared. The first call of a process that has
/// several threads already may wait some ms for the kernel.
pub fn prepare() {
    kernel::prepare();
}

/// The fence of the frequent side.
#[inline(always)]
pub fn light() {
    if kernel::is_expedited() {
        compiler_fence(SeqCst);
    } else {
        fence(SeqCst);
    }
}

/// The fence of the rare side. `false`: it could not be had, and nothing is ordered.
#[must_use]
pub fn heavy() -> bool {
    if kernel::is_expedited() {
        return kernel::on_every_core();
    }
    fence(SeqCst);
    !kernel::has_refused()
}

/// With what the kernel refused the fence that it had promised, for the first who asks.
pub fn take_refusal() -> Option<io::Error> {
    kernel::take_refusal()
}

/// Fences with one frequent side: see the module head.
#[derive(Debug)]
pub struct Pair {
    /// The frequent side fences, and will for ever. Written by that side.
    real: AtomicBool,
}

impl Pair {
    /// [Prepares](prepare).
    #[must_use]
    pub fn new() -> Self {
        prepare();
        Self {
            // If the switch is off now, it stays so.
            real: AtomicBool::new(!kernel::is_expedited()),
        }
    }

    /// The fence of the frequent side.
    #[inline(always)]
    pub fn light(&self) {
        if kernel::is_expedited() {
            compiler_fence(SeqCst);
        } else {
            fence(SeqCst);
            self.become_real();
        }
    }

    /// For the frequent side, now and then between two [`light`](Self::light)s.
    #[inline]
    pub fn look(&self) {
        if !kernel::is_expedited() {
            self.become_real();
        }
    }

    #[inline]
    fn become_real(&self) {
        // Release: with the load in `heavy`. Whoever sees it sees that all `light`s without a fence are over.
        self.real.store(true, Release);
    }

    /// The fence of the rare side. `false`: it could not be had, and nothing is ordered.
    #[must_use]
    pub fn heavy(&self) -> bool {
        if kernel::is_expedited() {
            return kernel::on_every_core();
        }
        fence(SeqCst);
        // Acquire: with the store in `become_real`.
        self.real.load(Acquire) || !kernel::has_refused()
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}
