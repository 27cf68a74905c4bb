//! `rt::dump`.

use std::future::pending;
use std::sync::mpsc;

use rt::dump::TaskDump;
use rt::io::AsyncReadExt;
use rt::net::TcpListener;
use rt::runtime::{Builder, Runtime};
use rt::task::{Activity, TaskGroup, WaitKind};
use rt::time::sleep;

use crate::support::{LONG, MS, current, eventually, multi, within_limit};

fn find(runtime: &Runtime, name: &str) -> Option<TaskDump> {
    let dump = runtime.dump();
    let mut found = dump
        .tasks
        .into_iter()
        .filter(|task| task.name.as_deref() == Some(name));
    let task = found.next();
    assert!(found.next().is_none(), "two tasks '{name}'");
    task
}

fn named<F>(runtime: &Runtime, name: &str, future: F) -> rt::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let _entered = runtime.enter();
    rt::task::Builder::new()
        .name(name)
        .spawn(future)
        .expect("spawned")
}

#[test]
fn a_dump_tells_what_a_task_waits_for_and_for_how_long() {
    within_limit(|| {
        let runtime = multi(2);
        let line = line!() + 1;
        named(&runtime, "patient", async { sleep(1000 * LONG).await });
        eventually("it has waited for a while", || {
            find(&runtime, "patient").is_some_and(|task| task.waits_since >= Some(60 * MS))
        });
        let task = find(&runtime, "patient").unwrap();
        assert_eq!(task.activity, Activity::Waiting);
        let (kind, site) = task.waits_for.unwrap();
        assert_eq!((kind, site.line()), (WaitKind::Sleep, line));
        assert_eq!((task.polls, task.spawned_by, task.group), (1, None, None));
        assert!(task.waits_since < Some(LONG), "{task:?}");
        let text = task.to_string();
        assert!(
            text.contains("'patient' waits in Sleep at ") && text.contains("; 1 polls"),
            "{text}"
        );
    });
}

#[test]
fn a_dump_tells_the_line_that_reads_a_socket() {
    within_limit(|| {
        let runtime = multi(1);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        let peer = std::net::TcpStream::connect(addr).unwrap();
        let line = line!() + 3;
        named(&runtime, "reader", async move {
            let mut stream = listener.accept().await.unwrap().0;
            stream.read_exact(&mut [0; 8]).await
        });
        eventually("it reads", || {
            let wait = find(&runtime, "reader").and_then(|task| task.waits_for);
            wait.is_some_and(|(kind, site)| {
                (kind, site.file(), site.line()) == (WaitKind::Read, file!(), line)
            })
        });
        drop(peer);
    });
}

#[test]
fn a_dump_answers_while_every_worker_is_blocked() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_spare_threads(0)
            .build()
            .expect("a runtime");
        let (entered, begun) = mpsc::channel();
        let mut release = Vec::new();
        for n in 0..2 {
            let (stop, stopped) = mpsc::channel::<()>();
            let entered = entered.clone();
            release.push(stop);
            named(&runtime, &format!("blocks {n}"), async move {
                entered.send(()).unwrap();
                let _ = stopped.recv();
            });
        }
        for _ in 0..2 {
            begun.recv_timeout(LONG).expect("they begin");
        }
        named(&runtime, "starves", async {});
        let dump = runtime.dump();
        let does = |name: &str| {
            let task = dump
                .tasks
                .iter()
                .find(|task| task.name.as_deref() == Some(name));
            task.map(|task| (task.activity, task.polls))
        };
        assert_eq!(does("blocks 0"), Some((Activity::Running, 1)));
        assert_eq!(does("blocks 1"), Some((Activity::Running, 1)));
        // The dump polled nobody.
        assert_eq!(does("starves"), Some((Activity::Ready, 0)));
        let text = dump.to_string();
        assert!(text.contains("'blocks 0' runs"), "{text}");
        assert!(text.contains("worker 1: at work"), "{text}");
        drop(release);
    });
}

#[test]
fn a_dump_tells_who_spawned_and_who_awaits_whom() {
    within_limit(|| {
        for runtime in [multi(2), current()] {
            runtime.block_on(async {
                let parent = rt::task::Builder::new().name("parent").spawn(async {
                    let child = rt::task::Builder::new()
                        .name("child")
                        .spawn(pending::<()>())
                        .expect("spawned");
                    child.await
                });
                let parent = parent.expect("spawned");
                let group = rt::task::Builder::new()
                    .name("owner")
                    .spawn(TaskGroup::<()>::scope(async |group| {
                        group.build_task().name("member 1").spawn(pending::<()>());
                        group.build_task().name("member 2").spawn(pending::<()>());
                    }));
                let group = group.expect("spawned");
                let by_name = |name: &str| {
                    let tasks = rt::dump().tasks;
                    tasks
                        .into_iter()
                        .find(|task| task.name.as_deref() == Some(name))
                };
                while ["parent", "child", "owner", "member 1", "member 2"]
                    .iter()
                    .any(|name| by_name(name).is_none_or(|task| task.activity != Activity::Waiting))
                {
                    sleep(MS).await;
                }
                let [parent_is, child] = ["parent", "child"].map(|name| by_name(name).unwrap());
                assert_eq!(child.spawned_by, Some(parent_is.id));
                assert_eq!(child.awaited_by, Some(parent_is.id));
                assert_eq!((parent_is.spawned_by, parent_is.awaited_by), (None, None));
                let members = ["member 1", "member 2"].map(|name| by_name(name).unwrap());
                assert!(members[0].group.is_some());
                assert_eq!(members[0].group, members[1].group);
                assert_eq!(
                    members[0].spawned_by,
                    by_name("owner").map(|owner| owner.id)
                );
                assert_eq!(child.group, None);
                parent.abort();
                group.abort();
            });
        }
    });
}

#[test]
fn debug_mode_times_the_polls_of_each_task() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .debug(true)
            .build()
            .unwrap();
        named(&runtime, "slow", async {
            std::thread::sleep(20 * MS);
            sleep(MS).await;
            pending::<()>().await;
        });
        eventually("it was polled twice", || {
            find(&runtime, "slow").is_some_and(|task| {
                task.polls == 2 && task.poll_time.is_some() && task.activity == Activity::Waiting
            })
        });
        let (total, longest) = find(&runtime, "slow").unwrap().poll_time.unwrap();
        assert!(
            longest >= 20 * MS && total >= longest,
            "{total:?} {longest:?}"
        );

        let quiet = Builder::new_multi_thread()
            .worker_threads(1)
            .debug(false)
            .build()
            .unwrap();
        named(&quiet, "untimed", pending::<()>());
        eventually("it waits", || {
            find(&quiet, "untimed").is_some_and(|task| task.activity == Activity::Waiting)
        });
        assert_eq!(find(&quiet, "untimed").unwrap().poll_time, None);
    });
}

#[test]
fn a_task_that_is_over_is_in_no_dump() {
    within_limit(|| {
        let runtime = multi(1);
        let task = named(&runtime, "short", async {});
        runtime.block_on(task).expect("no panic");
        assert!(find(&runtime, "short").is_none());
        assert!(runtime.dump().tasks.is_empty());
    });
}

#[test]
#[should_panic(expected = "this thread is in no rt runtime")]
fn outside_a_runtime_there_is_nothing_to_dump() {
    let _ = rt::dump();
}
