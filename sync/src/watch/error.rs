//! Errors of `watch`.

use std::error::Error;
use std::fmt;

/// There is no receiver: hands the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "watch channel closed: every receiver has gone, so the value was not stored; `send_replace` stores it all the same",
        )
    }
}

impl<T> Error for SendError<T> {}

/// Every sender has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "watch channel closed: every sender has gone; `borrow` still shows the last value",
        )
    }
}

impl Error for RecvError {}
