//! Several UDP messages with one call: `recvmmsg`, and the segment sizes of GSO and GRO.
//!
//! A control message is laid out by hand: length (a `usize`), level and type (a `c_int` each), data, padded to the size
//! of a `usize`. That is the kernel's layout on every architecture.
#![expect(
    unsafe_code,
    reason = "neither rustix nor socket2 has recvmmsg or UDP_GRO"
)]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use socket2::{SockAddr, SockAddrStorage};

/// Messages that one call receives at most; what is needed for the call lies on the stack.
pub(crate) const MAX_MESSAGES: usize = 32;

/// Where one received message lies, apart from its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) len: usize,
    /// The length of each of the messages that were joined; the last one may be shorter. 0: there is one.
    pub(crate) segment: usize,
}

/// Of a message whose sender has no IP address, as does not happen on a UDP socket.
const NO_SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

const WORD: usize = size_of::<usize>();
const INT: usize = size_of::<c_int>();
/// Bytes before the data of a control message.
const HEADER: usize = WORD + 2 * INT;
/// Room for a control message with a `c_int`.
const CONTROL: usize = HEADER + WORD;

/// The control message that has a long message cut into segments when it is sent.
pub(crate) fn segment_control(segment: u16) -> [u8; CONTROL] {
    let mut control = [0; CONTROL];
    control[..WORD].copy_from_slice(&(HEADER + size_of::<u16>()).to_ne_bytes());
    control[WORD..][..INT].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control[WORD + INT..][..INT].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    control[HEADER..][..2].copy_from_slice(&segment.to_ne_bytes());
    control
}

/// The segment size in what `recvmmsg` gave, 0 if there is none: then the zeroes are still there.
fn segment_of(control: &[u8; CONTROL]) -> usize {
    let int = |at: usize| {
        let bytes = control.get(at..at + INT)?.try_into().ok()?;
        Some(c_int::from_ne_bytes(bytes))
    };
    match (int(WORD), int(WORD + INT), int(HEADER)) {
        (Some(libc::SOL_UDP), Some(libc::UDP_GRO), Some(size)) => size.try_into().unwrap_or(0),
        _ => 0,
    }
}

/// Has the system join messages of one sender that arrive together, or not.
pub(crate) fn set_gro(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let on = c_int::from(on);
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed, hence open, and the pointer is to as many bytes as `len` says.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            ptr::from_ref(&on).cast(),
            len,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Receives messages, each into its own `slot_len` bytes of `bytes`, without waiting. Adds an entry to `received` for
/// each, in the order of the slots: at least one.
pub(crate) fn recv_many(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot_len: usize,
    received: &mut Vec<Received>,
) -> io::Result<()> {
    let mut names: [SockAddrStorage; MAX_MESSAGES] =
        std::array::from_fn(|_| SockAddrStorage::zeroed());
    let mut controls = [[0_u8; CONTROL]; MAX_MESSAGES];
    let mut buffers: [libc::iovec; MAX_MESSAGES] = std::array::from_fn(|_| libc::iovec {
        iov_base: ptr::null_mut(),
        iov_len: 0,
    });
    // SAFETY: an array of C structs of integers and pointers, for which zero is a value.
    let mut headers: [libc::mmsghdr; MAX_MESSAGES] = unsafe { mem::zeroed() };
    let mut count = 0;
    for (index, slot) in bytes
        .chunks_exact_mut(slot_len)
        .take(MAX_MESSAGES)
        .enumerate()
    {
        buffers[index].iov_base = slot.as_mut_ptr().cast();
        buffers[index].iov_len = slot_len;
        count += 1;
    }
    for (index, header) in headers.iter_mut().enumerate().take(count) {
        let header = &mut header.msg_hdr;
        header.msg_name = ptr::from_mut(&mut names[index]).cast();
        header.msg_namelen = size_of::<SockAddrStorage>() as libc::socklen_t;
        header.msg_iov = &raw mut buffers[index];
        header.msg_iovlen = 1;
        header.msg_control = controls[index].as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
    }
    // SAFETY: `count` headers are filled in; each points to a name, a buffer and a control message of its own, which
    // live until the call returns, with their lengths. The descriptor is borrowed, hence open.
    let result = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as _,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let Ok(filled) = usize::try_from(result) else {
        return Err(io::Error::last_os_error());
    };
    for ((header, name), control) in headers.iter().zip(names).zip(&controls).take(filled) {
        // SAFETY: the system filled in the name, and says how much of it.
        let name = unsafe { SockAddr::new(name, header.msg_hdr.msg_namelen) };
        // An entry in any case: entries and slots belong together.
        let from = name.as_socket().unwrap_or(NO_SENDER);
        received.push(Received {
            from,
            len: header.msg_len as usize,
            segment: segment_of(control),
        });
    }
    Ok(())
}
