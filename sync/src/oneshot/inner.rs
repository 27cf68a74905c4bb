//! What the two ends share, and every change of its state word: the protocol of mod.rs.
#![expect(
    unsafe_code,
    reason = "the two ends share an allocation that the second one to go frees"
)]

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use crate::primitive::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};
use crate::primitive::cell::UnsafeCell;
use crate::waker_words::WakerWords;

pub(super) const VALUE: u64 = 1;
pub(super) const TX_GONE: u64 = 1 << 1;
pub(super) const CLOSED: u64 = 1 << 2;
pub(super) const RX_GONE: u64 = 1 << 3;
pub(super) const RX_WAKER: u64 = 1 << 4;
pub(super) const TX_WAKER: u64 = 1 << 5;
/// One generation: 2^58 registrations on one channel do not happen.
pub(super) const GENERATION: u64 = 1 << 6;

/// What the two ends share.
pub(super) struct Channel<T> {
    pub(super) state: AtomicU64,
    rx_waker: WakerWords,
    tx_waker: WakerWords,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

/// An end's pointer to the channel, which exists until both ends have gone.
pub(super) struct Ptr<T>(NonNull<Channel<T>>);

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
pub(super) struct Leaving {
    pub(super) other: Option<Waker>,
    pub(super) own: Option<Waker>,
}

impl Leaving {
    /// Tells the other end, also when dropping our own waker panics.
    #[inline]
    pub(super) fn tell(self) {
        if let Some(waker) = self.other {
            waker.wake();
        }
        drop(self.own);
    }
}

/// Which waker.
#[derive(Clone, Copy)]
pub(super) enum End {
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
    pub(super) unsafe fn take_value(&self) -> T {
        self.value.with(|slot| {
            // SAFETY: the caller's: nobody else reaches the slot.
            let slot = unsafe { &*slot };
            // SAFETY: the caller's.
            unsafe { slot.assume_init_read() }
        })
    }
}

impl<T> Ptr<T> {
    pub(super) fn new() -> Self {
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
    pub(super) fn get<'a>(self) -> &'a Channel<T> {
        // SAFETY: an end that has not left keeps the channel (module head); ends are the only callers, and use the
        // reference only up to the exchange with which they leave.
        unsafe { self.0.as_ref() }
    }

    /// Frees the channel.
    ///
    /// # Safety
    /// The other end has gone, and so does the caller. No waker is in it. `value`: whether a value is in it.
    pub(super) unsafe fn free(self, value: bool) {
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
    pub(super) unsafe fn into_value(self) -> T {
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
    pub(super) fn change(
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
    pub(super) fn register(self, end: End, waker: &Waker, unless: u64) -> Result<(), u64> {
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
