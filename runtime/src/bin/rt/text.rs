//! Columns and times.

use rt::inspect::wire::Task;

/// A time in ns, in three figures or so.
pub(crate) fn time(ns: u64) -> String {
    let of = |unit: u64| ns as f64 / unit as f64;
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{:.0}µs", of(1_000)),
        1_000_000..1_000_000_000 => format!("{:.0}ms", of(1_000_000)),
        1_000_000_000..120_000_000_000 => format!("{:.1}s", of(1_000_000_000)),
        120_000_000_000..7_200_000_000_000 => format!("{}min", ns / 60_000_000_000),
        _ => format!("{}h", ns / 3_600_000_000_000),
    }
}

/// The last parts of a path in the code, which tell it from others.
pub(crate) fn site(site: &str) -> &str {
    site.rmatch_indices('/')
        .nth(2)
        .map_or(site, |(at, _)| &site[at + 1..])
}

/// What a task is called.
pub(crate) fn name(task: &Task) -> &str {
    task.name.as_deref().unwrap_or("-")
}

/// "Sleep at src/main.rs:12:5", or nothing.
pub(crate) fn waits(task: &Task) -> String {
    match (&task.waits_for, &task.waits_at) {
        (Some(kind), Some(at)) if task.state == "waiting" => format!("{kind} at {}", site(at)),
        _ => "-".to_owned(),
    }
}

/// Lines of columns, each as wide as its widest cell. Control characters of names do not get to the terminal.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell: String = cell
                .chars()
                .map(|c| if c.is_control() { '?' } else { c })
                .collect();
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_times_and_sites() {
        let rows = [
            vec!["a".to_owned(), "b".to_owned()],
            vec!["long\n".to_owned()],
        ];
        assert_eq!(table(&rows), "a      b\nlong?\n");
        assert_eq!(time(3_200_000_000), "3.2s");
        assert_eq!(time(42_000_000), "42ms");
        assert_eq!(
            site("/home/x/project/src/bin/main.rs:1:2"),
            "src/bin/main.rs:1:2"
        );
        assert_eq!(site("src/main.rs:1:2"), "src/main.rs:1:2");
    }
}
