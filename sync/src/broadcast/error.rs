//! Errors of `broadcast`.

use std::error::Error;
use std::fmt;

/// There is no receiver: hands the value back.
#[derive(Debug)]
pub struct SendError<T>(pub T);

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast channel without receivers: the value was sent to nobody; `subscribe` makes a receiver")
    }
}

impl<T: fmt::Debug> Error for SendError<T> {}

/// Why [`Receiver::recv`](super::Receiver::recv) has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecvError {
    /// Every sender has gone, and everything that was sent has been received.
    Closed,
    /// The receiver was so late that this many values have been overwritten. The next one it gets is the oldest that is
    /// still there.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => f.write_str("broadcast channel closed: every sender has gone"),
            RecvError::Lagged(missed) => lagged(f, *missed),
        }
    }
}

impl Error for RecvError {}

/// Why [`Receiver::try_recv`](super::Receiver::try_recv) has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryRecvError {
    /// Nothing new so far.
    Empty,
    /// Every sender has gone, and everything that was sent has been received.
    Closed,
    /// The receiver was so late that this many values have been overwritten. The next one it gets is the oldest that is
    /// still there.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str(
                "broadcast channel empty: nothing was sent that this receiver has not seen",
            ),
            TryRecvError::Closed => f.write_str("broadcast channel closed: every sender has gone"),
            TryRecvError::Lagged(missed) => lagged(f, *missed),
        }
    }
}

impl Error for TryRecvError {}

fn lagged(f: &mut fmt::Formatter<'_>, missed: u64) -> fmt::Result {
    write!(
        f,
        "broadcast receiver lagged: {missed} values were overwritten before it came; a larger capacity would have kept \
         them"
    )
}
