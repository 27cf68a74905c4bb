//! A channel for one value: one sends it, one awaits it.
//!
//! # What it guarantees
//! A value that `send` took is received, or dropped with the receiver; else `send` gives it back. It is dropped exactly
//! once. Each end is told when the other goes.
//!
//! # The state word
//! Six bits and, above them, a generation that every registration of a waker bumps.
//!
//! | bit         | set by                   | means                                                             |
//! |-------------|--------------------------|-------------------------------------------------------------------|
//! | `VALUE`     | sender, with `TX_GONE`   | `value` is there; it belongs to the receiver                      |
//! | `TX_GONE`   | sender, as its last step | the sender never touches the channel again                        |
//! | `CLOSED`    | receiver                 | it does not want a value any more (one sent before is still there)|
//! | `RX_GONE`   | receiver, as its last    | the receiver never touches the channel again; `CLOSED` is set too |
//! | `RX_WAKER`  | receiver                 | `rx_waker` holds a waker                                          |
//! | `TX_WAKER`  | sender, in `closed`      | `tx_waker` holds a waker                                          |
//!
//! What can be, and what each side does next (`·` any):
//!
//! | `TX_GONE` | `VALUE` | `CLOSED` | `RX_GONE` | send             | receive   | who frees it              |
//! |-----------|---------|----------|-----------|------------------|-----------|---------------------------|
//! | 0         | 0       | 0        | 0         | sets the first two | waits   |                           |
//! | 0         | 0       | 1        | 0         | gives value back | `Closed`  |                           |
//! | 0         | 0       | 1        | 1         | gives value back |           | the sender, when it goes  |
//! | 1         | 1       | 0        | 0         |                  | the value | the receiver, when it goes|
//! | 1         | 0       | ·        | 0         |                  | `Closed`  | the receiver, when it goes|
//!
//! `VALUE` and `CLOSED` never meet: each is set only while the other is clear (`CLOSED` comes too late once `TX_GONE`
//! is set). Neither do the two `GONE` bits: the second one to go frees the channel instead of setting its own.
//!
//! # Who may touch what
//! `value`: the sender while `TX_GONE` is clear, the receiver after it has seen `TX_GONE`. Each waker has one owner
//! that writes it (while its bit is clear); who clears the bit owns what is in it (`waker_words.rs`). Whoever leaves
//! takes both wakers in the same exchange: its own, to be dropped, and the other's, to be woken. So with a `GONE` bit
//! set there are no wakers, and who has seen the other's bit has the channel for itself.
//!
//! # The races
//! Every change of the word is one exchange, so sending, closing, registering and leaving have an order. What is
//! between the read of the state and the exchange is either done again, or it is one waker that is dropped unused.
//!
//! # User code
//! Wakers are cloned before the exchange and woken or dropped after it; a value is dropped when nothing of the channel
//! is touched afterwards, except that its memory is freed.
//!
//! # Where it comes from
//! tokio's `oneshot`, in names and meaning. That one counts references besides; here the `GONE` bits are the count:
//! sending costs one exchange, and receiving what is there costs none.

pub mod error;
mod inner;
mod receiver;
mod sender;

use std::panic::Location;

pub use self::error::{RecvError, TryRecvError};
use self::inner::Ptr;
pub use self::receiver::Receiver;
pub use self::sender::{Closed, Sender};

/// Makes a channel for one value.
///
/// # Examples
/// ```
/// use rt_sync::oneshot;
///
/// let (sender, receiver) = oneshot::channel();
/// std::thread::spawn(move || sender.send("hello"));
/// assert_eq!(receiver.blocking_recv()?, "hello");
/// # Ok::<(), oneshot::RecvError>(())
/// ```
#[inline]
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Ptr::new();
    let receiver = Receiver {
        channel: Some(channel),
        site: Location::caller(),
    };
    (Sender { channel }, receiver)
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
