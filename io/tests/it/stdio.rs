//! Standard streams. They belong to the process, so each test runs this program once more, with `child` as its one
//! test and pipes, files or sockets as its streams.

use std::env;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::process::{Child, Command, Stdio};

use futures_lite::future::poll_once;
use rt_io::stdio::{stderr, stdin, stdout};
use rt_io::util::{AsyncReadExt, AsyncWriteExt};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::exec::{Counter, Owner};
use crate::support::within_limit;
use crate::unix::TempPath;

const PART: &str = "RT_IO_TEST_CHILD";

/// Starts the child with one part to play. libtest writes to standard output as well, so tests look for marks in it.
fn play(part: &str, input: impl Into<Stdio>, output: impl Into<Stdio>) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "stdio::child", "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn ends_well(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "the child failed: {status}");
}

/// Waits until the child has written a mark.
fn expect(from: &mut impl Read, mark: &str) {
    let mut seen = Vec::new();
    while !seen.ends_with(mark.as_bytes()) {
        let mut byte = [0];
        let read = from.read(&mut byte).unwrap();
        assert_eq!(read, 1, "no {mark:?} in {}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
}

/// Not a test: what the child does.
#[test]
fn child() {
    let Ok(part) = env::var(PART) else {
        return;
    };
    within_limit(move || {
        let mut owner = Owner::new("child");
        match part.as_str() {
            "cancelled read" => cancelled_read(&mut owner),
            "exit" => {
                let mut silent = stdin();
                let mut buf = [0; 8];
                let mut read = pin!(silent.read(&mut buf));
                let counter = Counter::new(None);
                assert!(owner.poll(read.as_mut(), &counter).is_pending());
                std::process::exit(0);
            }
            "echo" => owner.block_on(async {
                let mut output = stdout();
                output.write_all(b"<").await.unwrap();
                rt_io::util::copy(stdin(), &mut output).await.unwrap();
                output.write_all(b">").await.unwrap();
            }),
            "full" => {
                // Put into place here: libtest writes to the stream it is given and would fail too.
                let full = File::options().write(true).open("/dev/full").unwrap();
                let before = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
                rustix::stdio::dup2_stdout(&full).unwrap();
                let result = owner.block_on(stdout().write_all(b"no room for this"));
                rustix::stdio::dup2_stdout(&before).unwrap();
                assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull);
            }
            other => panic!("no such part: {other}"),
        }
    });
}

fn cancelled_read(owner: &mut Owner) {
    owner.block_on(async {
        let mut output = stdout();
        let mut input = stdin();
        let mut buf = [0; 8];
        assert!(poll_once(input.read(&mut buf)).await.is_none());
        output.write_all(b"<cancelled>").await.unwrap();
        let read = input.read(&mut buf).await.unwrap();
        assert_eq!(&buf[..read], b"x");
        output.write_all(b"<x>").await.unwrap();
        // The next one is read by another handle.
        assert!(poll_once(input.read(&mut buf)).await.is_none());
        drop(input);
        output.write_all(b"<dropped>").await.unwrap();
        let read = stdin().read(&mut buf).await.unwrap();
        assert_eq!(&buf[..read], b"y");
        output.write_all(b"<y>").await.unwrap();
        assert_eq!(stdin().read(&mut buf).await.unwrap(), 0);
        stderr().flush().await.unwrap();
    });
}

/// Plays "cancelled read" with a stream whose two ends are these.
fn cancelled_read_loses_nothing(ours: impl Write, theirs: impl Into<Stdio>) {
    let mut ours = ours;
    let mut child = play("cancelled read", theirs, Stdio::piped());
    let mut output = child.stdout.take().unwrap();
    expect(&mut output, "<cancelled>");
    ours.write_all(b"x").unwrap();
    expect(&mut output, "<x>");
    expect(&mut output, "<dropped>");
    ours.write_all(b"y").unwrap();
    expect(&mut output, "<y>");
    drop(ours);
    ends_well(child);
}

#[test]
fn a_cancelled_read_loses_nothing_of_a_pipe() {
    within_limit(|| {
        let (read, write) = std::io::pipe().unwrap();
        let shared = read.try_clone().unwrap();
        cancelled_read_loses_nothing(write, read);
        let flags = fcntl_getfl(&shared).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "our flag leaked");
    });
}

#[test]
fn a_cancelled_read_loses_nothing_of_a_socket() {
    within_limit(|| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let shared = theirs.try_clone().unwrap();
        cancelled_read_loses_nothing(ours, OwnedFd::from(theirs));
        let flags = fcntl_getfl(&shared).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "our flag leaked");
    });
}

#[test]
fn a_waiting_read_does_not_hold_up_the_exit() {
    within_limit(|| {
        let (read, write) = std::io::pipe().unwrap();
        ends_well(play("exit", read, Stdio::null()));
        drop(write);
    });
}

#[test]
fn pipes_are_echoed_and_output_without_room_waits() {
    within_limit(|| {
        let mut child = play("echo", Stdio::piped(), Stdio::piped());
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let data = vec![b'.'; 300_000];
        let sender = std::thread::spawn(move || input.write_all(&data).unwrap());
        let mut got = Vec::new();
        output.read_to_end(&mut got).unwrap();
        sender.join().unwrap();
        let start = got.iter().position(|&byte| byte == b'<').unwrap();
        let length = got[start..].iter().position(|&byte| byte == b'>').unwrap();
        assert_eq!(length, 300_001);
        ends_well(child);
    });
}

#[test]
fn files_are_read_and_written_whole() {
    within_limit(|| {
        let (from, to) = (TempPath::new("from"), TempPath::new("to"));
        std::fs::write(&from.0, vec![b'.'; 100_000]).unwrap();
        let mut written = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(&to.0)
            .unwrap();
        let output = written.try_clone().unwrap();
        ends_well(play("echo", File::open(&from.0).unwrap(), output));
        written.rewind().unwrap();
        let mut got = Vec::new();
        written.read_to_end(&mut got).unwrap();
        let start = got.iter().position(|&byte| byte == b'<').unwrap();
        let length = got[start..].iter().position(|&byte| byte == b'>').unwrap();
        assert_eq!(length, 100_001);
    });
}

#[test]
fn an_error_comes_from_the_write_that_made_it() {
    within_limit(|| {
        ends_well(play("full", Stdio::null(), Stdio::null()));
    });
}
