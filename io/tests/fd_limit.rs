//! What happens at the limit of descriptors; a binary of its own, since the limit is that of the process.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::process;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use rt_io::context;
use rt_io::driver::Driver;
use rt_io::net::TcpListener;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Hears of each sleep when it begins.
static SLEEPS: Mutex<Option<mpsc::Sender<Duration>>> = Mutex::new(None);

/// A timer for the back-off: a thread for each sleep.
struct Sleep {
    until: Instant,
    started: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        if !self.started {
            self.started = true;
            let waker = cx.waker().clone();
            thread::spawn(move || {
                thread::sleep(left);
                waker.wake();
            });
        }
        Poll::Pending
    }
}

fn sleep(duration: Duration) -> Option<context::BoxFuture<()>> {
    let sleeps = SLEEPS.lock().unwrap();
    sleeps.as_ref().unwrap().send(duration).unwrap();
    drop(sleeps);
    Some(Box::pin(Sleep {
        until: Instant::now() + duration,
        started: false,
    }))
}

#[test]
fn accept_waits_for_descriptors_instead_of_spinning() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(60));
        eprintln!("the test of the descriptor limit did not end within 60 seconds");
        process::abort();
    });
    let (begins, sleeps) = mpsc::channel();
    *SLEEPS.lock().unwrap() = Some(begins);
    context::set_sleep_hook(sleep);
    let (mut driver, handle) = Driver::new("limit".into()).unwrap();
    let turning = thread::spawn(move || while !driver.turn(None).unwrap().woken {});
    let listener =
        TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();

    // Clients first, then a limit that leaves no descriptor for the other ends.
    let mut clients: Vec<_> = (0..8).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let before = getrlimit(Resource::Nofile);
    let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("Cargo.toml").unwrap());
    // Room for two more connections.
    let limit = Rlimit {
        current: Some(next as u64 + 2),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();

    let (send, accepted) = mpsc::channel::<(rt_io::net::TcpStream, SocketAddr)>();
    let acceptor = {
        let handle = Arc::clone(&handle);
        thread::spawn(move || {
            let _context = context::enter(Some(handle), false);
            futures_lite::future::block_on(async {
                for _ in 0..8 {
                    send.send(listener.accept().await.unwrap()).unwrap();
                }
            });
        })
    };
    let mut held: Vec<_> = (0..2)
        .map(|_| accepted.recv_timeout(Duration::from_secs(20)).unwrap())
        .collect();
    // One sleep for each attempt, each twice as long as the last: where a loop that spins makes thousands.
    let start = Instant::now();
    for ms in [10, 20, 40, 80, 160] {
        let slept = sleeps.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(slept, Duration::from_millis(ms));
    }
    // The first may have begun before `start`; the others come after the sleeps before them.
    assert!(start.elapsed() >= Duration::from_millis(20 + 40 + 80));
    assert!(accepted.try_recv().is_err());

    // Connections that are held work all the same.
    for (stream, _) in &held {
        assert_eq!(stream.try_write(b"x").unwrap(), 1);
    }
    // Descriptors come back: accepting goes on within the longest wait.
    let start = Instant::now();
    setrlimit(Resource::Nofile, before).unwrap();
    for _ in 0..6 {
        held.push(accepted.recv_timeout(Duration::from_secs(20)).unwrap());
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    acceptor.join().unwrap();
    for (stream, _) in &held[2..] {
        assert_eq!(stream.try_write(b"x").unwrap(), 1);
    }
    for client in &mut clients {
        client.read_exact(&mut [0]).unwrap();
        client.write_all(b"y").unwrap();
    }
    handle.unpark();
    turning.join().unwrap();
}
