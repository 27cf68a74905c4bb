//! The binary `rt` against a live program, and the socket between them. Needs the feature `cli`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own for each test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rt-inspect-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The example `inside`, until the test is over.
struct Inside {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Inside {
    fn start(folder: &Path) -> Self {
        let mut path = std::env::current_exe().unwrap();
        path.pop();
        if path.ends_with("deps") {
            path.pop();
        }
        path.push("examples/inside");
        assert!(
            path.exists(),
            "`cargo build -p rt --features cli --examples` makes {path:?}"
        );
        let mut child = Command::new(path)
            .env("XDG_RUNTIME_DIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut inside = Self { child, stdout };
        inside.expect(&format!("process {}", inside.child.id()));
        inside
    }

    fn expect(&mut self, line: &str) {
        let mut read = String::new();
        self.stdout.read_line(&mut read).unwrap();
        assert_eq!(read.trim_end(), line);
    }

    fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Lets it end in good order.
    fn end(mut self) {
        drop(self.child.stdin.take());
        let ended = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(ended.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary; the client's own patience bounds it.
fn rt(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rt"))
        .args(args)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap()
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let output = rt(folder, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn fails(folder: &Path, args: &[&str]) -> String {
    let output = rt(folder, args);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Asks until the answer has this; tasks take a moment to get where they wait.
fn until(folder: &Path, args: &[&str], has: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let text = ok(folder, args);
        if has(&text) {
            return text;
        }
        assert!(
            began.elapsed() < Duration::from_secs(40),
            "never came:\n{text}"
        );
    }
}

#[test]
fn ps_tree_top_and_metrics_show_a_live_program() {
    let folder = Folder::new("live");
    let inside = Inside::start(&folder.0);
    let pid = inside.pid();

    let text = until(&folder.0, &["ps", &pid], |text| {
        text.contains("Oneshot at ")
    });
    let line = |name: &str| {
        text.lines()
            .find(|line| line.contains(name))
            .unwrap_or_else(|| panic!("no '{name}' in\n{text}"))
    };
    assert!(
        text.starts_with("runtime 'crawler': 2 workers, 8 tasks, up "),
        "{text}"
    );
    let patient = line("patient");
    assert!(patient.contains("waiting"), "{patient}");
    assert!(
        patient.contains("Oneshot at runtime/examples/inside.rs:")
            || patient.contains("examples/inside.rs:"),
        "{patient}"
    );
    assert!(line("ticker").contains("examples/inside.rs:"));
    for n in 0..3 {
        line(&format!("fetcher {n}"));
    }

    let tree = until(&folder.0, &["tree", &pid], |tree| {
        tree.contains("awaited by")
    });
    assert!(tree.starts_with("runtime 'crawler': 8 tasks\n"), "{tree}");
    let find = |name: &str| tree.lines().position(|line| line.contains(name)).unwrap();
    // A child lies below its parent, one step further in.
    let (parent, child) = (find(" parent "), find(" child "));
    let lines: Vec<_> = tree.lines().collect();
    assert_eq!(child, parent + 1, "{tree}");
    let indent = |line: &str| line.chars().position(char::is_numeric).unwrap();
    assert_eq!(indent(lines[child]), indent(lines[parent]) + 3, "{tree}");
    let parent_id: String = lines[parent]
        .chars()
        .filter(|c| c.is_numeric())
        .take_while(char::is_ascii)
        .collect();
    assert!(lines[child].contains(", awaited by "), "{tree} {parent_id}");
    assert_eq!(tree.matches("[group ").count(), 3, "{tree}");

    let top = ok(&folder.0, &["top", &pid, "-n", "2", "-d", "0.1"]);
    assert_eq!(top.matches("runtime 'crawler'").count(), 2, "{top}");
    for word in ["worker 0", "worker 1", "PARKED", "POLLS/s", "ticker"] {
        assert!(top.contains(word), "no '{word}' in\n{top}");
    }
    assert!(
        !top.contains('\x1b'),
        "no escapes when it is not a terminal"
    );

    let metrics = ok(&folder.0, &["metrics", &pid]);
    assert!(metrics.contains("timers late by: p50 "), "{metrics}");
    inside.end();
}

#[test]
fn it_answers_while_every_worker_is_blocked() {
    let folder = Folder::new("blocked");
    let mut inside = Inside::start(&folder.0);
    inside.say("block");
    inside.expect("blocked");
    let text = ok(&folder.0, &["ps", &inside.pid()]);
    assert_eq!(text.matches(" running ").count(), 2, "{text}");
    // Each with its age.
    for line in text.lines().filter(|line| line.contains(" running ")) {
        let (_, columns) = line.split_once(" running ").unwrap();
        let age = columns.split_whitespace().next().unwrap();
        assert!(age.starts_with(|c: char| c.is_ascii_digit()), "{line}");
    }
    inside.say("go on");
    inside.expect("released");
    inside.end();
}

#[test]
fn the_socket_is_its_owners_alone_and_goes_with_the_runtime() {
    let folder = Folder::new("owner");
    // Of a process that was killed: no number is this high.
    let rt_folder = folder.0.join("rt");
    fs::create_dir(&rt_folder).unwrap();
    fs::set_permissions(&rt_folder, fs::Permissions::from_mode(0o777)).unwrap();
    let stale = rt_folder.join("2147483646.sock");
    fs::write(&stale, "").unwrap();
    // Of one that nobody of this number space sees: somebody listens.
    let foreign = rt_folder.join("2147483645.sock");
    let _listener = UnixListener::bind(&foreign).unwrap();
    // Of one that is stopped, and has as many callers as it takes.
    let stopped = rt_folder.join("2147483643.sock");
    let listener = UnixListener::bind(&stopped).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _caller = UnixStream::connect(&stopped).unwrap();
    let abandoned = rt_folder.join("2147483644.sock");
    drop(UnixListener::bind(&abandoned).unwrap());
    let other = rt_folder.join("notes.txt");
    fs::write(&other, "").unwrap();

    let inside = Inside::start(&folder.0);
    let socket = rt_folder.join(format!("{}.sock", inside.pid()));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(&rt_folder), 0o700);
    assert!(!stale.exists());
    assert!(!abandoned.exists());
    assert!(foreign.exists());
    assert!(stopped.exists());
    assert!(other.exists());
    inside.end();
    assert!(!socket.exists());
}

#[test]
fn a_client_that_asks_something_else_is_told_so() {
    let folder = Folder::new("wrong");
    let inside = Inside::start(&folder.0);
    let path = folder.0.join(format!("rt/{}.sock", inside.pid()));
    let ask = |line: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert_eq!(ask("hello\n"), "rt 1 error a question begins with 'rt'\n");
    assert_eq!(
        ask("rt 9 dump\n"),
        "rt 1 error this program speaks version 1 of the protocol\n"
    );
    let answer = ask("rt 1 metrics\n");
    let body = answer.strip_prefix("rt 1 ok\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["runtimes"][0]["name"], "crawler");
    // One that says nothing holds nobody up for longer than a second.
    let _silent = UnixStream::connect(&path).unwrap();
    ok(&folder.0, &["ps", &inside.pid()]);
}

#[test]
fn errors_say_what_is_wrong() {
    let folder = Folder::new("errors");
    let dir = &folder.0;
    assert_eq!(
        fails(dir, &["ps", "2147483646"]),
        "rt: there is no process 2147483646\n"
    );
    let own = std::process::id().to_string();
    let text = fails(dir, &["ps", &own]);
    assert!(
        text.starts_with(&format!("rt: process {own} does not listen: ")),
        "{text}"
    );
    assert!(text.contains("`inspect`"), "{text}");
    assert_eq!(
        fails(dir, &["ps", "x"]),
        "rt: 'x' is not the number of a process\n"
    );
    assert_eq!(
        fails(dir, &["pss", "1"]),
        "rt: unknown command 'pss'; see `rt --help`\n"
    );
    assert!(fails(dir, &["ps"]).contains("expected a command and the number of a process"));
    assert!(ok(dir, &["--help"]).contains("Usage: rt <command> <pid>"));
}
