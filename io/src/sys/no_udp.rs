//! Several UDP messages, where the system has no calls for that.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::RecvFlags;

/// As elsewhere.
pub(crate) const MAX_MESSAGES: usize = 32;

/// Where one received message lies, apart from its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) len: usize,
    pub(crate) segment: usize,
}

/// Never used: the system does not cut messages.
pub(crate) fn segment_control(_segment: u16) -> [u8; 0] {
    []
}

pub(crate) fn set_gro(_socket: BorrowedFd<'_>, _on: bool) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system does not join UDP messages on receipt (UDP_GRO is Linux only)",
    ))
}

/// Receives one message.
pub(crate) fn recv_many(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot_len: usize,
    received: &mut Vec<Received>,
) -> io::Result<()> {
    let (len, _, from) = rustix::net::recvfrom(socket, &mut bytes[..slot_len], RecvFlags::empty())?;
    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
    if let Some(from) = from {
        received.push(Received {
            from,
            len,
            segment: 0,
        });
    }
    Ok(())
}
