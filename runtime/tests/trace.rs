//! `RT_TRACE`: the file of a run of the example `inside`.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

fn example() -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push("examples/inside");
    assert!(
        path.exists(),
        "`cargo build -p rt --examples` makes {path:?}"
    );
    Command::new(path)
}

/// In ns: the file has three digits behind the point.
fn ns(time: &Value) -> u64 {
    (time.as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn the_file_is_json_and_its_events_nest() {
    let file = std::env::temp_dir().join(format!("rt-trace-{}.json", std::process::id()));
    let mut child = example()
        .env("RT_TRACE", &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut expect = |line: &str| {
        let mut read = String::new();
        stdout.read_line(&mut read).unwrap();
        assert!(read.starts_with(line), "{read:?}");
    };
    let mut stdin = child.stdin.take().unwrap();
    expect("process ");
    writeln!(stdin, "block").unwrap();
    expect("blocked");
    writeln!(stdin, "go on").unwrap();
    expect("released");
    drop(stdin);
    assert!(child.wait().unwrap().success());

    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
    assert!(named("ticker").count() > 0);
    assert!(named("fetcher 1").count() > 0);
    assert!(named("parked").count() > 0);
    assert!(named("block_on").count() > 0);
    let ticker = named("ticker").next().unwrap();
    assert!(
        ticker["args"]["spawned at"]
            .as_str()
            .unwrap()
            .contains("examples/inside.rs:")
    );
    let threads: Vec<_> = named("thread_name").collect();
    assert!(threads.iter().any(|thread| {
        thread["args"]["name"]
            .as_str()
            .unwrap()
            .starts_with("rt-worker")
    }));

    let mut tracks: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (from, took) = (ns(&event["ts"]), ns(&event["dur"]));
        let track = event["tid"].as_u64().unwrap();
        tracks.entry(track).or_default().push((from, from + took));
    }
    assert!(tracks.len() >= 3, "two workers and the thread in block_on");
    for spans in tracks.values_mut() {
        spans.sort_by_key(|(from, until)| (*from, std::cmp::Reverse(*until)));
        let mut open: Vec<(u64, u64)> = Vec::new();
        for (from, until) in spans.iter().copied() {
            while open.last().is_some_and(|outer| outer.1 <= from) {
                open.pop();
            }
            if let Some(outer) = open.last() {
                assert!(until <= outer.1, "{from}..{until} crosses {outer:?}");
            }
            open.push((from, until));
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_harms_nothing() {
    let output = example()
        .env("RT_TRACE", "/no/such/folder/trace.json")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("rt: cannot write the trace to '/no/such/folder/trace.json' (RT_TRACE): "),
        "{text}"
    );
}

/// The other side of the next test; alone it does nothing.
#[test]
fn plays_a_child() {
    let Some(end) = std::env::var_os("RT_TEST_CHILD") else {
        return;
    };
    let runtime = rt::runtime::Runtime::new().unwrap();
    let task = rt::task::Builder::new().name("traced");
    let task = runtime.block_on(async { task.spawn(async {}).unwrap().await });
    task.unwrap();
    match end.to_str() {
        Some("exit") => std::process::exit(0),
        Some("background") => {
            // Until then the runtime cannot end.
            runtime.spawn_blocking(std::thread::park);
            runtime.shutdown_background();
        }
        other => panic!("no such end: {other:?}"),
    }
}

#[test]
fn the_file_is_written_when_the_process_ends_before_its_runtime() {
    for end in ["exit", "background"] {
        let path = std::env::temp_dir().join(format!("rt-trace-{end}-{}", std::process::id()));
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "plays_a_child", "--nocapture"])
            .env("RT_TEST_CHILD", end)
            .env("RT_TRACE", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{end}: {output:?}");
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let events = file["traceEvents"].as_array().unwrap();
        assert!(
            events.iter().any(|event| event["name"] == "traced"),
            "{end}"
        );
    }
}

#[test]
fn nobody_who_reads_standard_error_harms_nothing() {
    let mut child = example()
        .env("RT_TRACE", "/no/such/folder/trace.json")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    // It goes on now, and ends.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
