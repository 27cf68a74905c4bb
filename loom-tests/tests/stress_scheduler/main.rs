//! The stress twin of the models of task, idle accounting, sleep, live list and root flag taken together: whole runtimes,
//! with far more workers than cores, through the public interface.
//!
//! Each future holds a [`Ticket`] that is dropped exactly once, however its task ends. What hangs is aborted.
#![cfg(not(rt_loom))]

mod ends;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt::runtime::{Builder, Handle, Runtime};
use rt::task::{JoinError, JoinHandle, yield_now};
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
