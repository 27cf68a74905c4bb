//! Signals, in a test binary of their own since they reach the whole process. Each test has a signal to itself.
#![cfg(unix)]

use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::pin;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;
use rustix::process::{Signal as Number, getpid, kill_process};

use rt::signal::ctrl_c;
use rt::signal::unix::{SignalKind, signal};

#[track_caller]
fn limited(body: impl FnOnce() + Send + 'static) {
    let site = Location::caller();
    let (done, end) = channel();
    let runner = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if end.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
        eprintln!("the test at {site} did not end within 60 seconds");
        process::abort();
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}

fn raise(number: Number) {
    kill_process(getpid(), number).expect("a signal to ourselves");
}

/// Polls once with a waker that does nothing.
fn poll_now<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn ctrl_c_counts_from_the_call() {
    limited(|| {
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
    limited(|| {
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
    limited(|| {
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
#[expect(unsafe_code, reason = "registers a foreign handler")]
fn a_foreign_handler_still_runs() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    limited(|| {
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

    limited(|| {
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
    limited(|| {
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
    limited(|| {
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
