//! Sockets of the Unix domain.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::{env, fs, process, thread};

use futures_lite::future::zip;
use rt_io::context;
use rt_io::net::unix::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use rt_io::util::{AsyncReadExt, AsyncWriteExt};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::exec::{Counter, Owner};
use crate::support::{Random, within_limit};

/// A path that nobody else uses; removed at the end.
pub(crate) struct TempPath(pub(crate) PathBuf);

impl TempPath {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        Self(env::temp_dir().join(format!("rt-io-{}-{number}-{name}", process::id())))
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

async fn echo_once(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut read, mut write) = stream.split();
    rt_io::util::copy(&mut read, &mut write).await.unwrap();
    write.close().await.unwrap();
}

async fn ask(mut stream: UnixStream) {
    let data = Random::new(11).bytes(500_000);
    let (mut read, mut write) = stream.split();
    let send = async {
        write.write_all(&data).await.unwrap();
        write.close().await.unwrap();
    };
    let mut got = Vec::new();
    let ((), read) = zip(send, read.read_to_end(&mut got)).await;
    read.unwrap();
    assert!(got == data, "other bytes came back");
}

#[test]
fn a_stream_echoes_more_than_fits_into_its_buffers() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let path = TempPath::new("echo");
            let listener = UnixListener::bind(&path.0).unwrap();
            let connect = async { ask(UnixStream::connect(&path.0).await.unwrap()).await };
            zip(echo_once(&listener), connect).await;
            let local = listener.local_addr().unwrap();
            assert_eq!(local.as_pathname(), Some(&*path.0));
        });
    });
}

#[test]
fn an_abstract_name_is_a_path_that_begins_with_nul() {
    use std::os::linux::net::SocketAddrExt;
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let name = format!("rt-io-test-{}", process::id());
            let listener = UnixListener::bind(format!("\0{name}")).unwrap();
            let addr = SocketAddr::from_abstract_name(&name).unwrap();
            assert_eq!(
                listener.local_addr().unwrap().as_abstract_name(),
                Some(name.as_bytes())
            );
            let connect = async { ask(UnixStream::connect_addr(&addr).await.unwrap()).await };
            zip(echo_once(&listener), connect).await;
        });
    });
}

#[test]
fn the_peer_of_a_pair_is_this_process() {
    let (one, _two) = UnixStream::pair().unwrap();
    let cred = one.peer_cred().unwrap();
    assert_eq!(cred.pid(), Some(process::id().cast_signed()));
    assert_eq!(cred.uid(), rustix::process::geteuid().as_raw());
    assert_eq!(cred.gid(), rustix::process::getegid().as_raw());
}

#[test]
fn errors_say_which_path() {
    within_limit(|| {
        futures_lite::future::block_on(async {
            let path = TempPath::new("none");
            let error = UnixStream::connect(&path.0).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let error = UnixStream::connect("a\0b").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let long = "x".repeat(200);
            let error = UnixListener::bind(&long).unwrap_err();
            assert!(error.to_string().contains(&long), "{error}");
        });
    });
}

#[test]
fn dropping_the_owned_writing_half_ends_the_stream_and_forgetting_it_does_not() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (one, mut two) = UnixStream::pair().unwrap();
            let (mut read, write) = one.into_split();
            write.try_write(b"last").unwrap();
            drop(write);
            let mut got = Vec::new();
            two.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, b"last");
            two.write_all(b"answer").await.unwrap();
            let mut answer = [0; 6];
            read.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"answer");

            let (one, two) = UnixStream::pair().unwrap();
            let (read, write) = one.into_split();
            write.forget();
            let error = two.try_read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            drop(read);
            assert_eq!(two.try_read(&mut [0]).unwrap(), 0);
        });
    });
}

#[test]
fn only_halves_of_one_stream_are_reunited() {
    let (one, two) = UnixStream::pair().unwrap();
    let (read_one, write_one) = one.into_split();
    let (read_two, write_two) = two.into_split();
    let error = read_one.reunite(write_two).unwrap_err();
    let one = error.0.reunite(write_one).unwrap();
    let two = read_two.reunite(error.1).unwrap();
    one.try_write(b"x").unwrap();
    assert_eq!(two.try_read(&mut [0; 8]).unwrap(), 1);
}

#[test]
fn a_dropped_half_drops_its_waker() {
    within_limit(|| {
        let owner = Owner::new("unix");
        let (one, _two) = UnixStream::pair().unwrap();
        let (mut read, write) = one.into_split();
        let counter = Counter::new(None);
        let mut buf = [0; 8];
        {
            let mut reading = pin!(read.read(&mut buf));
            assert!(owner.poll(reading.as_mut(), &counter).is_pending());
        }
        assert_eq!(std::sync::Arc::strong_count(&counter), 2);
        drop(read);
        assert_eq!(std::sync::Arc::strong_count(&counter), 1);
        drop(write);
    });
}

#[test]
fn data_behind_passed_descriptors_is_not_forgotten() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (mut one, two) = UnixStream::pair().unwrap();
            let mut buf = [0; 64];
            let read = async {
                let mut got: Vec<u8> = Vec::new();
                while got.len() < 8 {
                    let read = one.read(&mut buf).await.unwrap();
                    got.extend(&buf[..read]);
                }
                got
            };
            let send = async {
                let fds = [two.as_fd()];
                let mut space =
                    [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
                let text = [IoSlice::new(b"with")];
                rustix::net::sendmsg(&two, &text, &mut control, SendFlags::empty()).unwrap();
                two.try_write(b"more").unwrap();
            };
            let (got, ()) = zip(read, send).await;
            assert_eq!(got, b"withmore");
        });
    });
}

#[test]
fn vectored_reads_and_writes_use_all_buffers() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (mut one, mut two) = UnixStream::pair().unwrap();
            let parts = [IoSlice::new(b"ab"), IoSlice::new(b"cde")];
            assert_eq!(one.write_vectored(&parts).await.unwrap(), 5);
            let (mut first, mut second) = ([0; 1], [0; 8]);
            let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            assert_eq!(two.read_vectored(&mut bufs).await.unwrap(), 5);
            assert_eq!((&first, &second[..4]), (b"a", &b"bcde"[..]));
        });
    });
}

#[test]
fn connect_waits_while_the_backlog_is_full() {
    within_limit(|| {
        context::set_sleep_hook(|duration| Some(Box::pin(blocking_sleep(duration))));
        Owner::new("unix").block_on(async {
            let path = TempPath::new("full");
            let listener = UnixListener::bind(&path.0).unwrap();
            rustix::net::listen(&listener, 0).unwrap();
            let first = UnixStream::connect(&path.0).await.unwrap();
            let mut second = pin!(UnixStream::connect(&path.0));
            let still_waits =
                std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_pending()));
            assert!(still_waits.await);
            let wait = rt_sync::wait::take();
            assert_eq!(wait.kind, rt_sync::wait::WaitKind::Connect);
            assert_eq!(wait.site.unwrap().file(), file!());
            let accept = async {
                listener.accept().await.unwrap();
                listener.accept().await.unwrap()
            };
            let (second, _) = zip(second, accept).await;
            second.unwrap();
            drop(first);
        });
    });
}

/// A timer for tests: a thread each.
fn blocking_sleep(duration: std::time::Duration) -> impl Future<Output = ()> + Send {
    let (mut tick, mut tock) = rt_io::util::duplex(1);
    thread::spawn(move || {
        thread::sleep(duration);
        let _ = futures_lite::future::block_on(tick.write(b"."));
    });
    async move {
        let _ = tock.read(&mut [0]).await;
    }
}

#[test]
fn datagrams_are_echoed_between_paths() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (server_path, client_path) = (TempPath::new("server"), TempPath::new("client"));
            let server = UnixDatagram::bind(&server_path.0).unwrap();
            let client = UnixDatagram::bind(&client_path.0).unwrap();
            let serve = async {
                let mut buf = [0; 64];
                let (length, from) = server.recv_from(&mut buf).await.unwrap();
                let from = from.as_pathname().unwrap();
                assert_eq!(from, client_path.0);
                server.send_to(&buf[..length], from).await.unwrap();
            };
            let ask = async {
                client.connect(&server_path.0).unwrap();
                client.send(b"hello").await.unwrap();
                let mut buf = [0; 64];
                let length = client.recv(&mut buf).await.unwrap();
                assert_eq!(&buf[..length], b"hello");
            };
            zip(serve, ask).await;
            let stranger = UnixDatagram::unbound().unwrap();
            stranger.send_to(b"x", &server_path.0).await.unwrap();
            let (_, from) = server.recv_from(&mut [0; 8]).await.unwrap();
            assert!(from.is_unnamed());
        });
    });
}

#[test]
fn a_full_datagram_queue_holds_the_sender() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (one, two) = UnixDatagram::pair().unwrap();
            let total = 2_000_u32;
            let send = async {
                for number in 0..total {
                    one.send(&number.to_le_bytes()).await.unwrap();
                }
            };
            let receive = async {
                for number in 0..total {
                    let mut buf = [0; 4];
                    two.recv(&mut buf).await.unwrap();
                    assert_eq!(u32::from_le_bytes(buf), number);
                }
            };
            zip(send, receive).await;
            let error = two.try_recv(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        });
    });
}
