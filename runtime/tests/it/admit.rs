//! Blocking closures with back-pressure and with priorities: `rt::admit_blocking`, `rt::BlockingPriority`.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rt::BlockingPriority::{self, High, Normal};
use rt::runtime::{Builder, Runtime, UnhandledPanic};
use rt::task::{self, JoinHandle};

use crate::support::within_limit;

fn runtime(threads: usize, queue: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(threads)
        .blocking_queue(queue)
        .unhandled_panic(UnhandledPanic::Ignore)
        .build()
        .expect("a runtime")
}

fn poll_now<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A closure that runs until the sender is dropped, and says when it begins.
fn blocker() -> (impl FnOnce() + Send, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (begins, begun) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let closure = move || {
        begins.send(()).expect("somebody waits");
        let _ = stopped.recv();
    };
    (closure, begun, stop)
}

#[test]
fn f7_the_seventh_closure_of_two_threads_and_four_places_waits() {
    within_limit(|| {
        let runtime = runtime(2, 4);
        runtime.block_on(async {
            let mut stops = Vec::new();
            for _ in 0..2 {
                let (closure, begun, stop) = blocker();
                drop(rt::admit_blocking().await.expect("room").spawn(closure));
                begun.recv().expect("it begins");
                stops.push(stop);
            }
            let mut queued = Vec::new();
            for n in 0..4 {
                let slot = rt::admit_blocking().await.expect("room");
                queued.push(slot.spawn(move || n));
            }
            assert_eq!(runtime.metrics().blocking.queue_depth, 4);
            let full = rt::try_admit_blocking().expect_err("no room");
            assert!(full.is_full() && !full.is_runtime_closed());
            assert!(full.to_string().contains("no room"), "{full}");

            let mut seventh = pin!(rt::admit_blocking());
            let mut eighth = pin!(rt::admit_blocking());
            assert!(poll_now(seventh.as_mut()).is_pending());
            assert!(poll_now(eighth.as_mut()).is_pending());
            // Those that nobody admits are not held up.
            let free = rt::spawn_blocking(|| 7);
            assert_eq!(runtime.metrics().blocking.queue_depth, 5);
            drop(stops);
            let slot = seventh.await.expect("room");
            assert_eq!(slot.spawn(|| 6).await.expect("no panic"), 6);
            for (n, task) in queued.into_iter().enumerate() {
                assert_eq!(task.await.expect("no panic"), n);
            }
            assert_eq!(free.await.expect("no panic"), 7);
            drop(eighth.await.expect("room"));
        });
    });
}

#[test]
fn a_slot_is_free_again_however_its_closure_ends() {
    within_limit(|| {
        let runtime = runtime(1, 1);
        runtime.block_on(async {
            for _ in 0..3 {
                // Never used.
                drop(rt::admit_blocking().await.expect("room"));
                // Ends in a panic.
                let slot = rt::admit_blocking().await.expect("room");
                let panicked = slot.spawn(|| panic!("of the closure"));
                assert!(panicked.await.expect_err("it panicked").is_panic());
                // Is aborted before it starts.
                let (closure, begun, stop) = blocker();
                let running = rt::admit_blocking().await.expect("room").spawn(closure);
                begun.recv().expect("it begins");
                let slot = rt::admit_blocking().await.expect("room");
                let waits: JoinHandle<()> = slot.spawn(|| unreachable!("aborted"));
                rt::try_admit_blocking().expect_err("no room");
                waits.abort();
                drop(stop);
                running.await.expect("no panic");
                assert!(waits.await.expect_err("aborted").is_cancelled());
                // Its future is dropped while it waits in line, and has been given the slot.
                let one = rt::admit_blocking().await.expect("room");
                let two = rt::admit_blocking().await.expect("room");
                {
                    let mut waits = pin!(rt::admit_blocking());
                    assert!(poll_now(waits.as_mut()).is_pending());
                    drop((one, two));
                }
            }
            drop(rt::try_admit_blocking().expect("all are free"));
        });
    });
}

#[test]
fn the_end_of_the_runtime_is_told_to_who_waits_and_to_who_comes() {
    within_limit(|| {
        let runtime = runtime(1, 0);
        let handle = runtime.handle().clone();
        let slot = runtime.block_on(handle.admit_blocking()).expect("room");
        let mut waits = pin!(handle.admit_blocking());
        assert!(poll_now(waits.as_mut()).is_pending());
        drop(runtime);
        let Poll::Ready(Err(error)) = poll_now(waits.as_mut()) else {
            panic!("the runtime is closed");
        };
        assert!(error.is_runtime_closed() && !error.is_full());
        assert!(error.to_string().contains("is closed"), "{error}");
        assert!(
            handle
                .try_admit_blocking()
                .expect_err("closed")
                .is_runtime_closed()
        );
        let mut task = pin!(slot.spawn(|| ()));
        let Poll::Ready(Err(error)) = poll_now(task.as_mut()) else {
            panic!("the runtime is closed");
        };
        assert!(error.is_runtime_closed(), "{error}");
    });
}

#[test]
fn a_waker_that_panics_at_the_end_of_the_runtime_costs_nothing_but_its_report() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker of a foreign executor");
        }
    }

    within_limit(|| {
        let runtime = runtime(1, 0);
        let handle = runtime.handle().clone();
        let slot = handle.try_admit_blocking().expect("room");
        let mut waits = pin!(handle.admit_blocking());
        let bad = Waker::from(Arc::new(Bad));
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&bad))
                .is_pending()
        );
        drop(runtime);
        assert!(matches!(poll_now(waits.as_mut()), Poll::Ready(Err(_))));
        drop(slot);
    });
}

#[test]
fn f7_high_priority_overtakes_and_each_is_first_in_first_out() {
    within_limit(|| {
        let runtime = runtime(1, 100);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (closure, begun, stop) = blocker();
        runtime.block_on(async {
            let first = rt::spawn_blocking(closure);
            begun.recv().expect("it begins");
            let note = |name: &'static str| {
                let order = order.clone();
                move || order.lock().unwrap().push(name)
            };
            let mut tasks = vec![rt::spawn_blocking(note("n1"))];
            let builder = task::Builder::new();
            let high = builder.blocking_priority(High);
            tasks.push(high.spawn_blocking(note("h1")).expect("spawned"));
            let slot = rt::admit_blocking().await.expect("room");
            tasks.push(slot.spawn(note("n2")));
            let slot = rt::admit_blocking().await.expect("room");
            tasks.push(slot.priority(High).spawn(note("h2")));
            let normal = builder.blocking_priority(Normal);
            tasks.push(normal.spawn_blocking(note("n3")).expect("spawned"));
            let blocking = runtime.metrics().blocking;
            assert_eq!(blocking.queue_depth, 5);
            drop(stop);
            first.await.expect("no panic");
            for task in tasks {
                task.await.expect("no panic");
            }
        });
        assert_eq!(*order.lock().unwrap(), ["h1", "h2", "n1", "n2", "n3"]);
    });
}

/// However many of high priority there are: each sixteenth closure is a normal one, if one waits.
#[test]
fn closures_of_high_priority_do_not_starve_the_others() {
    within_limit(|| {
        let runtime = runtime(1, 100);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (closure, begun, stop) = blocker();
        runtime.block_on(async {
            let first = rt::spawn_blocking(closure);
            begun.recv().expect("it begins");
            let mut tasks = Vec::new();
            for priority in [Normal; 3].into_iter().chain([High; 40]) {
                let order = order.clone();
                let note = move || order.lock().unwrap().push(priority);
                let builder = task::Builder::new().blocking_priority(priority);
                tasks.push(builder.spawn_blocking(note).expect("spawned"));
            }
            drop(stop);
            first.await.expect("no panic");
            for task in tasks {
                task.await.expect("no panic");
            }
            assert_eq!(runtime.metrics().blocking.queue_depth, 0);
        });
        let order = order.lock().unwrap();
        let normal: Vec<_> = (0..order.len())
            .filter(|place| order[*place] == Normal)
            .collect();
        assert_eq!((order.len(), normal), (43, vec![15, 31, 42]));
    });
}

/// The age of the queue is that of its oldest closure, also when younger ones start before it.
#[test]
fn the_age_of_the_queue_is_that_of_the_closure_which_is_overtaken() {
    within_limit(|| {
        let runtime = runtime(1, 100);
        let (first, begun, stop) = blocker();
        runtime.block_on(async {
            drop(rt::spawn_blocking(first));
            begun.recv().expect("it begins");
            let old = rt::spawn_blocking(|| ());
            std::thread::sleep(Duration::from_millis(50));
            let (second, begun, stop_second) = blocker();
            let high = task::Builder::new().blocking_priority(High);
            drop(high.spawn_blocking(second));
            drop(stop);
            begun.recv().expect("it overtakes");
            let blocking = runtime.metrics().blocking;
            assert_eq!(blocking.queue_depth, 1);
            assert!(
                blocking.oldest_queued >= Some(Duration::from_millis(50)),
                "{blocking:?}"
            );
            drop(stop_second);
            old.await.expect("no panic");
        });
    });
}

#[test]
fn closures_of_both_priorities_run_once_each() {
    const EACH: usize = 2000;
    within_limit(|| {
        let runtime = runtime(4, 16);
        let handle = runtime.handle().clone();
        let ran: Arc<Mutex<Vec<usize>>> = Arc::default();
        std::thread::scope(|scope| {
            for submitter in 0..4 {
                let (handle, ran) = (&handle, &ran);
                scope.spawn(move || {
                    handle.block_on(async {
                        let mut tasks = Vec::new();
                        for n in 0..EACH {
                            let number = submitter * EACH + n;
                            let ran = ran.clone();
                            let priority = if number.is_multiple_of(3) {
                                BlockingPriority::High
                            } else {
                                BlockingPriority::Normal
                            };
                            let slot = handle.admit_blocking().await.expect("room");
                            let run = move || ran.lock().unwrap().push(number);
                            tasks.push(slot.priority(priority).spawn(run));
                        }
                        for task in tasks {
                            task.await.expect("no panic");
                        }
                    });
                });
            }
        });
        let mut ran = ran.lock().unwrap();
        ran.sort_unstable();
        assert_eq!(*ran, (0..4 * EACH).collect::<Vec<_>>());
        assert_eq!(runtime.metrics().blocking.queue_depth, 0);
    });
}

#[test]
fn ten_thousand_slots_at_once_give_way() {
    within_limit(|| {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let other = rt::spawn(async {});
            for _ in 0..10_000 {
                drop(rt::admit_blocking().await.expect("room"));
            }
            assert!(other.is_finished());
        });
    });
}
