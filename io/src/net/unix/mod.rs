//! Sockets of the Unix domain, and pipes.
//!
//! The types and methods have tokio's names. Wherever a path is asked for, one that begins with a NUL byte means a name
//! in the abstract namespace of Linux; the `_addr` methods take a [`SocketAddr`] as it is.
//!
//! Making a socket needs no runtime: it registers with the runtime on which it first has to wait.

mod address;
mod datagram;
mod halves;
mod listener;
mod socket;
mod stream;
mod ucred;

pub mod pipe;

pub use std::os::unix::net::SocketAddr;

pub use self::datagram::UnixDatagram;
pub use self::halves::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use self::listener::{Accept, UnixListener};
pub use self::socket::UnixSocket;
pub use self::stream::UnixStream;
pub use self::ucred::UCred;
