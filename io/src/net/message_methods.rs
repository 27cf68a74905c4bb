//! The methods of sockets that carry messages: written once for UDP and Unix sockets.
//!
//! The types keep their `Registered` in a field called `io`.

/// What both can do with whole messages; sending to an address is for each to say.
macro_rules! message_methods {
    ($addr:ty) => {
        /// The address of this end.
        ///
        /// # Errors
        /// Those of `getsockname`.
        pub fn local_addr(&self) -> std::io::Result<$addr> {
            self.io.get_ref().local_addr()
        }

        /// The address that the socket is connected to.
        ///
        /// # Errors
        /// `NotConnected` if it is not; those of `getpeername`.
        pub fn peer_addr(&self) -> std::io::Result<$addr> {
            self.io.get_ref().peer_addr()
        }

        /// Takes the pending error of the socket.
        ///
        /// # Errors
        /// Those of `getsockopt`.
        pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
            self.io.get_ref().take_error()
        }

        /// Sends a message to the address that the socket is connected to.
        ///
        /// # Errors
        /// Those of `send`; that an earlier UDP message met with an ICMP error is reported here as well.
        ///
        /// # Cancel safety
        /// Dropped early, the message was not sent.
        #[track_caller]
        pub fn send<'a>(
            &'a self,
            buf: &'a [u8],
        ) -> impl Future<Output = std::io::Result<usize>> + 'a {
            self.io
                .async_io($crate::Interest::WRITABLE, |io| io.send(buf))
                .shown_as(rt_sync::wait::WaitKind::Write)
        }

        /// Receives a message; returns its length, or that of the buffer if it was cut off.
        ///
        /// # Errors
        /// Those of `recv`; that an earlier UDP message met with an ICMP error is reported here as well.
        ///
        /// # Cancel safety
        /// Dropped early, no message was taken.
        #[track_caller]
        pub fn recv<'a>(
            &'a self,
            buf: &'a mut [u8],
        ) -> impl Future<Output = std::io::Result<usize>> + 'a {
            self.io
                .async_io($crate::Interest::READABLE, move |io| io.recv(buf))
                .shown_as(rt_sync::wait::WaitKind::Read)
        }

        /// Receives a message, and says where it came from.
        ///
        /// # Errors
        /// Those of `recvfrom`.
        ///
        /// # Cancel safety
        /// Dropped early, no message was taken.
        #[track_caller]
        pub fn recv_from<'a>(
            &'a self,
            buf: &'a mut [u8],
        ) -> impl Future<Output = std::io::Result<(usize, $addr)>> + 'a {
            self.io
                .async_io($crate::Interest::READABLE, move |io| io.recv_from(buf))
                .shown_as(rt_sync::wait::WaitKind::Read)
        }

        /// [`send`](Self::send) without waiting.
        ///
        /// # Errors
        /// `WouldBlock` if there is no room; those of `send`.
        pub fn try_send(&self, buf: &[u8]) -> std::io::Result<usize> {
            self.io
                .try_io($crate::Interest::WRITABLE, |io| io.send(buf))
        }

        /// [`recv`](Self::recv) without waiting.
        ///
        /// # Errors
        /// `WouldBlock` if there is no message; those of `recv`.
        pub fn try_recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.io
                .try_io($crate::Interest::READABLE, |io| io.recv(buf))
        }

        /// [`recv_from`](Self::recv_from) without waiting.
        ///
        /// # Errors
        /// `WouldBlock` if there is no message; those of `recvfrom`.
        pub fn try_recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $addr)> {
            self.io
                .try_io($crate::Interest::READABLE, |io| io.recv_from(buf))
        }

        /// Polls [`send`](Self::send), for one task: the last one that polled is woken.
        ///
        /// # Errors
        /// Those of `send`.
        #[track_caller]
        pub fn poll_send(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            self.io.poll_write_io(cx, |io| io.send(buf))
        }

        /// Polls [`recv`](Self::recv), for one task: the last one that polled is woken.
        ///
        /// # Errors
        /// Those of `recv`.
        #[track_caller]
        pub fn poll_recv(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &mut [u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            self.io.poll_read_io(cx, |io| io.recv(buf))
        }

        /// Polls [`recv_from`](Self::recv_from), for one task.
        ///
        /// # Errors
        /// Those of `recvfrom`.
        #[track_caller]
        pub fn poll_recv_from(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &mut [u8],
        ) -> std::task::Poll<std::io::Result<(usize, $addr)>> {
            self.io.poll_read_io(cx, |io| io.recv_from(buf))
        }
    };
}

pub(crate) use message_methods;
