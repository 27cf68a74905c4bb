//! Ends of runtimes with tasks in every kind of queue. Who ends them asks for a fence, to know that nobody is about to poll
//! them, and may not get it.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Handle, Runtime};
use rt::task::{JoinHandle, yield_now};

const MS: Duration = Duration::from_millis(1);
pub(crate) const LONG: Duration = Duration::from_secs(40);
/// Tasks of each kind.
const EACH: usize = 20;

/// `workers`: none for the current-thread flavour.
fn build(workers: usize, grace: Duration, monitor: bool) -> Runtime {
    let mut builder = if workers == 0 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    builder
        .worker_threads(workers.max(1))
        // What is queued stays so.
        .max_spare_threads(0)
        .monitor(monitor)
        .debug(false)
        .shutdown_grace(grace)
        .build()
        .unwrap()
}

/// Tasks that were made, and their futures that are not dropped yet.
#[derive(Default, Clone)]
struct Alive(Arc<AtomicUsize>);

struct Future(Alive);

impl Alive {
    fn future(&self) -> Future {
        self.0.fetch_add(1, SeqCst);
        Future(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Drop for Future {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

/// Workers that are blocked.
struct Blocked {
    release: Vec<mpsc::Sender<()>>,
    /// Tasks that would be polled if they were not.
    queued: Vec<JoinHandle<()>>,
    /// The blocking ones.
    blockers: Vec<JoinHandle<()>>,
    /// Of those that are queued, how many only the thread that sits on their seat can reach: they gave way in this turn.
    out_of_reach: usize,
}

impl Blocked {
    /// Blocks every worker, each with tasks in all of its queues, and fills those that all share.
    fn workers(runtime: &Runtime, number: usize, alive: &Alive) -> Self {
        let mut blocked = Self {
            release: Vec::new(),
            queued: Vec::new(),
            blockers: Vec::new(),
            out_of_reach: 0,
        };
        // Idle now, and woken when all is blocked.
        let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
        for _ in 0..EACH {
            let (future, wakers) = (alive.future(), wakers.clone());
            blocked.queued.push(runtime.spawn(async move {
                let mut waits = false;
                poll_fn(|cx| {
                    if waits {
                        return Poll::Ready(());
                    }
                    waits = true;
                    wakers.lock().unwrap().push(cx.waker().clone());
                    Poll::Pending
                })
                .await;
                pending::<()>().await;
                drop(future);
            }));
        }
        let start = Instant::now();
        while wakers.lock().unwrap().len() < EACH {
            runtime.block_on(yield_now());
            assert!(start.elapsed() < LONG, "they do not begin");
        }
        for _ in 0..number {
            let (release, released) = mpsc::channel::<()>();
            let (entered, begun) = mpsc::channel();
            let (alive, future) = (alive.clone(), alive.future());
            blocked.release.push(release);
            runtime.spawn(async move {
                let mut queued = Vec::new();
                let inner = alive.clone();
                let (handles, all) = mpsc::channel();
                let blocker = rt::spawn(async move {
                    let queued: Vec<_> = (0..EACH)
                        .map(|_| {
                            let future = inner.future();
                            rt::spawn(async move {
                                pending::<()>().await;
                                drop(future);
                            })
                        })
                        .collect();
                    handles.send(queued).unwrap();
                    let _ = released.recv();
                    drop(future);
                });
                // The last of them goes first, and gives way before the worker is blocked.
                for _ in 0..3 {
                    let future = alive.future();
                    queued.push(rt::spawn(async move {
                        loop {
                            yield_now().await;
                            std::hint::black_box(&future);
                        }
                    }));
                }
                entered.send((blocker, queued, all)).unwrap();
            });
            let (blocker, queued, all) = begun.recv_timeout(LONG).unwrap();
            blocked.blockers.push(blocker);
            blocked.queued.extend(queued);
            blocked.queued.extend(all.recv_timeout(LONG).unwrap());
            // The three that give way, and the one that fills the next slot of a worker that is not known to fence yet.
            blocked.out_of_reach += 3 + 1;
        }
        for _ in 0..EACH {
            let future = alive.future();
            blocked.queued.push(runtime.spawn(async move {
                pending::<()>().await;
                drop(future);
            }));
        }
        // From the seat of a guest.
        runtime.block_on(async {
            for _ in 0..EACH {
                let future = alive.future();
                blocked.queued.push(rt::spawn(async move {
                    loop {
                        yield_now().await;
                        std::hint::black_box(&future);
                    }
                }));
            }
        });
        for worker in 0..number {
            let future = alive.future();
            let pinned = runtime.handle().spawn_pinned(worker, move || async move {
                pending::<()>().await;
                drop(future);
            });
            blocked.queued.push(pinned.unwrap());
            // It belongs to the thread.
            blocked.out_of_reach += 1;
        }
        wakers.lock().unwrap().drain(..).for_each(Waker::wake);
        blocked
    }

    /// The workers go on. Whatever was queued has been told that the runtime is closed.
    fn release(self) {
        drop(self.release);
        for task in self.queued {
            let error = futures_lite::future::block_on(task).unwrap_err();
            assert!(error.is_runtime_closed(), "{error}");
        }
        for task in self.blockers {
            futures_lite::future::block_on(task).unwrap();
        }
    }
}

/// Until the runtime refuses new tasks.
fn wait_until_closed(handle: &Handle) {
    let start = Instant::now();
    loop {
        let task = handle.spawn(pending::<()>());
        if task.is_finished() {
            return;
        }
        task.abort();
        assert!(start.elapsed() < LONG, "it does not close");
        thread::yield_now();
    }
}

/// The end begins while tasks lie in every kind of queue, and all workers come back: no future is left.
pub(crate) fn ends_with_full_queues(runtime: Runtime, workers: usize) {
    let alive = Alive::default();
    let blocked = Blocked::workers(&runtime, workers, &alive);
    let handle = runtime.handle().clone();
    let ends = thread::spawn(move || drop(runtime));
    wait_until_closed(&handle);
    let Blocked {
        release,
        queued,
        blockers,
        ..
    } = blocked;
    drop(release);
    ends.join().unwrap();
    assert_eq!(alive.count(), 0, "futures are left");
    Blocked {
        release: Vec::new(),
        queued,
        blockers,
        out_of_reach: 0,
    }
    .release();
}

/// The workers do not come back within the grace. What can be reached is dropped without them, the rest when they do.
pub(crate) fn ends_without_its_workers(workers: usize) {
    let alive = Alive::default();
    let runtime = build(workers, 100 * MS, true);
    let blocked = Blocked::workers(&runtime, workers, &alive);
    drop(runtime);
    let (left, most) = (alive.count(), workers + blocked.out_of_reach);
    assert!(
        left <= most,
        "{left} futures are left, at most {most} may be"
    );
    blocked.release();
    let start = Instant::now();
    while alive.count() > 0 {
        assert!(start.elapsed() < LONG, "{} are left", alive.count());
        thread::yield_now();
    }
}

/// A task blocks its worker until others are dropped that lie in the queues.
pub(crate) fn a_task_waits_for_the_end_of_what_is_queued() {
    let runtime = build(1, LONG, true);
    let (sender, receiver) = mpsc::channel::<()>();
    let (entered, begun) = mpsc::channel();
    let outside = sender.clone();
    let waits = runtime.spawn(async move {
        for _ in 0..EACH {
            let sender = sender.clone();
            rt::spawn(async move {
                pending::<()>().await;
                drop(sender);
            });
        }
        drop(sender);
        entered.send(()).unwrap();
        receiver.recv().unwrap_err();
    });
    begun.recv_timeout(LONG).unwrap();
    runtime.spawn(async move {
        pending::<()>().await;
        drop(outside);
    });
    let start = Instant::now();
    drop(runtime);
    let took = start.elapsed();
    assert!(took < LONG / 2, "it took {took:?}");
    futures_lite::future::block_on(waits).unwrap();
}

/// Runtimes of all sizes, for [`end_each`].
pub(crate) fn build_each(monitor: bool) -> [Runtime; 3] {
    [0, 1, 2].map(|workers| build(workers, LONG, monitor))
}

pub(crate) fn end_each(runtimes: [Runtime; 3]) {
    for (workers, runtime) in runtimes.into_iter().enumerate() {
        ends_with_full_queues(runtime, workers);
    }
}
