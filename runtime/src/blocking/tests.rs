//! Tests of the pool alone, without a runtime.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;

use super::*;
use crate::testing::limited;

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(1000);

fn config(max: usize) -> Config {
    Config {
        max_threads: max,
        keep_alive: LONG,
        ..Config::blocking()
    }
}

/// Occupies one thread of the pool until the sender is used or dropped; returns once the closure runs.
fn occupy(pool: &Pool) -> (Sender<()>, crate::task::JoinHandle<()>) {
    let (release, released) = channel::<()>();
    let (started, running) = channel();
    let handle = pool.spawn_here(move || {
        started.send(()).expect("somebody listens");
        let _ = released.recv();
    });
    running.recv().expect("it starts");
    (release, handle)
}

#[test]
fn a_closure_gives_its_output_or_its_panic() {
    limited(|| {
        let pool = Pool::new(config(1));
        assert_eq!(block_on(pool.spawn_here(|| 6 * 7)).expect("no panic"), 42);
        let error = block_on(pool.spawn_here(|| panic!("no luck"))).expect_err("a panic");
        assert!(error.is_panic());
        assert!(error.to_string().contains("no luck"), "{error}");
        assert_eq!(
            block_on(pool.spawn_here(|| 1)).expect("the thread lives"),
            1
        );
        // The one thread that there may be: the panic did not end it.
        assert_eq!(pool.metrics().peak_threads, 1);
    });
}

#[test]
fn aborting_a_closure_that_waits_drops_it() {
    limited(|| {
        let pool = Pool::new(config(1));
        let (release, first) = occupy(&pool);
        let payload = Arc::new(());
        let inside = payload.clone();
        let second = pool.spawn_here(move || drop(inside));
        second.abort();
        first.abort();
        drop(release);
        let error = block_on(second).expect_err("aborted");
        assert!(error.is_aborted(), "{error}");
        assert_eq!(Arc::strong_count(&payload), 1);
        // The abort of a closure that runs does nothing.
        block_on(first).expect("it runs to its end");
    });
}

#[test]
fn a_forgotten_panic_is_told() {
    limited(|| {
        let (told, heard) = channel();
        let told = Mutex::new(told);
        let pool = Pool::new(Config {
            panicked: Arc::new(move |report, alive| {
                let message = report.message.as_deref().unwrap_or_default().to_owned();
                let _ = told.lock().expect("lock").send((message, alive));
            }),
            ..config(1)
        });
        let (release, _first) = occupy(&pool);
        drop(pool.spawn_here(|| panic!("alone")));
        drop(release);
        assert_eq!(heard.recv().expect("told"), ("alone".to_owned(), false));
    });
}

#[test]
fn queued_closures_are_counted() {
    limited(|| {
        let pool = Pool::new(config(1));
        let (release, first) = occupy(&pool);
        let handles: Vec<_> = (0..3).map(|i| pool.spawn_here(move || i)).collect();
        let metrics = pool.metrics();
        assert_eq!(
            (metrics.threads, metrics.idle_threads, metrics.queue_depth),
            (1, 0, 3)
        );
        assert!(metrics.oldest_queued.is_some());
        drop(release);
        block_on(first).expect("no panic");
        for (i, handle) in handles.into_iter().enumerate() {
            assert_eq!(block_on(handle).expect("no panic"), i);
        }
        assert_eq!(pool.metrics().queue_depth, 0);
        assert_eq!(pool.metrics().oldest_queued, None);
    });
}

#[test]
fn closures_beyond_the_eager_threads_get_a_thread_each() {
    limited(|| {
        let pool = Pool::new(Config {
            eager: 1,
            ..config(8)
        });
        let barrier = Arc::new(Barrier::new(8));
        let handles: Vec<_> = (0..8)
            .map(|_| {
                let barrier = barrier.clone();
                pool.spawn_here(move || barrier.wait().is_leader())
            })
            .collect();
        let leaders = handles
            .into_iter()
            .filter_map(|handle| block_on(handle).ok())
            .filter(|leads| *leads);
        assert_eq!(leaders.count(), 1);
        assert_eq!(pool.metrics().peak_threads, 8);
    });
}

#[test]
fn spare_threads_end_although_one_is_busy() {
    limited(|| {
        let pool = Pool::new(Config {
            keep_alive: Duration::from_millis(20),
            ..config(4)
        });
        let held: Vec<_> = (0..4).map(|_| occupy(&pool)).collect();
        assert_eq!(pool.metrics().threads, 4);
        for (release, handle) in held {
            drop(release);
            block_on(handle).expect("no panic");
        }
        // The last to go idle works next, so the three others are never called while this goes on.
        while pool.metrics().threads > 1 {
            block_on(pool.spawn_here(thread::yield_now)).expect("no panic");
        }
        assert_eq!(pool.metrics().peak_threads, 4);
    });
}

#[test]
fn threads_have_names_and_run_inside_the_hook() {
    thread_local!(static INSIDE: AtomicBool = const { AtomicBool::new(false) });
    limited(|| {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        let pool = Pool::new(Config {
            name: Arc::new(|| "named".to_owned()),
            run: Arc::new(move |body| {
                INSIDE.with(|inside| inside.store(true, SeqCst));
                body();
                count.fetch_add(1, SeqCst);
            }),
            ..config(1)
        });
        let seen = || {
            (
                thread::current().name().map(str::to_owned),
                INSIDE.with(|inside| inside.load(SeqCst)),
            )
        };
        assert_eq!(
            block_on(pool.spawn_here(seen)).expect("no panic"),
            (Some("named".to_owned()), true)
        );
        assert!(pool.shutdown(LONG).is_empty());
        assert_eq!(ended.load(SeqCst), 1, "shutdown waits for the hook as well");
    });
}

#[test]
fn shutdown_drops_what_waits_and_waits_for_what_runs() {
    limited(|| {
        let pool = Arc::new(Pool::new(config(1)));
        let (release, first) = occupy(&pool);
        let second = pool.spawn_here(|| ());
        let other = pool.clone();
        let closer = thread::spawn(move || other.shutdown(LONG).len());
        assert!(block_on(second).expect_err("dropped").is_runtime_closed());
        drop(release);
        assert_eq!(closer.join().expect("no panic"), 0);
        block_on(first).expect("it was waited for");
        assert_eq!(pool.metrics().threads, 0);
        assert!(
            block_on(pool.spawn_here(|| ()))
                .expect_err("too late")
                .is_runtime_closed()
        );
    });
}

#[test]
fn shutdown_names_what_it_leaves() {
    limited(|| {
        let pool = Pool::new(config(2));
        let (release, first) = occupy(&pool);
        let here = crate::task::Meta::here();
        let place = format!("'stubborn' spawned at {}, running for", here.site);
        let meta = crate::task::Meta {
            name: Some("stubborn".into()),
            ..here
        };
        let (started, running) = channel();
        let (release_named, released) = channel::<()>();
        let named = pool.spawn(
            move || {
                started.send(()).expect("somebody listens");
                let _ = released.recv();
            },
            meta,
        );
        running.recv().expect("it starts");
        let left = pool.shutdown(Duration::from_millis(20));
        assert_eq!(left.len(), 2);
        let text: Vec<_> = left.iter().map(ToString::to_string).collect();
        assert!(
            text.iter().any(|text| text.contains(&place)),
            "{text:?} lacks {place}"
        );
        drop((release, release_named));
        // They ran on, detached.
        block_on(first).expect("no panic");
        block_on(named).expect("no panic");
        assert!(pool.shutdown(LONG).is_empty());
    });
}

#[test]
fn shutdown_inside_a_closure_does_not_wait_for_itself() {
    limited(|| {
        let pool = Arc::new(Pool::new(config(2)));
        let inside = pool.clone();
        assert_eq!(
            block_on(pool.spawn_here(move || inside.shutdown(LONG).len())).expect("no panic"),
            0
        );
    });
}

/// A start function that is refused while the flag is set, and counts its calls.
fn refusing(refuse: &Arc<AtomicBool>, calls: &Arc<AtomicUsize>) -> Start {
    let (refuse, calls) = (refuse.clone(), calls.clone());
    Arc::new(move |builder, body| {
        calls.fetch_add(1, SeqCst);
        if refuse.load(SeqCst) {
            return Err(io::Error::from_raw_os_error(11));
        }
        builder.spawn(body).map(drop)
    })
}

#[test]
fn without_any_thread_a_closure_fails_in_time() {
    limited(|| {
        let (refuse, calls) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicUsize::new(0)),
        );
        let pool = Pool::new(Config {
            start: refusing(&refuse, &calls),
            later: Some(Arc::new(|pause, again| {
                thread::spawn(move || {
                    thread::sleep(pause);
                    again();
                });
            })),
            ..config(4)
        });
        let start = Instant::now();
        let handles: Vec<_> = (0..3).map(|_| pool.spawn_here(|| ())).collect();
        for handle in handles {
            let error = block_on(handle).expect_err("no thread");
            assert!(error.is_out_of_threads(), "{error}");
            assert!(error.to_string().contains("os error 11"), "{error}");
        }
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!((3..50).contains(&calls.load(SeqCst)), "{calls:?}");
        // It is no sentence for life.
        refuse.store(false, SeqCst);
        block_on(pool.spawn_here(|| ())).expect("a thread");
    });
}

#[test]
fn a_closure_waits_for_a_thread_to_be_had() {
    limited(|| {
        let (refuse, calls) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (later, due): (_, Receiver<Box<dyn FnOnce() + Send>>) = channel();
        let later = Mutex::new(later);
        let pool = Pool::new(Config {
            start: refusing(&refuse, &calls),
            later: Some(Arc::new(move |_, again| {
                later
                    .lock()
                    .expect("lock")
                    .send(again)
                    .expect("the test listens");
            })),
            ..config(4)
        });
        let handles: Vec<_> = (0..3).map(|i| pool.spawn_here(move || i)).collect();
        due.recv().expect("a retry")();
        assert_eq!(
            calls.load(SeqCst),
            2,
            "only the first closure and its retry ask for a thread"
        );
        refuse.store(false, SeqCst);
        due.recv().expect("a second one")();
        for (i, handle) in handles.into_iter().enumerate() {
            assert_eq!(block_on(handle).expect("it ran"), i);
        }
    });
}

#[test]
fn a_refused_thread_leaves_the_closure_to_the_others() {
    limited(|| {
        let (refuse, calls) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let pool = Pool::new(Config {
            start: refusing(&refuse, &calls),
            ..config(4)
        });
        let (release, first) = occupy(&pool);
        refuse.store(true, SeqCst);
        let second = pool.spawn_here(|| thread::current().id());
        assert_eq!(calls.load(SeqCst), 2);
        assert_eq!((pool.metrics().threads, pool.metrics().queue_depth), (1, 1));
        drop(release);
        block_on(first).expect("no panic");
        block_on(second).expect("it ran on the first one's thread");
    });
}

#[test]
fn without_a_way_to_wait_a_closure_fails_at_once() {
    limited(|| {
        let (refuse, calls) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicUsize::new(0)),
        );
        let pool = Pool::new(Config {
            start: refusing(&refuse, &calls),
            ..config(4)
        });
        let handle = pool.spawn_here(|| ());
        assert!(handle.is_finished());
        assert!(block_on(handle).expect_err("no thread").is_out_of_threads());
    });
}

#[test]
fn a_hook_that_panics_fails_the_closure() {
    limited(|| {
        let pool = Pool::new(Config {
            run: Arc::new(|_| panic!("the start hook of a test")),
            ..config(4)
        });
        let error = block_on(pool.spawn_here(|| ())).expect_err("no thread");
        assert!(error.is_out_of_threads(), "{error}");
        assert!(error.to_string().contains("start hook"), "{error}");
        assert!(pool.shutdown(LONG).is_empty());
    });
}

#[test]
fn the_clock_is_held_until_the_result_is_delivered() {
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    /// Notes how many guards there are when it is woken.
    struct Probe {
        held: Arc<AtomicUsize>,
        seen: Mutex<Sender<usize>>,
    }
    impl Wake for Probe {
        fn wake(self: Arc<Self>) {
            let _ = self.seen.lock().expect("lock").send(self.held.load(SeqCst));
        }
    }
    limited(|| {
        let held = Arc::new(AtomicUsize::new(0));
        let count = held.clone();
        let pool = Pool::new(Config {
            inhibit: Some(Arc::new(move || {
                count.fetch_add(1, SeqCst);
                Box::new(Guard(count.clone()))
            })),
            ..config(1)
        });
        let (release, handle) = occupy(&pool);
        assert_eq!(held.load(SeqCst), 1);
        let (seen, heard) = channel();
        let waker = Waker::from(Arc::new(Probe {
            held: held.clone(),
            seen: Mutex::new(seen),
        }));
        let mut handle = pin!(handle);
        assert!(
            handle
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(release);
        assert_eq!(heard.recv().expect("woken"), 1);
        assert!(matches!(
            handle.as_mut().poll(&mut Context::from_waker(&waker)),
            Poll::Ready(Ok(()))
        ));
        assert!(pool.shutdown(LONG).is_empty());
        assert_eq!(held.load(SeqCst), 0);
    });
}

#[test]
fn the_compute_pool_stays_within_the_cores() {
    limited(|| {
        let pool = Pool::new(Config::compute());
        let handles: Vec<_> = (0..100).map(|i| pool.spawn_here(move || i)).collect();
        assert!(
            handles
                .into_iter()
                .enumerate()
                .all(|(i, handle)| block_on(handle).ok() == Some(i))
        );
        assert!(pool.metrics().peak_threads <= num_cpus::get());
    });
}
