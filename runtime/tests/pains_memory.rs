//! Debug mode keeps no history of tasks that are over: row G5 of the known pains of async runtimes. A binary of its own,
//! since it measures the process.
#![cfg(target_os = "linux")]

mod resident;

use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use rt::runtime::Builder;
use rt::task::yield_now;

use self::resident::resident;

/// Of a history, each of these tasks would leave a hundred bytes or more: several times [`ROOM`].
const TASKS: usize = 400_000;
const ROOM: usize = 8 << 20;

/// Whether a thread of this name is there.
fn is_running(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.flatten().any(|task| {
        // It may end meanwhile.
        let comm = std::fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    })
}

#[test]
fn g5_tasks_that_are_over_leave_nothing_in_debug_mode() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(110));
        eprintln!("the test of debug mode's memory did not end in time");
        process::abort();
    });
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .debug(true)
        // Nothing is slow.
        .slow_poll_threshold(Duration::from_secs(60))
        .build()
        .unwrap();
    let run = |tasks: usize| {
        for batch in 0..tasks / 1000 {
            runtime.block_on(async {
                let spawn = |number| {
                    // One in ten has a name, and so a box for its rare parts.
                    let builder = rt::task::Builder::new();
                    let name = format!("{batch}.{number}");
                    let builder = if number % 10 == 0 {
                        builder.name(&name)
                    } else {
                        builder
                    };
                    builder.spawn(yield_now()).unwrap()
                };
                let tasks: Vec<_> = (0..1000).map(spawn).collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        }
    };
    // Lists, stacks and the allocator's own are as large as they get.
    run(TASKS / 4);
    // The names of functions are read once, as much as the program has.
    while is_running("rt-reporter") {
        thread::sleep(Duration::from_millis(5));
    }
    let before = resident();
    run(TASKS);
    let grown = resident().saturating_sub(before);
    assert!(grown < ROOM, "{grown} bytes more after {TASKS} tasks");
    assert_eq!(runtime.metrics().live_tasks, 0);
    assert!(runtime.dump().tasks.is_empty());
}

/// The same in a process that takes a trace: it keeps the last events of each thread, and says how many it has dropped.
#[test]
fn g5_a_trace_keeps_the_last_events_only() {
    let file = std::env::temp_dir().join(format!("rt-memory-{}.json", process::id()));
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "g5_tasks_that_are_over_leave_nothing_in_debug_mode",
        ])
        .env("RT_TRACE", &file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let events = text.lines().count();
    assert!((10_000..TASKS / 4).contains(&events), "{events} events");
    let dropped: usize = text
        .split("\"dropped events\":")
        .skip(1)
        .map(|rest| rest[..rest.find('}').unwrap()].parse::<usize>().unwrap())
        .sum();
    // Each task was polled twice.
    assert!(
        events + dropped > 2 * TASKS,
        "{events} and {dropped} dropped"
    );
}
