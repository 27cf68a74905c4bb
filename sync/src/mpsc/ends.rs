//! What the ends of both kinds of channel have in common: written once.

/// Methods of both kinds of sender: their field is `tx`.
macro_rules! counts {
    ($sender:ident, $weak:ident) => {
        #[doc = concat!("How many [`", stringify!($sender), "`]s there are.")]
        pub fn strong_count(&self) -> usize {
            self.tx.chan().strong()
        }

        #[doc = concat!("How many [`", stringify!($weak), "`]s there are.")]
        pub fn weak_count(&self) -> usize {
            self.tx.chan().weak()
        }
    };
}

/// What a sender does with its share in the channel, besides sending: that is its field `tx`.
macro_rules! sender {
    ($sender:ident, $weak:ident) => {
        impl<T> $sender<T> {
            /// Waits until the receiver has closed the channel or has gone: nobody wants values any more.
            ///
            /// # Cancel safety
            /// Nothing is lost when the future is dropped.
            #[track_caller]
            pub fn closed(&self) -> Closed<'_, T> {
                Closed::new(self.tx.chan(), Location::caller())
            }

            /// Whether the receiver has closed the channel or has gone, so that [`send`](Self::send) would fail.
            #[inline]
            pub fn is_closed(&self) -> bool {
                self.tx.chan().is_closed()
            }

            /// Whether both send into the same channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                self.tx.same_channel(&other.tx)
            }

            /// A sender that does not keep the channel open.
            #[must_use = "`downgrade` makes a weak sender and leaves this one as it is"]
            pub fn downgrade(&self) -> $weak<T> {
                $weak {
                    tx: self.tx.downgrade(),
                }
            }

            $crate::mpsc::ends::counts!($sender, $weak);
        }

        impl<T> Clone for $sender<T> {
            fn clone(&self) -> Self {
                Self {
                    tx: self.tx.clone(),
                }
            }
        }
    };
}

/// What a weak sender does with its share in the channel: that is its field `tx`.
macro_rules! weak_sender {
    ($weak:ident, $sender:ident) => {
        impl<T> $weak<T> {
            /// A sender, unless the last one has gone.
            pub fn upgrade(&self) -> Option<$sender<T>> {
                self.tx.upgrade().map(|tx| $sender { tx })
            }

            $crate::mpsc::ends::counts!($sender, $weak);
        }

        impl<T> Clone for $weak<T> {
            fn clone(&self) -> Self {
                Self {
                    tx: self.tx.clone(),
                }
            }
        }

        impl<T> fmt::Debug for $weak<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($weak)).finish_non_exhaustive()
            }
        }
    };
}

/// What a receiver does with its share in the channel: that is its field `rx`.
macro_rules! receiver {
    ($receiver:ident, $sender:ident, $weak:ident) => {
        impl<T> $receiver<T> {
            /// Receives the oldest value; waits while there is none. `None` when the channel is closed (or all senders have
            /// gone), nothing is in it, and no permit of a bounded channel is left that might still send.
            ///
            /// # Cancel safety
            /// Nothing is lost when the future is dropped: only a ready future takes a value.
            #[inline]
            #[track_caller]
            pub fn recv(&mut self) -> Recv<'_, T> {
                Recv::new(&mut self.rx, Location::caller())
            }

            /// Appends up to `limit` values to `buffer`; waits while there is none. Ready with how many: 0 at the end of the
            /// channel (as for [`recv`](Self::recv)), or if `limit` is 0.
            ///
            /// # Cancel safety
            /// Nothing is lost when the future is dropped.
            #[inline]
            #[track_caller]
            pub fn recv_many<'a>(
                &'a mut self,
                buffer: &'a mut Vec<T>,
                limit: usize,
            ) -> RecvMany<'a, T> {
                RecvMany::new(&mut self.rx, buffer, limit, Location::caller())
            }

            /// Receives the oldest value, if there is one.
            ///
            /// # Errors
            /// If there is none now, or none any more.
            #[inline]
            pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
                self.rx.try_recv()
            }

            /// Same as [`recv`](Self::recv), but blocks this thread. For threads that are not workers of a runtime: a worker
            /// that blocks polls nothing meanwhile.
            ///
            /// # Panics
            /// Inside a task.
            #[track_caller]
            pub fn blocking_recv(&mut self) -> Option<T> {
                forbid_in_task(
                    concat!(stringify!($receiver), "::blocking_recv"),
                    concat!(stringify!($receiver), "::recv"),
                );
                // First without a waker: it costs an allocation.
                match self.try_recv() {
                    Ok(value) => Some(value),
                    Err(TryRecvError::Disconnected) => None,
                    Err(TryRecvError::Empty) => block_on(self.recv()),
                }
            }

            /// Same as [`recv_many`](Self::recv_many), but blocks this thread.
            ///
            /// # Panics
            /// Inside a task.
            #[track_caller]
            pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
                forbid_in_task(
                    concat!(stringify!($receiver), "::blocking_recv_many"),
                    concat!(stringify!($receiver), "::recv_many"),
                );
                block_on(self.recv_many(buffer, limit))
            }

            /// Lets nobody send any more, but those who have a permit of a bounded channel. What is in the channel can still
            /// be received.
            pub fn close(&mut self) {
                self.rx.close();
            }

            /// Whether the channel is closed: by [`close`](Self::close), or because all senders have gone.
            pub fn is_closed(&self) -> bool {
                self.rx.is_closed()
            }

            /// Whether there is nothing to receive now.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// How many values can be received now.
            pub fn len(&self) -> usize {
                self.rx.len()
            }

            #[doc = concat!("How many [`", stringify!($sender), "`]s there are.")]
            pub fn sender_strong_count(&self) -> usize {
                self.rx.chan().strong()
            }

            #[doc = concat!("How many [`", stringify!($weak), "`]s there are.")]
            pub fn sender_weak_count(&self) -> usize {
                self.rx.chan().weak()
            }

            #[cfg(test)]
            pub(super) fn kept(&self) -> usize {
                self.rx.kept()
            }

            /// Polls for the oldest value, as [`recv`](Self::recv) does. Only the waker of the latest call is kept, until a
            /// value comes or the receiver goes.
            #[inline]
            #[track_caller]
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
                self.rx.poll_recv(cx, Location::caller())
            }

            /// Polls for up to `limit` values, as [`recv_many`](Self::recv_many) does. Only the waker of the latest call is
            /// kept.
            #[inline]
            #[track_caller]
            pub fn poll_recv_many(
                &mut self,
                cx: &mut Context<'_>,
                buffer: &mut Vec<T>,
                limit: usize,
            ) -> Poll<usize> {
                self.rx
                    .poll_recv_many(cx, buffer, limit, Location::caller())
            }
        }

        // Values are moved out, never pinned.
        impl<T> Unpin for $receiver<T> {}

        impl<T> Stream for $receiver<T> {
            type Item = T;

            #[inline]
            fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
                self.poll_recv(cx)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.len(), None)
            }
        }
    };
}

pub(super) use {counts, receiver, sender, weak_sender};
