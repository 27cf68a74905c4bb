//! The methods on readiness that every socket type has: written once.
//!
//! The types keep their `Registered` in a field called `io`.

/// `readable`, `writable`, `ready`, `try_io`, `async_io`, and the poll methods under the names that are passed in.
macro_rules! readiness_methods {
    ($poll_read_ready:ident, $poll_write_ready:ident) => {
        /// Waits until there is something to read, or the reading side is closed. Any number of tasks may wait.
        ///
        /// Readiness is a hint: the next operation may still say `WouldBlock`.
        ///
        /// # Errors
        /// If there is no runtime to wait in, or it is closed.
        ///
        /// # Cancel safety
        /// Nothing is lost: a readiness that was not used stays.
        #[track_caller]
        pub fn readable(&self) -> $crate::driver::Readable<'_> {
            self.io.readable()
        }

        /// Waits until there is room to write, or the writing side is closed. Any number of tasks may wait.
        ///
        /// # Errors
        /// As [`readable`](Self::readable).
        ///
        /// # Cancel safety
        /// As [`readable`](Self::readable).
        #[track_caller]
        pub fn writable(&self) -> $crate::driver::Writable<'_> {
            self.io.writable()
        }

        /// Waits until any part of `interest` is met, and says which.
        ///
        /// # Errors
        /// As [`readable`](Self::readable).
        ///
        /// # Cancel safety
        /// As [`readable`](Self::readable).
        #[track_caller]
        pub fn ready(&self, interest: $crate::Interest) -> $crate::driver::WhenReady<'_> {
            self.io.ready(interest)
        }

        /// Polls for readability, for one task: the last one that asked is woken.
        ///
        /// # Errors
        /// As [`readable`](Self::readable).
        #[track_caller]
        pub fn $poll_read_ready(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            self.io.poll_read_ready(cx).map_ok(drop)
        }

        /// Polls for writability, for one task: the last one that asked is woken.
        ///
        /// # Errors
        /// As [`readable`](Self::readable).
        #[track_caller]
        pub fn $poll_write_ready(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            self.io.poll_write_ready(cx).map_ok(drop)
        }

        /// Runs an operation of yours on the descriptor if it may be ready. When the operation says `WouldBlock`,
        /// that readiness is cleared; so it must be an operation on this descriptor, and for this interest.
        ///
        /// # Errors
        /// `WouldBlock` if it is not ready; those of the operation.
        pub fn try_io<R>(
            &self,
            interest: $crate::Interest,
            f: impl FnOnce() -> std::io::Result<R>,
        ) -> std::io::Result<R> {
            self.io.try_io(interest, |_| f())
        }

        /// Runs an operation of yours on the descriptor until it says something else than `WouldBlock`, waiting for
        /// `interest` in between.
        ///
        /// # Errors
        /// Those of the operation and of [`readable`](Self::readable).
        ///
        /// # Cancel safety
        /// As safe as the operation: it has not run, or its result is returned.
        #[track_caller]
        pub fn async_io<R>(
            &self,
            interest: $crate::Interest,
            mut f: impl FnMut() -> std::io::Result<R>,
        ) -> impl Future<Output = std::io::Result<R>> {
            self.io.async_io(interest, move |_| f())
        }
    };
}

pub(crate) use readiness_methods;
