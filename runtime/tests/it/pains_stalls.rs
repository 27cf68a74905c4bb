//! Stalls and starvation: theme A of the known pains of async runtimes. Each test carries the number of its pain.

use std::future::{Future, pending, poll_fn};
use std::io::{Read, Write};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::StreamExt;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::Builder;
use rt::task::yield_now;
use rt::time::{interval, sleep, timeout};

use crate::pains_support::{
    LONG, MS, Mailbox, asleep, blocking_waker, current_thread, each_kind, eventually, workers,
};
use crate::support::within_limit;

/// A seat full of tasks that only yield still looks at its sockets and timers.
#[test]
fn a3_yielding_tasks_starve_neither_sockets_nor_timers() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            let stop = Arc::new(AtomicBool::new(false));
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let rounds = 20;
            let client = thread::spawn(move || {
                (0..rounds)
                    .map(|_| {
                        let start = Instant::now();
                        let mut stream = std::net::TcpStream::connect(addr).unwrap();
                        stream.write_all(b"x").unwrap();
                        stream.read_exact(&mut [0]).unwrap();
                        start.elapsed()
                    })
                    .min()
                    .unwrap()
            });
            let late = runtime.block_on({
                let stop = stop.clone();
                async move {
                    // One task spawns all, so that they are on one seat.
                    rt::spawn(async move {
                        for _ in 0..1000 {
                            let stop = stop.clone();
                            rt::spawn(async move {
                                while !stop.load(SeqCst) {
                                    yield_now().await;
                                }
                            });
                        }
                        let server = rt::spawn(async move {
                            let listener = TcpListener::from_std(listener).unwrap();
                            for _ in 0..rounds {
                                let (mut stream, _) = listener.accept().await.unwrap();
                                stream.read_exact(&mut [0]).await.unwrap();
                                stream.write_all(b"y").await.unwrap();
                            }
                        });
                        let mut least_late = Duration::MAX;
                        for _ in 0..rounds {
                            let start = Instant::now();
                            sleep(5 * MS).await;
                            least_late = least_late.min(start.elapsed() - 5 * MS);
                        }
                        server.await.unwrap();
                        stop.store(true, SeqCst);
                        least_late
                    })
                    .await
                    .unwrap()
                }
            });
            // The best of twenty, since the machine has other work: a seat that starves them is late every time.
            let answered = client.join().unwrap();
            assert!(late < 50 * MS, "the most punctual timer was {late:?} late");
            assert!(answered < 200 * MS, "the fastest answer took {answered:?}");
        }
    });
}

/// The same of a root future that only yields, whether its polls are short or long.
#[test]
fn a3_a_yielding_root_future_starves_neither_sockets_nor_tasks() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            for poll in [Duration::ZERO, MS / 5] {
                let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                let addr = listener.local_addr().unwrap();
                let done = Arc::new(AtomicBool::new(false));
                let set = done.clone();
                let client = thread::spawn(move || {
                    let mut client = std::net::TcpStream::connect(addr).unwrap();
                    for _ in 0..20 {
                        client.write_all(b"x").unwrap();
                        client.read_exact(&mut [0]).unwrap();
                    }
                    set.store(true, SeqCst);
                });
                let server = listener.accept().unwrap().0;
                runtime.block_on(async {
                    let mut server = TcpStream::from_std(server).unwrap();
                    let mut echo = Box::pin(async move {
                        let mut byte = [0];
                        while server.read_exact(&mut byte).await.is_ok() {
                            server.write_all(&byte).await.unwrap();
                        }
                    });
                    // Its socket may be registered with the seat of this thread.
                    let _ = poll_fn(|cx| Poll::Ready(echo.as_mut().poll(cx))).await;
                    rt::spawn(echo);
                    while !done.load(SeqCst) {
                        let end = Instant::now() + poll;
                        while Instant::now() < end {
                            std::hint::spin_loop();
                        }
                        yield_now().await;
                    }
                });
                client.join().unwrap();
            }
        }
    });
}

/// An event and a task that it spawns, on a worker that nothing else would wake.
#[test]
fn a4_work_made_by_an_event_is_done_without_another_wake() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = listener.local_addr().unwrap();
                let client = thread::spawn(move || {
                    let mut stream = std::net::TcpStream::connect(addr).unwrap();
                    for _ in 0..300 {
                        stream.write_all(b"x").unwrap();
                        stream.read_exact(&mut [0]).unwrap();
                    }
                });
                rt::spawn(async move {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (mut read, write) = stream.into_split();
                    let write = Arc::new(write);
                    for _ in 0..300 {
                        read.read_exact(&mut [0]).await.unwrap();
                        let write = write.clone();
                        // Not awaited: only the turn that follows the event can do it.
                        rt::spawn(async move {
                            assert_eq!(write.try_write(b"y").unwrap(), 1);
                        });
                    }
                })
                .await
                .unwrap();
                rt::spawn_blocking(|| client.join().unwrap()).await.unwrap();
            });
        }
    });
}

/// A task wakes another, which lies in the next slot where no thief reaches it, and goes on computing.
#[test]
fn a6_the_next_slot_is_rescued_from_a_task_that_computes() {
    within_limit(|| {
        let runtime = workers(2);
        let quickest = (0..5)
            .map(|_| {
                let started = Arc::new(AtomicBool::new(false));
                let (wake, seen) = (Mailbox::new(), started.clone());
                let b = runtime.spawn({
                    let wake = wake.clone();
                    async move {
                        wake.recv().await;
                        started.store(true, SeqCst);
                    }
                });
                let a = runtime.spawn(async move {
                    // B waits by now, or its message does.
                    sleep(5 * MS).await;
                    wake.send(());
                    let start = Instant::now();
                    while !seen.load(SeqCst) {
                        assert!(start.elapsed() < LONG, "B did not start while A computed");
                        std::hint::spin_loop();
                    }
                    start.elapsed()
                });
                runtime.block_on(async {
                    b.await.unwrap();
                    a.await.unwrap()
                })
            })
            .min()
            .unwrap();
        assert!(quickest < 50 * MS, "B started after {quickest:?} at best");
    });
}

/// Two tasks that keep waking each other, and a third that wants to run once.
#[test]
fn a7_two_tasks_that_wake_each_other_let_a_third_run() {
    within_limit(|| {
        for outside in [false, true] {
            for runtime in [current_thread(), workers(1)] {
                let (ping, pong) = (Mailbox::new(), Mailbox::new());
                let stop = Arc::new(AtomicBool::new(false));
                let pair = |from: &Mailbox<()>, to: &Mailbox<()>| {
                    let (from, to, stop) = (from.clone(), to.clone(), stop.clone());
                    async move {
                        while !stop.load(SeqCst) {
                            from.recv().await;
                            to.send(());
                        }
                        // The other one may have begun to wait when this one had not begun at all.
                        to.send(());
                    }
                };
                let (a, b) = (pair(&ping, &pong), pair(&pong, &ping));
                ping.send(());
                let third = {
                    let stop = stop.clone();
                    async move { stop.store(true, SeqCst) }
                };
                let handle = runtime.handle().clone();
                runtime.block_on(async move {
                    rt::spawn(async move {
                        let (a, b) = (rt::spawn(a), rt::spawn(b));
                        let c = if outside {
                            thread::spawn(move || handle.spawn(third)).join().unwrap()
                        } else {
                            rt::spawn(third)
                        };
                        c.await.unwrap();
                        a.await.unwrap();
                        b.await.unwrap();
                    })
                    .await
                    .unwrap();
                });
            }
        }
    });
}

/// A task fills its own worker's queue and then keeps the worker: plainly, in place, and in a nested loop.
#[test]
fn a9_tasks_of_a_worker_that_blocks_are_run_by_others() {
    fn fill() -> Arc<AtomicUsize> {
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let done = done.clone();
            rt::spawn(async move {
                yield_now().await;
                done.fetch_add(1, SeqCst);
            });
        }
        done
    }
    fn wait(done: &AtomicUsize) {
        eventually("100 tasks run elsewhere", || done.load(SeqCst) == 100);
    }
    within_limit(|| {
        let two = workers(2);
        let plain = two.spawn(async { wait(&fill()) });
        two.block_on(plain).unwrap();
        // With one worker a stand-in has to do it.
        for runtime in [workers(1), two] {
            let in_place = runtime.spawn(async {
                let done = fill();
                rt::block_in_place(|| wait(&done));
            });
            runtime.block_on(in_place).unwrap();
            let nested = runtime.spawn(async {
                let done = fill();
                rt::bridge(async {
                    while done.load(SeqCst) < 100 {
                        sleep(MS).await;
                    }
                });
            });
            runtime.block_on(nested).unwrap();
            // The root future as well.
            runtime.block_on(async {
                let done = fill();
                rt::block_in_place(|| wait(&done));
            });
        }
    });
}

/// An always-ready loop beside a ticker in one task: a combinator that takes turns ends, and so does a timeout.
#[test]
fn a10_a_loop_that_is_always_ready_does_not_hide_a_ticker() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            let task = runtime.spawn(async {
                let stop = AtomicBool::new(false);
                let mut busy = pin!(async {
                    while !stop.load(SeqCst) {
                        rt::task::consume_budget().await;
                    }
                });
                let mut ticker = pin!(async {
                    let mut ticks = interval(10 * MS);
                    for _ in 0..10 {
                        ticks.tick().await;
                    }
                    stop.store(true, SeqCst);
                });
                let (mut turn, mut ended) = (0u32, [false; 2]);
                poll_fn(|cx| {
                    turn += 1;
                    for n in [turn % 2, 1 - turn % 2] {
                        if ended[n as usize] {
                            continue;
                        }
                        let poll = if n == 0 {
                            busy.as_mut().poll(cx)
                        } else {
                            ticker.as_mut().poll(cx)
                        };
                        ended[n as usize] = poll.is_ready();
                        if !rt::task::coop::budget_left() {
                            // Nothing else could make progress in this poll.
                            cx.waker().wake_by_ref();
                            break;
                        }
                    }
                    if ended == [true; 2] {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                // The timeout has a way of its own around a spent budget.
                let endless = async {
                    loop {
                        rt::task::consume_budget().await;
                    }
                };
                assert!(timeout(20 * MS, endless).await.is_err());
            });
            runtime.block_on(task).unwrap();
        }
    });
}

/// A hook that makes work before each sleep does not keep the worker from its selector.
#[test]
fn a12_a_park_hook_that_spawns_does_not_starve_sockets() {
    within_limit(|| {
        let no_ops = Arc::new(AtomicU64::new(0));
        for workers in [0, 1, 2] {
            let handle: Arc<std::sync::OnceLock<rt::runtime::Handle>> = Arc::default();
            let mut builder = if workers == 0 {
                Builder::new_current_thread()
            } else {
                Builder::new_multi_thread()
            };
            let (hooked, count) = (handle.clone(), no_ops.clone());
            let runtime = builder
                .worker_threads(workers)
                .on_thread_park(move || {
                    if let Some(handle) = hooked.get() {
                        let count = count.clone();
                        handle.spawn(async move { count.fetch_add(1, SeqCst) });
                    }
                })
                .build()
                .unwrap();
            handle.set(runtime.handle().clone()).unwrap();
            let before = no_ops.load(SeqCst);
            let task = runtime.spawn(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = listener.local_addr().unwrap();
                let server = rt::spawn(async move {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    for _ in 0..300 {
                        stream.read_exact(&mut [0]).await.unwrap();
                        stream.write_all(b"y").await.unwrap();
                    }
                });
                let mut stream = TcpStream::connect(addr).await.unwrap();
                for _ in 0..300 {
                    stream.write_all(b"x").await.unwrap();
                    stream.read_exact(&mut [0]).await.unwrap();
                }
                server.await.unwrap();
                // And timers.
                sleep(5 * MS).await;
            });
            runtime.block_on(task).unwrap();
            assert!(no_ops.load(SeqCst) > before, "the hook ran");
        }
    });
}

/// One message at a time for one task wakes one worker, not all of them.
#[test]
fn a14_a_message_wakes_at_most_one_worker() {
    within_limit(|| {
        let runtime = workers(16);
        let (inbox, outbox) = (Mailbox::new(), Mailbox::new());
        let task = runtime.spawn({
            let (inbox, outbox) = (inbox.clone(), outbox.clone());
            async move {
                for _ in 0..300 {
                    inbox.recv().await;
                    outbox.send(());
                }
            }
        });
        let sleeps = || eventually("all workers sleep", || asleep(&runtime, 16));
        sleeps();
        let before = runtime.metrics().unparks;
        futures_lite::future::block_on(async {
            for _ in 0..300 {
                inbox.send(());
                outbox.recv().await;
                sleeps();
            }
        });
        let unparks = runtime.metrics().unparks - before;
        runtime.block_on(task).unwrap();
        assert!(unparks <= 450, "{unparks} unparks for 300 messages");
    });
}

/// Flag and wake against check and park, between foreign threads, tasks and root futures.
#[test]
fn a15_no_wake_up_is_lost() {
    const ROUNDS: usize = 3000;
    within_limit(|| {
        for runtime in [current_thread(), workers(1), workers(2), workers(4)] {
            let (to_task, to_root, to_thread) = (Mailbox::new(), Mailbox::new(), Mailbox::new());
            let foreign = thread::spawn({
                let (to_task, to_thread) = (to_task.clone(), to_thread.clone());
                move || {
                    futures_lite::future::block_on(async {
                        for n in 0..ROUNDS {
                            to_task.send(n);
                            assert_eq!(to_thread.recv().await, n);
                        }
                    });
                }
            });
            runtime.spawn({
                let to_root = to_root.clone();
                async move {
                    for _ in 0..ROUNDS {
                        to_root.send(to_task.recv().await);
                    }
                }
            });
            runtime.block_on(async {
                for _ in 0..ROUNDS {
                    to_thread.send(to_root.recv().await);
                }
            });
            foreign.join().unwrap();
        }
    });
}

/// Every task of a storm of spawns from inside and outside runs exactly once (A16: queues under thieves).
#[test]
fn a16_each_task_runs_exactly_once() {
    within_limit(|| {
        let runtime = workers(4);
        const EACH: usize = 5000;
        let runs: Arc<Vec<AtomicUsize>> =
            Arc::new((0..4 * EACH).map(|_| AtomicUsize::new(0)).collect());
        let run = |n: usize| {
            let runs = runs.clone();
            async move {
                if n.is_multiple_of(7) {
                    yield_now().await;
                }
                runs[n].fetch_add(1, SeqCst);
            }
        };
        let threads: Vec<_> = (0..2)
            .map(|part| {
                let (handle, run) = (runtime.handle().clone(), run);
                let tasks: Vec<_> = (0..EACH).map(|n| run(part * EACH + n)).collect();
                thread::spawn(move || {
                    tasks
                        .into_iter()
                        .map(|task| handle.spawn(task))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let inside: Vec<_> = (2..4)
            .map(|part| {
                let tasks: Vec<_> = (0..EACH).map(|n| run(part * EACH + n)).collect();
                runtime.spawn(async move {
                    for handle in tasks.into_iter().map(rt::spawn).collect::<Vec<_>>() {
                        handle.await.unwrap();
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for handle in threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
            {
                handle.await.unwrap();
            }
            for handle in inside {
                handle.await.unwrap();
            }
        });
        assert!(runs.iter().all(|runs| runs.load(SeqCst) == 1));
        eventually("no task is alive", || runtime.metrics().live_tasks == 0);
    });
}

/// All tasks of a stream of sleepers meet their time though each kind of seat is used at once.
#[test]
fn a3_timers_fire_on_every_kind_of_seat() {
    within_limit(|| {
        for runtime in each_kind() {
            let from_outside = runtime.spawn(sleep(5 * MS));
            runtime.block_on(async {
                let inside = rt::spawn(async { rt::spawn(sleep(5 * MS)).await.unwrap() });
                let mut ticks = futures_lite::stream::iter(0..3);
                while ticks.next().await.is_some() {
                    sleep(MS).await;
                }
                inside.await.unwrap();
                from_outside.await.unwrap();
                let never = rt::spawn(pending::<()>());
                never.abort();
                assert!(never.await.unwrap_err().is_aborted());
            });
        }
    });
}

/// A waker that is not ours may block its thread. The selector that found the event is not locked then, and others turn
/// it for the sockets that are registered with it too.
#[test]
fn a2_a_foreign_waker_that_blocks_does_not_lock_its_selector() {
    within_limit(|| {
        let runtime = workers(2);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = || {
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let (mut first_client, first) = pair();
        let (mut second_client, second) = pair();
        let (entered, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let blocks = blocking_waker(entered, released);
        // Both register with the selector of the same worker.
        let (_first, mut second) = runtime
            .block_on(async move {
                rt::spawn_pinned(0, || async move {
                    let first = TcpStream::from_std(first).unwrap();
                    let second = TcpStream::from_std(second).unwrap();
                    for (stream, waker) in [(&first, &blocks), (&second, Waker::noop())] {
                        let polled = stream.poll_read_ready(&mut Context::from_waker(waker));
                        assert!(polled.is_pending());
                    }
                    (first, second)
                })
                .unwrap()
                .await
            })
            .unwrap();
        first_client.write_all(b"1").unwrap();
        blocked.recv_timeout(LONG).expect("the waker is woken");
        let reader = runtime.spawn(async move {
            let mut byte = [0];
            second.read_exact(&mut byte).await.unwrap();
            byte[0]
        });
        second_client.write_all(b"2").unwrap();
        let read = runtime
            .block_on(timeout(LONG, reader))
            .map(|read| read.unwrap());
        release.send(()).unwrap();
        assert_eq!(read.expect("the second socket is served meanwhile"), b'2');
    });
}
