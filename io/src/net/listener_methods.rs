//! Accepting connections: written once for TCP and Unix sockets.
//!
//! A listener keeps its `Registered` in a field called `io`, and its [`Accepting`](super::accept::Accepting) in `accepting`.

/// `accept` and `poll_accept` of a listener, and the future `Accept`. `$accept_one` takes one connection that is there.
macro_rules! listener_methods {
    ($listener:ident, $stream:ty, $addr:ty, $accept_one:path) => {
        impl $listener {
            /// Waits for a connection. Any number of tasks may wait.
            ///
            /// When the process is out of descriptors or memory, this waits 10 ms to 1 s before each new attempt, and says
            /// so once on standard error: connections stay in the backlog meanwhile. Connections that fail before they are
            /// accepted are skipped.
            ///
            /// # Errors
            /// Those of the listener itself; if there is no runtime to wait in, or it is closed.
            ///
            /// # Cancel safety
            /// Nothing is lost: a connection is accepted only in the poll that returns it.
            #[track_caller]
            pub fn accept(&self) -> Accept<'_> {
                Accept {
                    listener: self,
                    wait: self
                        .io
                        .wait_ready($crate::Interest::READABLE)
                        .shown_as(WaitKind::Accept),
                    sleep: None,
                    site: Location::caller(),
                }
            }

            /// Polls [`accept`](Self::accept), for one task: the last one that polled is woken.
            ///
            /// # Errors
            /// As [`accept`](Self::accept).
            #[track_caller]
            pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<($stream, $addr)>> {
                let site = Location::caller();
                let result = self
                    .accepting
                    .poll_shared(cx, |cx| self.io.poll_read_io(cx, $accept_one));
                if result.is_pending() {
                    wait::record(WaitKind::Accept, site);
                }
                result
            }
        }

        #[doc = concat!("Future of [`", stringify!($listener), "::accept`].")]
        #[must_use = "futures do nothing unless awaited"]
        pub struct Accept<'a> {
            listener: &'a $listener,
            wait: $crate::driver::WaitReady<'a>,
            sleep: Option<$crate::context::BoxFuture<()>>,
            site: &'static Location<'static>,
        }

        impl Future for Accept<'_> {
            type Output = io::Result<($stream, $addr)>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let this = self.get_mut();
                let io = &this.listener.io;
                let result = this.listener.accepting.poll(cx, &mut this.sleep, |cx| {
                    this.wait.poll_op(io, cx, $accept_one)
                });
                if result.is_pending() {
                    wait::record(WaitKind::Accept, this.site);
                }
                result
            }
        }

        impl fmt::Debug for Accept<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Accept")
                    .field("listener", &self.listener)
                    .field("backing_off", &self.sleep.is_some())
                    .field("site", &self.site)
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use listener_methods;
