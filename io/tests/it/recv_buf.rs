//! Messages that are received into a growing buffer, and sockets of the Unix domain that are set up by hand.

use std::io::ErrorKind;

use futures_lite::future::zip;
use rt_io::net::{UdpSocket, UnixDatagram, UnixListener, UnixSocket, UnixStream};
use rt_io::util::{AsyncReadExt, AsyncWriteExt};

use crate::exec::Owner;
use crate::support::within_limit;
use crate::unix::TempPath;

#[test]
fn udp_messages_are_appended() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let two = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let (addr, from) = (two.local_addr().unwrap(), one.local_addr().unwrap());
            let mut buf = Vec::with_capacity(64);
            let nothing = two.try_recv_buf(&mut buf).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);

            // It has to wait.
            let (received, sent) =
                zip(two.recv_buf_from(&mut buf), one.send_to(b"abc", addr)).await;
            assert_eq!((received.unwrap(), sent.unwrap()), ((3, from), 3));
            one.send_to(b"de", addr).await.unwrap();
            assert_eq!(two.recv_buf(&mut buf).await.unwrap(), 2);
            one.send_to(b"f", addr).await.unwrap();
            two.readable().await.unwrap();
            assert_eq!(two.try_recv_buf_from(&mut buf).unwrap(), (1, from));
            assert_eq!(buf, b"abcdef");

            // As much as there is room for.
            let mut small = Vec::with_capacity(3);
            one.send_to(b"0123456", addr).await.unwrap();
            let read = two.recv_buf(&mut small).await.unwrap();
            assert_eq!(small, &b"0123456"[..read]);
            assert!(read >= 3);
        });
    });
}

#[test]
fn unix_messages_are_appended_and_know_their_senders() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (one, two) = UnixDatagram::pair().unwrap();
            let mut buf = Vec::with_capacity(64);
            one.send(b"abc").await.unwrap();
            assert_eq!(two.recv_buf(&mut buf).await.unwrap(), 3);
            one.send(b"d").await.unwrap();
            let (read, from) = two.recv_buf_from(&mut buf).await.unwrap();
            assert!(read == 1 && from.is_unnamed());
            assert_eq!(buf, b"abcd");

            let (here, there) = (TempPath::new("here"), TempPath::new("there"));
            let named = UnixSocket::new_datagram().unwrap();
            named.bind(&here.0).unwrap();
            let named = named.datagram().unwrap();
            let other = UnixDatagram::bind(&there.0).unwrap();
            named.send_to(b"e", &there.0).await.unwrap();
            let (_, from) = other.recv_buf_from(&mut buf).await.unwrap();
            assert_eq!(from.as_pathname(), Some(here.0.as_path()));
            assert_eq!(
                other.try_recv_buf(&mut buf).unwrap_err().kind(),
                ErrorKind::WouldBlock
            );
        });
    });
}

/// A client with a name, and a backlog of one's own choice.
#[test]
fn a_unix_socket_is_bound_before_it_connects_or_listens() {
    within_limit(|| {
        Owner::new("unix").block_on(async {
            let (server, client) = (TempPath::new("server"), TempPath::new("client"));
            let socket = UnixSocket::new_stream().unwrap();
            socket.bind(&server.0).unwrap();
            let listener: UnixListener = socket.listen(1).unwrap();
            let socket = UnixSocket::new_stream().unwrap();
            socket.bind(&client.0).unwrap();
            let mut stream: UnixStream = socket.connect(&server.0).await.unwrap();
            let (mut accepted, addr) = listener.accept().await.unwrap();
            assert_eq!(addr.as_pathname(), Some(client.0.as_path()));
            stream.write_all(b"hello").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut got = String::new();
            accepted.read_to_string(&mut got).await.unwrap();
            assert_eq!(got, "hello");

            let twice = UnixSocket::new_stream()
                .unwrap()
                .bind(&server.0)
                .unwrap_err();
            assert_eq!(twice.kind(), ErrorKind::AddrInUse);
            let nobody = TempPath::new("nobody");
            let socket = UnixSocket::new_stream().unwrap();
            let error = socket.connect(&nobody.0).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        });
    });
}

#[test]
fn a_unix_socket_of_the_wrong_kind_says_what_to_make() {
    let listen = UnixSocket::new_datagram().unwrap().listen(1).unwrap_err();
    let datagram = UnixSocket::new_stream().unwrap().datagram().unwrap_err();
    for (error, word) in [(listen, "new_stream"), (datagram, "new_datagram")] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(word), "{error}");
    }
}
