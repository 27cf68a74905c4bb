//! `rt top`: what the workers do, again and again.

use std::io::IsTerminal;
use std::thread;
use std::time::{Duration, Instant};

use rt::inspect::wire::{Answer, Question, Runtime, Task, Worker};

use crate::{client, print, text};

/// Tasks in the list of those that were polled most.
const BUSIEST: usize = 15;

pub(crate) fn run(pid: u32, pause: Duration, pictures: u64) -> Result<(), String> {
    let terminal = std::io::stdout().is_terminal();
    let mut before: Option<(Answer, Instant)> = None;
    for picture in 0..pictures {
        if picture > 0 {
            thread::sleep(pause);
        }
        let (answer, at) = (client::ask(pid, Question::Dump)?, Instant::now());
        let mut out = String::new();
        if terminal {
            // Home, draw over, clear what is left: no flicker.
            out.push_str("\x1b[H");
        }
        for runtime in &answer.runtimes {
            let earlier = before.as_ref().and_then(|(answer, then)| {
                let same = answer
                    .runtimes
                    .iter()
                    .find(|other| other.id == runtime.id)?;
                Some((same, at.duration_since(*then)))
            });
            draw(&mut out, pid, runtime, earlier);
        }
        if terminal {
            out = out.replace('\n', "\x1b[K\n");
            out.push_str("\x1b[J");
        }
        print(&out)?;
        before = Some((answer, at));
    }
    Ok(())
}

fn draw(out: &mut String, pid: u32, runtime: &Runtime, earlier: Option<(&Runtime, Duration)>) {
    let seconds = earlier.map_or(Duration::from_nanos(runtime.uptime), |(_, time)| time);
    let seconds = seconds.as_secs_f64().max(0.001);
    out.push_str(&format!(
        "process {pid}, runtime '{}': {} tasks, {} in the injector, {} hand-offs, {} spare workers, up {}\n\
         blocking pool: {} threads ({} idle), {} wait; compute pool: {} threads ({} idle), {} wait\n",
        runtime.name.escape_debug(),
        runtime.live_tasks,
        runtime.injector_depth,
        runtime.hand_offs,
        runtime.spare_threads,
        text::time(runtime.uptime),
        runtime.blocking.0,
        runtime.blocking.1,
        runtime.blocking.2,
        runtime.compute.0,
        runtime.compute.1,
        runtime.compute.2,
    ));
    let head = [
        "", "TASKS", "SELECT", "DISPATCH", "STEALING", "PARKED", "POLLS/s", "STEALS/s", "PARKS/s",
        "QUEUE", "SOCKETS", "TIMERS",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (index, worker) in runtime.workers.iter().enumerate() {
        let name = match index.checked_sub(runtime.num_workers) {
            None => format!("worker {index}"),
            Some(_) if !worker.occupied => continue,
            Some(guest) => format!("guest {guest}"),
        };
        let before = earlier.and_then(|(earlier, _)| earlier.workers.get(index));
        rows.push(worker_row(name, worker, before, seconds));
    }
    out.push_str(&text::table(&rows));
    out.push('\n');
    out.push_str(&text::table(&busiest(
        runtime,
        earlier.map(|(earlier, _)| earlier),
        seconds,
    )));
}

fn worker_row(name: String, now: &Worker, before: Option<&Worker>, seconds: f64) -> Vec<String> {
    let zero = [0; 5];
    let then = before.map_or(&zero, |before| &before.time);
    let spent: Vec<u64> = now
        .time
        .iter()
        .zip(then)
        .map(|(now, then)| now.saturating_sub(*then))
        .collect();
    let all = spent.iter().sum::<u64>().max(1) as f64;
    let share = |part: usize| format!("{:.1}%", 100.0 * spent[part] as f64 / all);
    let rate = |count: fn(&Worker) -> u64| {
        let more = count(now).saturating_sub(before.map_or(0, count));
        format!("{:.0}", more as f64 / seconds)
    };
    vec![
        name,
        share(2),
        share(0),
        share(1),
        share(3),
        share(4),
        rate(|worker| worker.polls),
        rate(|worker| worker.steals),
        rate(|worker| worker.parks),
        now.queue.to_string(),
        now.registrations.to_string(),
        now.timers.to_string(),
    ]
}

/// The tasks that were polled most since the last picture; those that run first.
fn busiest(runtime: &Runtime, earlier: Option<&Runtime>, seconds: f64) -> Vec<Vec<String>> {
    let mut tasks: Vec<(u32, &Task)> = runtime
        .tasks
        .iter()
        .map(|task| {
            let before = earlier.and_then(|earlier| {
                let place = earlier
                    .tasks
                    .binary_search_by_key(&task.id, |task| task.id)
                    .ok()?;
                Some(earlier.tasks[place].polls)
            });
            (task.polls.wrapping_sub(before.unwrap_or(0)), task)
        })
        .collect();
    tasks
        .sort_by_key(|(polls, task)| (task.state != "running", std::cmp::Reverse(*polls), task.id));
    let head = [
        "ID",
        "NAME",
        "STATE",
        "POLLS/s",
        "FOR",
        "WAITS IN",
        "SPAWNED AT",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(tasks.iter().take(BUSIEST).map(|(polls, task)| {
        vec![
            task.id.to_string(),
            text::name(task).to_owned(),
            task.state.clone(),
            format!("{:.0}", f64::from(*polls) / seconds),
            task.since.map_or("-".to_owned(), text::time),
            text::waits(task),
            text::site(&task.spawned_at).to_owned(),
        ]
    }));
    rows
}
