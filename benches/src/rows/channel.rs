//! What does a message through a channel cost?
//!
//! # What would mislead
//! Each runtime runs its own channels: tokio's, smol's (async-channel, event-listener), ours; flume has no runtime and runs
//! on ours. On one worker a producer fills the channel before the consumer runs, so a bounded channel switches tasks once in 100
//! messages and a ping-pong row twice a message. On two workers the ends may sit on different cores, and then wake-ups
//! across cores decide: CPU is the figure to compare there, not time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Micro, cpu_on_worker};
use crate::goal::Goal;
use crate::peer::{Peer, PeerId, Rt, Smol, Tokio};
use crate::report::Metric;

const CPU_OF_THREE: &[Metric] = &[Metric {
    name: "CPU",
    unit: "ns",
    goals: &[Goal::OfAny(0.8)],
}];

const fn row(
    name: &'static str,
    metrics: &'static [Metric],
    peers: &'static [PeerId],
    sample: fn(PeerId, usize, u64) -> Vec<f64>,
) -> Micro {
    Micro {
        name,
        metrics,
        quick: 100_000,
        full: 1_000_000,
        quick_rounds: 5,
        each_workers: true,
        peers,
        sample,
    }
}

const WITH_FLUME: &[PeerId] = &[PeerId::Rt, PeerId::Tokio, PeerId::Smol, PeerId::Flume];
const WITHOUT_SMOL: &[PeerId] = &[PeerId::Rt, PeerId::Tokio];

const OF_TOKIO: &[Metric] = &[Metric {
    name: "CPU",
    unit: "ns",
    goals: &[Goal::OfTokio(0.9)],
}];

const HALF_OF_TOKIO: &[Metric] = &[Metric {
    name: "CPU",
    unit: "ns",
    goals: &[Goal::OfTokio(0.5)],
}];

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    row(
        "mpsc bounded, 1 producer",
        CPU_OF_THREE,
        WITH_FLUME,
        |peer, workers, n| bounded(peer, workers, n, 1),
    ),
    row(
        "mpsc bounded, 5 producers",
        CPU_OF_THREE,
        WITH_FLUME,
        |peer, workers, n| bounded(peer, workers, n, 5),
    ),
    row(
        "mpsc unbounded, 1 producer",
        CPU_OF_THREE,
        WITH_FLUME,
        |peer, workers, n| unbounded(peer, workers, n, 1),
    ),
    row(
        "mpsc unbounded, 5 producers",
        CPU_OF_THREE,
        WITH_FLUME,
        |peer, workers, n| unbounded(peer, workers, n, 5),
    ),
    row(
        "oneshot ping-pong",
        HALF_OF_TOKIO,
        WITHOUT_SMOL,
        |peer, workers, n| match peer {
            PeerId::Rt => vec![cpu_on_worker::<Rt, _>(workers, n, ping_pong_rt)],
            _ => vec![cpu_on_worker::<Tokio, _>(workers, n, ping_pong_tokio)],
        },
    ),
    row(
        "oneshot request and reply",
        HALF_OF_TOKIO,
        WITHOUT_SMOL,
        |peer, workers, n| match peer {
            PeerId::Rt => vec![cpu_on_worker::<Rt, _>(workers, n, request_rt)],
            _ => vec![cpu_on_worker::<Tokio, _>(workers, n, request_tokio)],
        },
    ),
    row(
        "notify ping-pong",
        &[Metric {
            name: "CPU",
            unit: "ns",
            goals: &[Goal::OfTokio(0.6)],
        }],
        &PeerId::RUNTIMES,
        |peer, workers, n| match peer {
            PeerId::Rt => vec![cpu_on_worker::<Rt, _>(
                workers,
                n,
                notify::<Rt, rt::sync::Notify>,
            )],
            PeerId::Tokio => {
                vec![cpu_on_worker::<Tokio, _>(
                    workers,
                    n,
                    notify::<Tokio, tokio::sync::Notify>,
                )]
            }
            _ => vec![cpu_on_worker::<Smol, _>(
                workers,
                n,
                notify::<Smol, Listened>,
            )],
        },
    ),
    row(
        "broadcast, 10 receivers",
        OF_TOKIO,
        WITHOUT_SMOL,
        |peer, workers, n| match peer {
            PeerId::Rt => vec![cpu_on_worker::<Rt, _>(workers, n / 10, broadcast_rt)],
            _ => vec![cpu_on_worker::<Tokio, _>(workers, n / 10, broadcast_tokio)],
        },
    ),
    row(
        "watch, 10 receivers",
        OF_TOKIO,
        WITHOUT_SMOL,
        |peer, workers, n| match peer {
            PeerId::Rt => vec![cpu_on_worker::<Rt, _>(workers, n / 10, watch_rt)],
            _ => vec![cpu_on_worker::<Tokio, _>(workers, n / 10, watch_tokio)],
        },
    ),
    row(
        "queue against mpsc",
        &[
            Metric {
                name: "queue",
                unit: "ns",
                goals: &[],
            },
            Metric {
                name: "ratio",
                unit: "",
                goals: &[Goal::AtMost(1.5)],
            },
        ],
        &[PeerId::Rt],
        |_, workers, n| {
            let queue = cpu_on_worker::<Rt, _>(workers, n, queue);
            let mpsc = cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, OurBounded>(n, 1));
            vec![queue, queue / mpsc]
        },
    ),
];

/// A channel of numbers with several senders.
trait Channel: 'static {
    type Sender: Clone + Send + Sync + 'static;
    type Receiver: Send + 'static;

    fn new() -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, number: u64) -> impl Future<Output = ()> + Send;
    fn recv(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send;
}

const CAPACITY: usize = 100;

macro_rules! channel {
    ($name:ident, $sender:ty, $receiver:ty, $new:expr, |$s:ident, $number:ident| $send:expr, |$r:ident| $recv:expr) => {
        struct $name;

        impl Channel for $name {
            type Sender = $sender;
            type Receiver = $receiver;

            fn new() -> (Self::Sender, Self::Receiver) {
                $new
            }

            async fn send($s: &Self::Sender, $number: u64) {
                let sent: Result<(), _> = $send;
                assert!(sent.is_ok(), "the receiver is alive");
            }

            async fn recv($r: &mut Self::Receiver) -> Option<u64> {
                $recv
            }
        }
    };
}

use rt::sync::mpsc as ours;
use tokio::sync::mpsc as theirs;

channel!(
    OurBounded,
    ours::Sender<u64>,
    ours::Receiver<u64>,
    ours::channel(CAPACITY),
    |s, n| s.send(n).await,
    |r| r.recv().await
);
channel!(
    OurUnbounded,
    ours::UnboundedSender<u64>,
    ours::UnboundedReceiver<u64>,
    ours::unbounded_channel(),
    |s, n| s.send(n),
    |r| r.recv().await
);
channel!(
    TokioBounded,
    theirs::Sender<u64>,
    theirs::Receiver<u64>,
    theirs::channel(CAPACITY),
    |s, n| s.send(n).await,
    |r| r.recv().await
);
channel!(
    TokioUnbounded,
    theirs::UnboundedSender<u64>,
    theirs::UnboundedReceiver<u64>,
    theirs::unbounded_channel(),
    |s, n| s.send(n),
    |r| r.recv().await
);
channel!(
    SmolBounded,
    async_channel::Sender<u64>,
    async_channel::Receiver<u64>,
    async_channel::bounded(CAPACITY),
    |s, n| s.send(n).await,
    |r| r.recv().await.ok()
);
channel!(
    SmolUnbounded,
    async_channel::Sender<u64>,
    async_channel::Receiver<u64>,
    async_channel::unbounded(),
    |s, n| s.send(n).await,
    |r| r.recv().await.ok()
);
channel!(
    FlumeBounded,
    flume::Sender<u64>,
    flume::Receiver<u64>,
    flume::bounded(CAPACITY),
    |s, n| s.send_async(n).await,
    |r| r.recv_async().await.ok()
);
channel!(
    FlumeUnbounded,
    flume::Sender<u64>,
    flume::Receiver<u64>,
    flume::unbounded(),
    |s, n| s.send(n),
    |r| r.recv_async().await.ok()
);

/// So many messages from so many producers to one consumer, a task each.
async fn through<P: Peer, C: Channel>(messages: u64, producers: u64) {
    let (sender, mut receiver) = C::new();
    for _ in 0..producers {
        let sender = sender.clone();
        P::detach(async move {
            for number in 0..messages / producers {
                C::send(&sender, number).await;
            }
        });
    }
    drop(sender);
    let consumer = P::spawn(async move {
        let mut sum = 0_u64;
        while let Some(number) = C::recv(&mut receiver).await {
            sum = sum.wrapping_add(number);
        }
        sum
    });
    std::hint::black_box(consumer.await);
}

fn bounded(peer: PeerId, workers: usize, n: u64, producers: u64) -> Vec<f64> {
    vec![match (peer, producers) {
        (PeerId::Rt, 1) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, OurBounded>(n, 1)),
        (PeerId::Rt, _) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, OurBounded>(n, 5)),
        (PeerId::Tokio, 1) => {
            cpu_on_worker::<Tokio, _>(workers, n, |n| through::<Tokio, TokioBounded>(n, 1))
        }
        (PeerId::Tokio, _) => {
            cpu_on_worker::<Tokio, _>(workers, n, |n| through::<Tokio, TokioBounded>(n, 5))
        }
        (PeerId::Smol, 1) => {
            cpu_on_worker::<Smol, _>(workers, n, |n| through::<Smol, SmolBounded>(n, 1))
        }
        (PeerId::Smol, _) => {
            cpu_on_worker::<Smol, _>(workers, n, |n| through::<Smol, SmolBounded>(n, 5))
        }
        (_, 1) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, FlumeBounded>(n, 1)),
        (..) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, FlumeBounded>(n, 5)),
    }]
}

fn unbounded(peer: PeerId, workers: usize, n: u64, producers: u64) -> Vec<f64> {
    vec![match (peer, producers) {
        (PeerId::Rt, 1) => {
            cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, OurUnbounded>(n, 1))
        }
        (PeerId::Rt, _) => {
            cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, OurUnbounded>(n, 5))
        }
        (PeerId::Tokio, 1) => {
            cpu_on_worker::<Tokio, _>(workers, n, |n| through::<Tokio, TokioUnbounded>(n, 1))
        }
        (PeerId::Tokio, _) => {
            cpu_on_worker::<Tokio, _>(workers, n, |n| through::<Tokio, TokioUnbounded>(n, 5))
        }
        (PeerId::Smol, 1) => {
            cpu_on_worker::<Smol, _>(workers, n, |n| through::<Smol, SmolUnbounded>(n, 1))
        }
        (PeerId::Smol, _) => {
            cpu_on_worker::<Smol, _>(workers, n, |n| through::<Smol, SmolUnbounded>(n, 5))
        }
        (_, 1) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, FlumeUnbounded>(n, 1)),
        (..) => cpu_on_worker::<Rt, _>(workers, n, |n| through::<Rt, FlumeUnbounded>(n, 5)),
    }]
}

/// Two fresh tasks a round that exchange a message each way, over two oneshots of the same crate: the benchmark that tokio
/// itself calls ping-pong.
macro_rules! ping_pong {
    ($name:ident, $peer:ty, $oneshot:path) => {
        async fn $name(rounds: u64) {
            use $oneshot as oneshot;
            for _ in 0..rounds {
                <$peer as Peer>::spawn(async {
                    let (ping, pinged) = oneshot::channel::<()>();
                    let (pong, ponged) = oneshot::channel::<()>();
                    <$peer as Peer>::detach(async move {
                        if pinged.await.is_ok() {
                            let _ = pong.send(());
                        }
                    });
                    let _ = ping.send(());
                    let _ = ponged.await;
                })
                .await;
            }
        }
    };
}

ping_pong!(ping_pong_rt, Rt, rt::sync::oneshot);
ping_pong!(ping_pong_tokio, Tokio, tokio::sync::oneshot);

/// A client and a server. Each request takes a fresh oneshot for its reply through an unbounded channel of the same crate.
macro_rules! request {
    ($name:ident, $peer:ty, $oneshot:path, $mpsc:path) => {
        async fn $name(rounds: u64) {
            use $mpsc as mpsc;
            use $oneshot as oneshot;
            let (sender, mut asked) = mpsc::unbounded_channel::<(u64, oneshot::Sender<u64>)>();
            <$peer as Peer>::detach(async move {
                while let Some((number, answer)) = asked.recv().await {
                    let _ = answer.send(number);
                }
            });
            let client = <$peer as Peer>::spawn(async move {
                for number in 0..rounds {
                    let (answer, answered) = oneshot::channel();
                    assert!(sender.send((number, answer)).is_ok());
                    assert_eq!(answered.await.ok(), Some(number));
                }
            });
            client.await;
        }
    };
}

request!(request_rt, Rt, rt::sync::oneshot, rt::sync::mpsc);
request!(
    request_tokio,
    Tokio,
    tokio::sync::oneshot,
    tokio::sync::mpsc
);

/// Something that one task waits for and another tells of.
trait Bell: Default + Send + Sync + 'static {
    fn ring(&self);
    fn wait(&self) -> impl Future<Output = ()> + Send;
}

impl Bell for rt::sync::Notify {
    fn ring(&self) {
        self.notify_one();
    }

    async fn wait(&self) {
        self.notified().await;
    }
}

impl Bell for tokio::sync::Notify {
    fn ring(&self) {
        self.notify_one();
    }

    async fn wait(&self) {
        self.notified().await;
    }
}

/// What smol's users write: an event and a flag.
#[derive(Default)]
struct Listened {
    rung: AtomicBool,
    event: event_listener::Event,
}

impl Bell for Listened {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.event.notify(1);
    }

    async fn wait(&self) {
        while !self.rung.swap(false, Ordering::Acquire) {
            let listener = self.event.listen();
            if self.rung.swap(false, Ordering::Acquire) {
                return;
            }
            listener.await;
        }
    }
}

/// Two tasks that notify each other in turn.
async fn notify<P: Peer, B: Bell>(rounds: u64) {
    let (ping, pong) = (Arc::new(B::default()), Arc::new(B::default()));
    let (pinged, ponged) = (Arc::clone(&ping), Arc::clone(&pong));
    P::detach(async move {
        for _ in 0..rounds {
            pinged.wait().await;
            pong.ring();
        }
    });
    let first = P::spawn(async move {
        for _ in 0..rounds {
            ping.ring();
            ponged.wait().await;
        }
    });
    first.await;
}

macro_rules! broadcasts {
    ($name:ident, $peer:ty, $broadcast:path) => {
        async fn $name(messages: u64) {
            use $broadcast as broadcast;
            let (sender, _) = broadcast::channel::<u64>(64);
            let receivers: Vec<_> = (0..10)
                .map(|_| {
                    let mut receiver = sender.subscribe();
                    <$peer as Peer>::spawn(async move {
                        let mut count = 0_u64;
                        while let Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) =
                            receiver.recv().await
                        {
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            let source = <$peer as Peer>::spawn(async move {
                for number in 0..messages {
                    let _ = sender.send(number);
                    if number % 32 == 31 {
                        <$peer as Peer>::yield_now().await;
                    }
                }
            });
            source.await;
            for receiver in receivers {
                std::hint::black_box(receiver.await);
            }
        }
    };
}

broadcasts!(broadcast_rt, Rt, rt::sync::broadcast);
broadcasts!(broadcast_tokio, Tokio, tokio::sync::broadcast);

macro_rules! watches {
    ($name:ident, $peer:ty, $watch:path) => {
        async fn $name(messages: u64) {
            use $watch as watch;
            let (sender, receiver) = watch::channel(0_u64);
            let receivers: Vec<_> = (0..10)
                .map(|_| {
                    let mut receiver = receiver.clone();
                    <$peer as Peer>::spawn(async move {
                        let mut sum = 0_u64;
                        while receiver.changed().await.is_ok() {
                            sum = sum.wrapping_add(*receiver.borrow_and_update());
                        }
                        sum
                    })
                })
                .collect();
            drop(receiver);
            let source = <$peer as Peer>::spawn(async move {
                for number in 0..messages {
                    let _ = sender.send(number);
                    <$peer as Peer>::yield_now().await;
                }
            });
            source.await;
            for receiver in receivers {
                std::hint::black_box(receiver.await);
            }
        }
    };
}

watches!(watch_rt, Rt, rt::sync::watch);
watches!(watch_tokio, Tokio, tokio::sync::watch);

/// One producer and one consumer over a queue, as in the first mpsc row.
async fn queue(messages: u64) {
    let queue = Arc::new(rt::sync::Queue::new(CAPACITY));
    let filled = Arc::clone(&queue);
    Rt::detach(async move {
        for number in 0..messages {
            assert!(filled.put(number).await.is_ok());
        }
    });
    let consumer = Rt::spawn(async move {
        let mut sum = 0_u64;
        for _ in 0..messages {
            sum = sum.wrapping_add(queue.get().await.unwrap_or(0));
        }
        sum
    });
    std::hint::black_box(consumer.await);
}
