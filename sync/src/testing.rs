//! What the unit tests of this crate share: wakers that tell what happens to them, and a time limit.
#![expect(
    unsafe_code,
    reason = "a waker whose clone and drop run a hook needs a vtable of its own"
)]

mod bounds;
mod task;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::Duration;

pub(crate) use self::bounds::{Unsend, Unsync};
pub(crate) use self::task::{
    Task, at_once, now, poll, poll_boxed, polls, ready, ten_thousand_yield,
};

type Hook = Box<dyn FnMut() + Send>;

/// Counts what happens to its wakers and runs a hook at each of it.
#[derive(Default)]
pub(crate) struct Probe {
    clones: AtomicUsize,
    wakes: AtomicUsize,
    drops: AtomicUsize,
    pub(crate) on_clone: Mutex<Option<Hook>>,
    pub(crate) on_wake: Mutex<Option<Hook>>,
    pub(crate) on_drop: Mutex<Option<Hook>>,
}

impl Probe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A waker of this probe; it counts as a clone.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.clones.fetch_add(1, SeqCst);
        // SAFETY: the pointer is an `Arc<Probe>`, which is what `VTABLE` is for.
        unsafe { Waker::new(Arc::into_raw(self.clone()).cast(), &VTABLE) }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(SeqCst)
    }

    /// How many wakers of this probe there are now.
    pub(crate) fn alive(&self) -> usize {
        self.clones.load(SeqCst) - self.drops.load(SeqCst)
    }

    pub(crate) fn clones(&self) -> usize {
        self.clones.load(SeqCst)
    }
}

/// Sets a hook that runs once.
pub(crate) fn once(slot: &Mutex<Option<Hook>>, hook: impl FnOnce() + Send + 'static) {
    let mut hook = Some(hook);
    *slot.lock().unwrap() = Some(Box::new(move || {
        if let Some(hook) = hook.take() {
            hook();
        }
    }));
}

fn run(slot: &Mutex<Option<Hook>>) {
    // Taken out, so that the hook may come back here.
    let hook = slot.lock().unwrap().take();
    if let Some(mut hook) = hook {
        hook();
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn borrow(data: *const ()) -> ManuallyDrop<Arc<Probe>> {
    // SAFETY: every data pointer of `VTABLE` comes from `Arc::into_raw`; `ManuallyDrop` keeps the count.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: as the caller's.
    let probe = unsafe { borrow(data) };
    run(&probe.on_clone);
    probe.clones.fetch_add(1, SeqCst);
    RawWaker::new(Arc::into_raw(Arc::clone(&probe)).cast(), &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: as the caller's, who gives the count up: `owned` drops it, also when the hook panics.
    let owned = ManuallyDrop::into_inner(unsafe { borrow(data) });
    owned.drops.fetch_add(1, SeqCst);
    owned.wakes.fetch_add(1, SeqCst);
    run(&owned.on_wake);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: as the caller's.
    let probe = unsafe { borrow(data) };
    probe.wakes.fetch_add(1, SeqCst);
    run(&probe.on_wake);
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: as the caller's, who gives the count up.
    let owned = ManuallyDrop::into_inner(unsafe { borrow(data) });
    owned.drops.fetch_add(1, SeqCst);
    run(&owned.on_drop);
}

/// Runs `body` on a thread of its own and fails when it does not end in 60 seconds.
pub(crate) fn limited(body: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel();
    let worker = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    match end.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs: not over after 60 s"),
        // The end, or a panic that `join` passes on.
        _ => worker
            .join()
            .unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
    }
}
