//! Errors of `oneshot`.

use std::error::Error;
use std::fmt;

/// No value will come: the sender has gone without one, or the channel was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("oneshot channel closed: the sender was dropped without a value, or `close` was called before one")
    }
}

impl Error for RecvError {}

/// Why [`Receiver::try_recv`](super::Receiver::try_recv) has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryRecvError {
    /// Nothing was sent yet.
    Empty,
    /// No value will come, or it has been received.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("oneshot channel empty: nothing was sent yet"),
            TryRecvError::Closed => f.write_str(
                "oneshot channel closed: the sender was dropped without a value, `close` was called before one, or it \
                 has been received",
            ),
        }
    }
}

impl Error for TryRecvError {}
