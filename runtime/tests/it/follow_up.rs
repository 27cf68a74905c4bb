//! A thread of the blocking pool polls the task that awaited its closure, if a worker would have to be woken for that.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, Handle, Runtime};
use rt::time::sleep;

use crate::pains_support::{LONG, MS, eventually};
use crate::support::within_limit;

/// A runtime in which polls are followed up, also where debug assertions are on.
fn runtime(workers: usize, set: impl FnOnce(&mut Builder) -> &mut Builder) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    set(builder.worker_threads(workers).debug(false));
    builder.build().expect("a runtime")
}

/// Waits until every worker of the present runtime sleeps: a closure that ends then would have to wake one.
fn until_workers_sleep() {
    let handle = Handle::current();
    eventually("every worker sleeps", || {
        let metrics = handle.metrics();
        metrics.workers[..metrics.num_workers]
            .iter()
            .all(|worker| worker.parked.is_some())
    });
}

/// Awaits a closure that ends while every worker sleeps; the thread that has run it.
async fn trip() -> ThreadId {
    rt::spawn_blocking(|| {
        until_workers_sleep();
        thread::current().id()
    })
    .await
    .expect("no panic")
}

/// Awaits such closures until the thread of one polls the task. A worker may wake up again at the wrong moment.
async fn followed_up() -> ThreadId {
    loop {
        let ran = trip().await;
        if thread::current().id() == ran {
            return ran;
        }
    }
}

/// Sends the result of a task that runs on this runtime, and waits for it.
fn result_of<T: Send + 'static>(
    runtime: &Runtime,
    task: impl Future<Output = T> + Send + 'static,
) -> T {
    let (done, result) = mpsc::channel();
    runtime.spawn(async move { done.send(task.await) });
    result.recv_timeout(LONG).expect("the task ends")
}

#[test]
fn the_thread_of_a_closure_polls_the_task_that_awaited_it() {
    within_limit(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers, |builder| builder);
            let elsewhere = result_of(&runtime, async {
                let mut elsewhere = 0;
                for _ in 0..20 {
                    let ran = trip().await;
                    elsewhere += usize::from(thread::current().id() != ran);
                }
                elsewhere
            });
            // A worker may wake up again at the wrong moment, for the monitor or the other one, where the machine is busy.
            assert!(elsewhere < 5, "{elsewhere} of 20 polls were elsewhere");
            let metrics = runtime.metrics();
            assert_eq!(metrics.follow_ups, 20 - elsewhere as u64);
            assert_eq!(metrics.blocking.peak_threads, 1);
            assert!(
                metrics.unparks < 10 + 2 * elsewhere as u64,
                "{} threads were woken for 20 closures",
                metrics.unparks
            );
        }
    });
}

#[test]
fn one_poll_and_no_more_is_done_there() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        let threads = result_of(&runtime, async {
            let pool = followed_up().await;
            let here = thread::current().id();
            rt::task::yield_now().await;
            let after_yield = thread::current().id();
            followed_up().await;
            sleep(MS).await;
            let after_sleep = thread::current().id();
            followed_up().await;
            // What is spawned and woken there is for the workers.
            let child = rt::spawn(async { thread::current().id() });
            (
                pool,
                here,
                after_yield,
                after_sleep,
                child.await.expect("no panic"),
            )
        });
        let (pool, here, others) = (threads.0, threads.1, [threads.2, threads.3, threads.4]);
        assert_eq!(here, pool);
        assert!(others.iter().all(|&other| other != pool), "{threads:?}");
    });
}

#[test]
fn a_task_that_blocks_there_holds_up_no_worker_and_no_closure() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        let (blocks, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let task = runtime.spawn(async move {
            followed_up().await;
            blocks.send(()).expect("the test waits");
            let _ = released.recv();
        });
        blocked.recv_timeout(LONG).expect("the task is polled");
        // The only worker is free: a socket, a timer and a closure take their way.
        result_of(&runtime, async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let mut client = TcpStream::connect(listener.local_addr()?).await?;
            let (mut server, _) = listener.accept().await?;
            client.write_all(b"x").await?;
            sleep(MS).await;
            let mut byte = [0];
            server.read_exact(&mut byte).await?;
            rt::spawn_blocking(|| ())
                .await
                .map_err(std::io::Error::other)
        })
        .expect("no error");
        assert!(!task.is_finished());
        drop(release);
        runtime.block_on(task).expect("no panic");
    });
}

/// The thread has promised to take the closure up when the poll is over, and the poll waits for it.
#[test]
fn a_poll_that_waits_for_the_closure_that_it_sent_does_not_wait_for_ever() {
    within_limit(|| {
        for compute in [false, true] {
            let runtime = runtime(1, |builder| builder);
            let answers = result_of(&runtime, async move {
                let mut answers = Vec::new();
                for answer in 0..3 {
                    followed_up().await;
                    let (send, receive) = mpsc::channel();
                    // Of another pool: no promise.
                    let spawn = if compute {
                        rt::spawn_compute
                    } else {
                        rt::spawn_blocking
                    };
                    let handle = spawn(move || send.send(answer).expect("somebody waits"));
                    answers.push(receive.recv_timeout(LONG));
                    handle.await.expect("no panic");
                }
                answers
            });
            assert_eq!(answers, [Ok(0), Ok(1), Ok(2)]);
        }
    });
}

#[test]
fn closures_that_are_sent_together_run_together() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        result_of(&runtime, async {
            for _ in 0..20 {
                followed_up().await;
                let barrier = Arc::new(std::sync::Barrier::new(3));
                let closures: Vec<_> = (0..3)
                    .map(|_| {
                        let barrier = barrier.clone();
                        rt::spawn_blocking(move || barrier.wait())
                    })
                    .collect();
                for closure in closures {
                    closure.await.expect("no panic");
                }
            }
        });
    });
}

/// Where it would break a promise, or where nobody could keep one.
#[test]
fn some_runtimes_poll_on_their_workers_only() {
    within_limit(|| {
        let runtimes = [
            (
                "without a monitor",
                runtime(1, |builder| builder.monitor(false)),
            ),
            ("in debug mode", runtime(1, |builder| builder.debug(true))),
            (
                "with one thread for closures",
                runtime(1, |builder| builder.max_blocking_threads(1)),
            ),
        ];
        for (which, runtime) in runtimes {
            let same = result_of(&runtime, async {
                let mut same = 0;
                for _ in 0..5 {
                    same += usize::from(trip().await == thread::current().id());
                }
                same
            });
            assert_eq!((same, runtime.metrics().follow_ups), (0, 0), "{which}");
        }
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let here = thread::current().id();
        let task = runtime.spawn(async move {
            for _ in 0..5 {
                rt::spawn_blocking(|| thread::sleep(MS))
                    .await
                    .expect("no panic");
                assert_eq!(thread::current().id(), here);
            }
        });
        runtime.block_on(task).expect("it stays on this thread");
    });
}

#[test]
fn no_more_tasks_at_once_than_there_are_workers() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        let (blocks, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        runtime.spawn(async move {
            followed_up().await;
            blocks.send(()).expect("the test waits");
            let _ = released.recv();
        });
        blocked.recv_timeout(LONG).expect("the task is polled");
        let same = result_of(&runtime, async { trip().await == thread::current().id() });
        assert!(
            !same,
            "there is one worker, and one task is polled elsewhere already"
        );
        drop(release);
    });
}

#[test]
fn it_is_a_poll_as_any_other() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        let handle = runtime.handle().clone();
        let error = result_of(&runtime, async move {
            let nested = rt::spawn(async move {
                followed_up().await;
                handle.block_on(async {});
            });
            nested.await.expect_err("a task does not block its thread")
        });
        assert!(error.is_panic(), "{error}");
        let in_place = result_of(&runtime, async {
            followed_up().await;
            rt::block_in_place(|| Handle::current().block_on(async { 7 }))
        });
        assert_eq!(in_place, 7);
        let budget = result_of(&runtime, async {
            followed_up().await;
            let mut ready = 0_u32;
            let mut spends = pin!(async {
                loop {
                    rt::task::coop::consume_budget().await;
                    ready += 1;
                }
            });
            std::future::poll_fn(|cx| Poll::Ready(spends.as_mut().poll(cx))).await
        });
        assert!(budget.is_pending(), "the budget has an end");
    });
}

/// The callback runs after the task was woken, on the thread that would poll it.
#[test]
fn a_callback_that_blocks_does_not_hold_the_task_up() {
    within_limit(|| {
        let runtime = runtime(1, |builder| builder);
        let (release, released) = mpsc::channel::<()>();
        result_of(&runtime, async move {
            let closure = rt::spawn_blocking(until_workers_sleep);
            closure.on_done(move |_| {
                let _ = released.recv();
            });
            closure.await.expect("no panic");
        });
        drop(release);
        assert_eq!(runtime.metrics().follow_ups, 0);
    });
}

#[test]
fn a_runtime_that_ends_during_such_a_poll_drops_its_task() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    within_limit(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let runtime = runtime(1, |builder| {
            builder.shutdown_grace(Duration::from_millis(50))
        });
        let (blocks, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let counts = Counts(dropped.clone());
        let task = runtime.spawn(async move {
            let _counts = counts;
            followed_up().await;
            blocks.send(()).expect("the test waits");
            let _ = released.recv();
            // Refused: the runtime is closed.
            rt::spawn_blocking(|| ()).await
        });
        blocked.recv_timeout(LONG).expect("the task is polled");
        drop(runtime);
        assert_eq!(dropped.load(SeqCst), 0, "it is being polled");
        drop(release);
        eventually("the future is dropped", || dropped.load(SeqCst) == 1);
        let error = futures_lite::future::block_on(task).map(drop);
        assert!(
            error
                .as_ref()
                .map_or_else(rt::task::JoinError::is_runtime_closed, |()| true),
            "{error:?}"
        );
    });
}
