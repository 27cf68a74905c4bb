//! TCP: listener, stream, its halves, and a socket that can be set up before it becomes either.

mod connect;
mod halves;
mod listener;
mod socket;
mod stream;

pub use self::connect::Connect;
pub use self::halves::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use self::listener::{Accept, TcpListener};
pub use self::socket::TcpSocket;
pub use self::stream::{Peek, TcpStream};
