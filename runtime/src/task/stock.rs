//! Memory of tasks that were spawned from outside: whoever frees it keeps it for whoever spawns next.
//!
//! A thread that is no worker takes memory, and a worker gives it back. Most allocators are made for a thread that gives back
//! what it took itself. With glibc two such threads meet at the lock of one arena and sleep there, and the heap shrinks and
//! grows again: that was more than a half of what a spawn from outside took.
//!
//! # What it guarantees
//! What is put in comes out once, with the companion that was put in with it, or both are freed. Of what lies in the
//! stock at most [`MOST`] bytes are kept, and besides one chain of each size that is being handed out; nothing after
//! [`close`](Stock::close).
//!
//! # Who may touch what
//! Free memory lies in a chain, linked through itself, and belongs to whoever has the chain: the worker that fills it
//! ([`Freed`]), then the stack of its size, then the shelf, which belongs to the holder of the lock.
//!
//! # The races
//! 1. Push against push, and against a spawner that refills: one exchange of the stack's word each. Whoever takes takes all,
//!    so that no chain can leave and come back while somebody looks at it.
//! 2. Push against close: the end stands in the stack's word too ([`closed`]), and a push that finds it hands its chain back.
//!    A refill cannot wipe it out, since it holds the lock, as the close does.
//!
//! # User code
//! None runs in here, but a companion may be the last reference of a runtime, in whose queues tasks lie. So none is dropped
//! under the lock, and what the stock does not take is handed back.
//!
//! # Where it comes from
//! Bonwick's magazines ("Magazines and Vmem", 2001), with a stack in place of the depot. To free in batches was tried first,
//! and changed nothing: it is the number of blocks that the allocator counts. A list for each seat, for the tasks that are
//! spawned and end there, was tried as well: 65 to 100 instructions fewer for a spawn and its end (of 985), and no less time. The
//! allocator's way for one thread has no locked instruction, and those are what a spawn waits for.
#![expect(
    unsafe_code,
    reason = "memory without a type, and lists that are linked through it"
)]

use std::array;
use std::cell::Cell;
use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};

use rt_sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use rt_sync::primitive::atomic::{AtomicPtr, AtomicUsize};
use rt_sync::primitive::{Arc, ShortMutex};

use super::memory::{ALIGN, LEAST, Memory, SIZES, STEP, Size};

/// The most bytes that a stock keeps.
///
/// Of a mass of 10,000 tasks most are over when the last is spawned. In *spawn many remote* with one worker a spawn took 287 ns
/// with nothing kept, 203 with 256 KiB, 187 with 1 MiB, and no less with more.
#[cfg(not(rt_loom))]
pub(crate) const MOST: usize = 256 << 10;
#[cfg(rt_loom)]
pub(crate) const MOST: usize = 4 * STEP;

/// Bytes of a chain, about: some dozen tasks meet at the stack's word once.
#[cfg(not(rt_loom))]
const CHAIN: usize = 4096;
#[cfg(rt_loom)]
const CHAIN: usize = 2 * STEP;
/// `Freed::put` relies on it: what begins a chain does not fill it.
const _: () = assert!(CHAIN >= 2 * SIZES * STEP);

/// How many a full chain has.
#[inline]
fn full(size: Size) -> usize {
    CHAIN / size.bytes()
}

/// Chains that a worker fills at a time, each of another size.
const OPEN: usize = 4;

/// What lies in free memory.
struct Blank<O> {
    /// In its chain.
    next: *mut Blank<O>,
    /// Of the first in a chain that lies in a stack: the chain below, and how many this one has.
    below: *mut Blank<O>,
    len: usize,
    companion: O,
}

/// Memory of one size, each with its companion.
pub struct Chain<O> {
    first: *mut Blank<O>,
    len: usize,
    size: Size,
}

// SAFETY: owns what is linked in it: memory, and companions.
unsafe impl<O: Send> Send for Chain<O> {}

impl<O> Chain<O> {
    const FITS: () = assert!(size_of::<Blank<O>>() <= LEAST && align_of::<Blank<O>>() <= ALIGN);

    #[inline]
    fn new(size: Size) -> Self {
        Self {
            first: ptr::null_mut(),
            len: 0,
            size,
        }
    }

    #[inline]
    fn push(&mut self, memory: Memory, companion: O) {
        const { Self::FITS };
        debug_assert_eq!(memory.size(), self.size);
        let blank = memory.into_raw().cast::<Blank<O>>();
        let content = Blank {
            next: self.first,
            below: ptr::null_mut(),
            len: 0,
            companion,
        };
        // SAFETY: memory of ours, large enough and aligned (`FITS`).
        unsafe { blank.write(content) };
        self.first = blank.as_ptr();
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<(Memory, O)> {
        let first = NonNull::new(self.first)?;
        // SAFETY: written in `push`, and read once, since it leaves the chain.
        let content = unsafe { first.read() };
        self.first = content.next;
        self.len -= 1;
        // SAFETY: given up in `push`; what lay there was moved out.
        let memory = unsafe { Memory::from_raw(first.cast(), self.size) };
        Some((memory, content.companion))
    }

    fn bytes(&self) -> usize {
        self.len * self.size.bytes()
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<O> Drop for Chain<O> {
    fn drop(&mut self) {
        while let Some((memory, companion)) = self.pop() {
            drop(memory);
            drop(companion);
        }
    }
}

impl<O> fmt::Debug for Chain<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("len", &self.len)
            .field("bytes", &self.size.bytes())
            .finish()
    }
}

/// What stands in the word of a stack that has closed.
fn closed<O>() -> *mut Blank<O> {
    ptr::without_provenance_mut(ALIGN)
}

/// What a spawner takes from, for one size.
struct Shelf<O> {
    open: Chain<O>,
    /// What was taken from the stack: the first of its top chain, or null.
    rest: *mut Blank<O>,
}

// SAFETY: as for `Chain`.
unsafe impl<O: Send> Send for Shelf<O> {}

impl<O> Shelf<O> {
    /// The next chain of `rest`.
    fn next_chain(&mut self) -> Option<Chain<O>> {
        let first = NonNull::new(self.rest)?;
        // SAFETY: chains that were pushed are whole, and ours since we took them from the stack.
        let content = unsafe { first.as_ref() };
        self.rest = content.below;
        Some(Chain {
            first: first.as_ptr(),
            len: content.len,
            size: self.open.size,
        })
    }
}

impl<O> Drop for Shelf<O> {
    fn drop(&mut self) {
        while let Some(chain) = self.next_chain() {
            drop(chain);
        }
    }
}

/// See the module head. `O` is the companion: what each piece of memory brings along for its next user.
pub struct Stock<O> {
    shelves: ShortMutex<Vec<Shelf<O>>>,
    stacks: Box<[AtomicPtr<Blank<O>>]>,
    /// Bytes in stacks, and in shelves but for their open chains; for a moment also what is not kept.
    kept: AtomicUsize,
}

impl<O> Stock<O> {
    /// A stock with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        let shelf = |size| Shelf {
            open: Chain::new(size),
            rest: ptr::null_mut(),
        };
        Self {
            shelves: ShortMutex::new(Size::all().map(shelf).collect()),
            stacks: Size::all()
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
            kept: AtomicUsize::new(0),
        }
    }

    /// Memory of this size, if there is any and nobody else takes some at this moment.
    #[inline]
    pub fn take(&self, size: Size) -> Option<(Memory, O)> {
        let mut shelves = self.shelves.try_lock()?;
        let shelf = shelves.get_mut(size.index())?;
        match shelf.open.pop() {
            Some(taken) => Some(taken),
            None => self.refill(shelf),
        }
    }

    #[inline(never)]
    fn refill(&self, shelf: &mut Shelf<O>) -> Option<(Memory, O)> {
        let stack = &self.stacks[shelf.open.size.index()];
        if shelf.rest.is_null() {
            // Relaxed: nothing is read through it. Only we take from it, and only the holder of the lock closes it.
            let top = stack.load(Relaxed);
            if top.is_null() || top == closed() {
                return None;
            }
            // Acquire: with the exchange of each push, and of those below it, whose order an exchange goes on with.
            shelf.rest = stack.swap(ptr::null_mut(), Acquire);
        }
        let chain = shelf.next_chain()?;
        // Relaxed: a number that stands for itself.
        self.kept.fetch_sub(chain.bytes(), Relaxed);
        // The one before is empty.
        shelf.open = chain;
        shelf.open.pop()
    }

    /// Keeps a chain, or hands it back.
    fn push(&self, chain: Chain<O>) -> Option<Chain<O>> {
        let first = NonNull::new(chain.first)?;
        let bytes = chain.bytes();
        // Relaxed, here and below: a number that stands for itself.
        if self.kept.fetch_add(bytes, Relaxed) + bytes > MOST {
            self.kept.fetch_sub(bytes, Relaxed);
            return Some(chain);
        }
        let stack = &self.stacks[chain.size.index()];
        let mut top = stack.load(Relaxed);
        loop {
            if top == closed() {
                self.kept.fetch_sub(bytes, Relaxed);
                return Some(chain);
            }
            // SAFETY: a blank of our chain.
            let blank = unsafe { &mut *first.as_ptr() };
            (blank.below, blank.len) = (top, chain.len);
            // Release: with the exchange in `refill` and in `close`.
            match stack.compare_exchange_weak(top, first.as_ptr(), Release, Relaxed) {
                Ok(_) => {
                    mem::forget(chain);
                    return None;
                }
                Err(other) => top = other,
            }
        }
    }

    /// Frees what is kept, and keeps nothing from now on.
    pub fn close(&self) {
        let mut left = Vec::with_capacity(2 * SIZES);
        let mut shelves = self.shelves.lock();
        for (shelf, stack) in shelves.iter_mut().zip(&self.stacks) {
            let empty = |rest| Shelf {
                open: Chain::new(shelf.open.size),
                rest,
            };
            // Acquire: as in `refill`.
            let mut top = stack.swap(closed(), Acquire);
            if top == closed() {
                top = ptr::null_mut();
            }
            let below = empty(top);
            left.push(mem::replace(shelf, empty(ptr::null_mut())));
            left.push(below);
        }
        drop(shelves);
        for mut shelf in left {
            while let Some(chain) = shelf.next_chain() {
                // Relaxed: a number that stands for itself.
                self.kept.fetch_sub(chain.bytes(), Relaxed);
            }
        }
    }

    /// The bytes that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.load(Relaxed)
    }
}

impl<O> Default for Stock<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Drop for Stock<O> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<O> fmt::Debug for Stock<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stock")
            .field("kept", &self.kept())
            .finish_non_exhaustive()
    }
}

/// What one thread has freed and not yet put into the stock. Dropped, it does so.
pub struct Freed<O> {
    stock: Arc<Stock<O>>,
    chains: [Cell<Option<Chain<O>>>; OPEN],
}

impl<O> Freed<O> {
    /// Nothing yet.
    #[must_use]
    pub fn new(stock: Arc<Stock<O>>) -> Self {
        Self {
            stock,
            chains: Default::default(),
        }
    }

    /// Keeps memory and its companion. What is handed back is not kept, and the caller's to drop.
    #[inline]
    pub fn put(&self, memory: Memory, companion: O) -> Option<Chain<O>> {
        let size = memory.size();
        let place = &self.chains[size.index() % OPEN];
        let (mut chain, other) = match place.take() {
            Some(chain) if chain.size == size => (chain, None),
            other => (Chain::new(size), other),
        };
        chain.push(memory, companion);
        if chain.len < full(size) {
            place.set(Some(chain));
            // One of another size.
            other.and_then(|other| self.stock.push(other))
        } else {
            // A chain that was begun just now is full only if one makes it so: there are none of those.
            debug_assert!(other.is_none());
            self.stock.push(chain)
        }
    }

    /// Puts everything into the stock. As with [`put`](Self::put), what comes back is not kept.
    pub fn flush(&self) -> [Option<Chain<O>>; OPEN] {
        array::from_fn(|place| {
            self.chains[place]
                .take()
                .and_then(|chain| self.stock.push(chain))
        })
    }

    /// Whether there is nothing to put into the stock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chains.iter().all(|place| {
            let chain = place.take();
            let empty = chain.as_ref().is_none_or(Chain::is_empty);
            place.set(chain);
            empty
        })
    }
}

impl<O> Drop for Freed<O> {
    fn drop(&mut self) {
        drop(self.flush());
    }
}

impl<O> fmt::Debug for Freed<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freed")
            .field("empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
