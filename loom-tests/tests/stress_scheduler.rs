//! The stress twin of the models of task, idle accounting, sleep, live list and root flag taken together: whole runtimes,
//! with far more workers than cores, through the public interface.
//!
//! Each future holds a [`Ticket`] that is dropped exactly once, however its task ends. What hangs is aborted.
#![cfg(not(rt_loom))]

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread::{self};
use std::time::Duration;

use rt::runtime::{Builder, Handle, Runtime};
use rt::task::{AbortHandle, JoinError, JoinHandle, yield_now};
use rt_loom_tests::stress::{Unpark, limited};
use rt_sync::AtomicWaker;

fn workers(number: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(number)
        .build()
        .expect("a runtime")
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// Waits on a thread that belongs to no runtime.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Unpark::waker();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// A generator per thread: the tests differ from run to run by timing only.
struct Random(u32);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % limit
    }
}

/// Counts futures that were made and futures that are gone.
#[derive(Default)]
struct Books {
    made: AtomicUsize,
    gone: AtomicUsize,
    ran: AtomicUsize,
}

/// Lies in a future.
struct Ticket {
    books: Arc<Books>,
    drops: AtomicU8,
}

impl Books {
    fn ticket(self: &Arc<Self>) -> Ticket {
        self.made.fetch_add(1, SeqCst);
        Ticket {
            books: self.clone(),
            drops: AtomicU8::new(0),
        }
    }

    fn assert_even(&self) {
        assert_eq!(
            self.made.load(SeqCst),
            self.gone.load(SeqCst),
            "futures made and futures dropped"
        );
    }
}

impl Ticket {
    /// The future came to its end.
    fn ran(&self) {
        self.books.ran.fetch_add(1, SeqCst);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        assert_eq!(
            self.drops.fetch_add(1, SeqCst),
            0,
            "a future was dropped twice"
        );
        self.books.gone.fetch_add(1, SeqCst);
    }
}

/// A flag that a task waits for.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    fn open(&self) {
        self.open.store(true, SeqCst);
        self.waker.wake();
    }

    async fn opened(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.open.load(SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

fn assert_ended<T>(result: Result<T, JoinError>) {
    if let Err(error) = result {
        assert!(error.is_cancelled() || error.is_runtime_closed(), "{error}");
    }
}

/// A task that waits for its gate, on the runtime behind `handle`.
fn gated(handle: &Handle, books: &Arc<Books>) -> (Arc<Gate>, JoinHandle<u32>) {
    let gate = Arc::<Gate>::default();
    let (waits, ticket) = (gate.clone(), books.ticket());
    let task = handle.spawn(async move {
        waits.opened().await;
        ticket.ran();
        7
    });
    (gate, task)
}

/// One life of a task, as seen by a foreign thread. `true` if it has to run to its end.
fn one_life(handle: &Handle, books: &Arc<Books>, kind: u32) -> bool {
    let (gate, task) = gated(handle, books);
    match kind {
        0 => {
            gate.open();
            assert_eq!(wait(task).expect("nobody aborts it"), 7);
            true
        }
        1 => {
            task.abort();
            assert!(wait(task).is_err_and(|error| error.is_aborted()));
            false
        }
        2 => {
            // Detached: it ends on its own.
            drop(task);
            gate.open();
            true
        }
        3 => {
            let abort = task.abort_handle();
            drop(task);
            abort.abort();
            gate.open();
            false
        }
        4 => {
            gate.open();
            task.abort();
            assert_ended(wait(task));
            false
        }
        _ => {
            // Never woken: cancelled by an abort from another task.
            let abort = task.abort_handle();
            drop(handle.spawn(async move { abort.abort() }));
            assert!(wait(task).is_err_and(|error| error.is_aborted()));
            false
        }
    }
}

/// Foreign threads spawn, wake, abort and drop handles.
#[test]
fn foreign_threads_and_eight_workers() {
    limited(|| {
        let runtime = workers(8);
        let books = Arc::<Books>::default();
        let must_run = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                let (handle, books, must_run) =
                    (runtime.handle().clone(), books.clone(), must_run.clone());
                thread::spawn(move || {
                    let mut random = Random(seed + 1);
                    for _ in 0..1_500 {
                        if one_life(&handle, &books, random.below(6)) {
                            must_run.fetch_add(1, SeqCst);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Detached tasks may still be on their way.
        while books.made.load(SeqCst) != books.gone.load(SeqCst) {
            thread::yield_now();
        }
        drop(runtime);
        books.assert_even();
        assert!(books.ran.load(SeqCst) >= must_run.load(SeqCst));
    });
}

/// Whole runtimes are dropped while foreign threads spawn on them, wake, abort and await.
#[test]
fn runtimes_dropped_in_the_middle() {
    limited(|| {
        for round in 0..120 {
            let runtime = workers(1 + round % 8);
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        let mut random = Random((round * 3 + thread + 1) as u32);
                        let mut aborts: Vec<(AbortHandle, Arc<Gate>)> = Vec::new();
                        let mut handles = Vec::new();
                        loop {
                            let (gate, task) = gated(&handle, &books);
                            match random.below(4) {
                                0 => gate.open(),
                                1 => task.abort(),
                                2 => aborts.push((task.abort_handle(), gate)),
                                _ => {}
                            }
                            if random.below(3) > 0 {
                                handles.push(task);
                            }
                            // A task that nobody spawned before the end says that the end has come.
                            let last = handle.spawn(async {});
                            if wait(last).is_err_and(|error| error.is_runtime_closed()) {
                                break;
                            }
                        }
                        for (abort, gate) in aborts {
                            abort.abort();
                            gate.open();
                        }
                        for task in handles {
                            assert_ended(wait(task));
                        }
                    })
                })
                .collect();
            for _ in 0..round % 24 {
                thread::yield_now();
            }
            match round % 3 {
                0 => drop(runtime),
                1 => runtime.shutdown_background(),
                _ => runtime.shutdown_timeout(Duration::from_secs(50)),
            }
            for thread in threads {
                thread.join().unwrap();
            }
            // A helper thread may still be at it.
            while books.made.load(SeqCst) != books.gone.load(SeqCst) {
                thread::yield_now();
            }
        }
    });
}

/// A runtime is dropped while others sit in its `block_on`: each gets its output or is told.
#[test]
fn runtimes_dropped_under_block_on() {
    limited(|| {
        for round in 0..100 {
            let runtime = if round % 4 == 0 {
                current_thread()
            } else {
                workers(1 + round % 3)
            };
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        loop {
                            let (ticket, inner) = (books.ticket(), books.ticket());
                            let result = handle.try_block_on(async move {
                                let _ticket = ticket;
                                let forever = rt::spawn(async move {
                                    let _ticket = inner;
                                    pending::<()>().await;
                                });
                                yield_now().await;
                                forever.abort();
                                assert_ended(forever.await);
                            });
                            if let Err(error) = result {
                                assert!(error.is_runtime_closed(), "{error}");
                                break;
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..round % 16 {
                thread::yield_now();
            }
            drop(runtime);
            for thread in threads {
                thread.join().unwrap();
            }
            books.assert_even();
        }
    });
}

/// Rings of tasks that wake each other, from seat to seat.
#[test]
fn rings() {
    const RINGS: usize = 6;
    const SIZE: usize = 12;
    const LAPS: usize = 1_500;

    #[derive(Default)]
    struct Station {
        laps: AtomicUsize,
        waker: AtomicWaker,
    }

    limited(|| {
        let runtime = workers(8);
        let mut tasks = Vec::new();
        let mut rings = Vec::new();
        for _ in 0..RINGS {
            let ring: Arc<Vec<Station>> = Arc::new((0..SIZE).map(|_| Station::default()).collect());
            for place in 0..SIZE {
                let ring = ring.clone();
                tasks.push(runtime.spawn(async move {
                    let (here, next) = (&ring[place], &ring[(place + 1) % SIZE]);
                    for lap in 1..=LAPS {
                        poll_fn(|cx| {
                            here.waker.register(cx.waker());
                            if here.laps.load(SeqCst) >= lap {
                                Poll::Ready(())
                            } else {
                                Poll::Pending
                            }
                        })
                        .await;
                        if lap % 50 == place {
                            yield_now().await;
                        }
                        next.laps.fetch_add(1, SeqCst);
                        next.waker.wake();
                    }
                }));
            }
            rings.push(ring);
        }
        // Each ring is started from outside.
        for ring in &rings {
            ring[0].laps.fetch_add(1, SeqCst);
            ring[0].waker.wake();
        }
        for task in tasks {
            wait(task).expect("no panic");
        }
    });
}

/// The root future is woken 100,000 times by foreign threads: half of the wakes wait until they were heard.
#[test]
fn root_woken_from_foreign_threads() {
    const HEARD: usize = 10_000;
    const UNHEARD: usize = 40_000;

    struct Line {
        rounds: AtomicUsize,
        seen: AtomicUsize,
    }

    for runtime in [workers(2), current_thread()] {
        limited(move || {
            let lines: Arc<Vec<Line>> = Arc::new(
                (0..2)
                    .map(|_| Line {
                        rounds: AtomicUsize::new(0),
                        seen: AtomicUsize::new(0),
                    })
                    .collect(),
            );
            let (send, receive) = mpsc::channel::<Waker>();
            let starter = {
                let lines = lines.clone();
                thread::spawn(move || {
                    let waker = receive.recv().unwrap();
                    let threads: Vec<_> = (0..lines.len())
                        .map(|line| {
                            let (lines, waker) = (lines.clone(), waker.clone());
                            thread::spawn(move || {
                                for round in 1..=HEARD + UNHEARD {
                                    lines[line].rounds.store(round, SeqCst);
                                    waker.wake_by_ref();
                                    while round % 5 == 0 && lines[line].seen.load(SeqCst) < round {
                                        thread::yield_now();
                                    }
                                }
                            })
                        })
                        .collect();
                    for thread in threads {
                        thread.join().unwrap();
                    }
                })
            };
            let mut send = Some(send);
            runtime.block_on(poll_fn(|cx| {
                if let Some(send) = send.take() {
                    send.send(cx.waker().clone()).unwrap();
                }
                let mut over = true;
                for line in lines.iter() {
                    let round = line.rounds.load(SeqCst);
                    line.seen.store(round, SeqCst);
                    over &= round == HEARD + UNHEARD;
                }
                if over { Poll::Ready(()) } else { Poll::Pending }
            }));
            starter.join().unwrap();
        });
    }
}

/// Many threads sit in `block_on` of one runtime, whose tasks await each other across seats.
#[test]
fn block_on_from_many_threads() {
    for runtime in [workers(3), current_thread()] {
        limited(move || {
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..8)
                .map(|seed| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        let mut random = Random(seed + 1);
                        for round in 0..250 {
                            let width = random.below(5);
                            let sum = handle.block_on(async {
                                let tasks: Vec<_> = (0..width)
                                    .map(|number| {
                                        let ticket = books.ticket();
                                        rt::spawn(async move {
                                            if number % 2 == 0 {
                                                yield_now().await;
                                            }
                                            ticket.ran();
                                            number
                                        })
                                    })
                                    .collect();
                                if round % 7 == 0 {
                                    // Leaves its tasks to whoever comes next.
                                    return None;
                                }
                                let mut sum = 0;
                                for task in tasks {
                                    sum += task.await.expect("no panic");
                                }
                                Some(sum)
                            });
                            if let Some(sum) = sum {
                                assert_eq!(sum, (0..width).sum::<u32>());
                            }
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            drop(runtime);
            books.assert_even();
        });
    }
}

/// Two runtimes whose tasks await each other; one of them is dropped in the middle, the other one goes on.
#[test]
fn two_runtimes_that_await_each_other() {
    type Depth = Pin<Box<dyn Future<Output = u32> + Send>>;

    fn there_and_back(here: Handle, there: Handle, depth: u32) -> Depth {
        Box::pin(go(here, there, depth))
    }

    async fn go(here: Handle, there: Handle, depth: u32) -> u32 {
        if depth == 0 {
            return 0;
        }
        let next = there_and_back(there.clone(), here, depth - 1);
        match there.spawn(next).await {
            Ok(number) => number + 1,
            Err(error) => {
                assert!(error.is_runtime_closed() || error.is_cancelled(), "{error}");
                0
            }
        }
    }

    limited(|| {
        for round in 0..60 {
            let (stays, goes) = (workers(3), workers(2));
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    stays.spawn(there_and_back(
                        stays.handle().clone(),
                        goes.handle().clone(),
                        20,
                    ))
                })
                .collect();
            if round % 2 == 1 {
                for _ in 0..round {
                    thread::yield_now();
                }
                drop(goes);
                for task in tasks {
                    assert!(wait(task).expect("its own runtime goes on") <= 20);
                }
            } else {
                for task in tasks {
                    assert_eq!(wait(task).expect("no panic"), 20);
                }
            }
        }
    });
}

/// Tasks that block in place, so that seats change hands, against aborts and against the end of the runtime.
#[test]
fn seats_lent_against_shutdown() {
    limited(|| {
        for round in 0..60 {
            let runtime = workers(1 + round % 4);
            let books = Arc::<Books>::default();
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    let ticket = books.ticket();
                    runtime.spawn(async move {
                        for _ in 0..3 {
                            rt::block_in_place(thread::yield_now);
                            yield_now().await;
                            if number % 3 == 0 {
                                rt::spawn(async { rt::block_in_place(thread::yield_now) });
                            }
                        }
                        ticket.ran();
                    })
                })
                .collect();
            tasks[0].abort();
            if round % 2 == 0 {
                for _ in 0..round % 24 {
                    thread::yield_now();
                }
                drop(runtime);
                for task in tasks {
                    assert_ended(wait(task));
                }
            } else {
                for task in tasks {
                    assert_ended(wait(task));
                }
                drop(runtime);
            }
            books.assert_even();
        }
    });
}

/// A task that waits for a number of others, all started at once by foreign threads while every worker is asleep: no
/// sleeper is left asleep.
#[test]
fn bursts_into_an_idle_runtime() {
    limited(|| {
        let runtime = workers(8);
        let threads = 4;
        let barrier = Arc::new(Barrier::new(threads));
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let (handle, barrier) = (runtime.handle().clone(), barrier.clone());
                thread::spawn(move || {
                    for _ in 0..1_000 {
                        barrier.wait();
                        let (one, two) = (handle.spawn(async { 1 }), handle.spawn(yield_now()));
                        assert_eq!(wait(one).expect("no panic"), 1);
                        wait(two).expect("no panic");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Detached tasks whose last waker is used up by a foreign thread: the task may run to its end, and be freed, while that
/// thread is still inside the wake. For AddressSanitizer above all.
#[test]
fn tasks_freed_under_their_last_waker() {
    const TASKS: usize = 120_000;
    const THREADS: usize = 6;

    /// Pending once; sends its waker away.
    fn once(send: mpsc::Sender<Waker>) -> impl Future<Output = ()> {
        let mut send = Some(send);
        poll_fn(move |cx| match send.take() {
            Some(send) => {
                let _ = send.send(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        })
    }

    limited(|| {
        let runtime = workers(2);
        let books = Arc::<Books>::default();
        let mut wakers = Vec::new();
        for thread in 0..THREADS {
            let (send, receive) = mpsc::channel::<Waker>();
            let other = thread::spawn(move || receive.into_iter().for_each(Waker::wake));
            for _ in 0..TASKS / THREADS {
                let (ticket, send) = (books.ticket(), send.clone());
                if thread % 2 == 0 {
                    drop(runtime.spawn(async move {
                        once(send).await;
                        ticket.ran();
                    }));
                } else {
                    let make = move || async move {
                        once(send).await;
                        ticket.ran();
                    };
                    drop(runtime.handle().spawn_pinned(0, make).expect("worker 0"));
                }
            }
            wakers.push(other);
        }
        for waker in wakers {
            waker.join().unwrap();
        }
        while books.made.load(SeqCst) != books.gone.load(SeqCst) {
            thread::yield_now();
        }
        assert_eq!(books.ran.load(SeqCst), TASKS);
    });
}
