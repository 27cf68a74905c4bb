//! The halves of a connected stream, and the I/O traits of streams and halves: written once for TCP and Unix sockets.
//!
//! A stream type has `stream()`, `shutdown_write()`, `forget_reader()` and `forget_writer()` besides the public methods
//! that the halves forward to, and four `poll_` methods whose names end in `priv`.

/// Defines `ReadHalf`, `WriteHalf`, `OwnedReadHalf`, `OwnedWriteHalf`, `ReuniteError` and the functions `split` and
/// `into_split` for a stream type.
macro_rules! halves {
    ($stream:ident, $addr:ty, $name:literal) => {
        /// The reading half of
        #[doc = concat!("[`", stringify!($stream), "::split`].")]
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a $stream);

        /// The writing half of
        #[doc = concat!("[`", stringify!($stream), "::split`].")]
        /// Dropping it does not send the end of the stream; closing it does.
        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a $stream);

        /// The reading half of
        #[doc = concat!("[`", stringify!($stream), "::into_split`].")]
        #[derive(Debug)]
        pub struct OwnedReadHalf(Arc<$stream>);

        /// The writing half of
        #[doc = concat!("[`", stringify!($stream), "::into_split`].")]
        /// Dropping it sends the end of the stream, unless it was [forgotten](Self::forget) or closed before.
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            stream: Arc<$stream>,
            shutdown_on_drop: bool,
        }

        /// The halves were not of one stream; here they are.
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(
                    "tried to put together two halves that are not of the same ",
                    $name,
                    " stream: pass those of one `into_split`"
                ))
            }
        }

        impl Error for ReuniteError {}

        pub(super) fn split(stream: &mut $stream) -> (ReadHalf<'_>, WriteHalf<'_>) {
            let stream = &*stream;
            (ReadHalf(stream), WriteHalf(stream))
        }

        pub(super) fn into_split(stream: $stream) -> (OwnedReadHalf, OwnedWriteHalf) {
            let stream = Arc::new(stream);
            let read = OwnedReadHalf(Arc::clone(&stream));
            let write = OwnedWriteHalf {
                stream,
                shutdown_on_drop: true,
            };
            (read, write)
        }

        fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
            if !Arc::ptr_eq(&read.0, &write.stream) {
                return Err(ReuniteError(read, write));
            }
            write.forget();
            let stream = Arc::clone(&read.0);
            drop(read);
            // The halves were the only owners.
            Ok(Arc::into_inner(stream).expect("a half of a stream was cloned"))
        }

        impl ReadHalf<'_> {
            #[inline]
            pub(crate) fn stream(&self) -> &$stream {
                self.0
            }
        }

        impl WriteHalf<'_> {
            #[inline]
            pub(crate) fn stream(&self) -> &$stream {
                self.0
            }

            fn close(&mut self) -> io::Result<()> {
                self.0.shutdown_write()
            }
        }

        impl OwnedReadHalf {
            /// Puts the halves of one stream together again.
            ///
            /// # Errors
            /// Gives the halves back if they are not of one stream.
            pub fn reunite(self, other: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
                reunite(self, other)
            }

            #[inline]
            pub(crate) fn stream(&self) -> &$stream {
                &self.0
            }
        }

        impl OwnedWriteHalf {
            /// Puts the halves of one stream together again.
            ///
            /// # Errors
            /// Gives the halves back if they are not of one stream.
            pub fn reunite(self, other: OwnedReadHalf) -> Result<$stream, ReuniteError> {
                reunite(other, self)
            }

            /// Drops this half without sending the end of the stream.
            pub fn forget(mut self) {
                self.shutdown_on_drop = false;
            }

            #[inline]
            pub(crate) fn stream(&self) -> &$stream {
                &self.stream
            }

            /// Sends the end of the stream, now instead of at drop.
            fn close(&mut self) -> io::Result<()> {
                self.stream.shutdown_write()?;
                self.shutdown_on_drop = false;
                Ok(())
            }
        }

        impl Drop for OwnedReadHalf {
            /// The stream may live on, but nobody reads: the reader's waker goes.
            fn drop(&mut self) {
                self.0.forget_reader();
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                self.stream.forget_writer();
                if self.shutdown_on_drop {
                    // Nobody is left to hear of an error.
                    let _ = self.stream.shutdown_write();
                }
            }
        }

        $crate::net::halves::half_methods!(read $stream, $addr, ReadHalf<'_>, OwnedReadHalf);
        $crate::net::halves::half_methods!(write $stream, $addr, WriteHalf<'_>, OwnedWriteHalf);
        $crate::net::halves::impl_read!(ReadHalf<'_>, OwnedReadHalf);
        $crate::net::halves::impl_write!(WriteHalf<'_>, OwnedWriteHalf);
    };
}

/// The methods that halves forward to their stream.
macro_rules! half_methods {
    (read $stream:ident, $addr:ty, $($half:ty),*) => {$(
        impl $half {
            /// See
            #[doc = concat!("[`", stringify!($stream), "::readable`].")]
            ///
            /// # Errors
            /// As there.
            #[track_caller]
            pub fn readable(&self) -> Readable<'_> {
                self.stream().readable()
            }

            /// See
            #[doc = concat!("[`", stringify!($stream), "::try_read`].")]
            ///
            /// # Errors
            /// As there.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.stream().try_read(buf)
            }

            /// See
            #[doc = concat!("[`", stringify!($stream), "::try_read_vectored`].")]
            ///
            /// # Errors
            /// As there.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.stream().try_read_vectored(bufs)
            }

            $crate::net::halves::half_methods!(both $stream, $addr);
        }

        $crate::net::halves::half_methods!(as_ref $stream, $half);
    )*};
    (write $stream:ident, $addr:ty, $($half:ty),*) => {$(
        impl $half {
            /// See
            #[doc = concat!("[`", stringify!($stream), "::writable`].")]
            ///
            /// # Errors
            /// As there.
            #[track_caller]
            pub fn writable(&self) -> Writable<'_> {
                self.stream().writable()
            }

            /// See
            #[doc = concat!("[`", stringify!($stream), "::try_write`].")]
            ///
            /// # Errors
            /// As there.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.stream().try_write(buf)
            }

            /// See
            #[doc = concat!("[`", stringify!($stream), "::try_write_vectored`].")]
            ///
            /// # Errors
            /// As there.
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.stream().try_write_vectored(bufs)
            }

            $crate::net::halves::half_methods!(both $stream, $addr);
        }

        $crate::net::halves::half_methods!(as_ref $stream, $half);
    )*};
    (both $stream:ident, $addr:ty) => {
        /// See
        #[doc = concat!("[`", stringify!($stream), "::ready`].")]
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
            self.stream().ready(interest)
        }

        /// See
        #[doc = concat!("[`", stringify!($stream), "::peer_addr`].")]
        ///
        /// # Errors
        /// As there.
        pub fn peer_addr(&self) -> io::Result<$addr> {
            self.stream().peer_addr()
        }

        /// See
        #[doc = concat!("[`", stringify!($stream), "::local_addr`].")]
        ///
        /// # Errors
        /// As there.
        pub fn local_addr(&self) -> io::Result<$addr> {
            self.stream().local_addr()
        }
    };
    (as_ref $stream:ident, $half:ty) => {
        impl AsRef<$stream> for $half {
            fn as_ref(&self) -> &$stream {
                self.stream()
            }
        }
    };
}

/// `AsyncRead` for types that have `stream()`.
macro_rules! impl_read {
    ($($type:ty),*) => {$(
        impl futures_io::AsyncRead for $type {
            #[inline]
            #[track_caller]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_read_priv(cx, buf)
            }

            #[inline]
            #[track_caller]
            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_read_vectored_priv(cx, bufs)
            }
        }
    )*};
}

/// `AsyncWrite` for types that have `stream()` and `close()`.
macro_rules! impl_write {
    ($($type:ty),*) => {$(
        impl futures_io::AsyncWrite for $type {
            #[inline]
            #[track_caller]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_write_priv(cx, buf)
            }

            #[inline]
            #[track_caller]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_write_vectored_priv(cx, bufs)
            }

            /// There is no buffer of ours.
            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Sends the end of the stream; reading goes on.
            fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.get_mut().close())
            }
        }
    )*};
}

pub(super) use {half_methods, halves, impl_read, impl_write};
