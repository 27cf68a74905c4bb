//! What can go wrong in a channel.

use std::error::Error;
use std::fmt;

/// The channel is closed: its receiver has gone, or has called `close`. Holds the value that was not sent.
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

impl<T> SendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed: the receiver was dropped, or has called `close`")
    }
}

impl<T> Error for SendError<T> {}

/// Why [`Sender::try_send`](super::Sender::try_send) and its like did not send. Holds the value that was not sent.
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// No slot is free, or other senders wait for those that are.
    Full(T),
    /// The receiver has gone, or has called `close`.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(value) | TrySendError::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "channel full: no slot is free; `send` waits for one",
            TrySendError::Closed(_) => {
                "channel closed: the receiver was dropped, or has called `close`"
            }
        })
    }
}

impl<T> Error for TrySendError<T> {}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        TrySendError::Closed(error.0)
    }
}

/// Why `try_recv` has no value.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// Nothing is there now; there may be later.
    Empty,
    /// Nothing is there and nothing will come: the channel is closed, or all senders have gone.
    Disconnected,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRecvError::Empty => "channel empty: nothing to receive now; `recv` waits for it",
            TryRecvError::Disconnected => {
                "channel empty and closed: all senders were dropped, or the receiver has called `close`"
            }
        })
    }
}

impl Error for TryRecvError {}

/// Why a send with a time limit did not send. Holds the value that was not sent.
///
/// The method itself needs a timer and so comes from the runtime.
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// No slot came free in time.
    Timeout(T),
    /// The receiver has gone, or has called `close`.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(value) | SendTimeoutError::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "channel full: no slot came free in time",
            SendTimeoutError::Closed(_) => {
                "channel closed: the receiver was dropped, or has called `close`"
            }
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}
