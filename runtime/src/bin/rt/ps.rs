//! `rt ps`: a line a task.

use rt::inspect::wire::{Answer, Task};

use crate::text;

pub(crate) fn table(answer: &Answer) -> String {
    let mut out = String::new();
    for runtime in &answer.runtimes {
        out.push_str(&format!(
            "runtime '{}': {} workers, {} tasks, up {}\n",
            runtime.name,
            runtime.num_workers,
            runtime.tasks.len(),
            text::time(runtime.uptime)
        ));
        let head = [
            "ID",
            "NAME",
            "STATE",
            "FOR",
            "POLLS",
            "TOTAL",
            "LONGEST",
            "WAITS IN",
            "SPAWNED AT",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(runtime.tasks.iter().map(row));
        out.push_str(&text::table(&rows));
        out.push('\n');
    }
    if answer.runtimes.is_empty() {
        out.push_str("no runtime\n");
    }
    out
}

fn row(task: &Task) -> Vec<String> {
    let or_none = |time: Option<u64>| time.map_or("-".to_owned(), text::time);
    vec![
        task.id.to_string(),
        text::name(task).to_owned(),
        task.state.clone(),
        or_none(task.since),
        task.polls.to_string(),
        or_none(task.poll_time.map(|(total, _)| total)),
        or_none(task.poll_time.map(|(_, longest)| longest)),
        text::waits(task),
        text::site(&task.spawned_at).to_owned(),
    ]
}
