//! Sockets.

mod accept;
mod addr;
mod descriptor;
mod halves;
mod listener_methods;
mod message_methods;
mod readiness_methods;
mod recv_buf;
mod stream_methods;
pub mod tcp;
mod udp;
mod udp_batch;
pub mod unix;

pub use self::addr::{EachAddr, Lookup, LookupHost, ToSocketAddrs, lookup_host};
pub use self::tcp::{TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
pub use self::udp_batch::{Datagram, RecvBatch};
pub use self::unix::{UnixDatagram, UnixListener, UnixSocket, UnixStream};
