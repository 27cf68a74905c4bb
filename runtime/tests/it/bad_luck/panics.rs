//! Panics in destructors, wakers, hooks and tasks: whom they reach, and whom they do not.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;

use rt::net::UdpSocket;
use rt::runtime::{Builder, Handle, UnhandledPanic};
use rt::time::sleep;

use crate::pains_support::{MS, OnDrop, eventually};
use crate::support::within_limit;

/// Destructors that panic: of a future that is done, of one that is aborted, of one at the end of its runtime, of an
/// output nobody takes.
#[test]
fn panics_in_destructors_reach_no_innocent_caller() {
    struct Panics(Arc<AtomicUsize>);
    impl Drop for Panics {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            panic!("a destructor panics on purpose");
        }
    }
    within_limit(|| {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder
                .worker_threads(2)
                .unhandled_panic(UnhandledPanic::Ignore)
                .build()
                .unwrap();
            let drops = Arc::new(AtomicUsize::new(0));
            let count = drops.clone();
            let panics = move || Panics(count.clone());
            let (at_end, waits) = (panics(), panics());
            let done = runtime.spawn(async move {
                let _at_end = at_end;
            });
            runtime.block_on(async {
                // As in any function: a destructor that panics while the task runs is a panic of the task.
                assert!(done.await.unwrap_err().is_panic());
                let aborted = rt::spawn(async move {
                    let _waits = waits;
                    pending::<()>().await;
                });
                rt::task::yield_now().await;
                aborted.abort();
                assert!(aborted.await.unwrap_err().is_aborted());
                let output = panics();
                drop(rt::spawn(async move { output }));
                let output = panics();
                drop(rt::spawn_blocking(move || output));
                while drops.load(SeqCst) < 4 {
                    sleep(MS).await;
                }
                // The threads are all there still.
                for _ in 0..20 {
                    rt::spawn(async {}).await.unwrap();
                    rt::spawn_blocking(|| ()).await.unwrap();
                }
            });
            for _ in 0..5 {
                let waits = panics();
                drop(runtime.spawn(async move {
                    let _waits = waits;
                    pending::<()>().await;
                }));
            }
            let queued = panics();
            drop(runtime.spawn(async move {
                let _queued = queued;
            }));
            drop(runtime);
            assert_eq!(drops.load(SeqCst), 10);
        }
    });
}

/// Wakers that panic in their wake, and in their destructor: of a task's joiner, of a socket, of a timer, at any time and
/// at the end.
#[test]
fn panics_in_wakers_reach_no_innocent_caller() {
    struct Panics {
        wakes: Arc<AtomicUsize>,
        in_drop: bool,
    }
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, SeqCst);
            assert!(self.in_drop, "a waker panics on purpose");
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(
                !self.in_drop || thread::panicking(),
                "a waker's destructor panics on purpose"
            );
        }
    }
    within_limit(|| {
        for at_the_end in [false, true] {
            for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
                let runtime = builder
                    .worker_threads(1)
                    .unhandled_panic(UnhandledPanic::Ignore)
                    .build()
                    .unwrap();
                let entered = runtime.enter();
                let wakes = Arc::new(AtomicUsize::new(0));
                for in_drop in [false, true] {
                    let poll = |future: Pin<&mut dyn Future<Output = ()>>| {
                        let waker = Waker::from(Arc::new(Panics {
                            wakes: wakes.clone(),
                            in_drop,
                        }));
                        let pending = future.poll(&mut Context::from_waker(&waker)).is_pending();
                        // Ours is not the last one, else it is this thread that meets the panic.
                        let _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
                        assert!(pending);
                    };
                    let before = wakes.load(SeqCst);
                    let (release, released) = (
                        Arc::new(AtomicBool::new(false)),
                        Arc::new(AtomicBool::new(false)),
                    );
                    let seen = release.clone();
                    let mut joined = runtime.spawn(async move {
                        while !seen.load(SeqCst) {
                            sleep(MS).await;
                        }
                    });
                    let mut join = Box::pin(async { drop((&mut joined).await) });
                    poll(join.as_mut());
                    let mut timer =
                        Box::pin(sleep(if at_the_end { 1_000_000 * MS } else { 5 * MS }));
                    poll(timer.as_mut());
                    let socket = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
                    let mut recv = Box::pin(async { drop(socket.recv(&mut [0]).await) });
                    poll(recv.as_mut());
                    if !at_the_end {
                        release.store(true, SeqCst);
                        std::net::UdpSocket::bind("127.0.0.1:0")
                            .unwrap()
                            .send_to(b"x", socket.local_addr().unwrap())
                            .unwrap();
                        // On the current-thread flavour somebody has to be there.
                        runtime.block_on(async {
                            while wakes.load(SeqCst) < before + 3 {
                                sleep(MS).await;
                            }
                            // The loop goes on.
                            rt::spawn(sleep(MS)).await.unwrap();
                        });
                    } else {
                        std::mem::forget((timer, recv));
                        std::mem::forget(socket);
                    }
                    released.store(true, SeqCst);
                    drop(join);
                    drop(joined);
                }
                drop(entered);
                drop(runtime);
            }
        }
    });
}

/// A hook that panics, and one that spawns, cost no worker.
#[test]
fn hooks_may_spawn_and_may_panic() {
    within_limit(|| {
        for panics in [false, true] {
            for workers in [0, 2] {
                let mut builder = if workers == 0 {
                    Builder::new_current_thread()
                } else {
                    Builder::new_multi_thread()
                };
                let counts: [Arc<AtomicUsize>; 5] = std::array::from_fn(|_| Arc::default());
                let hook = |n: usize| {
                    let (count, ran) = (counts[n].clone(), counts[4].clone());
                    move || {
                        count.fetch_add(1, SeqCst);
                        if let Ok(handle) = Handle::try_current() {
                            // Not for ever: a task keeps the worker from its sleep, after which the hook is called.
                            if count.load(SeqCst) < 50 {
                                let ran = ran.clone();
                                handle.spawn(async move { ran.fetch_add(1, SeqCst) });
                            }
                        }
                        assert!(!panics, "a hook panics on purpose");
                    }
                };
                let runtime = builder
                    .worker_threads(workers)
                    .on_thread_start(hook(0))
                    .on_thread_stop(hook(1))
                    .on_thread_park(hook(2))
                    .on_thread_unpark(hook(3))
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    for _ in 0..5 {
                        sleep(MS).await;
                        rt::spawn(sleep(MS)).await.unwrap();
                        assert_eq!(rt::spawn_blocking(|| 4).await.unwrap(), 4);
                    }
                });
                let outside = runtime.spawn(async { sleep(MS).await });
                runtime.block_on(outside).unwrap();
                drop(runtime);
                let counts = counts.each_ref().map(|count| count.load(SeqCst));
                // Whatever started stops before the runtime is gone.
                assert!(counts[0] > workers, "{counts:?}");
                assert_eq!(counts[0], counts[1], "{counts:?}");
                assert!(counts[2] > 0 && counts[4] > 0, "{counts:?}");
            }
        }
    });
}

/// The policy that shuts the runtime down ends `block_on` with an error.
#[test]
fn an_unhandled_panic_shuts_the_runtime_down_if_told_so() {
    within_limit(|| {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            for kept in [false, true] {
                let runtime = builder
                    .worker_threads(2)
                    .unhandled_panic(UnhandledPanic::ShutdownRuntime)
                    .build()
                    .unwrap();
                let dropped = Arc::new(AtomicBool::new(false));
                let seen = dropped.clone();
                // Made here: the task may end before its first poll.
                let on_drop = OnDrop(move || seen.store(true, SeqCst));
                let other = runtime.spawn(async move {
                    let _on_drop = on_drop;
                    pending::<()>().await;
                });
                let mut keep = None;
                let ended = runtime.handle().try_block_on(async {
                    let task = rt::spawn(async { panic!("nobody hears of it") });
                    if kept {
                        // Reported after a grace, since nobody awaits it.
                        keep = Some(task);
                    } else {
                        drop(task);
                    }
                    pending::<()>().await;
                });
                assert!(ended.unwrap_err().is_runtime_closed());
                drop(runtime);
                assert!(
                    futures_lite::future::block_on(other)
                        .unwrap_err()
                        .is_runtime_closed()
                );
                eventually("the other task is dropped", || dropped.load(SeqCst));
            }
        }
    });
}

/// A panic that is retrieved in time shuts nothing down.
#[test]
fn a_retrieved_panic_is_nobody_elses_business() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .unhandled_panic(UnhandledPanic::ShutdownRuntime)
            .build()
            .unwrap();
        runtime.block_on(async {
            for _ in 0..20 {
                assert!(
                    rt::spawn(async { panic!("heard") })
                        .await
                        .unwrap_err()
                        .is_panic()
                );
            }
            sleep(1300 * MS).await;
            assert_eq!(rt::spawn(async { 5 }).await.unwrap(), 5);
        });
    });
}
