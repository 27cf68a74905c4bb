//! Attending from begin to end, with workers, guests and sockets.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use rt_io::net::TcpStream;

use super::*;
use crate::runtime::{Builder, Runtime};
use crate::scheduler::Shared;
use crate::task::yield_now;
use crate::testing::limited;

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(60);

/// Without the monitor, which would do some milliseconds later what is to be seen here.
fn two_workers() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .monitor(false)
        .build()
        .unwrap()
}

fn seat(runtime: &Runtime, index: usize) -> Arc<Seat> {
    runtime.handle().shared.seats.get(index).unwrap()
}

/// One poll of 100 µs.
fn compute() {
    let end = Instant::now() + 2 * LONG_POLLS;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A client that blocks, and a server that echoes, and whose socket is registered here.
async fn connection() -> (
    std::net::TcpStream,
    Pin<Box<impl Future<Output = ()> + Send>>,
) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let mut server = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
    let mut echo = Box::pin(async move {
        let mut byte = [0];
        while server.read_exact(&mut byte).await.is_ok() {
            server.write_all(&byte).await.unwrap();
        }
    });
    poll_fn(|cx| {
        assert!(echo.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    (client, echo)
}

fn ask(client: &mut std::net::TcpStream) {
    client.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "never came true: {what}");
        thread::yield_now();
    }
}

/// Nobody attends when it begins.
#[test]
fn a_worker_that_computes_is_attended_to_until_it_sleeps() {
    limited(|| {
        let runtime = two_workers();
        let first = seat(&runtime, 0);
        let seen = first.clone();
        let task = runtime.handle().spawn_pinned(0, move || async move {
            let (client, echo) = connection().await;
            crate::spawn(echo);
            for _ in 0..3 {
                while !seen.attendance.is_attended() {
                    compute();
                    yield_now().await;
                }
                // It sleeps.
                let attended = seen.clone();
                crate::task::spawn_blocking(move || {
                    eventually("it sleeps", || attended.wakeup.park.is_parked());
                    eventually("nobody attends to it", || {
                        !attended.attendance.is_attended()
                    });
                })
                .await
                .unwrap();
            }
            client
        });
        let client = runtime.block_on(task.unwrap()).unwrap();
        drop((client, runtime));
    });
}

/// A guest seat is left by its thread while a worker attends to it. Its socket is served on: by the worker, by the stand-in
/// that takes the seat and sleeps there, and by the thread when it is back.
#[test]
fn a_guest_may_leave_while_it_is_attended_to() {
    limited(|| {
        let runtime = two_workers();
        let shared = runtime.handle().shared.clone();
        let guest = |shared: &Shared| {
            let has_socket = |seat: &&Arc<Seat>| seat.is_guest() && seat.registrations() > 0;
            shared.seats.snapshot().iter().find(has_socket).cloned()
        };
        for _ in 0..20 {
            let (mut client, guest) = runtime.block_on(async {
                let (client, echo) = connection().await;
                crate::spawn(echo);
                let guest = guest(&shared).expect("the socket is registered");
                while !guest.attendance.is_attended() {
                    compute();
                    yield_now().await;
                }
                (client, guest)
            });
            ask(&mut client);
            eventually("a stand-in sleeps there, and alone", || {
                guest.wakeup.park.is_parked() && !guest.attendance.is_attended()
            });
            ask(&mut client);
            // On the same seat, if the stand-in gives it back soon; then the client goes.
            runtime.block_on(async { yield_now().await });
            drop(client);
            eventually("the connection is over", || guest.registrations() == 0);
        }
    });
}

/// The socket is registered with the first worker, and both compute: either looks at it.
#[test]
fn those_who_compute_look_at_the_selectors_of_each_other() {
    const HELPS: u64 = 20;
    limited(|| {
        let runtime = two_workers();
        let shared = runtime.handle().shared.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let (connected, clients) = channel();
        let tasks = [Some(connected), None].map(|connected| {
            let (stop, place) = (stop.clone(), usize::from(connected.is_none()));
            let compute_on = move || async move {
                if let Some(connected) = connected {
                    let (client, echo) = connection().await;
                    crate::spawn(echo);
                    connected.send(client).unwrap();
                }
                while !stop.load(SeqCst) {
                    compute();
                    yield_now().await;
                }
            };
            runtime.handle().spawn_pinned(place, compute_on).unwrap()
        });
        let mut client = clients.recv().unwrap();
        let (owner, before) = (seat(&runtime, 0), shared.helps.get());
        // About half of them on a machine with room for all, fewer on one that is busy.
        while shared.helps.get() < before + HELPS {
            let own = owner.counters.events.get();
            assert!(own < 100 * HELPS, "{own} were left to the owner");
            ask(&mut client);
            // So that the task of the socket has to wait for the next.
            compute();
        }
        stop.store(true, SeqCst);
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    });
}
