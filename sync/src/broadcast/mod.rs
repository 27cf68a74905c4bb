//! A channel of which every receiver gets every value, with room for a fixed number of them.
//!
//! Values are numbered. A receiver starts with the first one that is sent after it was made, and gets a clone of each.
//! There is always room for another value: it takes the place of the oldest, and a receiver that had not seen that one
//! is told how many it missed ([`RecvError::Lagged`](error::RecvError::Lagged)) and goes on with the oldest that is
//! there.
//!
//! # Examples
//! ```
//! use rt_sync::broadcast;
//!
//! let (sender, mut first) = broadcast::channel(16);
//! let mut second = sender.subscribe();
//! let receiving = std::thread::spawn(move || second.blocking_recv());
//! sender.send("hello")?;
//! assert_eq!(futures_lite::future::block_on(first.recv())?, "hello");
//! assert_eq!(receiving.join().unwrap()?, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it guarantees
//! Every receiver gets every value in the order of the numbers, or is told of the gap. A value is dropped when the last
//! receiver that it was sent to has got it, has gone, or is late; that receiver gets the value itself if nobody clones
//! it at that time.
//!
//! # Who may touch what
//! A cell holds the value of one number (`cell.rs`), and the ring of slots says which cell (`buffer.rs`). Numbers are
//! given out, and cells filled, by who holds `tail`; `next` repeats the next number for those who only want to know
//! whether there is something. That lock is held for some instructions only, and receivers take none: a receive is two
//! read-modify-writes, one that pins the cell and one that gives pin and share back. Cells are used again and again, so
//! that sending allocates nothing, unless it comes round to a value that is being cloned: then another cell takes its
//! place.
//!
//! # User code
//! A value is cloned while its cell is pinned, and dropped when nobody else can reach it, both with no lock held: a
//! `clone` that takes long keeps neither senders nor other receivers waiting. That is why values must be `Sync` to be
//! shared by threads.
//!
//! # The race
//! As in `watch`: a receiver that found nothing makes a future of `Notify`, looks once more, then waits; a sender moves
//! `next` on, then notifies.
//!
//! # Where it comes from
//! tokio's `broadcast`, in names and meaning. That one clones under the mutex of the slot, so that receivers, and a
//! sender that comes round, wait for each other's clones; in return it takes values that are not `Sync`. An `Arc` for
//! each value, in slots with a mutex each, was here before: four read-modify-writes a receive and an allocation a send.

mod buffer;
mod cell;
pub mod error;
mod receiver;
mod sender;

pub use self::receiver::{Receiver, Recv};
pub use self::sender::{Closed, Sender, WeakSender};

/// Makes a channel with room for `capacity` values, rounded up to a power of two.
///
/// Receivers on several threads clone one value at the same time. So it must be `Sync` for the ends to be `Send`; a value that
/// is not goes into an `Arc<Mutex<_>>`.
///
/// # Panics
/// If `capacity` is 0 or more than `usize::MAX / 2`.
///
/// # Examples
/// ```
/// use rt_sync::broadcast::{self, error::RecvError};
///
/// let (sender, mut receiver) = broadcast::channel(2);
/// (1..=5).try_for_each(|n| sender.send(n).map(drop))?;
/// assert_eq!(receiver.blocking_recv(), Err(RecvError::Lagged(3)));
/// assert_eq!(receiver.blocking_recv(), Ok(4));
/// assert_eq!(receiver.blocking_recv(), Ok(5));
/// drop(sender);
/// assert_eq!(receiver.blocking_recv(), Err(RecvError::Closed));
/// # Ok::<(), broadcast::error::SendError<i32>>(())
/// ```
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
