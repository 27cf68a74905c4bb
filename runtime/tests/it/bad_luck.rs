//! Bad input and bad luck inside one process: wrong places for `block_on`, panics in destructors and wakers, enormous
//! and endless things.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use rt::net::UdpSocket;
use rt::runtime::{Builder, Handle, UnhandledPanic};
use rt::time::{sleep, timeout};

use crate::pains_support::{LONG, MS, OnDrop, current_thread, each_kind, eventually, workers};
use crate::support::within_limit;

fn text(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or_else(|| "no text".to_owned(), ToString::to_string),
    }
}

/// `block_on` in async code is an error that says what to do instead, on either flavour, of whatever runtime.
#[test]
fn block_on_inside_a_task_says_what_to_do() {
    within_limit(|| {
        let other = workers(1);
        for runtime in each_kind() {
            let check = |error: String, name: &str| {
                for word in [name, ".await", "rt::bridge", "spawn_blocking"] {
                    assert!(error.contains(word), "{error:?} does not say {word:?}");
                }
            };
            for handle in [runtime.handle().clone(), other.handle().clone()] {
                let name = handle.name().to_owned();
                // In the root future.
                runtime.block_on(async {
                    let error = handle.try_block_on(async {}).unwrap_err();
                    assert!(error.is_nested() && !error.is_runtime_closed());
                    check(error.to_string(), &name);
                });
                // In a task, as a panic.
                let task = runtime.spawn(async move { handle.block_on(async {}) });
                let error = runtime.block_on(task).unwrap_err();
                check(text(error.into_panic()), &name);
            }
            // In a blocking closure it is right.
            let handle = runtime.handle().clone();
            let closure = runtime.spawn_blocking(move || handle.block_on(async { 5 }));
            assert_eq!(runtime.block_on(closure).unwrap(), 5);
        }
    });
}

#[test]
fn block_in_place_and_bridge_in_a_task_of_the_current_thread_flavour_say_what_to_do() {
    within_limit(|| {
        let runtime = current_thread();
        runtime.block_on(async {
            for n in 0..2 {
                let task = rt::spawn(async move {
                    if n == 0 {
                        rt::block_in_place(|| ())
                    } else {
                        rt::bridge(async {})
                    }
                });
                let error = text(task.await.unwrap_err().into_panic());
                assert!(error.contains("spawn_blocking"), "{error}");
            }
        });
        // Outside a task both just work.
        let _entered = runtime.enter();
        assert_eq!(rt::block_in_place(|| 1), 1);
        assert_eq!(rt::bridge(async { 2 }), 2);
    });
}

#[test]
fn without_a_runtime_the_text_says_what_to_do() {
    within_limit(|| {
        for attempt in 0..4 {
            let panic = catch_unwind(|| match attempt {
                0 => drop(rt::spawn(async {})),
                1 => drop(rt::spawn_blocking(|| ())),
                2 => drop(Handle::current()),
                _ => rt::bridge(async {}),
            });
            let text = text(panic.unwrap_err());
            assert!(
                text.contains("no rt runtime") && text.contains("enter()"),
                "{text}"
            );
        }
        assert!(Handle::try_current().is_err());
        // This needs none.
        assert_eq!(rt::block_in_place(|| 3), 3);
    });
}

/// A closed runtime answers everything with its name or "runtime closed".
#[test]
fn a_handle_of_a_closed_runtime_answers() {
    within_limit(|| {
        for runtime in each_kind() {
            let (handle, name) = (runtime.handle().clone(), runtime.handle().name().to_owned());
            drop(runtime);
            let error = handle.try_block_on(async {}).unwrap_err();
            assert!(
                error.is_runtime_closed() && error.to_string().contains(&name),
                "{error}"
            );
            let panic = catch_unwind(AssertUnwindSafe(|| handle.block_on(async {}))).unwrap_err();
            assert!(text(panic).contains(&name));
            assert!(
                futures_lite::future::block_on(handle.spawn(async {}))
                    .unwrap_err()
                    .is_runtime_closed()
            );
            assert!(handle.spawn_pinned(0, || async {}).is_err());
            let _ = (handle.metrics(), handle.id(), format!("{handle:?}"));
            // Entered, it says the same: no hang, no other runtime.
            let _entered = handle.enter();
            assert!(
                futures_lite::future::block_on(rt::spawn(async {}))
                    .unwrap_err()
                    .is_runtime_closed()
            );
            assert!(
                futures_lite::future::block_on(rt::spawn_compute(|| ()))
                    .unwrap_err()
                    .is_runtime_closed()
            );
            let receives = async {
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                socket.recv(&mut [0]).await.unwrap_err().to_string()
            };
            assert!(futures_lite::future::block_on(receives).contains(&name));
            assert!(rt::try_bridge(async {}).unwrap_err().is_runtime_closed());
        }
    });
}

/// A socket and a task that are used after their runtime's end, from plain threads.
#[test]
fn what_waits_on_a_runtime_that_ends_is_told() {
    within_limit(|| {
        for runtime in each_kind() {
            let handle = runtime.handle().clone();
            let name = handle.name().to_owned();
            let (begun, waiting) = mpsc::channel();
            // A foreign executor waits for a socket of the runtime, another thread in `block_on` for a task of it.
            let foreign = thread::spawn({
                let (handle, begun) = (handle.clone(), begun.clone());
                move || {
                    let _entered = handle.enter();
                    futures_lite::future::block_on(async {
                        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                        begun.send(()).unwrap();
                        socket.recv(&mut [0]).await.unwrap_err().to_string()
                    })
                }
            });
            let blocked = thread::spawn(move || {
                handle.try_block_on(async {
                    begun.send(()).unwrap();
                    rt::spawn(pending::<()>())
                        .await
                        .unwrap_err()
                        .is_runtime_closed()
                })
            });
            waiting.recv().unwrap();
            waiting.recv().unwrap();
            thread::sleep(5 * MS);
            drop(runtime);
            let error = foreign.join().unwrap();
            assert!(error.contains(&name), "{error}");
            match blocked.join().unwrap() {
                Ok(closed) => assert!(closed),
                Err(error) => assert!(error.is_runtime_closed()),
            }
        }
    });
}

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

/// A runtime that lives in a thread-local variable ends with its thread; others are used while locals go.
#[test]
fn a_runtime_in_a_thread_local_ends_with_its_thread() {
    struct InLocal(Option<rt::runtime::Runtime>, mpsc::Sender<bool>);
    impl Drop for InLocal {
        fn drop(&mut self) {
            let runtime = self.0.take().unwrap();
            let works = catch_unwind(AssertUnwindSafe(|| {
                let task = runtime.spawn(async { 5 });
                let handle = runtime.handle().clone();
                let _ = handle.metrics();
                task.abort();
                // The thread's locals may be gone already: then `block_on` gives an error, and does not abort.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(handle.try_block_on(async { 6 }))));
                let waits = runtime.spawn(pending::<()>());
                drop(runtime);
                waits.is_finished()
            }));
            self.1.send(works.unwrap_or(false)).unwrap();
        }
    }
    thread_local! {
        static LOCAL: std::cell::RefCell<Option<InLocal>> = const { std::cell::RefCell::new(None) };
    }
    within_limit(|| {
        for used_before in [false, true] {
            for runtime in each_kind() {
                let (send, works) = mpsc::channel();
                let thread = thread::spawn(move || {
                    if used_before {
                        // Whichever locals are used first go last.
                        runtime.block_on(async { rt::spawn(sleep(MS)).await.unwrap() });
                    }
                    LOCAL.set(Some(InLocal(Some(runtime), send)));
                    if !used_before {
                        LOCAL.with_borrow(|local| {
                            local
                                .as_ref()
                                .unwrap()
                                .0
                                .as_ref()
                                .unwrap()
                                .block_on(sleep(MS));
                        });
                    }
                });
                thread.join().unwrap();
                assert!(works.recv_timeout(LONG).unwrap());
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

/// Worker counts that make no sense, names and stacks that do not work.
#[test]
fn nonsense_in_the_builder_is_an_error() {
    within_limit(|| {
        for number in [0, 1_000_000_000, usize::MAX] {
            let error = Builder::new_multi_thread()
                .worker_threads(number)
                .build()
                .unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("worker_threads is {number}")),
                "{error}"
            );
        }
        // A name that no thread can have.
        let built = catch_unwind(|| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("with\0nul")
                .build()
        });
        if let Ok(Ok(runtime)) = built {
            runtime.block_on(async { rt::spawn(async {}).await.unwrap() });
        }
        // More stack than there is memory for addresses.
        let error = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(usize::MAX / 2)
            .build();
        assert!(error.is_err());
        let small = Builder::new_current_thread()
            .thread_stack_size(1)
            .max_blocking_threads(0)
            .build()
            .unwrap();
        assert_eq!(
            small
                .block_on(async { rt::spawn_blocking(|| 1).await })
                .unwrap(),
            1
        );
    });
}

/// Two sleeps of the longest length beside ordinary work, in a timeout that nobody can represent.
#[test]
fn enormous_durations_everywhere() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                let mut ticks = rt::time::interval(Duration::MAX);
                ticks.tick().await;
                assert!(timeout(5 * MS, ticks.tick()).await.is_err());
                assert!(
                    timeout(5 * MS, timeout(Duration::MAX, sleep(Duration::MAX)))
                        .await
                        .is_err()
                );
            });
            runtime.shutdown_timeout(Duration::MAX);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .shutdown_grace(Duration::MAX)
            .thread_keep_alive(Duration::MAX)
            .build()
            .unwrap();
        runtime.block_on(async { rt::spawn_blocking(|| ()).await.unwrap() });
        drop(runtime);
    });
}

/// A task that is polled for the first time after its runtime's end never runs.
#[test]
fn nothing_runs_after_the_end() {
    within_limit(|| {
        for runtime in each_kind() {
            let ran = Arc::new(AtomicBool::new(false));
            let handle = runtime.handle().clone();
            drop(runtime);
            for n in 0..3 {
                let ran = ran.clone();
                let body = move || ran.store(true, SeqCst);
                match n {
                    0 => drop(handle.spawn(async move { body() })),
                    1 => drop(handle.spawn_blocking(body)),
                    _ => drop(handle.try_block_on(async move { body() })),
                }
            }
            struct Dropped(Arc<AtomicBool>);
            impl Future for Dropped {
                type Output = ();
                fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                    self.0.store(true, SeqCst);
                    Poll::Ready(())
                }
            }
            drop(handle.spawn(Dropped(ran.clone())));
            assert!(!ran.load(SeqCst));
        }
    });
}
