//! Signals, in a test binary of their own since they reach the whole process. Each test has a signal to itself.
#![cfg(unix)]
#![expect(
    unsafe_code,
    reason = "registers foreign handlers, and looks at those that are there"
)]

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use futures_lite::future::block_on;
use rustix::process::{Signal as Number, getpid, kill_process};

use rt::signal::ctrl_c;
use rt::signal::unix::{SignalKind, signal};

#[path = "../watchdog/mod.rs"]
mod watchdog;

use self::watchdog::within_limit;

fn raise(number: Number) {
    kill_process(getpid(), number).expect("a signal to ourselves");
}

/// Polls once with a waker that does nothing.
fn poll_now<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn ctrl_c_counts_from_the_call() {
    within_limit(|| {
        let first = ctrl_c();
        raise(Number::INT);
        block_on(first).expect("a handler");
        let mut second = ctrl_c();
        let mut third = ctrl_c();
        assert!(poll_now(&mut second).is_pending());
        raise(Number::INT);
        block_on(second).expect("a handler");
        block_on(&mut third).expect("a handler");
    });
}

#[test]
fn every_listener_sees_every_signal() {
    within_limit(|| {
        let kind = SignalKind::user_defined1();
        let mut listeners: Vec<_> = (0..3).map(|_| signal(kind).expect("a handler")).collect();
        for _ in 0..100 {
            raise(Number::USR1);
            for listener in &mut listeners {
                assert_eq!(block_on(listener.recv()), Some(()));
            }
        }
        // Seen once each: nothing is left.
        for listener in &mut listeners {
            assert!(poll_now(&mut listener.recv()).is_pending());
        }
        // A new one knows nothing of what was.
        assert!(poll_now(&mut signal(kind).expect("a handler").recv()).is_pending());
    });
}

#[test]
fn signals_in_a_burst_are_seen_at_least_once_more() {
    within_limit(|| {
        let mut listener = signal(SignalKind::user_defined2()).expect("a handler");
        let raiser = thread::spawn(|| {
            for _ in 0..1_000 {
                raise(Number::USR2);
            }
        });
        // At least the first one is seen, in the middle of the others.
        block_on(listener.recv());
        while !raiser.is_finished() {
            let _ = poll_now(&mut listener.recv());
        }
        raiser.join().expect("no panic");
        // However many were taken for one: what comes now is seen.
        raise(Number::USR2);
        block_on(listener.recv());
    });
}

#[test]
fn a_foreign_handler_still_runs() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    within_limit(|| {
        let number = SignalKind::hangup().as_raw_value();
        // SAFETY: the action does one atomic operation.
        unsafe {
            signal_hook_registry::register(number, || {
                RAN.fetch_add(1, SeqCst);
            })
        }
        .expect("a handler");
        let mut listener = signal(SignalKind::hangup()).expect("a handler");
        for round in 1..=3 {
            raise(Number::HUP);
            block_on(listener.recv());
            assert_eq!(RAN.load(SeqCst), round);
        }
    });
}

fn flags_of(number: i32) -> i32 {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks only, and the place is ours.
    let failed = unsafe { libc::sigaction(number, ptr::null(), action.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: filled in by the call above, which did not fail.
    unsafe { action.assume_init() }.sa_flags
}

/// Where the alternate stack of this thread is.
fn alternate_stack() -> Range<usize> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: asks only, and the place is ours.
    let failed = unsafe { libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: filled in by the call above, which did not fail.
    let stack = unsafe { stack.assume_init() };
    let start = stack.ss_sp.addr();
    start..start + stack.ss_size
}

#[test]
fn j3_handlers_run_on_the_alternate_stack_and_the_old_one_too() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn old(_: i32) {
        let here = 0_u8;
        SEEN.store(ptr::from_ref(&here).addr(), SeqCst);
    }

    within_limit(|| {
        let number = SignalKind::child().as_raw_value();
        // SAFETY: the handler stores a number.
        let before = unsafe { libc::signal(number, old as *const () as usize) };
        assert_eq!(before, libc::SIG_DFL);
        let mut listener = signal(SignalKind::child()).expect("a handler");
        let flags = flags_of(number);
        assert_ne!(flags & libc::SA_ONSTACK, 0);
        assert_ne!(flags & libc::SA_RESTART, 0);
        // SAFETY: there is a handler; it runs on this thread, before the call returns.
        unsafe { libc::raise(number) };
        let stack = alternate_stack();
        let seen = SEEN.load(SeqCst);
        assert!(stack.contains(&seen), "{seen:#x} is not in {stack:#x?}");
        block_on(listener.recv());
    });
}

#[test]
fn j3_a_handler_that_others_had_before_stays_as_it_is() {
    within_limit(|| {
        let number = SignalKind::alarm().as_raw_value();
        // SAFETY: the action does nothing.
        unsafe { signal_hook_registry::register(number, || ()) }.expect("a handler");
        let before = flags_of(number);
        let mut listener = signal(SignalKind::alarm()).expect("a handler");
        assert_eq!(flags_of(number), before);
        raise(Number::ALARM);
        block_on(listener.recv());
    });
}

#[test]
fn a_dead_or_panicking_executor_disturbs_nobody() {
    struct Dead;
    impl Wake for Dead {
        fn wake(self: Arc<Self>) {
            panic!("an executor that is gone");
        }
    }
    /// Whose listener is never polled again, nor dropped.
    struct Task(Mutex<Option<rt::signal::unix::Signal>>);

    within_limit(|| {
        let kind = SignalKind::window_change();
        let waker = Waker::from(Arc::new(Dead));
        let mut dead = signal(kind).expect("a handler");
        assert!(
            dead.poll_recv(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let task = Task(Mutex::new(Some(dead)));
        let mut alive = signal(kind).expect("a handler");
        for _ in 0..3 {
            raise(Number::WINCH);
            block_on(alive.recv());
        }
        // What it missed it is told when somebody asks again.
        let mut dead = task
            .0
            .lock()
            .expect("lock")
            .take()
            .expect("it was put there");
        assert!(poll_now(&mut dead.recv()).is_ready());
        drop(dead);
        raise(Number::WINCH);
        block_on(alive.recv());
    });
}

#[test]
fn the_signal_stays_handled_without_listeners() {
    within_limit(|| {
        drop(signal(SignalKind::terminate()).expect("a handler"));
        // By default this would end the process.
        raise(Number::TERM);
        let mut again = signal(SignalKind::terminate()).expect("a handler");
        raise(Number::TERM);
        block_on(again.recv());
    });
}

#[test]
fn a_dropped_recv_loses_nothing() {
    within_limit(|| {
        let mut listener = signal(SignalKind::quit()).expect("a handler");
        assert!(poll_now(&mut listener.recv()).is_pending());
        raise(Number::QUIT);
        block_on(async {
            let mut listener = listener;
            drop(listener.recv());
            listener.recv().await;
        });
    });
}

#[test]
fn signals_that_cannot_be_handled_are_named() {
    for (number, name) in [
        (Number::KILL, "SIGKILL"),
        (Number::STOP, "SIGSTOP"),
        (Number::SEGV, "SIGSEGV"),
    ] {
        let error = signal(SignalKind::from_raw(number.as_raw())).expect_err("forbidden");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(name), "{error}");
    }
    for number in [-1, 0, 65, i32::MAX, i32::MIN] {
        let error = signal(SignalKind::from_raw(number)).expect_err("no signal");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&number.to_string()), "{error}");
    }
    // Kept by the C library for itself.
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let error = signal(SignalKind::from_raw(32)).expect_err("refused");
        assert!(error.to_string().contains("32"), "{error}");
    }
}
