//! Sockets.

mod accept;
mod addr;
mod readiness_methods;
pub mod tcp;
mod udp;
pub mod unix;

pub use self::addr::{EachAddr, LookupHost, Lookup, ToSocketAddrs, lookup_host};
pub use self::tcp::{TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
pub use self::unix::{UnixDatagram, UnixListener, UnixStream};
