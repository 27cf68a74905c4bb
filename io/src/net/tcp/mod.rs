//! TCP: listener, stream, its halves, and a socket that can be set up before it becomes either.

mod connect;
mod into_split;
mod listener;
mod socket;
mod split;
mod stream;

pub use self::connect::Connect;
pub use self::into_split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::listener::{Accept, TcpListener};
pub use self::socket::TcpSocket;
pub use self::split::{ReadHalf, WriteHalf};
pub use self::stream::{Peek, TcpStream};
