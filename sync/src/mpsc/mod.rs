//! Channels with many senders and one receiver: [bounded](channel), where senders wait for room, and
//! [unbounded](unbounded_channel).
//!
//! # What it guarantees
//! A value that was sent is received once, or dropped with the receiver. The values of one sender are received in the
//! order in which they were sent. A bounded channel never holds more values and permits than its capacity, and lets
//! waiting senders in first come first served: a newcomer never overtakes them, `try_send` least of all. `recv` says
//! `None` only when nothing is left and nothing can come: the channel is closed (or its senders have gone), it is empty
//! and no permit is out.
//!
//! # Shape
//! Everything that senders change lies under one short lock; a send takes it once. The receiver takes the whole queue
//! out in one go (`queue.rs`), and then as many values as there were without a lock: what a value costs it is, in a
//! bounded channel, one read-modify-write that gives the slot back, and in an unbounded one nothing. A value that wakes the
//! receiver does not go through the queue (`handoff.rs`).
//!
//! # Who may touch what
//! `State` belongs to who holds the lock, and so do the nodes of waiting senders (`waiters.rs`). What was taken out is
//! the receiver's own. `received` is written by the receiver (the count) and by who holds the lock (the flag).
//!
//! # The race
//! The receiver gives slots back without the lock, while a sender finds none and begins to wait.
//!
//! 1. The sender, under the lock, puts its node into the list.
//! 2. It sets `WAITING` in `received`, and then looks how many slots have come free up to now. If they are enough, it is
//!    let in at once.
//! 3. The receiver adds to `received`, and so learns whether `WAITING` was set. If so it takes the lock and lets in who
//!    can be let in.
//!
//! Steps 2 and 3 are read-modify-writes of one word, so one of them comes first and the other sees it. The list itself
//! is ordered by the lock.
//!
//! A waiter that is let in has its slots counted as reserved, exactly as a permit has; what it does then (send, become
//! a permit, be dropped) is what a permit does. All ways to give a slot back end in `Chan::settle`, which lets the next
//! ones in and, if the channel is closed, empty and without permits, tells the receiver.
//!
//! # User code
//! Wakers are cloned, woken and dropped, and values dropped, with the lock released and the state whole. If a waker
//! panics, all others that were to be woken have been woken before the panic goes on. Out of a receive it does not go on: it
//! would take along the value that the receiver has by then, which has nothing to do with a sender's waker. The panic hook
//! has told of it.
//!
//! # What was not done
//! *Letting waiting senders wait until a share of the capacity is free* would save wake-ups where senders and receiver
//! run on different cores. But the receiver may, after any value, wait for something that only that sender will do; the
//! free slot would then never be handed out, and both would wait for ever. So each slot goes to the first in line when
//! it comes free. (Those who are let in find more room when they run: in the usual case one wake-up serves as many
//! values as the receiver has taken meanwhile.)
//!
//! *A ring or a list of blocks without a lock* needs one read-modify-write to get a place, one to publish the value or
//! a fence to see whether the receiver waits, and, because permits take room but no place, one more for the room; the
//! lock costs two in all. Besides, a sender that is interrupted between the first two holds up all that come after it.
//!
//! # Where it comes from
//! tokio's `mpsc`, in names and meaning. `Sender::send_timeout` needs a timer, and so is a trait of the runtime,
//! `rt::time::SendTimeoutExt`. Different: the receivers are streams themselves; futures have names; and a sender that was
//! let in but finds the receiver gone gets its value back.

mod bounded;
mod chan;
mod ends;
pub mod error;
mod handoff;
mod permit;
mod queue;
mod rx;
mod send;
mod ticket;
mod tx;
mod unbounded;
mod waiters;

pub use self::bounded::{Receiver, Sender, WeakSender, channel};
pub use self::permit::{OwnedPermit, Permit, PermitIterator};
pub use self::rx::{Recv, RecvMany};
pub use self::send::{Closed, Reserve, ReserveMany, ReserveOwned, Sending};
pub use self::unbounded::{
    UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel,
};

#[cfg(all(test, not(rt_loom)))]
mod tests;
