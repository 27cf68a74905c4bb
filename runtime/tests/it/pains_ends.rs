//! Shutdown, drop, cancellation: theme B of the known pains of async runtimes. What a child process has to say on
//! standard error is tested in `bad_luck_children.rs`.

use std::future::{Future, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::runtime::{Builder, Handle, Runtime};
use rt::task::JoinHandle;
use rt::time::sleep;

use crate::pains_support::{
    LONG, MS, Mailbox, OnDrop, current_thread, each_kind, eventually, workers,
};
use crate::support::within_limit;

const HOUR: Duration = Duration::from_secs(3600);

/// A closure that does not come back is left behind after the grace.
#[test]
fn b1_a_blocking_closure_does_not_hold_up_the_end() {
    within_limit(|| {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder
                .worker_threads(1)
                .shutdown_grace(50 * MS)
                .build()
                .unwrap();
            let (release, held) = mpsc::channel::<()>();
            let (started, begun) = mpsc::channel();
            let closure = runtime.spawn_blocking(move || {
                started.send(()).unwrap();
                let _ = held.recv();
                5
            });
            begun.recv().unwrap();
            let start = Instant::now();
            drop(runtime);
            let took = start.elapsed();
            assert!((50 * MS..LONG).contains(&took), "{took:?}");
            // It runs on, and its handle works.
            drop(release);
            assert_eq!(futures_lite::future::block_on(closure).unwrap(), 5);
        }
    });
}

#[test]
fn b1_shutdown_timeout_and_background_end_in_their_time() {
    within_limit(|| {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let with_closure = || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .shutdown_grace(HOUR)
                .build()
                .unwrap();
            let held = held.clone();
            let (started, begun) = mpsc::channel();
            drop(runtime.spawn_blocking(move || {
                started.send(()).unwrap();
                let _ = held.lock().unwrap().recv();
            }));
            begun.recv().unwrap();
            runtime
        };
        with_closure().shutdown_timeout(20 * MS);
        with_closure().shutdown_timeout(Duration::ZERO);
        with_closure().shutdown_background();
        drop(release);
    });
}

/// A runtime made and dropped inside async code of another one, and of itself: in a task, in a root future, while
/// unwinding. Nothing panics, and what was on its way arrives.
#[test]
fn b2_a_runtime_may_be_dropped_anywhere() {
    within_limit(|| {
        for outer in each_kind() {
            let handle = outer.spawn(async {
                for inner in each_kind() {
                    drop(inner);
                }
                // With a task that waits.
                let inner = workers(1);
                let task = inner.spawn(pending::<()>());
                drop(inner);
                assert!(task.await.unwrap_err().is_runtime_closed());
                7
            });
            outer.block_on(async {
                drop(workers(1));
                drop(current_thread());
                assert_eq!(handle.await.unwrap(), 7);
                let unwinding = rt::spawn(async {
                    let _inner = workers(1);
                    panic!("the real error");
                });
                let error = unwinding.await.unwrap_err();
                assert_eq!(error.into_panic().downcast_ref(), Some(&"the real error"));
                rt::spawn_blocking(|| drop(workers(1))).await.unwrap();
            });
            let real = catch_unwind(AssertUnwindSafe(|| {
                outer.block_on(async {
                    let _inner = workers(1);
                    let _other = current_thread();
                    panic!("the root's error");
                });
            }));
            assert_eq!(real.unwrap_err().downcast_ref(), Some(&"the root's error"));
            // The outer one works on.
            assert_eq!(
                outer.block_on(async { rt::spawn(async { 3 }).await.unwrap() }),
                3
            );
        }
    });
}

#[test]
fn b2_a_runtime_may_be_dropped_by_its_own_task_and_its_own_root_future() {
    within_limit(|| {
        for runtime in each_kind() {
            let runtime = Arc::new(runtime);
            let handle = runtime.handle().clone();
            let (go, going) = mpsc::channel::<()>();
            let own = runtime.clone();
            let task = handle.spawn(async move {
                going.recv().unwrap();
                // The last reference.
                drop(own);
                5
            });
            let waiting = handle.spawn(pending::<()>());
            drop(runtime);
            go.send(()).unwrap();
            // The poll in which it happened is the task's last, and brings its output.
            let ended = handle
                .try_block_on(async { task.await.map_err(|error| error.is_runtime_closed()) });
            match ended {
                Ok(output) => assert_eq!(output, Ok(5)),
                Err(error) => assert!(error.is_runtime_closed(), "{error}"),
            }
            assert!(
                futures_lite::future::block_on(waiting)
                    .unwrap_err()
                    .is_runtime_closed()
            );
        }
        // Below `block_in_place` of its own task it does not wait for itself.
        for pinned in [false, true] {
            let runtime = workers(1);
            let handle = runtime.handle().clone();
            let (go, going) = mpsc::channel();
            let (gone, went) = mpsc::channel();
            let body = move || async move {
                let runtime: Runtime = going.recv().unwrap();
                rt::block_in_place(|| {
                    let start = Instant::now();
                    drop(runtime);
                    gone.send(start.elapsed()).unwrap();
                });
            };
            let task = if pinned {
                handle.spawn_pinned(0, body).unwrap()
            } else {
                handle.spawn(body())
            };
            go.send(runtime).unwrap();
            assert!(went.recv_timeout(LONG).unwrap() < 1900 * MS);
            let _ = futures_lite::future::block_on(task);
        }
        for runtime in each_kind() {
            let handle = runtime.handle().clone();
            let root = handle.try_block_on(async move {
                drop(runtime);
                // Ends here or at the next wait.
                sleep(HOUR).await;
            });
            assert!(root.unwrap_err().is_runtime_closed());
        }
    });
}

/// Tasks that block in place on a nested loop: the end reaches them.
#[test]
fn b3_nested_loops_end_with_their_runtime() {
    within_limit(|| {
        let runtime = workers(2);
        let entered = Arc::new(AtomicUsize::new(0));
        let (ended, ends) = mpsc::channel();
        for n in 0..8 {
            let (entered, ended) = (entered.clone(), ended.clone());
            drop(runtime.spawn(async move {
                let wait = async {
                    entered.fetch_add(1, SeqCst);
                    sleep(HOUR).await;
                };
                let result = if n % 2 == 0 {
                    rt::try_bridge(wait)
                } else {
                    let handle = Handle::current();
                    rt::block_in_place(|| handle.try_block_on(wait))
                };
                ended.send(result.unwrap_err().to_string()).unwrap();
            }));
        }
        eventually("eight nested loops run", || entered.load(SeqCst) == 8);
        let name = runtime.handle().name().to_owned();
        let start = Instant::now();
        runtime.shutdown_timeout(LONG / 2);
        assert!(start.elapsed() < LONG / 2, "it waited for the whole time");
        for _ in 0..8 {
            let error = ends.recv_timeout(LONG).unwrap();
            assert!(error.contains(&format!("'{name}' is closed")), "{error}");
        }
    });
}

/// A task blocks until another one's future is dropped, which the end of the runtime does.
#[test]
fn b4_a_task_that_waits_for_anothers_destructor_does_not_hold_up_the_end() {
    within_limit(|| {
        for round in 0..300 {
            let runtime = workers(1 + round % 2);
            let (sender, receiver) = mpsc::channel::<()>();
            let blocked = Arc::new(AtomicBool::new(false));
            let b = runtime.spawn(async move {
                let _sender = sender;
                pending::<()>().await;
            });
            let a = runtime.spawn({
                let blocked = blocked.clone();
                async move {
                    rt::block_in_place(|| {
                        blocked.store(true, SeqCst);
                        receiver.recv().unwrap_err();
                    });
                }
            });
            // Every other round the end comes at any moment.
            while round % 4 < 2 && !blocked.load(SeqCst) {
                thread::yield_now();
            }
            let start = Instant::now();
            drop(runtime);
            // The grace is 2 s: it must not be needed.
            let took = start.elapsed();
            assert!(took < 1900 * MS, "round {round} took {took:?}");
            assert!(
                futures_lite::future::block_on(b)
                    .unwrap_err()
                    .is_runtime_closed()
            );
            if let Err(error) = futures_lite::future::block_on(a) {
                assert!(error.is_runtime_closed());
            }
        }
    });
}

/// As above, but the task blocks only after the runtime has begun to close, when no seat is lent any more.
#[test]
fn b4_blocking_in_place_after_the_end_has_begun() {
    within_limit(|| {
        let runtime = workers(1);
        let (sender, receiver) = mpsc::channel::<()>();
        let b = runtime.spawn(async move {
            let _sender = sender;
            pending::<()>().await;
        });
        let (started, begun) = mpsc::channel();
        let a = runtime.spawn(async move {
            started.send(()).unwrap();
            while !is_closed() {
                thread::sleep(MS);
            }
            rt::block_in_place(|| receiver.recv().unwrap_err());
        });
        fn is_closed() -> bool {
            // A task of a closed runtime is over at once.
            let task = rt::spawn(pending::<()>());
            let closed = task.is_finished();
            task.abort();
            closed
        }
        begun.recv().unwrap();
        let start = Instant::now();
        drop(runtime);
        let took = start.elapsed();
        assert!(took < 1900 * MS, "{took:?}");
        futures_lite::future::block_on(a).unwrap();
        assert!(
            futures_lite::future::block_on(b)
                .unwrap_err()
                .is_runtime_closed()
        );
    });
}

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
            thread::sleep(5 * MS);
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

/// Spawns, wakes, aborts and ends of runtimes at random: each future is dropped, each handle answers.
#[test]
fn b4_the_end_may_come_at_any_moment() {
    within_limit(|| {
        for round in 0..60u32 {
            let runtime: Runtime = if round % 4 == 0 {
                current_thread()
            } else {
                workers(1 + round as usize % 3)
            };
            let alive = Arc::new(AtomicUsize::new(0));
            let tracked = {
                let alive = alive.clone();
                move || {
                    alive.fetch_add(1, SeqCst);
                    let alive = alive.clone();
                    OnDrop(move || {
                        alive.fetch_sub(1, SeqCst);
                    })
                }
            };
            let stop = Arc::new(AtomicBool::new(false));
            let spawners: Vec<_> = (0..2)
                .map(|_| {
                    let (handle, tracked, stop) =
                        (runtime.handle().clone(), tracked.clone(), stop.clone());
                    thread::spawn(move || {
                        let mut handles = Vec::new();
                        while !stop.load(SeqCst) {
                            for kind in 0..4 {
                                let guard = tracked();
                                handles.push(handle.spawn(async move {
                                    let _guard = guard;
                                    match kind {
                                        0 => rt::task::yield_now().await,
                                        1 => sleep(MS).await,
                                        2 => drop(rt::spawn(sleep(HOUR))),
                                        _ => pending().await,
                                    }
                                }));
                            }
                            let guard = tracked();
                            drop(handle.spawn_blocking(move || drop(guard)));
                            if handles.len() > 200 {
                                handles.drain(..100).for_each(|task| task.abort());
                            }
                            thread::sleep(50 * Duration::from_micros(1));
                        }
                        handles
                    })
                })
                .collect();
            runtime.block_on(sleep(Duration::from_micros(u64::from(round) * 50)));
            if round % 3 == 0 {
                runtime.shutdown_background()
            } else {
                drop(runtime)
            }
            stop.store(true, SeqCst);
            for handle in spawners
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
            {
                if let Err(error) = futures_lite::future::block_on(handle) {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
            eventually("every future is dropped", || alive.load(SeqCst) == 0);
        }
    });
}
