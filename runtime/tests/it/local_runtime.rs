//! `LocalSet` on a runtime: as its root, with timers, sockets, tasks of the runtime and blocking closures.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, Runtime, UnhandledPanic};
use rt::task::{LocalSet, spawn_local, yield_now};
use rt::time::sleep;

use crate::support::within_limit;

/// Runs the test on runtimes of 0, 1 and 3 workers.
fn on_each(test: fn(&Runtime)) {
    within_limit(move || {
        for workers in [0, 1, 3] {
            let runtime = match workers {
                0 => Builder::new_current_thread().build(),
                _ => Builder::new_multi_thread().worker_threads(workers).build(),
            };
            test(&runtime.expect("a runtime"));
        }
    });
}

#[test]
fn a_set_is_the_root_and_its_tasks_stay_on_the_thread() {
    on_each(|runtime| {
        let set = LocalSet::new();
        let here = thread::current().id();
        let count = Rc::new(Cell::new(0));
        set.block_on(runtime, async {
            let tasks: Vec<_> = (0..20)
                .map(|n| {
                    let count = count.clone();
                    spawn_local(async move {
                        sleep(Duration::from_millis(n % 5)).await;
                        assert_eq!(thread::current().id(), here);
                        // A task of the runtime, and a closure on its pool, wake this one from other threads.
                        let sum = rt::spawn(async move { n }).await.expect("no panic")
                            + rt::spawn_blocking(move || n).await.expect("no panic");
                        assert_eq!(thread::current().id(), here);
                        count.set(count.get() + sum);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        });
        assert_eq!(count.get(), 2 * 190);
    });
}

#[test]
fn block_on_of_the_set_itself_ends_with_its_last_task() {
    on_each(|runtime| {
        let set = LocalSet::new();
        let done = Rc::new(Cell::new(false));
        let to = done.clone();
        drop(set.spawn_local(async move {
            sleep(Duration::from_millis(2)).await;
            drop(spawn_local(async move {
                sleep(Duration::from_millis(2)).await;
                to.set(true);
            }));
        }));
        runtime.block_on(set);
        assert!(done.get());
    });
}

#[test]
fn sockets_work_inside_a_set() {
    on_each(|runtime| {
        let set = LocalSet::new();
        set.block_on(runtime, async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
            let address = listener.local_addr().expect("an address");
            let served = Rc::new(Cell::new(0));
            let count = served.clone();
            let server = spawn_local(async move {
                for _ in 0..5 {
                    let (mut stream, _) = listener.accept().await.expect("accept");
                    let count = count.clone();
                    drop(spawn_local(async move {
                        let mut buffer = [0; 4];
                        stream.read_exact(&mut buffer).await.expect("read");
                        stream.write_all(&buffer).await.expect("write");
                        count.set(count.get() + 1);
                    }));
                }
            });
            let clients: Vec<_> = (0..5_u8)
                .map(|n| {
                    spawn_local(async move {
                        let mut stream = TcpStream::connect(address).await.expect("connect");
                        stream.write_all(&[n; 4]).await.expect("write");
                        let mut buffer = [0; 4];
                        stream.read_exact(&mut buffer).await.expect("read");
                        assert_eq!(buffer, [n; 4]);
                    })
                })
                .collect();
            for client in clients {
                client.await.expect("no panic");
            }
            server.await.expect("no panic");
            assert_eq!(served.get(), 5);
        });
    });
}

#[test]
fn a_busy_set_leaves_timers_and_tasks_of_the_runtime_their_turns() {
    on_each(|runtime| {
        let set = LocalSet::new();
        set.block_on(runtime, async {
            for _ in 0..3 {
                drop(spawn_local(async {
                    loop {
                        yield_now().await;
                    }
                }));
            }
            sleep(Duration::from_millis(5)).await;
            let other = rt::spawn(async {
                sleep(Duration::from_millis(5)).await;
                1
            });
            assert_eq!(other.await.expect("no panic"), 1);
        });
    });
}

#[test]
fn an_abort_from_a_task_of_the_runtime() {
    on_each(|runtime| {
        let set = LocalSet::new();
        set.block_on(runtime, async {
            let task = spawn_local(async {
                let _not_send = Rc::new(());
                pending::<()>().await;
            });
            let abort = task.abort_handle();
            rt::spawn(async move { abort.abort() })
                .await
                .expect("no panic");
            assert!(task.await.is_err_and(|error| error.is_aborted()));
        });
    });
}

#[test]
fn the_runtime_goes_before_the_set() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let set = LocalSet::new();
        let task = set.spawn_local(sleep(Duration::from_secs(3600)));
        set.block_on(&runtime, yield_now());
        drop(runtime);
        drop(set);
        assert!(task.is_finished());
    });
}

#[test]
fn an_unhandled_panic_of_a_local_task_follows_the_policy_of_the_runtime() {
    within_limit(|| {
        let runtime = Builder::new_current_thread()
            .unhandled_panic(UnhandledPanic::ShutdownRuntime)
            .build()
            .expect("a runtime");
        let set = LocalSet::new();
        let root = catch_unwind(AssertUnwindSafe(|| {
            set.block_on(&runtime, async {
                drop(spawn_local(async { panic!("nobody looks") }));
                pending::<()>().await;
            });
        }));
        assert!(root.is_err());
    });
}

#[test]
fn task_locals_and_scopes_inside_a_set() {
    rt::task_local! {
        static REQUEST: u32;
    }
    on_each(|runtime| {
        let set = LocalSet::new();
        set.block_on(runtime, async {
            let tasks: Vec<_> = (0..10)
                .map(|n| {
                    spawn_local(REQUEST.scope(n, async move {
                        sleep(Duration::from_millis(1)).await;
                        assert_eq!(REQUEST.get(), n);
                        rt::spawn(REQUEST.scope(n + 1, async move {
                            yield_now().await;
                            REQUEST.get()
                        }))
                        .await
                        .expect("no panic")
                    }))
                })
                .collect();
            for (n, task) in (0..).zip(tasks) {
                assert_eq!(task.await.expect("no panic"), n + 1);
            }
        });
    });
}

/// A local task that blocks in place on work of its own set would wait for its own thread. tokio refuses any
/// `block_in_place` inside a set; here only what cannot end is refused, and says what to do.
#[test]
fn a_block_on_below_a_local_task_does_not_spawn_on_the_set_that_it_holds_up() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).build();
        let runtime = &runtime.expect("a runtime");
        let set = Rc::new(LocalSet::new());
        let own = set.clone();
        set.block_on(runtime, async move {
            let handle = rt::runtime::Handle::current();
            let task = spawn_local(async move {
                rt::task::block_in_place(|| {
                    // Not in the inner `block_on`: it runs when this task gives way.
                    let later = spawn_local(async { 1 });
                    let refused = handle.block_on(async {
                        catch_unwind(AssertUnwindSafe(|| drop(spawn_local(async {}))))
                    });
                    let message = refused.expect_err("a panic, not a task that waits for ever");
                    let message = *message.downcast_ref::<&str>().expect("text");
                    assert!(message.contains("run_until"), "{message}");
                    // Through the set itself the inner `block_on` runs it, and a set of its own does no harm.
                    let sum = handle.block_on(async {
                        let inner = LocalSet::new();
                        let on = async |set: &LocalSet, n| {
                            let task = async move { spawn_local(async move { n }).await };
                            set.run_until(task).await.expect("no panic")
                        };
                        on(&inner, 2).await + on(&own, 3).await
                    });
                    // As if it had been entered only.
                    let _entered = own.enter();
                    let entered =
                        handle.block_on(poll_fn(|_| Poll::Ready(spawn_local(async { 4 }))));
                    (later, entered, sum)
                })
            });
            let (later, entered, sum) = task.await.expect("no panic");
            let sum = sum + later.await.expect("no panic") + entered.await.expect("no panic");
            assert_eq!(sum, 10);
            drop(spawn_local(async {}));
        });
    });
}
