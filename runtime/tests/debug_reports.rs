//! Reports of debug mode that need no stack: forgotten errors, objects of other runtimes, grants that nobody takes, a pool
//! that waits for itself. A binary of its own: what was granted is known to the whole process.

#[path = "debug/support.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, ReportKind, Runtime};
use rt::sync::{Mutex, Semaphore, oneshot};
use rt::task::WaitKind;

use self::support::{Reports, within_limit};

fn runtime(name: &str) -> (Runtime, Reports) {
    let mut builder = Builder::new_multi_thread();
    // What these tests are about is not slow.
    builder
        .worker_threads(2)
        .name(name)
        .debug(true)
        .slow_poll_threshold(Duration::from_secs(30));
    let reports = Reports::of(&mut builder);
    (builder.build().unwrap(), reports)
}

#[track_caller]
fn assert_silent(runtime: Runtime, reports: &Reports) {
    drop(runtime);
    let told = reports.rest(Duration::from_millis(1));
    assert!(told.is_empty(), "{told:?}");
}

// Forgotten errors.

async fn fails() -> io::Result<()> {
    rt::task::yield_now().await;
    Err(io::Error::other("the disk is full"))
}

#[test]
fn the_error_of_a_detached_task_is_reported() {
    within_limit(|| {
        let (runtime, reports) = runtime("forgetful");
        let entered = runtime.enter();
        let builder = rt::task::Builder::new().name("saver");
        let line = line!() + 1;
        let task = builder.spawn_result(fails());
        drop(task.unwrap());
        let report = reports.next(ReportKind::UnretrievedError);
        let task = report.task().unwrap();
        assert_eq!(task.name(), Some("saver"));
        assert_eq!(task.spawned_at().line(), line);
        let text = report.to_string();
        assert!(
            text.contains("failed: the disk is full (nobody retrieved the error)"),
            "{text}"
        );
        drop(entered);
        assert_silent(runtime, &reports);
    });
}

#[test]
fn the_error_of_a_handle_that_is_dropped_later_is_reported() {
    within_limit(|| {
        let (runtime, reports) = runtime("forgetful");
        runtime.block_on(async {
            let task = rt::task::spawn_result(fails());
            while !task.is_finished() {
                rt::task::yield_now().await;
            }
            assert!(reports.rest(Duration::from_millis(1)).is_empty());
            drop(task);
        });
        reports.next(ReportKind::UnretrievedError);
        assert_silent(runtime, &reports);
    });
}

#[test]
fn an_error_that_somebody_takes_is_not_reported() {
    within_limit(|| {
        let (runtime, reports) = runtime("attentive");
        runtime.block_on(async {
            rt::task::spawn_result(fails()).await.unwrap().unwrap_err();
            // No error, and a task that may fail but was not spawned for it.
            drop(rt::task::spawn_result(async { Ok::<_, io::Error>(1) }));
            drop(rt::spawn(fails()));
            // Cancelled before it failed.
            let task = rt::task::spawn_result(async {
                std::future::pending::<()>().await;
                fails().await
            });
            task.abort();
            task.await.unwrap_err();
        });
        assert_silent(runtime, &reports);
    });
}

#[test]
fn forgotten_errors_are_silent_without_debug_mode() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).debug(false);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let task = rt::task::spawn_result(fails());
            while !task.is_finished() {
                rt::task::yield_now().await;
            }
        });
        assert_silent(runtime, &reports);
    });
}

/// The text of the error is user code, too.
#[test]
fn an_error_whose_text_panics_hurts_nobody() {
    struct Bad;
    impl std::fmt::Display for Bad {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("in Display");
        }
    }
    within_limit(|| {
        let (runtime, reports) = runtime("unlucky");
        let result =
            runtime.block_on(async { rt::task::spawn_result(async { Err::<(), _>(Bad) }).await });
        assert!(result.unwrap().is_err());
        assert_silent(runtime, &reports);
    });
}

// Objects of other runtimes.

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = (client.await.unwrap(), listener.accept().await.unwrap());
    (client, accepted.0)
}

#[test]
fn a_socket_of_another_runtime_is_told_once() {
    within_limit(|| {
        let (a, silent) = runtime("a");
        let (b, reports) = runtime("b");
        let (mut client, mut server) = a.block_on(async {
            let (mut client, mut server) = pair().await;
            // Its first wait, which makes it one of a.
            let echo = rt::spawn(async move {
                let mut byte = [0];
                server.read_exact(&mut byte).await.unwrap();
                server
            });
            rt::time::sleep(Duration::from_millis(20)).await;
            client.write_all(&[1]).await.unwrap();
            (client, echo.await.unwrap())
        });
        let mut line = 0;
        for round in 0..3 {
            line = line!() + 1;
            b.block_on(async {
                let read = async {
                    server.read_exact(&mut [0]).await.unwrap();
                };
                let write = async {
                    rt::time::sleep(Duration::from_millis(20)).await;
                    client.write_all(&[round]).await.unwrap();
                };
                rt::join!(read, write);
            });
        }
        let report = reports.next(ReportKind::OtherRuntime);
        assert_eq!(report.runtime(), "b");
        let text = report.to_string();
        assert!(text.contains("for a socket of runtime 'a'"), "{text}");
        assert_eq!(report.site().unwrap().line(), line, "{text}");
        // Once for this place, however often it waits; and where it belongs nothing is wrong.
        assert_silent(b, &reports);
        // When a ends, what was a warning becomes an error that names it.
        drop(a);
        let error = Builder::new_current_thread()
            .debug(false)
            .build()
            .unwrap()
            .block_on(server.read_exact(&mut [0]))
            .unwrap_err();
        assert!(
            error.to_string().contains("runtime \"a\" is closed"),
            "{error}"
        );
        assert!(silent.rest(Duration::from_millis(1)).is_empty());
    });
}

#[test]
fn a_timer_of_another_runtime_is_told_and_handles_are_not() {
    within_limit(|| {
        let (a, silent) = runtime("a");
        let (b, reports) = runtime("b");
        let line = line!() + 1;
        let mut sleep = Box::pin(rt::time::sleep(Duration::from_millis(200)));
        a.block_on(poll_fn(|cx| {
            assert!(sleep.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
        let handle = a.spawn(async { rt::time::sleep(Duration::from_millis(20)).await });
        b.block_on(async {
            sleep.await;
            handle.await.unwrap();
        });
        let report = reports.next(ReportKind::OtherRuntime);
        assert_eq!(report.site().unwrap().line(), line, "{report}");
        assert!(
            report.to_string().contains("a timer of runtime 'a'"),
            "{report}"
        );
        assert_silent(b, &reports);
        assert_silent(a, &silent);
    });
}

// Grants.

#[test]
fn a_lock_granted_to_a_future_that_is_not_polled_is_reported() {
    within_limit(|| {
        let (runtime, reports) = runtime("futurelock");
        let lock: &'static Mutex<()> = Box::leak(Box::new(Mutex::new(())));
        let (released, wait) = oneshot::channel::<()>();
        let guard = runtime.block_on(lock.lock());
        let line = line!() + 2;
        let task = runtime.spawn(async move {
            let mut waiting = pin!(lock.lock());
            poll_fn(|cx| {
                assert!(waiting.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            // The future is kept, and something else awaited.
            wait.await.unwrap();
            drop(waiting.await);
        });
        while runtime
            .block_on(async { rt::task::all_tasks() })
            .iter()
            .any(|task| {
                task.waits_for()
                    .is_none_or(|(kind, _)| kind != WaitKind::Oneshot)
            })
        {}
        drop(guard);
        let report = reports.next(ReportKind::UnpolledGrant);
        assert_eq!(report.site().unwrap().line(), line, "{report}");
        assert_eq!(report.task().unwrap().id(), Some(task.id()));
        let (kind, _) = report.task().unwrap().waits_for().unwrap();
        assert_eq!(kind, WaitKind::Oneshot);
        assert!(report.duration().unwrap() >= Duration::from_secs(1));
        released.send(()).unwrap();
        runtime.block_on(task).unwrap();
        assert_silent(runtime, &reports);
    });
}

#[test]
fn grants_that_are_taken_or_given_on_are_silent() {
    within_limit(|| {
        let (runtime, reports) = runtime("fair");
        runtime.block_on(async {
            let permits: &'static Semaphore = Box::leak(Box::new(Semaphore::new(1)));
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    rt::spawn(async move {
                        for _ in 0..20 {
                            if number % 3 == 0 {
                                // Dropped while it waits, or with what it was granted.
                                let mut waiting = pin!(permits.acquire());
                                poll_fn(|cx| {
                                    let _ = waiting.as_mut().poll(cx);
                                    Poll::Ready(())
                                })
                                .await;
                                rt::task::yield_now().await;
                            } else {
                                let _permit = permits.acquire().await.unwrap();
                                rt::task::yield_now().await;
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            // Held, and waited for, for longer than a grant may lie around: not granted, so nothing is wrong.
            let permit = permits.acquire().await.unwrap();
            let waits = rt::spawn(async { drop(permits.acquire().await.unwrap()) });
            rt::time::sleep(Duration::from_millis(1_500)).await;
            drop(permit);
            waits.await.unwrap();
        });
        assert_silent(runtime, &reports);
    });
}

// The blocking pool.

#[test]
fn a_pool_that_waits_for_itself_is_reported() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(true)
            .max_blocking_threads(2);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let (open, gate) = oneshot::channel::<()>();
        let first = {
            let handle = handle.clone();
            runtime.spawn_blocking(move || handle.block_on(gate).unwrap())
        };
        let second = runtime.spawn_blocking(move || {
            // Needs a third thread.
            let inner = rt::spawn_blocking(|| 5);
            handle.block_on(inner).unwrap()
        });
        let report = reports.next(ReportKind::BlockingPoolStuck);
        let text = report.to_string();
        assert!(
            text.contains("all 2 threads") && text.contains("1 closures wait"),
            "{text}"
        );
        // Once.
        assert!(reports.rest(Duration::from_millis(300)).is_empty());
        open.send(()).unwrap();
        runtime.block_on(async {
            first.await.unwrap();
            assert_eq!(second.await.unwrap(), 5);
        });
    });
}

#[test]
fn a_pool_that_is_full_of_work_is_silent() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(true)
            .max_blocking_threads(1);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let tasks: Vec<_> = (0..3)
            .map(|_| runtime.spawn_blocking(|| std::thread::sleep(Duration::from_millis(500))))
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        assert_silent(runtime, &reports);
    });
}

// What was always told.

#[test]
fn panics_go_through_the_hook() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).debug(false).name("calm");
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        drop(runtime.spawn(async { panic!("oh no") }));
        let report = reports.next(ReportKind::UnretrievedPanic);
        let text = report.to_string();
        assert!(text.starts_with("runtime 'calm': task "), "{text}");
        assert!(
            text.ends_with("panicked: oh no (nobody retrieved the error)"),
            "{text}"
        );
        let (begins, begun) = std::sync::mpsc::channel();
        drop(runtime.spawn(async move {
            let _loud = Loud;
            begins.send(()).unwrap();
            std::future::pending::<()>().await;
        }));
        begun.recv().unwrap();
        runtime.shutdown_timeout(Duration::from_secs(10));
        let report = reports.next(ReportKind::DestructorPanic);
        assert!(report.to_string().contains("in a destructor"), "{report}");
    });
}

#[test]
fn a_closure_that_is_left_behind_goes_through_the_hook() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(false)
            .shutdown_grace(Duration::from_millis(20));
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let (began, begun) = std::sync::mpsc::channel();
        drop(runtime.spawn_blocking(move || {
            began.send(()).unwrap();
            let _ = gate.recv();
        }));
        begun.recv().unwrap();
        drop(runtime);
        let report = reports.next(ReportKind::LeftBehind);
        assert!(report.to_string().contains("blocking closure"), "{report}");
        drop(open);
    });
}
