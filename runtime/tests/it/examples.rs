//! The example programs, run as a user would run them, and the README, which shows one of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

#[cfg(target_os = "linux")]
use crate::pains_support::eventually;
use crate::support::within_limit;

/// Cargo puts examples beside the folder of the test executables.
fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push("examples");
    path.push(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} is not there; `cargo test -p rt` builds it, as does `cargo build -p rt --examples`",
        path.display()
    );
    path
}

fn output(name: &str, args: &[&str]) -> Output {
    Command::new(example(name)).args(args).output().unwrap()
}

/// A server that was started and has said where it listens. It is killed when the test ends before it does.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    addr: SocketAddr,
}

impl Server {
    fn start(name: &str, workers: &str) -> Server {
        Server::start_with(name, workers, Stdio::inherit())
    }

    fn start_with(name: &str, workers: &str, stderr: Stdio) -> Server {
        let mut child = Command::new(example(name))
            .args(["--addr", "127.0.0.1:0", "--workers", workers])
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addr = line
            .trim_end()
            .strip_prefix("listening on ")
            .map(|addr| addr.strip_prefix("http://").unwrap_or(addr))
            .unwrap_or_else(|| panic!("{name} printed {line:?}"))
            .parse()
            .unwrap();
        Server {
            child,
            stdout,
            addr,
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).unwrap()
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = self.connect();
        request(&mut stream, &[path]);
        Response::read(&mut BufReader::new(stream)).into_pair()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, which has to be a good one.
    fn ends_well(mut self) {
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "ended with {status}");
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails where the process has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a GET for each path in one write.
fn request(stream: &mut TcpStream, paths: &[&str]) {
    let text: String = paths
        .iter()
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: example\r\n\r\n"))
        .collect();
    stream.write_all(text.as_bytes()).unwrap();
}

#[derive(Debug)]
struct Response {
    status: u16,
    closes: bool,
    body: String,
}

impl Response {
    fn read(stream: &mut BufReader<TcpStream>) -> Response {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                stream.read_line(&mut line).unwrap(),
                0,
                "closed after {lines:?}"
            );
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
        let length = header("content-length: ").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        Response {
            status,
            closes: header("connection: ") == Some("close"),
            body: String::from_utf8(body).unwrap(),
        }
    }

    fn into_pair(self) -> (u16, String) {
        (self.status, self.body)
    }
}

/// What the example promises, and what the machine may add to it.
fn assert_within_a_second(since: Instant) {
    let took = since.elapsed();
    assert!(took < Duration::from_millis(1500), "took {took:?}");
}

#[test]
fn readme_shows_hello() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let hello = std::fs::read_to_string(root.join("examples/hello.rs")).unwrap();
    let readme = std::fs::read_to_string(root.join("../README.md")).unwrap();
    assert!(
        readme.contains(&format!("```rust\n{hello}```\n")),
        "README.md does not show examples/hello.rs as it is"
    );
}

#[test]
fn hello_says_hello() {
    within_limit(|| {
        let output = output("hello", &[]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"hello from a task\n");
    });
}

#[test]
fn nonsense_arguments_end_with_usage_and_2() {
    within_limit(|| {
        for (args, complaint) in [
            (&["--bogus"][..], "there is no option --bogus"),
            (&["--addr"], "--addr needs a value"),
            (
                &["--addr", "here"],
                "--addr here is not of the form IP:PORT",
            ),
            (&["--workers", "many"], "--workers many is not a count"),
            (&["--workers=-1"], "--workers -1 is not a count"),
        ] {
            for name in ["http", "echo"] {
                let output = output(name, args);
                let stderr = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(2), "{name} {args:?}: {stderr}");
                assert!(stderr.starts_with(complaint), "{name} {args:?}: {stderr}");
                assert!(stderr.contains("usage: "), "{name} {args:?}: {stderr}");
            }
        }
        let help = output("http", &["--help"]);
        assert!(help.status.success());
        assert!(help.stdout.starts_with(b"usage: "));
    });
}

#[test]
fn http_answers() {
    within_limit(|| {
        for workers in ["0", "2"] {
            let server = Server::start("http", workers);
            assert_eq!(server.get("/"), (200, "hello from rt\n".to_owned()));
            let start = Instant::now();
            assert_eq!(
                server.get("/sleep/10"),
                (200, "slept for 10ms\n".to_owned())
            );
            assert_eq!(
                server.get("/blocking/10"),
                (200, "blocked a thread for 10ms\n".to_owned())
            );
            assert!(start.elapsed() >= Duration::from_millis(20));
            for path in [
                "/x",
                "/sleep",
                "/sleep/",
                "/sleep/soon",
                "/blocking/-1",
                "//",
            ] {
                assert_eq!(server.get(path).0, 404, "{path}");
            }
            server.signal(Signal::INT);
            server.ends_well();
        }
    });
}

#[test]
fn http_keeps_connections_and_takes_many_at_once() {
    within_limit(|| {
        let server = Server::start("http", "2");
        let mut streams: Vec<_> = (0..50).map(|_| BufReader::new(server.connect())).collect();
        for _ in 0..3 {
            for stream in &mut streams {
                request(stream.get_mut(), &["/sleep/5", "/", "/blocking/1"]);
            }
            for stream in &mut streams {
                assert_eq!(Response::read(stream).body, "slept for 5ms\n");
                assert_eq!(Response::read(stream).body, "hello from rt\n");
                assert_eq!(Response::read(stream).body, "blocked a thread for 1ms\n");
            }
        }
    });
}

/// The descriptors of a process: timers, and all others.
#[cfg(target_os = "linux")]
fn descriptors(process: u32) -> (usize, usize) {
    let folder = format!("/proc/{process}/fd");
    let (timers, others): (Vec<_>, Vec<_>) = std::fs::read_dir(folder)
        .unwrap()
        // Closed meanwhile.
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .partition(|target| target.as_os_str() == "anon_inode:[timerfd]");
    (timers.len(), others.len())
}

/// Several loads of connections: after each, the descriptors are those from before the first. Only timers come on top,
/// one for each seat, made when it first waits for a deadline and kept.
#[cfg(target_os = "linux")]
#[test]
fn http_closes_after_each_load_what_it_opened() {
    within_limit(|| {
        for workers in ["0", "2"] {
            let server = Server::start("http", workers);
            let process = server.child.id();
            // The server listens and has nothing else to open.
            let (_, expected) = descriptors(process);
            let seats = workers.parse::<usize>().unwrap() + 1;
            for load in 0..6 {
                let mut streams: Vec<_> =
                    (0..100).map(|_| BufReader::new(server.connect())).collect();
                for (n, stream) in streams.iter_mut().enumerate() {
                    // One in four goes without having asked, one in four without having read its answers.
                    if n % 4 != 0 {
                        request(stream.get_mut(), &["/sleep/5", "/blocking/1", "/"]);
                    }
                }
                for stream in streams.iter_mut().skip(1).step_by(2) {
                    for _ in 0..3 {
                        assert_eq!(Response::read(stream).status, 200);
                    }
                }
                assert!(descriptors(process).1 >= 50, "the load was not seen");
                drop(streams);
                eventually("a load has left descriptors behind", || {
                    let (timers, others) = descriptors(process);
                    assert!(timers <= seats, "{timers} timers after load {load}");
                    others == expected
                });
            }
            server.signal(Signal::TERM);
            server.ends_well();
        }
    });
}

#[test]
fn http_survives_broken_connections() {
    within_limit(|| {
        let server = Server::start("http", "1");
        server
            .connect()
            .write_all(b"no http at all\r\n\r\n")
            .unwrap();
        server.connect().write_all(b"GET / HT").unwrap();
        request(&mut server.connect(), &["/sleep/50"]);
        assert_eq!(server.get("/").0, 200);
    });
}

#[test]
fn http_finishes_open_requests_after_sigterm() {
    within_limit(|| {
        for workers in ["0", "2"] {
            http_finishes_an_open_request(workers);
        }
    });
}

fn http_finishes_an_open_request(workers: &str) {
    // Less than the limit of the drain, and far more than a server needs to hear of a signal.
    const OPEN: Duration = Duration::from_millis(700);
    let mut server = Server::start_with("http", workers, Stdio::piped());
    let complaints = server.child.stderr.take().unwrap();
    // Neither a connection that has asked nothing yet nor one that waits for its next request may delay the end.
    let silent = server.connect();
    let mut idle = BufReader::new(server.connect());
    request(idle.get_mut(), &["/"]);
    assert_eq!(Response::read(&mut idle).status, 200);

    // Both requests arrive in one read, so once the first is answered the second is with the server.
    let mut open = BufReader::new(server.connect());
    let asked = Instant::now();
    request(open.get_mut(), &["/", "/sleep/700"]);
    assert_eq!(Response::read(&mut open).status, 200);

    let start = Instant::now();
    server.signal(Signal::TERM);
    // Once it has heard of the signal it tells all connections at once, and the idle one has nothing to finish.
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    let heard = asked.elapsed();
    assert!(
        heard < OPEN,
        "the server heard of the signal after {heard:?}"
    );
    let last = Response::read(&mut open);
    assert_eq!(
        (last.status, last.body.as_str()),
        (200, "slept for 700ms\n")
    );
    assert!(
        last.closes,
        "the client was not told that the connection ends"
    );
    let addr = server.addr;
    server.ends_well();
    assert_within_a_second(start);
    // The open request decided when it was over, not the limit of the drain.
    assert_eq!(std::io::read_to_string(complaints).unwrap(), "");
    assert!(TcpStream::connect(addr).is_err());
    drop(silent);
}

#[test]
fn http_drops_what_does_not_finish() {
    within_limit(|| {
        for workers in ["0", "2"] {
            let server = Server::start("http", workers);
            let mut open = Vec::new();
            for path in ["/sleep/60000", "/blocking/60000"] {
                let mut stream = BufReader::new(server.connect());
                request(stream.get_mut(), &["/", path]);
                assert_eq!(Response::read(&mut stream).status, 200);
                open.push(stream);
            }
            let start = Instant::now();
            server.signal(Signal::TERM);
            server.ends_well();
            assert_within_a_second(start);
            for mut stream in open {
                assert_eq!(
                    stream.read(&mut [0]).unwrap_or(0),
                    0,
                    "an answer came after all"
                );
            }
        }
    });
}

#[test]
fn echo_sends_everything_back() {
    within_limit(|| {
        for workers in ["0", "2"] {
            let server = Server::start("echo", workers);
            // More than fits into any buffer on the way, in both directions at once.
            let data: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    let (mut stream, data) = (server.connect(), data.clone());
                    std::thread::spawn(move || {
                        let mut writer = stream.try_clone().unwrap();
                        let sent = data.clone();
                        let writer = std::thread::spawn(move || {
                            writer.write_all(&sent).unwrap();
                            writer.shutdown(Shutdown::Write).unwrap();
                        });
                        let mut received = Vec::new();
                        stream.read_to_end(&mut received).unwrap();
                        writer.join().unwrap();
                        assert!(
                            received == data,
                            "{} bytes came back changed",
                            received.len()
                        );
                    })
                })
                .collect();
            for client in clients {
                client.join().unwrap();
            }
            server.signal(Signal::INT);
            server.ends_well();
        }
    });
}
