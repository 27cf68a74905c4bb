//! Several UDP messages with one call.
//!
//! A system call a message is most of what UDP costs. [`UdpSocket::send_many`] hands neighbours of one length and one
//! target to the system as one long message that it cuts up late (GSO); [`UdpSocket::recv_many`] takes what has arrived
//! with one call, and with [`UdpSocket::set_gro`] the system joins messages of one sender before that.
//!
//! # What it guarantees
//! Message boundaries and order are those of single calls. Where the system or the network device refuses to cut, the
//! same messages go out one by one.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rt_sync::wait::WaitKind;
use rustix::io::Errno;
use socket2::{MsgHdr, SockAddr, SockRef};

use super::UdpSocket;
use crate::driver::Interest;
use crate::sys::udp::{self, MAX_MESSAGES, Received};

/// Messages that go with one call: the limit of the system.
const MAX_SEGMENTS: usize = 64;

/// Bytes that go with one call: the longest UDP message, less the headers.
const MAX_BYTES: usize = 65_535 - 8 - 40;

/// A message to send with [`UdpSocket::send_many`].
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// What to send.
    pub data: &'a [u8],
    /// Where to; `None`: to where the socket is connected.
    pub target: Option<SocketAddr>,
}

/// Room for messages to receive with [`UdpSocket::recv_many`], to be used again and again.
pub struct RecvBatch {
    bytes: Box<[u8]>,
    slot_len: usize,
    received: Vec<Received>,
}

impl RecvBatch {
    /// Room for `slots` messages of at most `slot_len` bytes; longer ones are cut off. No more than 32 slots are filled
    /// at a time.
    ///
    /// With [`UdpSocket::set_gro`] a slot holds what was joined, up to 65,535 bytes: choose that length, and few slots.
    ///
    /// # Panics
    /// If one of the two is 0, or the room is more than there can be.
    #[must_use]
    #[track_caller]
    pub fn new(slots: usize, slot_len: usize) -> Self {
        assert!(
            slots > 0 && slot_len > 0,
            "a batch needs room: {slots} slots of {slot_len} bytes"
        );
        let slots = slots.min(MAX_MESSAGES);
        let Some(len) = slots.checked_mul(slot_len) else {
            panic!("a batch of {slots} slots of {slot_len} bytes has more bytes than there can be");
        };
        Self {
            bytes: vec![0; len].into_boxed_slice(),
            slot_len,
            received: Vec::with_capacity(slots),
        }
    }

    /// The messages of the last call, in order, with their senders.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> {
        let slots = self.bytes.chunks_exact(self.slot_len);
        self.received.iter().zip(slots).flat_map(|(one, slot)| {
            let joined = &slot[..one.len];
            // An empty message has no chunks, but is a message.
            let empty = joined.is_empty().then_some(joined);
            let segment = match one.segment {
                0 => joined.len().max(1),
                segment => segment,
            };
            let messages = empty.into_iter().chain(joined.chunks(segment));
            messages.map(|message| (message, one.from))
        })
    }

    /// The number of messages of the last call.
    #[must_use]
    pub fn len(&self) -> usize {
        let count = |one: &Received| match one.segment {
            0 => 1,
            segment => one.len.div_ceil(segment).max(1),
        };
        self.received.iter().map(count).sum()
    }

    /// Whether the last call brought nothing; it has failed then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    fn fill(&mut self, socket: &std::net::UdpSocket) -> io::Result<usize> {
        self.received.clear();
        udp::recv_many(
            socket.as_fd(),
            &mut self.bytes,
            self.slot_len,
            &mut self.received,
        )?;
        Ok(self.len())
    }
}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBatch")
            .field("slot_len", &self.slot_len)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

impl UdpSocket {
    /// Sends messages, in order, with as few calls as can be. Returns how many were sent: at least one, and fewer
    /// than all if the rest would have to wait or fails (then the next call says why).
    ///
    /// Put messages of one length and one target next to each other; the last of them may be shorter.
    ///
    /// # Errors
    /// If the first message cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was sent.
    #[track_caller]
    pub fn send_many<'a>(
        &'a self,
        messages: &'a [Datagram<'a>],
    ) -> impl Future<Output = io::Result<usize>> + 'a {
        self.io
            .async_io(Interest::WRITABLE, |io| self.send_now(io, messages))
            .shown_as(WaitKind::Write)
    }

    /// [`send_many`](Self::send_many) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; otherwise as [`send_many`](Self::send_many).
    pub fn try_send_many(&self, messages: &[Datagram<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, |io| self.send_now(io, messages))
    }

    /// Receives what has arrived, at least one message. Returns the number of messages; they are in the batch.
    ///
    /// # Errors
    /// Those of `recvmmsg`.
    ///
    /// # Cancel safety
    /// Dropped early, no message was taken.
    #[track_caller]
    pub fn recv_many<'a>(
        &'a self,
        batch: &'a mut RecvBatch,
    ) -> impl Future<Output = io::Result<usize>> + 'a {
        self.io
            .async_io(Interest::READABLE, |io| batch.fill(io))
            .shown_as(WaitKind::Read)
    }

    /// [`recv_many`](Self::recv_many) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; those of `recvmmsg`.
    pub fn try_recv_many(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, |io| batch.fill(io))
    }

    /// Lets the system join messages of one sender that arrive together (`UDP_GRO`).
    ///
    /// From then on receive with [`recv_many`](Self::recv_many) only: the other methods would take what was joined for
    /// one message.
    ///
    /// # Errors
    /// If the system does not know it.
    pub fn set_gro(&self, on: bool) -> io::Result<()> {
        udp::set_gro(self.as_fd(), on)
    }

    fn send_now(&self, io: &std::net::UdpSocket, messages: &[Datagram<'_>]) -> io::Result<usize> {
        send_groups(messages, &self.cuts, |group, segment| {
            send_group(io, group, segment)
        })
    }
}

/// Sends messages in groups that the system cuts, and one by one where it refuses to.
fn send_groups(
    messages: &[Datagram<'_>],
    cuts: &AtomicBool,
    mut send: impl FnMut(&[Datagram<'_>], Option<u16>) -> io::Result<()>,
) -> io::Result<usize> {
    let mut sent = 0;
    // The messages before this one are not cut: the system has just refused to.
    let mut singles = 0;
    while let Some(first) = messages.get(sent) {
        let group = if sent < singles || !cuts.load(Relaxed) {
            1
        } else {
            group_of(&messages[sent..])
        };
        let segment = if group > 1 {
            first.data.len().try_into().ok()
        } else {
            None
        };
        match send(&messages[sent..sent + group], segment) {
            Ok(()) => sent += group,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if group > 1 && refuses_to_cut(&error, cuts) => singles = sent + group,
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// How many of the first messages can go with one call.
fn group_of(messages: &[Datagram<'_>]) -> usize {
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return 1;
    }
    let first = messages[0];
    let segment = first.data.len();
    if segment == 0 {
        return 1;
    }
    let limit = MAX_SEGMENTS.min(MAX_BYTES / segment).max(1);
    let same = messages
        .iter()
        .take(limit)
        .take_while(|next| next.data.len() == segment && next.target == first.target)
        .count();
    let shorter = messages.get(same).is_some_and(|last| {
        same < limit && (1..segment).contains(&last.data.len()) && last.target == first.target
    });
    same + usize::from(shorter)
}

/// Whether an error is about the cutting and not about the messages. `EIO` is what devices say that cannot compute
/// checksums: they will not learn it. The others are about this size on this route.
fn refuses_to_cut(error: &io::Error, cuts: &AtomicBool) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::IO) => {
            cuts.store(false, Relaxed);
            true
        }
        Some(Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP) => true,
        _ => false,
    }
}

fn send_group(
    socket: &std::net::UdpSocket,
    group: &[Datagram<'_>],
    segment: Option<u16>,
) -> io::Result<()> {
    let Some(segment) = segment else {
        let one = group[0];
        let sent = match one.target {
            Some(target) => socket.send_to(one.data, target),
            None => socket.send(one.data),
        };
        return sent.map(drop);
    };
    let mut parts = [IoSlice::new(&[]); MAX_SEGMENTS];
    for (part, message) in parts.iter_mut().zip(group) {
        *part = IoSlice::new(message.data);
    }
    let control = udp::segment_control(segment);
    let target = group[0].target.map(SockAddr::from);
    let mut message = MsgHdr::new()
        .with_buffers(&parts[..group.len()])
        .with_control(&control);
    if let Some(target) = &target {
        message = message.with_addr(target);
    }
    SockRef::from(socket).sendmsg(&message, 0).map(drop)
}

#[cfg(test)]
mod tests;
