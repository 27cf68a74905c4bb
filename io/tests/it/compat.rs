//! The traits of tokio and hyper on our streams.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;

use futures_lite::future::zip;
use rt_io::net::unix::{UnixStream, pipe};
use rt_io::net::{TcpListener, TcpStream};
use rt_io::util::duplex;

use crate::exec::Owner;
use crate::support::{Random, within_limit};

/// Reading and writing through the traits of one of the libraries.
trait Bridge<R, W> {
    /// Reads into uninitialised memory behind what is filled already; returns what was read.
    async fn read(reader: &mut R, room: usize) -> io::Result<Vec<u8>>;
    async fn write(writer: &mut W, parts: &[&[u8]]) -> io::Result<usize>;
    async fn shutdown(writer: &mut W) -> io::Result<()>;
}

/// Sends a lot through a bridge, in chunks of any size, and looks at what arrives.
async fn check<B: Bridge<R, W>, R, W>(mut reader: R, mut writer: W) {
    let data = Random::new(17).bytes(300_000);
    let send = async {
        let mut sizes = Random::new(18);
        let mut rest = &data[..];
        while !rest.is_empty() {
            let chunk = &rest[..sizes.up_to(20_000).min(rest.len())];
            let (head, tail) = chunk.split_at(chunk.len() / 3);
            let written = B::write(&mut writer, &[head, tail]).await.unwrap();
            assert!((1..=chunk.len()).contains(&written));
            rest = &rest[written..];
        }
        B::shutdown(&mut writer).await.unwrap();
        drop(writer);
    };
    let receive = async {
        let mut sizes = Random::new(19);
        let mut got: Vec<u8> = Vec::new();
        loop {
            let read = B::read(&mut reader, sizes.up_to(20_000)).await.unwrap();
            if read.is_empty() {
                break got;
            }
            got.extend(read);
        }
    };
    let ((), got) = zip(send, receive).await;
    assert!(got == data, "other bytes than were sent");
}

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = TcpStream::connect(listener.local_addr().unwrap());
    let (near, accepted) = zip(connect, listener.accept()).await;
    (near.unwrap(), accepted.unwrap().0)
}

/// Every kind of stream, through bridge `$bridge`.
macro_rules! check_all {
    ($bridge:ty) => {
        within_limit(|| {
            Owner::new("bridge").block_on(async {
                let (one, two) = tcp_pair().await;
                check::<$bridge, _, _>(one, two).await;
                let (one, two) = tcp_pair().await;
                check::<$bridge, _, _>(one.into_split().0, two.into_split().1).await;
                let (mut one, mut two) = tcp_pair().await;
                check::<$bridge, _, _>(one.split().0, two.split().1).await;
                let (one, two) = UnixStream::pair().unwrap();
                check::<$bridge, _, _>(one, two).await;
                let (one, two) = UnixStream::pair().unwrap();
                check::<$bridge, _, _>(one.into_split().0, two.into_split().1).await;
                let (mut one, mut two) = UnixStream::pair().unwrap();
                check::<$bridge, _, _>(one.split().0, two.split().1).await;
                let (sender, receiver) = pipe::pipe().unwrap();
                check::<$bridge, _, _>(receiver, sender).await;
                let (one, two) = duplex(1_000);
                check::<$bridge, _, _>(one, two).await;
            });
        });
    };
}

/// Room for `room` bytes behind three filled ones, not initialised.
fn uninit(room: usize) -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); room + 3]
}

#[cfg(feature = "tokio-io")]
mod with_tokio {
    use super::*;
    use std::pin::pin;

    use rt_sync::wait::{self, WaitKind};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use crate::exec::Counter;

    struct Tokio;

    impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Bridge<R, W> for Tokio {
        async fn read(reader: &mut R, room: usize) -> io::Result<Vec<u8>> {
            let mut memory = uninit(room);
            let mut buf = ReadBuf::uninit(&mut memory);
            buf.put_slice(b"abc");
            poll_fn(|cx| Pin::new(&mut *reader).poll_read(cx, &mut buf)).await?;
            assert_eq!(&buf.filled()[..3], b"abc");
            Ok(buf.filled()[3..].to_vec())
        }

        async fn write(writer: &mut W, parts: &[&[u8]]) -> io::Result<usize> {
            assert!(writer.is_write_vectored());
            let parts: Vec<_> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
            poll_fn(|cx| Pin::new(&mut *writer).poll_write_vectored(cx, &parts)).await
        }

        async fn shutdown(writer: &mut W) -> io::Result<()> {
            poll_fn(|cx| Pin::new(&mut *writer).poll_flush(cx)).await?;
            poll_fn(|cx| Pin::new(&mut *writer).poll_shutdown(cx)).await
        }
    }

    /// There is no line of the user's own in such a call; one of ours would say nothing.
    #[test]
    fn a_wait_is_told_with_the_line_that_called_the_trait() {
        let (one, _two) = UnixStream::pair().expect("a pair");
        let mut one = pin!(one);
        let mut bytes = [0; 4];
        let mut buf = ReadBuf::new(&mut bytes);
        let owner = Owner::new("sites");
        let line = line!() + 1;
        let read = poll_fn(|cx| one.as_mut().poll_read(cx, &mut buf));
        let poll = owner.poll(pin!(read), &Counter::new(None));
        assert!(poll.is_pending());
        let wait = wait::take();
        let site = wait.site.expect("a site");
        assert_eq!(
            (wait.kind, site.file(), site.line()),
            (WaitKind::Read, file!(), line)
        );
    }

    #[test]
    fn every_stream_carries_bytes_through_the_traits_of_tokio() {
        check_all!(Tokio);
    }
}

#[cfg(feature = "hyper")]
mod with_hyper {
    use super::*;
    use hyper::rt::{Read, ReadBuf, Write};

    struct Hyper;

    impl<R: Read + Unpin, W: Write + Unpin> Bridge<R, W> for Hyper {
        async fn read(reader: &mut R, room: usize) -> io::Result<Vec<u8>> {
            let mut memory = uninit(room);
            let mut buf = ReadBuf::uninit(&mut memory);
            buf.unfilled().put_slice(b"abc");
            poll_fn(|cx| Pin::new(&mut *reader).poll_read(cx, buf.unfilled())).await?;
            assert_eq!(&buf.filled()[..3], b"abc");
            Ok(buf.filled()[3..].to_vec())
        }

        async fn write(writer: &mut W, parts: &[&[u8]]) -> io::Result<usize> {
            assert!(writer.is_write_vectored());
            let parts: Vec<_> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
            poll_fn(|cx| Pin::new(&mut *writer).poll_write_vectored(cx, &parts)).await
        }

        async fn shutdown(writer: &mut W) -> io::Result<()> {
            poll_fn(|cx| Pin::new(&mut *writer).poll_flush(cx)).await?;
            poll_fn(|cx| Pin::new(&mut *writer).poll_shutdown(cx)).await
        }
    }

    #[test]
    fn every_stream_carries_bytes_through_the_traits_of_hyper() {
        check_all!(Hyper);
    }
}
