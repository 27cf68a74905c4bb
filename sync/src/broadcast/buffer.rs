//! The slots of a `broadcast` channel and the count of its ends.

use std::mem;

use crate::notify::Notify;
use crate::primitive::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::primitive::{Arc, Mutex};

/// More receivers than fit into memory.
const MAX_RECEIVERS: usize = usize::MAX >> 2;

/// What all ends share.
pub(super) struct Shared<T> {
    /// A power of two of them.
    slots: Box<[Mutex<Slot<T>>]>,
    tail: Mutex<Tail>,
    /// The number that the next value gets: that of `tail`, readable without the lock.
    next: AtomicU64,
    pub(super) senders: AtomicUsize,
    pub(super) weak_senders: AtomicUsize,
    /// Notified after each value, and when the last sender goes.
    pub(super) sent: Notify,
    /// Notified when the last receiver goes.
    pub(super) deserted: Notify,
}

/// Taken before the lock of a slot, if both are.
struct Tail {
    next: u64,
    receivers: usize,
}

struct Slot<T> {
    number: u64,
    /// How many receivers have not got the value yet.
    left: usize,
    /// There while `left` is not 0.
    value: Option<Arc<T>>,
}

/// What a receiver finds for the number that it wants.
pub(super) enum Found<T> {
    /// The value; `Last` if no other receiver wants it.
    Value(Arc<T>),
    Last(Arc<T>),
    /// It has not been sent.
    Nothing,
    /// It has been overwritten; the number is that of the oldest value that is there.
    Overwritten(u64),
}

impl<T> Shared<T> {
    #[track_caller]
    pub(super) fn new(capacity: usize) -> Self {
        assert!(
            capacity > 0,
            "a broadcast channel of capacity 0 could never hold a value: ask for at least 1"
        );
        assert!(
            capacity <= usize::MAX >> 1,
            "a broadcast channel of capacity {capacity} cannot be: at most {} is possible",
            usize::MAX >> 1
        );
        let slot = |_| {
            Mutex::new(Slot {
                // Nobody wants this number before it has been sent.
                number: u64::MAX,
                left: 0,
                value: None,
            })
        };
        Self {
            slots: (0..capacity.next_power_of_two()).map(slot).collect(),
            tail: Mutex::new(Tail {
                next: 0,
                receivers: 0,
            }),
            next: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
            sent: Notify::new(),
            deserted: Notify::new(),
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> &Mutex<Slot<T>> {
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
        let index = number as usize & (self.slots.len() - 1);
        &self.slots[index]
    }

    /// Puts a value in, unless there is no receiver; returns how many there are, and the value that had to go.
    #[inline]
    pub(super) fn push(&self, value: Arc<T>) -> Result<(usize, Option<Arc<T>>), Arc<T>> {
        let mut tail = self.tail.lock();
        let receivers = tail.receivers;
        if receivers == 0 {
            drop(tail);
            return Err(value);
        }
        let number = tail.next;
        tail.next += 1;
        let mut slot = self.slot(number).lock();
        slot.number = number;
        slot.left = receivers;
        let old = slot.value.replace(value);
        drop(slot);
        // Release: with `next_number`; who sees this finds the value in its slot (or a later one).
        self.next.store(number + 1, Release);
        drop(tail);
        Ok((receivers, old))
    }

    /// The number that the next value gets.
    #[inline]
    pub(super) fn next_number(&self) -> u64 {
        // Acquire: with `push`.
        self.next.load(Acquire)
    }

    /// The value of a number for a receiver that has not asked for it before.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Found<T> {
        let next = self.next_number();
        if number == next {
            return Found::Nothing;
        }
        if let Some(oldest) = self.oldest(number, next) {
            return Found::Overwritten(oldest);
        }
        let mut slot = self.slot(number).lock();
        if slot.number != number {
            // Overwritten since. `next` may not say so yet, but the slot does: its value is the newest that we know of.
            return Found::Overwritten(slot.number + 1 - self.slots.len() as u64);
        }
        slot.left -= 1;
        if slot.left == 0
            && let Some(value) = slot.value.take()
        {
            Found::Last(value)
        } else if let Some(value) = &slot.value {
            Found::Value(value.clone())
        } else {
            unreachable!("the value {number} is gone though a receiver has not got it");
        }
    }

    /// The oldest number that is there, if `number` is older.
    #[inline]
    fn oldest(&self, number: u64, next: u64) -> Option<u64> {
        let room = self.slots.len() as u64;
        (next - number > room).then(|| next - room)
    }

    /// Counts a receiver, and returns the number of the first value that it gets.
    pub(super) fn add_receiver(&self) -> u64 {
        let mut tail = self.tail.lock();
        assert!(
            tail.receivers < MAX_RECEIVERS,
            "a broadcast channel has {MAX_RECEIVERS} receivers, more than there can be"
        );
        tail.receivers += 1;
        tail.next
    }

    /// Takes a receiver out of the count; returns the number of the first value that is not sent to it any more, and
    /// whether it was the last one.
    pub(super) fn remove_receiver(&self) -> (u64, bool) {
        let mut tail = self.tail.lock();
        tail.receivers -= 1;
        (tail.next, tail.receivers == 0)
    }

    pub(super) fn receivers(&self) -> usize {
        self.tail.lock().receivers
    }

    /// How many values are there that a receiver has not got.
    pub(super) fn len(&self) -> usize {
        let tail = self.tail.lock();
        // A receiver gets values in their order, so those that everybody has got are the oldest ones.
        let room = self.slots.len();
        #[expect(clippy::cast_possible_truncation, reason = "at most `room`")]
        let there = tail.next.min(room as u64) as usize;
        let (mut low, mut high) = (0, there);
        while low < high {
            let middle = low + (high - low) / 2;
            let number = tail.next - (there - middle) as u64;
            if self.slot(number).lock().left == 0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        there - low
    }

    pub(super) fn is_empty(&self) -> bool {
        let tail = self.tail.lock();
        tail.next == 0 || self.slot(tail.next - 1).lock().left == 0
    }

    /// Whether every sender has gone.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: with the last sender; whoever sees 0 sees every value.
        self.senders.load(Acquire) == 0
    }

    /// Another sender for a weak one, if there is one still.
    pub(super) fn upgrade(&self) -> bool {
        // Relaxed: the sender that is there keeps the channel open, which is all there is to know.
        self.senders
            .fetch_update(Relaxed, Relaxed, |count| (count > 0).then(|| count + 1))
            .is_ok()
    }

    /// Lets a receiver pass over a value: drops it if nobody else wants it. Returns the number to go on with.
    pub(super) fn skip(&self, number: u64) -> u64 {
        match self.get(number) {
            Found::Value(value) | Found::Last(value) => {
                drop(value);
                number + 1
            }
            Found::Overwritten(oldest) => oldest,
            Found::Nothing => number,
        }
    }
}

/// A value of one's own: the one that was sent, if nobody else has it, or a clone.
#[inline]
pub(super) fn own<T: Clone>(value: Arc<T>, last: bool) -> T {
    if !last {
        return T::clone(&value);
    }
    Arc::try_unwrap(value).unwrap_or_else(|shared| T::clone(&shared))
}

/// The value of an `Arc` that nobody else has.
pub(super) fn alone<T>(value: Arc<T>) -> T {
    match Arc::try_unwrap(value) {
        Ok(value) => value,
        Err(shared) => {
            mem::forget(shared);
            unreachable!("a value that was refused is shared");
        }
    }
}
