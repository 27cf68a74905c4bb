//! The methods of connected streams, beside those on readiness: written once for TCP and Unix sockets.
//!
//! The types keep their `Registered` in a field called `io`; the module that this is used in has `halves`.

macro_rules! stream_methods {
    ($addr:ty) => {
        /// The address of this side.
        ///
        /// # Errors
        /// Those of `getsockname`.
        pub fn local_addr(&self) -> std::io::Result<$addr> {
            self.io.get_ref().local_addr()
        }

        /// The address of the other side.
        ///
        /// # Errors
        /// Those of `getpeername`: `NotConnected` if the connection was reset.
        pub fn peer_addr(&self) -> std::io::Result<$addr> {
            self.io.get_ref().peer_addr()
        }

        /// Takes the error that is pending on the socket.
        ///
        /// # Errors
        /// Those of `getsockopt`.
        pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
            self.io.get_ref().take_error()
        }

        /// Reads what is there, without waiting. `Ok(0)` is the end of the stream.
        ///
        /// # Errors
        /// `WouldBlock` if nothing is there; those of `recv`.
        pub fn try_read(&self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.io.try_io($crate::Interest::READABLE, |mut io| {
                std::io::Read::read(&mut io, buf)
            })
        }

        /// [`try_read`](Self::try_read) into a buffer such as a `Vec<u8>` or a `BytesMut`, which grows where it can.
        ///
        /// # Errors
        /// As [`try_read`](Self::try_read).
        pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
            self.io.try_io($crate::Interest::READABLE, |io| {
                $crate::util::buf::recv(io, buf)
            })
        }

        /// [`try_read`](Self::try_read) into several buffers.
        ///
        /// # Errors
        /// As [`try_read`](Self::try_read).
        pub fn try_read_vectored(
            &self,
            bufs: &mut [std::io::IoSliceMut<'_>],
        ) -> std::io::Result<usize> {
            self.io.try_io($crate::Interest::READABLE, |mut io| {
                std::io::Read::read_vectored(&mut io, bufs)
            })
        }

        /// Writes what fits into the socket's buffer, without waiting.
        ///
        /// # Errors
        /// `WouldBlock` if nothing fits; those of `send`.
        pub fn try_write(&self, buf: &[u8]) -> std::io::Result<usize> {
            self.io.try_io($crate::Interest::WRITABLE, |mut io| {
                std::io::Write::write(&mut io, buf)
            })
        }

        /// [`try_write`](Self::try_write) out of several buffers.
        ///
        /// # Errors
        /// As [`try_write`](Self::try_write).
        pub fn try_write_vectored(&self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
            self.io.try_io($crate::Interest::WRITABLE, |mut io| {
                std::io::Write::write_vectored(&mut io, bufs)
            })
        }

        /// Splits into halves that borrow the stream, for use in one task.
        pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
            halves::split(self)
        }

        /// Splits into halves that share the stream and may go to different tasks.
        ///
        /// Dropping the writing half sends the end of the stream, unless it is [forgotten](OwnedWriteHalf::forget).
        #[must_use]
        pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
            halves::into_split(self)
        }

        /// The stream of this type, as for its halves.
        #[inline]
        pub(crate) const fn stream(&self) -> &Self {
            self
        }

        /// Ends the writing direction. Where the other side is gone, there is nobody to tell.
        pub(super) fn shutdown_write(&self) -> std::io::Result<()> {
            match self.io.get_ref().shutdown(std::net::Shutdown::Write) {
                Err(error) if error.kind() == std::io::ErrorKind::NotConnected => Ok(()),
                result => result,
            }
        }

        fn close(&self) -> std::io::Result<()> {
            self.shutdown_write()
        }

        pub(super) fn forget_reader(&self) {
            self.io.forget_reader();
        }

        pub(super) fn forget_writer(&self) {
            self.io.forget_writer();
        }
    };
}

pub(crate) use stream_methods;
