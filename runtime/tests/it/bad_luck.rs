//! Bad input and bad luck inside one process: wrong places for `block_on`, panics in destructors and wakers, enormous
//! and endless things.

mod panics;

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use rt::net::UdpSocket;
use rt::runtime::{Builder, Handle};
use rt::time::{sleep, timeout};

use crate::pains_support::{LONG, MS, current_thread, each_kind, eventually, workers};
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
            eventually("the socket and the task are waited for", || {
                let metrics = runtime.metrics();
                (metrics.registrations, metrics.live_tasks) == (1, 1)
            });
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
