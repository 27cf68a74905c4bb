//! The server of the stall rows: it echoes, it ticks, and something in it blocks its threads.

use std::io::BufRead;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::peer::{Peer, on_worker};
use crate::serve;

const TICKERS: usize = 50;
const TICK: Duration = Duration::from_millis(10);
/// How long the trouble lasts, and the pause after it.
const HALF: Duration = Duration::from_millis(50);

/// What blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// One task computes for 50 ms of each 100 ms.
    Spin,
    /// One task is in `std::thread::sleep` for 50 ms of each 100 ms.
    Sleep,
    /// One task waits for a `std::sync::Mutex` that another thread holds for 50 ms of each 100 ms.
    Mutex,
    /// As many tasks as there are workers sleep in `std::thread::sleep` for a second, once every two seconds.
    All,
    /// The accept loop runs in `block_on`, and sleeps there for 50 ms of each 100 ms.
    Root,
    /// Nothing does.
    Nothing,
}

impl Trouble {
    /// All of them, with their names.
    pub const ALL: [(&str, Self); 6] = [
        ("nothing", Self::Nothing),
        ("spin", Self::Spin),
        ("sleep", Self::Sleep),
        ("mutex", Self::Mutex),
        ("all", Self::All),
        ("root", Self::Root),
    ];
}

impl FromStr for Trouble {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, trouble)| *trouble)
            .ok_or_else(|| format!("no trouble is called {name:?}"))
    }
}

type Late = Arc<Mutex<Vec<Duration>>>;

/// Serves until the parent closes the pipe. `answer` answers it.
///
/// # Panics
///
/// If the loopback interface has no free port, or the parent asks nonsense.
pub fn serve<P: Peer>(workers: usize, trouble: Trouble, answer: fn(&[f64])) {
    let late = Late::default();
    if trouble == Trouble::Root {
        let peer = Arc::new(P::start(workers));
        let (sender, receiver) = std::sync::mpsc::channel();
        let server = Arc::clone(&peer);
        std::thread::spawn(move || server.block_on(accept_and_sleep::<P>(sender)));
        let address: SocketAddr = receiver.recv().expect("the accept loop begins");
        answer(&[f64::from(address.port())]);
        tick(&*peer, &late);
        answer_questions(&late, answer);
        std::mem::forget(peer);
        return;
    }
    let (peer, address) = serve::echo::<P>(workers, 4096);
    answer(&[f64::from(address.port())]);
    tick(&peer, &late);
    block(&peer, workers, trouble);
    answer_questions(&late, answer);
    std::mem::forget(peer);
}

async fn accept_and_sleep<P: Peer>(begun: std::sync::mpsc::Sender<SocketAddr>) {
    let (listener, address) = P::listen()
        .await
        .expect("the loopback interface has a free port");
    begun.send(address).expect("the main thread waits");
    // Accepted first, all of them: a client that waits for its connection measures nothing.
    for _ in 0..crate::rows::stall::CONNECTIONS {
        if let Ok(stream) = P::accept(&listener).await {
            P::detach(serve::echo_one::<P>(stream, 4096));
        }
    }
    loop {
        std::thread::sleep(HALF);
        P::sleep(HALF).await;
    }
}

fn tick<P: Peer>(peer: &P, late: &Late) {
    let late = Arc::clone(late);
    on_worker(peer, async move {
        for _ in 0..TICKERS {
            let late = Arc::clone(&late);
            P::detach(async move {
                loop {
                    let due = Instant::now() + TICK;
                    P::sleep(TICK).await;
                    let by = Instant::now().saturating_duration_since(due);
                    late.lock().expect("nobody panics with it").push(by);
                }
            });
        }
    });
}

fn block<P: Peer>(peer: &P, workers: usize, trouble: Trouble) {
    match trouble {
        Trouble::Nothing | Trouble::Root => {}
        Trouble::Spin => peer.spawn_remote(again::<P>(HALF, HALF, || {
            let end = Instant::now() + HALF;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        })),
        Trouble::Sleep => {
            peer.spawn_remote(again::<P>(HALF, HALF, || std::thread::sleep(HALF)));
        }
        Trouble::Mutex => {
            let lock = Arc::new(Mutex::new(()));
            let held = Arc::clone(&lock);
            std::thread::spawn(move || {
                loop {
                    let guard = held.lock();
                    std::thread::sleep(HALF);
                    drop(guard);
                    std::thread::sleep(HALF);
                }
            });
            peer.spawn_remote(async move {
                loop {
                    drop(lock.lock());
                    P::sleep(Duration::from_millis(5)).await;
                }
            });
        }
        Trouble::All => {
            let second = Duration::from_secs(1);
            for _ in 0..workers {
                peer.spawn_remote(again::<P>(second, second, move || {
                    std::thread::sleep(second)
                }));
            }
        }
    }
}

/// Blocks and pauses by turns, all that do in step.
async fn again<P: Peer>(blocks: Duration, pause: Duration, block: impl Fn() + Send) {
    let mut next = Instant::now() + pause;
    loop {
        P::sleep(next.saturating_duration_since(Instant::now())).await;
        block();
        next += blocks + pause;
    }
}

fn answer_questions(late: &Late, answer: fn(&[f64])) {
    for line in std::io::stdin().lock().lines() {
        assert_eq!(
            line.as_deref().ok(),
            Some("late"),
            "a stalled server understands only `late`"
        );
        let mut late = std::mem::take(&mut *late.lock().expect("nobody panics with it"));
        late.sort_unstable();
        let at = |share: usize| {
            let last = late.len().saturating_sub(1);
            late.get(last * share / 100)
                .map_or(f64::NAN, |by| by.as_nanos() as f64)
        };
        answer(&[at(50), at(99)]);
    }
}
