//! `rt tree`: who spawned whom, with who awaits whom, and groups.

use std::collections::{HashMap, HashSet};

use rt::inspect::wire::{Answer, Runtime, Task};

use crate::text;

pub(crate) fn draw(answer: &Answer) -> String {
    let mut out = String::new();
    for runtime in &answer.runtimes {
        out.push_str(&format!(
            "runtime '{}': {} tasks\n",
            runtime.name,
            runtime.tasks.len()
        ));
        Tree::new(runtime).draw(&mut out);
    }
    if answer.runtimes.is_empty() {
        out.push_str("no runtime\n");
    }
    out
}

struct Tree<'a> {
    roots: Vec<&'a Task>,
    children: HashMap<u64, Vec<&'a Task>>,
}

impl<'a> Tree<'a> {
    fn new(runtime: &'a Runtime) -> Self {
        let alive: HashSet<u64> = runtime.tasks.iter().map(|task| task.id).collect();
        let mut tree = Self {
            roots: Vec::new(),
            children: HashMap::new(),
        };
        for task in &runtime.tasks {
            // Whose parent is over has none; a task cannot be its own ancestor, since numbers are not used again.
            match task.spawned_by.filter(|parent| alive.contains(parent)) {
                Some(parent) => tree.children.entry(parent).or_default().push(task),
                None => tree.roots.push(task),
            }
        }
        for siblings in tree.children.values_mut() {
            siblings.sort_by_key(|task| (task.group, task.id));
        }
        tree
    }

    /// Without recursion: a chain of spawns may be long.
    fn draw(&self, out: &mut String) {
        let mut stack: Vec<(&Task, String, bool)> = Vec::new();
        let push = |stack: &mut Vec<_>, tasks: &[&'a Task], indent: &str| {
            for (n, task) in tasks.iter().enumerate().rev() {
                stack.push((*task, indent.to_owned(), n + 1 == tasks.len()));
            }
        };
        push(&mut stack, &self.roots, "");
        while let Some((task, indent, last)) = stack.pop() {
            let (branch, below) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            out.push_str(&format!("{indent}{branch}{}\n", line(task)));
            if let Some(children) = self.children.get(&task.id) {
                // Deeper than anybody reads, the indent stays.
                let below = if indent.chars().count() < 120 {
                    below
                } else {
                    ""
                };
                push(&mut stack, children, &format!("{indent}{below}"));
            }
        }
    }
}

fn line(task: &Task) -> String {
    let mut line = format!("{} {}", task.id, text::name(task).escape_debug());
    if let Some(group) = task.group {
        line.push_str(&format!(" [group {group}]"));
    }
    line.push_str(&format!(" {}", task.state));
    if task.state == "waiting" {
        if task.waits_for.is_some() {
            line.push_str(&format!(" in {}", text::waits(task)));
        }
        if let Some(since) = task.since {
            line.push_str(&format!(" for {}", text::time(since)));
        }
    }
    if let Some(joiner) = task.awaited_by {
        line.push_str(&format!(", awaited by {joiner}"));
    }
    line.push_str(&format!(", spawned at {}", text::site(&task.spawned_at)));
    line
}
