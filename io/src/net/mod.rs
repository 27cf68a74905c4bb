//! Sockets.

mod accept;
mod addr;
pub mod tcp;

pub use self::addr::{EachAddr, LookupHost, Lookup, ToSocketAddrs, lookup_host};
pub use self::tcp::{TcpListener, TcpSocket, TcpStream};
