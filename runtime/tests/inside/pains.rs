//! Rows G6 to G8 of the known pains of async runtimes: what metrics and dumps must show.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use rt::dump::TaskDump;
use rt::runtime::{Builder, Runtime};
use rt::sync::Mutex;
use rt::task::{Activity, JoinHandle, WaitKind, yield_now};
use rt::time::sleep;

use crate::support::{LONG, MS, eventually, multi, within_limit};

#[track_caller]
fn named<F>(runtime: &Runtime, name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let _entered = runtime.enter();
    let builder = rt::task::Builder::new().name(name);
    builder.spawn(future).expect("spawned")
}

fn find(runtime: &Runtime, name: &str) -> Option<TaskDump> {
    let tasks = runtime.dump().tasks;
    tasks
        .into_iter()
        .find(|task| task.name.as_deref() == Some(name))
}

/// A worker that computes about half of the time, by its own clock: the share of its time that went into tasks is that, and
/// all shares together are all of its time.
#[test]
fn g6_the_busy_share_of_a_known_load_is_right() {
    within_limit(|| {
        let runtime = multi(1);
        let load = runtime.spawn(async {
            let metrics = || rt::runtime::Handle::current().metrics().workers[0].time;
            // The first turns are timed more often than later ones.
            for _ in 0..300 {
                yield_now().await;
            }
            let (began, before) = (Instant::now(), metrics());
            let mut computed = Duration::ZERO;
            for _ in 0..50 {
                let start = Instant::now();
                while start.elapsed() < 10 * MS {
                    std::hint::spin_loop();
                }
                computed += start.elapsed();
                sleep(10 * MS).await;
            }
            let (took, time) = (began.elapsed(), metrics().since(&before));
            (computed, took, time)
        });
        let (computed, took, time) = runtime.block_on(load).expect("no panic");
        let own = 100.0 * computed.as_secs_f64() / took.as_secs_f64();
        let told = time.percent(time.tasks);
        assert!(
            (own - told).abs() < 5.0,
            "{told} percent in tasks, {own} by the task's clock: {time:?} of {took:?}"
        );
        let (total, took) = (time.total().as_secs_f64(), took.as_secs_f64());
        assert!(
            (total / took - 1.0).abs() < 0.05,
            "{total} s of {took} s are accounted for"
        );
    });
}

/// Ten thousand tasks, and one that never gives way: the dump does not wait for that one, and names it with its age.
#[test]
fn g7_a_dump_lists_a_runaway_among_many_and_is_quick() {
    const TASKS: usize = 10_000;
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .debug(true)
            .build()
            .unwrap();
        for _ in 0..TASKS {
            runtime.spawn(pending::<()>());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (entered, begun) = mpsc::channel();
        named(&runtime, "runaway", {
            let stop = stop.clone();
            async move {
                entered.send(()).unwrap();
                while !stop.load(SeqCst) {
                    std::hint::spin_loop();
                }
            }
        });
        begun.recv_timeout(LONG).expect("it begins");
        let since = Instant::now();
        eventually("its age is known", || {
            find(&runtime, "runaway").is_some_and(|task| task.runs_since >= Some(200 * MS))
        });
        let (mut quickest, mut last) = (LONG, None);
        for _ in 0..5 {
            let start = Instant::now();
            let dump = runtime.dump();
            quickest = quickest.min(start.elapsed());
            last = Some(dump);
        }
        assert!(quickest < 200 * MS, "the quickest dump took {quickest:?}");
        let dump = last.unwrap();
        assert_eq!(dump.tasks.len(), TASKS + 1);
        let runs = |task: &&TaskDump| task.activity == Activity::Running;
        let running: Vec<_> = dump.tasks.iter().filter(runs).collect();
        assert_eq!(running.len(), 1, "{running:?}");
        assert_eq!(running[0].name.as_deref(), Some("runaway"));
        let age = running[0].runs_since.unwrap();
        assert!(
            age >= 200 * MS && age <= since.elapsed() + 20 * MS,
            "{age:?}"
        );
        assert!(running[0].to_string().contains("'runaway' runs for "));
        stop.store(true, SeqCst);
    });
}

/// Counts how often it is polled.
struct Counted<F>(Pin<Box<F>>, Arc<AtomicUsize>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, SeqCst);
        self.0.as_mut().poll(cx)
    }
}

/// A thousand dumps while tasks are spawned, run and end: no poll more or less, and no task is kept.
#[test]
fn g7_dumps_under_load_change_nothing() {
    const YIELDS: usize = 20;
    const DUMPS: usize = 1000;
    within_limit(|| {
        let runtime = Arc::new(multi(2));
        let (polls, over) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let load = runtime.spawn({
            let (polls, over) = (polls.clone(), over.clone());
            async move {
                let mut tasks = 0;
                while !over.load(SeqCst) {
                    let batch: Vec<_> = (0..50)
                        .map(|n| {
                            let work = async move {
                                for _ in 0..YIELDS {
                                    yield_now().await;
                                }
                                n
                            };
                            rt::spawn(Counted(Box::pin(work), polls.clone()))
                        })
                        .collect();
                    for (n, task) in batch.into_iter().enumerate() {
                        assert_eq!(task.await.expect("no panic"), n);
                        tasks += 1;
                    }
                }
                tasks
            }
        });
        let dumps = thread::spawn({
            let runtime = runtime.clone();
            move || {
                let longest = (0..DUMPS).map(|_| runtime.dump().tasks.len()).max();
                over.store(true, SeqCst);
                longest.unwrap()
            }
        });
        let tasks = runtime.block_on(load).expect("no panic");
        assert!(dumps.join().unwrap() > 1, "they saw the load");
        assert_eq!(polls.load(SeqCst), tasks * (YIELDS + 1));
        eventually("no task is kept", || runtime.metrics().live_tasks == 0);
    });
}

/// One awaits another, which waits for a lock that a third has: the dump has who awaits whom and where the lock is waited
/// for, for tasks of the runtime's own helpers as well.
#[test]
fn g8_a_dump_shows_the_chain_of_who_waits_for_whom() {
    within_limit(|| {
        let runtime = multi(2);
        let lock = Arc::new(Mutex::new(()));
        let (go, gone) = rt::sync::oneshot::channel::<()>();
        let holds = named(&runtime, "holds", {
            let lock = lock.clone();
            async move {
                let _guard = lock.lock().await;
                let _ = gone.await;
            }
        });
        eventually("it has the lock", || lock.try_lock().is_err());
        let wants_line = line!() + 1;
        let wants = named(&runtime, "wants", async move { drop(lock.lock().await) });
        let joins = named(&runtime, "joins", async move { wants.await.is_ok() });
        let shields_line = line!() + 2;
        let shields = named(&runtime, "shields", async {
            rt::shield(pending::<()>()).await
        });
        let chain = ["joins", "wants", "holds", "shields"];
        eventually("all wait", || {
            chain.iter().all(|name| {
                find(&runtime, name).is_some_and(|task| {
                    task.activity == Activity::Waiting && task.waits_for.is_some()
                })
            })
        });
        let [joins_is, wants_is, holds_is, shields_is] =
            chain.map(|name| find(&runtime, name).unwrap());
        let wait = |task: &TaskDump| task.waits_for.map(|(kind, at)| (kind, at.line()));
        // A handle was made where its task was spawned.
        assert_eq!(wait(&joins_is), Some((WaitKind::Join, wants_line)));
        assert_eq!(wants_is.awaited_by, Some(joins_is.id));
        assert_eq!(wait(&wants_is), Some((WaitKind::Lock, wants_line)));
        assert_eq!(
            wait(&holds_is).map(|(kind, _)| kind),
            Some(WaitKind::Oneshot)
        );
        // The task that `shield` makes has its place from who called, and who waits for it.
        let dump = runtime.dump();
        let helper = |task: &&TaskDump| task.awaited_by == Some(shields_is.id);
        let helper = dump.tasks.iter().find(helper).expect("the shielded task");
        assert_eq!(helper.spawned_at.line(), shields_line);
        assert_eq!(helper.spawned_by, Some(shields_is.id));
        drop(go);
        runtime.block_on(async {
            holds.await.unwrap();
            assert!(joins.await.unwrap());
            shields.abort();
        });
    });
}

/// A future that is polled by hand inside of another is still the wait of its task.
#[test]
fn g8_a_wait_inside_of_a_combinator_is_shown() {
    within_limit(|| {
        let runtime = multi(1);
        let line = line!() + 2;
        named(&runtime, "combines", async {
            let mut inner = pin!(sleep(1000 * LONG));
            poll_fn(|cx| inner.as_mut().poll(cx)).await;
        });
        eventually("it waits", || {
            find(&runtime, "combines").is_some_and(|task| task.activity == Activity::Waiting)
        });
        let (kind, at) = find(&runtime, "combines").unwrap().waits_for.unwrap();
        assert_eq!((kind, at.line()), (WaitKind::Sleep, line));
    });
}
