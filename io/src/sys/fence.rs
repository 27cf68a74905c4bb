//! A pair of fences of which one side pays for both.
//!
//! Dekker's pattern (each side writes its own word and then reads the other's) needs a fence between the write and the
//! read on both sides, and on x86 that is some 20 cycles. Where one side is taken at every poll and the other once in a
//! while, the rare side can ask the kernel to run a fence on every core that runs this process (`membarrier`, Linux
//! 4.14; a few µs), and the frequent side needs none but towards its compiler.
//!
//! # What it guarantees
//! Between a [`light`] of one thread and a [`heavy`] of another that returned `true`: either what the first wrote before
//! its `light` is seen by the second after its `heavy`, or the other way round. As between two `fence(SeqCst)`.
//! [`prepare`] comes before the first `light`.
//!
//! Under a model, and where the kernel cannot do it, both are `fence(SeqCst)`.
//!
//! # Where it comes from
//! `membarrier(2)`; folly's `asymmetricThreadFence`.

use rt_sync::primitive::atomic::{Ordering::SeqCst, fence};

#[cfg(all(any(target_os = "linux", target_os = "android"), not(rt_loom)))]
mod kernel {
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use rustix::thread::{MembarrierCommand, membarrier};

    /// Whether the kernel does it. Written once, before the first fence of either kind.
    static EXPEDITED: AtomicBool = AtomicBool::new(false);
    static PREPARED: Once = Once::new();

    pub(super) fn prepare() {
        PREPARED.call_once(|| {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            // Also tried: a filter of system calls may allow the one and not the other.
            let works = registered && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
            // Relaxed: the `Once` orders it before whatever its callers do.
            EXPEDITED.store(works, Relaxed);
        });
    }

    #[inline]
    pub(super) fn is_expedited() -> bool {
        EXPEDITED.load(Relaxed)
    }

    pub(super) fn on_every_core() -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(rt_loom))))]
mod kernel {
    pub(super) fn prepare() {}

    pub(super) fn is_expedited() -> bool {
        false
    }

    pub(super) fn on_every_core() -> bool {
        false
    }
}

/// To be called by whoever makes a structure that uses the pair, before it is shared. The first call of a process that
/// has several threads already may wait some ms for the kernel.
pub fn prepare() {
    kernel::prepare();
}

/// The fence of the frequent side.
#[inline(always)]
pub fn light() {
    if kernel::is_expedited() {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        fence(SeqCst);
    }
}

/// The fence of the rare side. `false`: it could not be had (the child of a fork is not registered), and nothing is
/// ordered.
#[must_use]
pub fn heavy() -> bool {
    if kernel::is_expedited() {
        return kernel::on_every_core();
    }
    fence(SeqCst);
    true
}
