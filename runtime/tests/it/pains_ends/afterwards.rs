//! What handles, wakers, sockets and destructors find when their runtime or their task ends, and after it. Rows 5 to 12.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{io, thread};

use rt::ReturnWhen;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::runtime::Handle;
use rt::task::{Activity, JoinHandle};
use rt::time::{boottime, interval, sleep, timeout, timeout_with};

use super::HOUR;
use crate::pains_support::{LONG, MS, Mailbox, current_thread, each_kind, eventually, workers};
use crate::support::within_limit;

/// Handles work from any thread at any time.
#[test]
fn b5_handles_of_tasks_work_from_anywhere_and_afterwards() {
    fn use_up(task: JoinHandle<()>, aborts: bool) {
        let abort = task.abort_handle();
        let _ = (task.id(), task.is_finished(), abort.is_finished());
        if aborts {
            abort.abort();
            task.abort();
        }
        drop(task);
        abort.abort();
    }
    /// Uses the handle while it is dropped.
    struct InDrop(Option<JoinHandle<()>>);
    impl Drop for InDrop {
        fn drop(&mut self) {
            use_up(self.0.take().unwrap(), true);
        }
    }
    within_limit(|| {
        for runtime in each_kind() {
            let other = workers(1);
            let waits = || runtime.spawn(pending::<()>());
            let task = waits();
            thread::spawn(move || use_up(task, true)).join().unwrap();
            let task = waits();
            other
                .block_on(other.spawn(async move { use_up(task, true) }))
                .unwrap();
            let task = waits();
            let unwinding = thread::spawn(move || {
                let _guard = InDrop(Some(task));
                panic!("expected");
            });
            unwinding.join().unwrap_err();
            // A waker of one runtime's task, kept and used by threads of another.
            let (task, mailbox) = (waits(), Mailbox::<()>::new());
            let waiter = other.spawn({
                let mailbox = mailbox.clone();
                async move { mailbox.recv().await }
            });
            let late: Vec<_> = (0..2).map(|_| waits()).collect();
            runtime.block_on(async { mailbox.send(()) });
            drop(runtime);
            other.block_on(waiter).unwrap();
            assert!(task.is_finished());
            use_up(task, true);
            for (n, task) in late.into_iter().enumerate() {
                if n == 0 {
                    assert!(other.block_on(task).unwrap_err().is_runtime_closed());
                } else {
                    use_up(task, false);
                }
            }
        }
    });
}

/// Wakers outlive their runtime.
#[test]
fn b5_a_waker_works_after_the_end_of_its_runtime() {
    struct Keep(Arc<Mutex<Option<Waker>>>);
    impl Future for Keep {
        type Output = ();
        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            *self.0.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        }
    }
    within_limit(|| {
        for runtime in each_kind() {
            let (of_task, of_root) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
            drop(runtime.spawn(Keep(of_task.clone())));
            let root = of_root.clone();
            runtime.block_on(async {
                futures_lite::future::poll_once(Keep(root)).await;
                while of_task.lock().unwrap().is_none() {
                    sleep(MS).await;
                }
            });
            of_root.lock().unwrap().as_ref().unwrap().wake_by_ref();
            drop(runtime);
            for waker in [of_task, of_root] {
                let waker: Waker = waker.lock().unwrap().take().unwrap();
                waker.wake_by_ref();
                drop(waker.clone());
                waker.wake();
            }
        }
    });
}

/// The three ways of not getting an output can be told apart, and say so.
#[test]
fn b8_panicked_aborted_and_closed_differ() {
    within_limit(|| {
        for runtime in each_kind() {
            let panicked = runtime
                .block_on(runtime.spawn(async { panic!("on purpose") }))
                .unwrap_err();
            let aborted = runtime.block_on(async {
                let task = rt::spawn(pending::<()>());
                task.abort();
                task.await.unwrap_err()
            });
            let (waits, handle) = (runtime.spawn(pending::<()>()), runtime.handle().clone());
            drop(runtime);
            let closed = futures_lite::future::block_on(waits).unwrap_err();
            let late = futures_lite::future::block_on(handle.spawn(async {})).unwrap_err();
            let late_blocking =
                futures_lite::future::block_on(handle.spawn_blocking(|| {})).unwrap_err();
            let kinds = [&panicked, &aborted, &closed, &late, &late_blocking].map(|error| {
                (
                    error.is_panic(),
                    error.is_aborted(),
                    error.is_runtime_closed(),
                )
            });
            let ended = (false, false, true);
            assert_eq!(
                kinds,
                [
                    (true, false, false),
                    (false, true, false),
                    ended,
                    ended,
                    ended
                ]
            );
            for (error, word) in [
                (&panicked, "on purpose"),
                (&aborted, "cancelled"),
                (&closed, "closed"),
            ] {
                assert!(error.to_string().contains(word), "{error}");
            }
        }
    });
}

/// Sockets know their runtime: after its end they say so, on whatever runtime they are used; while it lives they just
/// work.
#[test]
fn b9_a_socket_of_a_closed_runtime_names_it() {
    within_limit(|| {
        for rt1 in [current_thread(), workers(1)] {
            let rt2 = workers(1);
            let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = peer.local_addr().unwrap();
            let name = rt1.handle().name().to_owned();
            let echo = thread::spawn(move || {
                let (mut stream, _) = peer.accept().unwrap();
                let mut buf = [0; 1];
                while io::Read::read(&mut stream, &mut buf).unwrap_or(0) > 0 {
                    io::Write::write_all(&mut stream, &buf).unwrap();
                }
            });
            let mut stream = rt1.block_on(async {
                let mut stream = TcpStream::connect(addr).await.unwrap();
                stream.write_all(b"a").await.unwrap();
                stream.read_exact(&mut [0]).await.unwrap();
                // Waits, so it registers.
                assert!(rt::time::timeout(MS, stream.read(&mut [0])).await.is_err());
                stream
            });
            if !matches!(
                rt1.handle().runtime_flavor(),
                rt::runtime::RuntimeFlavor::CurrentThread
            ) {
                stream = rt2.block_on(async {
                    stream.write_all(b"b").await.unwrap();
                    stream.read_exact(&mut [0]).await.unwrap();
                    stream
                });
            }
            // One waits at this moment, one comes afterwards.
            let (mut reader, mut writer) = stream.into_split();
            let waits = rt2.spawn(async move {
                let error = reader.read(&mut [0]).await.unwrap_err();
                (reader, error)
            });
            eventually("it waits", || {
                let tasks = rt2.handle().dump().tasks;
                tasks.iter().any(|task| task.activity == Activity::Waiting)
            });
            drop(rt1);
            let (mut reader, error) = rt2.block_on(waits).unwrap();
            assert!(
                error.to_string().contains(&format!("\"{name}\" is closed")),
                "{error}"
            );
            let error = rt2.block_on(async { reader.read(&mut [0]).await.unwrap_err() });
            assert!(error.to_string().contains(&name), "{error}");
            // What does not wait may still work; it must not hang or panic.
            let _ = rt2.block_on(async { writer.write(b"c").await });
            drop((reader, writer));
            echo.join().unwrap();
        }
    });
}

/// Destructors of futures find their runtime while it ends, and what they start says that it is closed.
#[test]
fn b11_destructors_may_use_the_runtime_while_it_ends() {
    struct Uses {
        seen: mpsc::Sender<Result<bool, String>>,
        socket: Option<UdpSocket>,
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let _ = Handle::current().name();
                let task = rt::spawn(async {});
                // Waits for nothing: it is refused, or it ran.
                drop(futures_lite::future::block_on(rt::spawn_blocking(|| ())));
                drop(sleep(MS));
                let mut timer = Box::pin(sleep(HOUR));
                // Polled, so that it is in a wheel; it may be told that there is none any more.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    timer
                        .as_mut()
                        .poll(&mut Context::from_waker(Waker::noop()))
                        .is_pending()
                }));
                drop(timer);
                drop(self.socket.take());
                task.is_finished()
            }));
            let outcome = outcome.map_err(|panic| {
                panic
                    .downcast_ref::<String>()
                    .cloned()
                    .unwrap_or_else(|| "no text".to_owned())
            });
            self.seen.send(outcome).unwrap();
        }
    }
    within_limit(|| {
        for runtime in each_kind() {
            let (seen, saw) = mpsc::channel();
            let (ready, begun) = mpsc::channel();
            for _ in 0..4 {
                let (seen, ready) = (seen.clone(), ready.clone());
                drop(runtime.spawn(async move {
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    let _uses = Uses {
                        seen,
                        socket: Some(UdpSocket::bind("127.0.0.1:0").await.unwrap()),
                    };
                    ready.send(()).unwrap();
                    socket.recv(&mut [0]).await.unwrap();
                }));
            }
            runtime.block_on(async {
                for _ in 0..4 {
                    while begun.try_recv().is_err() {
                        sleep(MS).await;
                    }
                }
            });
            drop(runtime);
            for _ in 0..4 {
                // The task is over at once, as closed.
                assert_eq!(saw.recv_timeout(LONG).unwrap(), Ok(true));
            }
        }
    });
}

/// The same of a root future: when it is done, when it panics, and when the runtime ends before it.
#[test]
fn b11_destructors_of_a_root_future_find_the_runtime() {
    struct Finds(Arc<AtomicUsize>);
    impl Drop for Finds {
        fn drop(&mut self) {
            if Handle::try_current().is_ok() {
                self.0.fetch_add(1, SeqCst);
            }
        }
    }
    /// Keeps its field until it is dropped, also after it was ready.
    struct Holds(
        #[expect(dead_code, reason = "kept for its destructor")] Finds,
        u32,
    );
    impl Future for Holds {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            self.1 += 1;
            match self.1 {
                1 => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        }
    }
    within_limit(|| {
        for runtime in each_kind() {
            let found = Arc::new(AtomicUsize::new(0));
            runtime.block_on(Holds(Finds(found.clone()), 0));
            assert_eq!(found.load(SeqCst), 1, "done");
            let panics = catch_unwind(AssertUnwindSafe(|| {
                let finds = Finds(found.clone());
                runtime.block_on(async {
                    let _inside = Finds(found.clone());
                    sleep(MS).await;
                    let _keep = &finds;
                    panic!("expected");
                });
            }));
            panics.unwrap_err();
            assert_eq!(found.load(SeqCst), 2, "panicked");
            let handle = runtime.handle().clone();
            let root = {
                let found = found.clone();
                handle.try_block_on(async move {
                    let _inside = Finds(found);
                    drop(runtime);
                    pending::<()>().await;
                })
            };
            assert!(root.unwrap_err().is_runtime_closed());
            assert_eq!(found.load(SeqCst), 3, "closed");
        }
    });
}

/// B12-like: whoever is waited for keeps no waker, and so no task, of a waiter that went away.
#[test]
fn b12_what_is_waited_for_forgets_a_waiter_that_is_aborted() {
    /// Spawns a task that waits by `wait`; aborts it; its payload is gone while what it waited for lives.
    async fn check<F, W>(what: &str, wait: W)
    where
        F: Future + Send + 'static,
        F::Output: Send,
        W: FnOnce() -> F,
    {
        let payload = Arc::new(());
        let weak: Weak<()> = Arc::downgrade(&payload);
        let future = wait();
        let begun = Arc::new(AtomicBool::new(false));
        let seen = begun.clone();
        let task = rt::spawn(async move {
            let _payload = payload;
            let mut future = Box::pin(future);
            std::future::poll_fn(|cx| {
                let poll = future.as_mut().poll(cx);
                begun.store(true, SeqCst);
                poll.map(drop)
            })
            .await;
        });
        while !seen.load(SeqCst) {
            rt::task::yield_now().await;
        }
        task.abort();
        let error = task.await.unwrap_err();
        assert!(error.is_aborted(), "{what}: {error}");
        let start = Instant::now();
        while weak.strong_count() > 0 {
            assert!(start.elapsed() < LONG, "{what} keeps the task");
            rt::task::yield_now().await;
        }
    }
    within_limit(|| {
        for runtime in each_kind() {
            let task = runtime.spawn(async {
                let forever = rt::spawn(pending::<()>());
                let abort = forever.abort_handle();
                check("a task", || async move { forever.await.unwrap() }).await;
                abort.abort();
                check("a timer", || sleep(HOUR)).await;
                let mut timer = Box::pin(sleep(HOUR));
                check("a timer that was polled before", || {
                    let _ = timer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    timer
                })
                .await;
                let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                let waits = socket.clone();
                check(
                    "recv of a socket",
                    || async move { waits.recv(&mut [0]).await },
                )
                .await;
                let waits = socket.clone();
                check(
                    "readable of a socket",
                    || async move { waits.readable().await },
                )
                .await;
                let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
                let waits = listener.clone();
                check("accept", || async move { waits.accept().await }).await;
                let (read, _write) = rt::io::duplex(1);
                check("a pipe in memory", || async move {
                    let mut read = read;
                    read.read(&mut [0]).await
                })
                .await;
                let (held, release) = mpsc::channel::<()>();
                let closure = rt::spawn_blocking(move || release.recv());
                check("a closure", || async move { closure.await.unwrap() }).await;
                drop(held);
                drop((socket, listener));
            });
            runtime.block_on(task).unwrap();
            eventually("no task is alive", || runtime.metrics().live_tasks == 0);
        }
    });
}

/// A poll that outlives its runtime, since there was no grace, goes on to timers: its task ends with the runtime, and does
/// not panic.
#[test]
fn b8_a_task_that_comes_to_a_timer_after_the_end_is_closed_and_does_not_panic() {
    type Wait = fn() -> Pin<Box<dyn Future<Output = ()> + Send>>;
    let waits: [(&str, Wait); 6] = [
        ("sleep", || Box::pin(sleep(HOUR))),
        ("boottime", || Box::pin(boottime::sleep(HOUR))),
        ("timeout", || {
            Box::pin(async {
                let _ = timeout(HOUR, pending::<()>()).await;
            })
        }),
        ("timeout_with", || {
            Box::pin(async {
                let _ = timeout_with(HOUR, |_| pending::<()>()).await;
            })
        }),
        ("interval", || {
            Box::pin(async {
                let mut ticks = interval(HOUR);
                ticks.tick().await;
                ticks.tick().await;
            })
        }),
        ("wait", || {
            Box::pin(async {
                let never = [Box::pin(pending::<Result<(), ()>>())];
                let _ = rt::wait(never, ReturnWhen::AllDone, HOUR).await;
            })
        }),
    ];
    within_limit(move || {
        for (name, wait) in waits {
            let runtime = workers(1);
            let ((tell, told), (end, ended)) = (mpsc::channel(), mpsc::channel());
            let task = runtime.spawn(async move {
                tell.send(()).unwrap();
                ended.recv().unwrap();
                wait().await;
            });
            told.recv().unwrap();
            runtime.shutdown_timeout(Duration::ZERO);
            end.send(()).unwrap();
            let error = futures_lite::future::block_on(task).unwrap_err();
            assert!(error.is_runtime_closed(), "{name}: {error:?}");
            // A loop of its own would wait for ever, and is told.
            let runtime = workers(1);
            let ((tell, told), (end, ended)) = (mpsc::channel(), mpsc::channel());
            let task = runtime.spawn(async move {
                tell.send(()).unwrap();
                ended.recv().unwrap();
                futures_lite::future::block_on(wait());
            });
            told.recv().unwrap();
            runtime.shutdown_timeout(Duration::ZERO);
            end.send(()).unwrap();
            let error = futures_lite::future::block_on(task).unwrap_err();
            assert!(error.is_panic(), "{name}: {error:?}");
        }
    });
}

/// Likewise the future of `block_on`, whose caller gets the error.
#[test]
fn b8_block_on_that_comes_to_a_timer_after_the_end_gives_the_error() {
    within_limit(|| {
        for runtime in each_kind() {
            let handle = runtime.handle().clone();
            let ((tell, told), (end, ended)) = (mpsc::channel(), mpsc::channel());
            let blocked = thread::spawn(move || {
                handle.try_block_on(async move {
                    tell.send(()).unwrap();
                    ended.recv().unwrap();
                    let _ = timeout(HOUR, sleep(HOUR)).await;
                })
            });
            told.recv().unwrap();
            runtime.shutdown_timeout(Duration::ZERO);
            end.send(()).unwrap();
            let error = blocked.join().unwrap().unwrap_err();
            assert!(error.is_runtime_closed(), "{error:?}");
        }
    });
}
