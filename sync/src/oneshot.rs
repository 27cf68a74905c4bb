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
//! `VALUE` and `CLOSED` never meet: each is set only while the other is clear (`CLOSED` comes too late once `TX_GONE` is
//! set). Neither do the two `GONE` bits: the second one to go frees the channel instead of setting its own.
//!
//! # Who may touch what
//! `value`: the sender while `TX_GONE` is clear, the receiver after it has seen `TX_GONE`. Each waker has one owner that
//! writes it (while its bit is clear); who clears the bit owns what is in it (`waker_words.rs`). Whoever leaves takes
//! both wakers in the same exchange: its own, to be dropped, and the other's, to be woken. So with a `GONE` bit set
//! there are no wakers, and who has seen the other's bit has the channel for itself.
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
#![expect(
    unsafe_code,
    reason = "the two ends share an allocation that the second one to go frees"
)]

use std::error::Error;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use crate::coop;
use crate::primitive::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use crate::primitive::cell::UnsafeCell;
use crate::primitive::thread::{self, Thread};
use crate::wait::{self, WaitKind};
use crate::waker_words::WakerWords;

const VALUE: u64 = 1;
const TX_GONE: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const RX_GONE: u64 = 1 << 3;
const RX_WAKER: u64 = 1 << 4;
const TX_WAKER: u64 = 1 << 5;
/// One generation: 2^58 registrations on one channel do not happen.
const GENERATION: u64 = 1 << 6;

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

/// The end that sends: made by [`channel`]. Dropping it without a value tells the receiver.
pub struct Sender<T> {
    channel: Ptr<T>,
}

/// The end that receives: made by [`channel`], and a future of the value.
///
/// # Cancel safety
/// As long as it is polled by reference (`&mut receiver`), nothing is lost when that is dropped. Dropping the receiver
/// itself drops the value, if there is one.
///
/// # Panics
/// Polled again after it was ready.
#[must_use = "a receiver is a future, and dropping it closes the channel"]
pub struct Receiver<T> {
    /// `None` once it is over.
    channel: Option<Ptr<T>>,
    site: &'static Location<'static>,
}

/// What the two ends share.
struct Channel<T> {
    state: AtomicU64,
    rx_waker: WakerWords,
    tx_waker: WakerWords,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// An end's pointer to the channel, which exists until both ends have gone.
struct Ptr<T>(NonNull<Channel<T>>);

// SAFETY: the ends hand the value and wakers from thread to thread by the protocol of the module head; nobody gets a
// `&T` from a shared end.
unsafe impl<T: Send> Send for Ptr<T> {}
// SAFETY: as above; what a shared end can do is read the state word.
unsafe impl<T: Send> Sync for Ptr<T> {}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

/// The wakers that came out of the channel when an end left it.
struct Leaving {
    other: Option<Waker>,
    own: Option<Waker>,
}

impl Leaving {
    /// Tells the other end, also when dropping our own waker panics.
    #[inline]
    fn tell(self) {
        if let Some(waker) = self.other {
            waker.wake();
        }
        drop(self.own);
    }
}

/// Which waker.
#[derive(Clone, Copy)]
enum End {
    Tx,
    Rx,
}

impl End {
    #[inline]
    fn bit(self) -> u64 {
        match self {
            End::Tx => TX_WAKER,
            End::Rx => RX_WAKER,
        }
    }
}

impl<T> Channel<T> {
    #[inline]
    fn waker(&self, end: End) -> &WakerWords {
        match end {
            End::Tx => &self.tx_waker,
            End::Rx => &self.rx_waker,
        }
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// It is there, it belongs to the caller's end (module head), and nobody uses it afterwards.
    #[inline]
    unsafe fn take_value(&self) -> T {
        self.value.with(|slot| {
            // SAFETY: the caller's: nobody else reaches the slot.
            let slot = unsafe { &*slot };
            // SAFETY: the caller's.
            unsafe { slot.assume_init_read() }
        })
    }
}

impl<T> Ptr<T> {
    fn new() -> Self {
        let channel = Box::new(Channel {
            state: AtomicU64::new(0),
            rx_waker: WakerWords::new(),
            tx_waker: WakerWords::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        });
        Self(NonNull::from(Box::leak(channel)))
    }

    /// The channel. The caller is an end that has not left; `'a` does not outlive that.
    #[inline]
    fn get<'a>(self) -> &'a Channel<T> {
        // SAFETY: an end that has not left keeps the channel (module head); ends are the only callers, and use the
        // reference only up to the exchange with which they leave.
        unsafe { self.0.as_ref() }
    }

    /// Frees the channel.
    ///
    /// # Safety
    /// The other end has gone, and so does the caller. No waker is in it. `value`: whether a value is in it.
    unsafe fn free(self, value: bool) {
        // SAFETY: `new` made it of a box, and the caller is the last who knows it.
        let channel = unsafe { Box::from_raw(self.0.as_ptr()) };
        if value {
            // When the destructor panics, unwinding frees the box.
            channel.value.with_mut(|slot| {
                // SAFETY: nobody else reaches the slot.
                let slot = unsafe { &mut *slot };
                // SAFETY: the caller's: the value is there, and nobody uses it afterwards.
                unsafe { slot.assume_init_drop() }
            });
        }
    }

    /// Takes the value out, and frees the channel.
    ///
    /// # Safety
    /// As for `free`, with a value.
    unsafe fn into_value(self) -> T {
        // SAFETY: the caller's.
        let value = unsafe { self.get().take_value() };
        // SAFETY: the caller's; the value has been moved out.
        unsafe { self.free(false) };
        value
    }

    /// Sets `bits` and takes the wakers that `take` names, in one exchange, unless a bit of `unless` is set. Returns
    /// what was taken of `(rx, tx)`, or `Err` with the state in the other case.
    ///
    /// When `bits` has a `GONE` bit, the channel may be gone when this returns: so this has the pointer by value, not
    /// a reference, which would have to be good until then.
    #[inline]
    fn change(
        self,
        bits: u64,
        take: u64,
        unless: u64,
    ) -> Result<(Option<Waker>, Option<Waker>), u64> {
        let channel = self.get();
        // Acquire, here and on failure: what the other end did before; and the words that belong to this state.
        let mut state = channel.state.load(Acquire);
        loop {
            if state & unless != 0 {
                return Err(state);
            }
            let rx = channel.rx_waker.read();
            let tx = channel.tx_waker.read();
            // Release: the value, and whatever the caller did, is seen by the other end. Acquire: a waker that is taken
            // was published with this state.
            match channel
                .state
                .compare_exchange_weak(state, state & !take | bits, AcqRel, Acquire)
            {
                Ok(_) => {
                    let taken = state & take;
                    // SAFETY: the exchange cleared the bit, from a state read before the words (`waker_words.rs`).
                    let rx = (taken & RX_WAKER != 0).then(|| unsafe { rx.into_waker() });
                    // SAFETY: the same.
                    let tx = (taken & TX_WAKER != 0).then(|| unsafe { tx.into_waker() });
                    return Ok((rx, tx));
                }
                Err(now) => state = now,
            }
        }
    }

    /// Makes `waker` the one of this end, unless a bit of `unless` is or becomes set: `Err` with the state then.
    #[inline]
    fn register(self, end: End, waker: &Waker, unless: u64) -> Result<(), u64> {
        let channel = self.get();
        // Acquire: as in `change`.
        let state = channel.state.load(Acquire);
        if state & unless != 0 {
            return Err(state);
        }
        if state & end.bit() != 0 && channel.waker(end).will_wake(waker) {
            // Whoever does something next takes it: every change by the other end is an exchange on this state.
            return Ok(());
        }
        self.register_anew(state, end, waker, unless)
    }

    fn register_anew(self, state: u64, end: End, waker: &Waker, unless: u64) -> Result<(), u64> {
        let new = ManuallyDrop::new(waker.clone());
        let channel = self.get();
        // Only this end sets the bit. While it is set we may not write; who clears it owns the old waker.
        let old = if state & end.bit() == 0 {
            None
        } else {
            self.change(0, end.bit(), 0).ok()
        };
        channel.waker(end).write(&new);
        // Acquire: as in `change`.
        let mut state = channel.state.load(Acquire);
        let published = loop {
            if state & unless != 0 {
                break Err(state);
            }
            let next = (state | end.bit()).wrapping_add(GENERATION);
            // Release: the words are seen by who takes them. Acquire: as in `change`.
            match channel
                .state
                .compare_exchange_weak(state, next, AcqRel, Acquire)
            {
                Ok(_) => break Ok(()),
                Err(now) => state = now,
            }
        };
        if published.is_err() {
            drop(ManuallyDrop::into_inner(new));
        }
        drop(old);
        published
    }
}

impl<T> Sender<T> {
    /// Sends the value: the receiver gets it, now or when it looks. Never waits.
    ///
    /// # Errors
    /// Gives the value back if the receiver has gone or closed the channel. `Ok` does not say that the value will be
    /// looked at: the receiver may go before that.
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        let ptr = ManuallyDrop::new(self).channel;
        let channel = ptr.get();
        channel.value.with_mut(|slot| {
            // SAFETY: `TX_GONE` is clear, so `value` is ours, and it is empty.
            unsafe { (*slot).write(value) };
        });
        match ptr.change(VALUE | TX_GONE, RX_WAKER | TX_WAKER, CLOSED) {
            Ok((other, own)) => {
                // The channel may be gone from here on.
                Leaving { other, own }.tell();
                Ok(())
            }
            Err(_) => {
                // SAFETY: `VALUE` was not set, so the value is still ours.
                let value = unsafe { channel.take_value() };
                drop(Self { channel: ptr });
                Err(value)
            }
        }
    }

    /// Whether the receiver has gone or closed the channel, so that [`send`](Self::send) would fail.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Acquire: with the exchange of the receiver; what it did before is seen.
        self.channel.get().state.load(Acquire) & CLOSED != 0
    }

    /// Waits until the receiver has gone or closed the channel: nobody wants the value any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::oneshot::Sender;
    ///
    /// async fn answer(mut sender: Sender<u32>) {
    ///     // Something long, which is in vain once the other side has lost interest.
    ///     sender.closed().await;
    ///     assert_eq!(sender.send(1), Err(1));
    /// }
    /// ```
    #[inline]
    #[track_caller]
    pub fn closed(&mut self) -> Closed<'_, T> {
        Closed {
            sender: self,
            site: Location::caller(),
        }
    }

    /// [`closed`](Self::closed) for hand-written futures. The waker stays until the sender goes or another takes its
    /// place.
    #[inline]
    #[track_caller]
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_closed_at(cx, Location::caller())
    }

    #[inline]
    fn poll_closed_at(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        match self.channel.register(End::Tx, cx.waker(), CLOSED) {
            Ok(()) => {
                wait::record(WaitKind::Oneshot, site);
                Poll::Pending
            }
            Err(_) => {
                unit.made_progress();
                Poll::Ready(())
            }
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        match self.channel.change(TX_GONE, RX_WAKER | TX_WAKER, RX_GONE) {
            // The channel may be gone from here on.
            Ok((other, own)) => Leaving { other, own }.tell(),
            // SAFETY: the receiver has gone, with the wakers; there is no value, as `VALUE` is set by `send` only, which
            // does not come here then.
            Err(_) => unsafe { self.channel.free(false) },
        }
    }
}

impl<T> Receiver<T> {
    /// The value, if it has been sent.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if it may still come, [`TryRecvError::Closed`] if it never will: the sender has gone
    /// without a value, the channel was closed before one was sent, or the value has been received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(channel) = self.channel else {
            return Err(TryRecvError::Closed);
        };
        // Acquire: with the exchange of the sender; the value is seen.
        let state = channel.get().state.load(Acquire);
        if state & (TX_GONE | CLOSED) == 0 {
            return Err(TryRecvError::Empty);
        }
        self.finish(state)
            .map_err(|RecvError(())| TryRecvError::Closed)
    }

    /// Lets no value in any more: a later [`send`](Sender::send) fails. One that was sent before can still be received.
    pub fn close(&mut self) {
        if let Some(channel) = self.channel
            && let Ok((_, Some(sender))) = channel.change(CLOSED, TX_WAKER, TX_GONE | CLOSED)
        {
            sender.wake();
        }
    }

    /// Blocks this thread until the value is there. For threads that are not workers of a runtime: a worker that blocks
    /// polls nothing meanwhile.
    ///
    /// # Errors
    /// If the sender has gone without a value, the channel was closed before one, or it has been received already.
    ///
    pub fn blocking_recv(mut self) -> Result<T, RecvError> {
        // Without a waker first: it costs an allocation.
        match self.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Closed) => return Err(RecvError(())),
            Err(TryRecvError::Empty) => {}
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.poll_recv(&waker) {
                Poll::Ready(result) => return result,
                // May return early; then the next round comes here again.
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Whether the receiver is over: its value has been received, or it was told that none will come.
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.channel.is_none()
    }

    /// Whether there is no value to be received now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Acquire: with the exchange of the sender; what it did before is seen.
        self.channel
            .is_none_or(|channel| channel.get().state.load(Acquire) & VALUE == 0)
    }

    #[inline]
    #[track_caller]
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Result<T, RecvError>> {
        let Some(channel) = self.channel else {
            panic!("oneshot::Receiver polled after it was ready; ask `is_terminated` first");
        };
        match channel.register(End::Rx, waker, TX_GONE | CLOSED) {
            Ok(()) => Poll::Pending,
            Err(state) => Poll::Ready(self.finish(state)),
        }
    }

    /// The end: `state` has `TX_GONE` or `CLOSED`.
    #[inline]
    fn finish(&mut self, state: u64) -> Result<T, RecvError> {
        let Some(channel) = self.channel else {
            return Err(RecvError(()));
        };
        if state & VALUE == 0 {
            self.leave();
            return Err(RecvError(()));
        }
        self.channel = None;
        // SAFETY: `VALUE` comes with `TX_GONE`, so the channel is ours, without wakers and with a value.
        Ok(unsafe { channel.into_value() })
    }

    fn leave(&mut self) {
        let Some(channel) = self.channel.take() else {
            return;
        };
        match channel.change(CLOSED | RX_GONE, RX_WAKER | TX_WAKER, TX_GONE) {
            // The channel may be gone from here on.
            Ok((own, other)) => Leaving { other, own }.tell(),
            // SAFETY: the sender has gone, with the wakers; `VALUE` says whether it left a value.
            Err(state) => unsafe { channel.free(state & VALUE != 0) },
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let polled = self.poll_recv(cx.waker());
        if polled.is_ready() {
            unit.made_progress();
        } else {
            wait::record(WaitKind::Oneshot, self.site);
        }
        polled
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

/// Future of [`Sender::closed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    sender: &'a mut Sender<T>,
    site: &'static Location<'static>,
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let site = self.site;
        self.sender.poll_closed_at(cx, site)
    }
}

impl<T> Drop for Closed<'_, T> {
    /// Drops the stored waker.
    fn drop(&mut self) {
        let channel = self.sender.channel.get();
        // Relaxed: only this end sets the bit; that it may have been cleared is for `change` to see.
        if channel.state.load(Relaxed) & TX_WAKER != 0 {
            drop(self.sender.channel.change(0, TX_WAKER, 0));
        }
    }
}

/// Unparks the thread in `blocking_recv`.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// No value will come: the sender has gone without one, or the channel was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecvError(());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("oneshot channel closed: the sender was dropped without a value, or `close` was called before one")
    }
}

impl Error for RecvError {}

/// Why [`Receiver::try_recv`] has no value.
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

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("terminated", &self.is_terminated())
            .field("empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
