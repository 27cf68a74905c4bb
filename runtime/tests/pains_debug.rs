//! Who blocks the runtime, and that the others do not suffer: rows A1, A17 and G1 to G4 of the known pains of async runtimes.
//! A binary of its own, as `debug_polls.rs`, where the stacks in such reports are tested.

#[path = "it/machine.rs"]
mod machine;
#[path = "debug/support.rs"]
mod support;

use std::future::{pending, poll_fn};
use std::io::{Read, Write};
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use rt::runtime::{Builder, Report, ReportKind, Runtime};
use rt::task::{JoinHandle, JoinSet, TaskGroup, yield_now};
use rt::time::{interval, sleep, timeout};

use self::machine::Machine;
use self::support::{Reports, within_limit};

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(40);

/// Blocks the thread until the other end says something or goes.
fn block(gate: &mpsc::Receiver<()>) {
    let _ = gate.recv_timeout(LONG);
}

fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// Sockets and timers of all four workers go on while one of these is blocked, and who blocks it is told meanwhile.
#[test]
fn a1_one_task_that_blocks_delays_no_ticker() {
    const WORKERS: usize = 4;
    const EACH: usize = 64;
    const PERIOD: Duration = Duration::from_millis(10);
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKERS).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut clients = Vec::new();
        let late = Arc::new(Mutex::new(Vec::new()));
        for n in 0..EACH {
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.set_nodelay(true).unwrap();
            client.set_read_timeout(Some(LONG)).unwrap();
            clients.push(client);
            let server = listener.accept().unwrap().0;
            // Socket and timer begin on a certain worker; then whoever has time serves them.
            let begun = runtime.handle().spawn_pinned(n % WORKERS, || async move {
                let server = TcpStream::from_std(server).unwrap();
                let waits = server.poll_read_ready(&mut Context::from_waker(Waker::noop()));
                assert!(waits.is_pending());
                let mut ticks = interval(PERIOD);
                ticks.tick().await;
                let waits = ticks.poll_tick(&mut Context::from_waker(Waker::noop()));
                assert!(waits.is_pending());
                (server, ticks)
            });
            let (mut server, mut ticks) = runtime.block_on(begun.unwrap()).unwrap();
            runtime.spawn(async move {
                let mut byte = [0];
                while server.read_exact(&mut byte).await.is_ok() {
                    server.write_all(&byte).await.unwrap();
                }
            });
            let late = late.clone();
            runtime.spawn(async move {
                loop {
                    let due = ticks.tick().await;
                    let by = rt::time::Instant::now().saturating_duration_since(due);
                    late.lock().unwrap().push(by);
                }
            });
        }

        let (entered, begun) = mpsc::channel();
        let (release, gate) = mpsc::channel();
        let _entered = runtime.enter();
        let builder = rt::task::Builder::new().name("culprit");
        let spawned = line!() + 1;
        let culprit = builder.spawn(async move {
            entered.send(()).unwrap();
            block(&gate);
        });
        begun.recv_timeout(LONG).expect("it begins");
        late.lock().unwrap().clear();
        let machine = Machine::watch();
        let mut echoes = Vec::new();
        // Half a second of ticks, were they all in time.
        while echoes.len() < 5 * EACH || late.lock().unwrap().len() < 50 * EACH {
            for client in &mut clients {
                let start = Instant::now();
                client.write_all(b"x").unwrap();
                client.read_exact(&mut [0]).expect("an echo");
                echoes.push(start.elapsed());
            }
        }
        let mut late = std::mem::take(&mut *late.lock().unwrap());
        let worst = machine.worst();
        let report = reports.next(ReportKind::SlowPoll);
        assert!(!culprit.as_ref().unwrap().is_finished(), "it still blocks");
        let told = report.task().unwrap();
        assert_eq!(told.name(), Some("culprit"));
        assert_eq!(told.spawned_at().line(), spawned);
        release.send(()).unwrap();
        runtime.block_on(culprit.unwrap()).unwrap();
        // A worker that is not helped serves a quarter of them after the block, which ends when all this is over.
        let (echo, tick) = (quantile(&mut echoes, 99), quantile(&mut late, 99));
        assert!(
            echo < 100 * MS + worst && tick < 100 * MS + worst,
            "p99 of echoes {echo:?}, of ticks {tick:?}; the machine held up {worst:?}"
        );
    });
}

/// A lock that is held elsewhere keeps all workers, and no spare ones are allowed: each of the tasks is told all the same,
/// with its place, while it is stuck.
#[test]
fn a17_a_lock_that_keeps_all_workers_is_told_with_everyone_who_waits() {
    const WORKERS: usize = 4;
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(WORKERS)
            .max_spare_threads(0)
            .debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let lock = Arc::new(Mutex::new(()));
        let guard = lock.lock().unwrap();
        let _entered = runtime.enter();
        let (entered, begun) = mpsc::channel();
        let spawned = line!() + 4;
        let tasks = ["tick", "trick", "track", "truck"].map(|name| {
            let (lock, entered) = (lock.clone(), entered.clone());
            let builder = rt::task::Builder::new().name(name);
            let task = builder.spawn(async move {
                entered.send(()).unwrap();
                drop(lock.lock());
            });
            task.unwrap()
        });
        for _ in 0..WORKERS {
            begun.recv_timeout(LONG).expect("all begin");
        }
        // What would reveal it elsewhere rides on the same workers.
        let deadline = runtime.spawn(timeout(20 * MS, pending::<()>()));
        let mut named: Vec<_> = (0..WORKERS)
            .map(|_| {
                let report = reports.next(ReportKind::SlowPoll);
                let task = report.task().unwrap();
                assert_eq!(task.spawned_at().line(), spawned, "{report}");
                let blocked = report.duration().unwrap();
                assert!(blocked < LONG / 4, "told after {blocked:?}");
                task.name().unwrap().to_owned()
            })
            .collect();
        named.sort_unstable();
        assert_eq!(named, ["tick", "track", "trick", "truck"]);
        assert!(tasks.iter().all(|task| !task.is_finished()));
        assert!(!deadline.is_finished());
        drop(guard);
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
            assert!(deadline.await.unwrap().is_err());
        });
    });
}

/// Seconds of polls of one millisecond each, on workers that are never idle, are no reason to speak.
#[test]
fn g1_short_polls_under_load_are_no_slow_poll() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        // 400 times a poll: on a machine with other work a thread may be kept from its core for a while.
        builder
            .worker_threads(2)
            .debug(true)
            .slow_poll_threshold(400 * MS);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let end = Instant::now() + 3000 * MS;
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                runtime.spawn(async move {
                    while Instant::now() < end {
                        let poll_end = Instant::now() + MS;
                        while Instant::now() < poll_end {
                            std::hint::spin_loop();
                        }
                        yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        drop(runtime);
        let told = reports.rest(MS);
        assert!(told.is_empty(), "{told:?}");
    });
}

/// The same future from several places, and inside of what the runtime offers to wrap it in: each report tells the place
/// where it was spawned.
#[test]
fn g2_a_report_tells_the_place_of_the_spawn_through_every_wrapper() {
    #[track_caller]
    fn here() -> u32 {
        Location::caller().line()
    }
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .debug(true)
            .slow_poll_threshold(20 * MS);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let gates = Mutex::new(Vec::new());
        // Always the same future.
        let blocks = || {
            let (release, gate) = mpsc::channel();
            gates.lock().unwrap().push(release);
            async move { block(&gate) }
        };
        let told = || {
            let report = reports.next(ReportKind::SlowPoll);
            // It goes on, and so does who waits for it.
            gates.lock().unwrap().pop().unwrap().send(()).unwrap();
            reports.next(ReportKind::SlowPollEnded);
            report.task().unwrap().spawned_at().line()
        };
        let _entered = runtime.enter();

        let (_task, line) = (rt::spawn(blocks()), here());
        assert_eq!(told(), line, "spawn");
        let (_task, line) = (rt::spawn(blocks()), here());
        assert_eq!(told(), line, "the next line");
        let (_task, line) = (rt::spawn(timeout(LONG, blocks())), here());
        assert_eq!(told(), line, "timeout");
        let (_task, line) = (handle.spawn(blocks()), here());
        assert_eq!(told(), line, "a handle");
        let (_task, line) = (runtime.spawn(blocks()), here());
        assert_eq!(told(), line, "a runtime");
        let (_task, line) = (rt::shield(blocks()), here());
        assert_eq!(told(), line, "shield");
        let mut set = JoinSet::new();
        let (_task, line) = (set.spawn(blocks()), here());
        assert_eq!(told(), line, "a join set");
        let (_task, line) = (rt::task::Builder::new().spawn(blocks()), here());
        assert_eq!(told(), line, "a builder");
        let tracker = rt::task::TaskTracker::new();
        let (_task, line) = (tracker.spawn(blocks()), here());
        assert_eq!(told(), line, "a tracker");
        let blocked = blocks();
        let (lines, line) = mpsc::channel();
        let group = runtime.spawn(TaskGroup::<&str>::scope(async move |group| {
            let (task, line) = (group.spawn(blocked), here());
            lines.send(line).unwrap();
            let _ = task.await;
            Ok(())
        }));
        assert_eq!(told(), line.recv_timeout(LONG).unwrap(), "a group");
        runtime.block_on(group).unwrap().unwrap();
    });
}

/// Reports of panics, on a clock that stands still unless everybody waits.
fn paused() -> (Runtime, Reports) {
    let mut builder = Builder::new_current_thread();
    builder.start_paused(true).debug(false);
    let reports = Reports::of(&mut builder);
    (builder.build().unwrap(), reports)
}

fn panics(reports: &Reports) -> usize {
    let told = reports.rest(MS);
    let is_panic = |report: &&Report| report.kind() == ReportKind::UnretrievedPanic;
    told.iter().filter(is_panic).count()
}

/// A task that has panicked by now.
async fn panicked() -> JoinHandle<()> {
    let task = rt::spawn(async { panic!("on purpose") });
    while !task.is_finished() {
        yield_now().await;
    }
    task
}

/// A panic is told when its handle is dropped, at once; or when it has been kept for a second; or at the end. Once, and not
/// at all if somebody takes it before.
#[test]
fn g3_a_kept_handle_does_not_silence_a_panic() {
    within_limit(|| {
        let (runtime, reports) = paused();
        let kept = runtime.block_on(async {
            let start = rt::time::Instant::now();
            let task = panicked().await;
            assert_eq!(panics(&reports), 0, "somebody may still take it");
            drop(task);
            assert_eq!(panics(&reports), 1, "nobody can any more");
            assert_eq!(rt::time::Instant::now(), start, "at once");

            let task = panicked().await;
            sleep(900 * MS).await;
            assert!(task.await.unwrap_err().is_panic());
            sleep(900 * MS).await;
            assert_eq!(panics(&reports), 0, "it was taken in time");

            let kept = vec![panicked().await];
            sleep(900 * MS).await;
            assert_eq!(panics(&reports), 0);
            sleep(200 * MS).await;
            assert_eq!(panics(&reports), 1, "nobody came");
            drop(kept);
            assert_eq!(panics(&reports), 0, "it was told before");
            vec![panicked().await]
        });
        assert_eq!(panics(&reports), 0);
        drop(runtime);
        assert_eq!(panics(&reports), 1, "there is no later");
        drop(kept);
        assert_eq!(panics(&reports), 0);
    });
}

const SECRET: &str = "hunter2";

/// Has a secret, and shows it to whoever asks for `Debug`.
#[derive(Debug)]
struct Secret(#[expect(dead_code, reason = "for its Debug")] String);

impl Secret {
    fn new() -> Self {
        Self(SECRET.to_owned())
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no access")
    }
}

/// Panics when it is dropped.
struct PanicsInDrop(#[expect(dead_code, reason = "held")] Secret);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        std::panic::panic_any(Secret::new());
    }
}

/// Every kind of report that can be had in one process, of tasks, closures and locks that hold a secret; and dump and
/// metrics.
#[test]
fn g4_no_report_shows_what_a_task_holds() {
    within_limit(|| {
        let build = |name: &str, told: &Arc<Mutex<Vec<Report>>>| {
            let told = told.clone();
            Builder::new_multi_thread()
                .worker_threads(2)
                .name(name)
                .debug(true)
                .slow_poll_threshold(20 * MS)
                .max_blocking_threads(1)
                .shutdown_grace(20 * MS)
                .on_report(move |report| told.lock().unwrap().push(report.clone()))
                .build()
                .unwrap()
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let (runtime, other) = (build("first", &told), build("second", &told));
        let has = |kind: ReportKind| {
            let start = Instant::now();
            while !told
                .lock()
                .unwrap()
                .iter()
                .any(|report| report.kind() == kind)
            {
                assert!(start.elapsed() < LONG, "no {kind:?}");
                thread::sleep(MS);
            }
        };

        let (release, gate) = mpsc::channel();
        let secret = Secret::new();
        runtime.spawn(async move {
            block(&gate);
            std::hint::black_box(&secret);
        });
        has(ReportKind::SlowPoll);
        release.send(()).unwrap();
        has(ReportKind::SlowPollEnded);

        drop(runtime.spawn(async { std::panic::panic_any(Secret::new()) }));
        has(ReportKind::UnretrievedPanic);
        drop(runtime.spawn(async { PanicsInDrop(Secret::new()) }));
        has(ReportKind::DestructorPanic);
        {
            let _entered = runtime.enter();
            drop(rt::task::spawn_result(async {
                Err::<(), _>(Secret::new())
            }));
        }
        has(ReportKind::UnretrievedError);

        let mut timer = Box::pin(sleep(50 * MS));
        runtime.block_on(poll_fn(|cx| {
            assert!(timer.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
        let secret = Secret::new();
        other.block_on(async move {
            timer.await;
            std::hint::black_box(&secret);
        });
        has(ReportKind::OtherRuntime);

        let lock: &'static rt::sync::Mutex<Secret> =
            Box::leak(Box::new(rt::sync::Mutex::new(Secret::new())));
        let guard = runtime.block_on(lock.lock());
        let polled = Arc::new(AtomicUsize::new(0));
        let keeps = runtime.spawn({
            let (polled, secret) = (polled.clone(), Secret::new());
            async move {
                let mut waits = Box::pin(lock.lock());
                poll_fn(|cx| {
                    assert!(waits.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                polled.fetch_add(1, SeqCst);
                pending::<()>().await;
                drop((secret, waits));
            }
        });
        while polled.load(SeqCst) == 0 {
            thread::sleep(MS);
        }
        let seen = format!("{:?} {}", runtime.dump(), runtime.dump());
        drop(guard);
        has(ReportKind::UnpolledGrant);
        keeps.abort();

        let (inside, secret) = (runtime.handle().clone(), Secret::new());
        let (release, gate) = rt::sync::oneshot::channel::<()>();
        drop(runtime.spawn_blocking(move || {
            let _ = inside.block_on(gate);
            std::hint::black_box(&secret);
        }));
        let secret = Secret::new();
        let waits = runtime.spawn_blocking(move || drop(secret));
        has(ReportKind::BlockingPoolStuck);
        drop(release);
        runtime.block_on(waits).unwrap();

        let (release, gate) = mpsc::channel();
        let (entered, begun) = mpsc::channel();
        let secret = Secret::new();
        drop(runtime.spawn_blocking(move || {
            entered.send(()).unwrap();
            block(&gate);
            std::hint::black_box(&secret);
        }));
        begun.recv_timeout(LONG).unwrap();
        let seen = format!("{seen} {:?} {}", runtime.metrics(), runtime.metrics());
        drop((runtime, other));
        has(ReportKind::LeftBehind);
        drop(release);

        let told = told.lock().unwrap();
        let all: String = told
            .iter()
            .map(|report| format!("{report:?}{report}\n"))
            .collect();
        assert!(!all.contains(SECRET), "{all}");
        assert!(!seen.contains(SECRET), "{seen}");
    });
}
