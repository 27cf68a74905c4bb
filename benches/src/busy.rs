//! The server of the busy rows: its sockets are registered with a worker on which a task computes.

use std::future::{Future, poll_fn};
use std::io::BufRead;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::peer::{Peer, on_worker};
use crate::rows::busy::CONNECTIONS;
use crate::serve;

/// How long one poll computes.
const POLL: Duration = Duration::from_micros(100);

/// Between two looks of a task that rests. Long, since the servers of the other peers rest while one works, and what they
/// wake up for is in its way.
const REST: Duration = Duration::from_millis(20);

/// Serves until the parent closes the pipe. `answer` answers it.
///
/// # Panics
///
/// If the loopback interface has no free port, or the parent asks nonsense.
pub fn serve<P: Peer>(workers: usize, tasks: usize, answer: fn(&[f64])) {
    let peer = P::start(workers);
    let works = Arc::new(AtomicBool::new(false));
    let computing = Arc::clone(&works);
    let address = on_worker(&peer, async move {
        let (listener, address) = P::listen()
            .await
            .expect("the loopback interface has a free port");
        P::detach(async move {
            for _ in 0..CONNECTIONS {
                let stream = P::accept(&listener)
                    .await
                    .expect("a connection is accepted");
                P::detach(registered(serve::echo_one::<P>(stream, 4096)).await);
            }
            for _ in 1..tasks {
                P::detach(compute::<P>(Arc::clone(&computing)));
            }
            compute::<P>(computing).await;
        });
        address
    });
    answer(&[f64::from(address.port())]);
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("work") => {
                works.store(true, Relaxed);
                // Until each task has looked.
                std::thread::sleep(2 * REST);
            }
            Ok("rest") => works.store(false, Relaxed),
            other => panic!("a busy server understands only `work` and `rest`, not {other:?}"),
        }
        answer(&[0.0]);
    }
    std::mem::forget(peer);
}

/// The future, after it was polled here once, so that its socket is registered with this worker.
async fn registered<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    poll_fn(|cx| {
        assert!(
            future.as_mut().poll(cx).is_pending(),
            "the connection is open"
        );
        Poll::Ready(())
    })
    .await;
    future
}

async fn compute<P: Peer>(works: Arc<AtomicBool>) {
    loop {
        if works.load(Relaxed) {
            let end = Instant::now() + POLL;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            P::yield_now().await;
        } else {
            P::sleep(REST).await;
        }
    }
}
