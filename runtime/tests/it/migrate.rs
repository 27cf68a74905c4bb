//! What users of tokio typically write, with `tokio::` replaced by `rt::` and nothing else changed.
//!
//! No line below needed more than the prefix. What does need more elsewhere: code that implements tokio's I/O traits, or
//! is generic over them (`futures_io`'s are meant here, see the feature `tokio-io`), and what tokio has in `fs` and `process`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use rt::task::JoinSet;
use rt::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use crate::support::Limit;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// An actor: a task that owns its state, asked by messages that carry where to answer.
enum Command {
    Get {
        key: String,
        answer: oneshot::Sender<Option<String>>,
    },
    Set {
        key: String,
        value: String,
    },
}

#[rt::test]
async fn an_actor() {
    let _limit = Limit::new();
    let (tx, mut rx) = mpsc::channel::<Command>(32);
    let manager = rt::spawn(async move {
        let mut map = HashMap::new();
        while let Some(command) = rx.recv().await {
            match command {
                Command::Get { key, answer } => {
                    let _ = answer.send(map.get(&key).cloned());
                }
                Command::Set { key, value } => {
                    map.insert(key, value);
                }
            }
        }
        map.len()
    });
    let writers: Vec<_> = (0..4)
        .map(|n| {
            let tx = tx.clone();
            rt::spawn(async move {
                let command = Command::Set {
                    key: format!("key{n}"),
                    value: n.to_string(),
                };
                tx.send(command).await.ok().unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let (answer, answered) = oneshot::channel();
    tx.send(Command::Get {
        key: "key2".into(),
        answer,
    })
    .await
    .ok()
    .unwrap();
    assert_eq!(answered.await.unwrap().as_deref(), Some("2"));
    drop(tx);
    assert_eq!(manager.await.unwrap(), 4);
}

async fn handle(mut socket: TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        let n = socket.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        socket.write_all(&buffer[..n]).await?;
    }
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_server_with_a_graceful_shutdown() -> Result<()> {
    let _limit = Limit::new();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (shutdown, _) = broadcast::channel::<()>(1);
    let mut stopped = shutdown.subscribe();
    let server = rt::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            rt::select! {
                accepted = listener.accept() => {
                    let (socket, _peer) = accepted?;
                    connections.spawn(handle(socket));
                }
                Some(ended) = connections.join_next() => {
                    ended??;
                }
                _ = stopped.recv() => break,
            }
        }
        while let Some(ended) = connections.join_next().await {
            ended??;
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    let mut client = TcpStream::connect(address).await?;
    client.write_all(b"hello").await?;
    let mut answer = [0; 5];
    client.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"hello");
    let (mut reader, mut writer) = client.into_split();
    writer.write_all(b"again").await?;
    reader.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"again");
    drop((reader, writer));
    shutdown.send(())?;
    server.await??;
    Ok(())
}

#[rt::test(start_paused = true)]
async fn times() {
    let _limit = Limit::new();
    let start = Instant::now();
    assert!(
        timeout(Duration::from_millis(10), std::future::pending::<()>())
            .await
            .is_err()
    );
    let mut ticks = interval(Duration::from_millis(5));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..3 {
        ticks.tick().await;
    }
    sleep_until(start + Duration::from_millis(100)).await;
    let deadline = sleep(Duration::from_millis(50));
    rt::pin!(deadline);
    let mut rounds = 0;
    loop {
        rt::select! {
            biased;
            () = &mut deadline, if !deadline.is_elapsed() => break,
            _ = ticks.tick() => rounds += 1,
        }
    }
    assert!(rounds >= 5);
    deadline
        .as_mut()
        .reset(Instant::now() + Duration::from_millis(1));
    deadline.await;
}

#[rt::test]
async fn shared_state() {
    let _limit = Limit::new();
    let counter = Arc::new(Mutex::new(0));
    let settings = Arc::new(RwLock::new(String::from("a")));
    let permits = Arc::new(Semaphore::new(3));
    let ready = Arc::new(Notify::new());
    let mut set = JoinSet::new();
    for _ in 0..10 {
        let (counter, settings) = (counter.clone(), settings.clone());
        let (permits, ready) = (permits.clone(), ready.clone());
        set.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            let length = settings.read().await.len();
            *counter.lock().await += length;
            ready.notify_one();
        });
    }
    ready.notified().await;
    while let Some(ended) = set.join_next().await {
        ended.unwrap();
    }
    settings.write().await.push('b');
    assert_eq!(*counter.lock().await, 10);
    assert_eq!(permits.available_permits(), 3);
}

#[rt::test]
async fn watching_a_value() {
    let _limit = Limit::new();
    let (tx, mut rx) = watch::channel(1);
    let task = rt::spawn(async move {
        let mut seen = Vec::new();
        while rx.changed().await.is_ok() {
            seen.push(*rx.borrow_and_update());
        }
        seen
    });
    rt::task::yield_now().await;
    tx.send(2).unwrap();
    rt::task::yield_now().await;
    drop(tx);
    assert_eq!(task.await.unwrap(), [2]);
}

#[rt::test]
async fn joining_and_blocking() -> Result<()> {
    let _limit = Limit::new();
    async fn fetch(n: u32) -> Result<u32> {
        sleep(Duration::from_millis(1)).await;
        Ok(n)
    }
    let (a, b) = rt::join!(fetch(1), fetch(2));
    let (c, d) = rt::try_join!(fetch(3), fetch(4))?;
    let e = rt::task::spawn_blocking(|| 5).await?;
    let handle = rt::runtime::Handle::current();
    let f = handle.spawn(async { 6 }).await?;
    assert_eq!(a? + b? + c + d + e + f, 21);
    let task = rt::spawn(std::future::pending::<()>());
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    Ok(())
}

#[rt::test]
async fn datagrams() -> Result<()> {
    let _limit = Limit::new();
    let one = UdpSocket::bind("127.0.0.1:0").await?;
    let two = UdpSocket::bind("127.0.0.1:0").await?;
    one.send_to(b"ping", two.local_addr()?).await?;
    let mut buffer = [0; 16];
    let (n, from) = two.recv_from(&mut buffer).await?;
    assert_eq!((&buffer[..n], from), (&b"ping"[..], one.local_addr()?));
    Ok(())
}

#[rt::test]
async fn signals() {
    let _limit = Limit::new();
    use rt::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::window_change()).unwrap();
    let ended = rt::select! {
        _ = rt::signal::ctrl_c() => "ctrl-c",
        _ = hangup.recv() => "window",
        _ = sleep(Duration::from_millis(1)) => "time",
    };
    assert_eq!(ended, "time");
}

#[test]
fn a_runtime_by_hand() {
    let _limit = Limit::new();
    let runtime = rt::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("migrated")
        .enable_all()
        .build()
        .unwrap();
    let answer = runtime.block_on(async {
        let local = rt::task::LocalSet::new();
        let shared = std::rc::Rc::new(41);
        local
            .run_until(async move {
                rt::task::spawn_local(async move { *shared + 1 })
                    .await
                    .unwrap()
            })
            .await
    });
    assert_eq!(answer, 42);
    runtime.shutdown_timeout(Duration::from_secs(1));
}

rt::task_local! {
    static REQUEST: u32;
}

#[rt::test]
async fn values_of_a_task() {
    let _limit = Limit::new();
    let seen = REQUEST.scope(7, async { REQUEST.with(|id| *id) }).await;
    assert_eq!(seen, 7);
}
