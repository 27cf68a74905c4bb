//! The values of a channel: what senders have put in, and what the receiver has taken out of there in one go.
//!
//! # Shape
//! [`Queue`] lies under the channel's lock: full chunks, then the chunk that is being filled. [`Taken`] is the
//! receiver's own. When it is empty the receiver swaps it with the queue, in constant time, and then needs no lock for
//! as many values as there were.
//!
//! # Memory
//! A chunk grows by doubling up to [`chunk_len`] values, so a channel that is seldom used is small, and no long queue is
//! ever moved under the lock, as one buffer that doubles would be. Chunks go round: of those that are used up one is
//! kept for the senders, the others are freed by the receiver, so that a burst leaves at most three behind.
//!
//! # User code
//! None runs here, but where a `Queue` or a `Taken` with values in it is dropped.

use std::collections::VecDeque;
use std::mem;

/// Values of a chunk: 8 kB, but not less than 16 values and not more than 256. Longer chunks gain nothing, because a
/// lock in 256 values costs next to nothing.
#[cfg(not(rt_loom))]
pub(super) const fn chunk_len<T>() -> usize {
    let size = mem::size_of::<T>();
    let len = 8192 / if size == 0 { 1 } else { size };
    if len < 16 {
        16
    } else if len > 256 {
        256
    } else {
        len
    }
}

/// Values of a chunk: so few that models get past a border.
#[cfg(rt_loom)]
pub(super) const fn chunk_len<T>() -> usize {
    2
}

/// Room for this many chunks is kept when a long queue has been used up.
const KEPT_CHUNKS: usize = 16;

type Chunk<T> = VecDeque<T>;

/// What was sent and not yet taken out; lies under the channel's lock.
pub(super) struct Queue<T> {
    filling: Chunk<T>,
    /// Before `filling`, oldest first.
    full: VecDeque<Chunk<T>>,
    spare: Option<Chunk<T>>,
}

/// What the receiver has taken out of the queue and not yet handed out.
pub(super) struct Taken<T> {
    current: Chunk<T>,
    /// After `current`, oldest first.
    more: VecDeque<Chunk<T>>,
    spare: Option<Chunk<T>>,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        Self {
            filling: Chunk::new(),
            full: VecDeque::new(),
            spare: None,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.filling.is_empty() && self.full.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        if self.filling.len() == chunk_len::<T>() {
            self.next_chunk();
        }
        self.filling.push_back(value);
    }

    #[cold]
    fn next_chunk(&mut self) {
        // A channel that has filled a chunk is a busy one.
        let next = self
            .spare
            .take()
            .unwrap_or_else(|| Chunk::with_capacity(chunk_len::<T>()));
        self.full.push_back(mem::replace(&mut self.filling, next));
    }
}

impl<T> Taken<T> {
    pub(super) const fn new() -> Self {
        Self {
            current: Chunk::new(),
            more: VecDeque::new(),
            spare: None,
        }
    }

    /// Takes the oldest value.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        match self.current.pop_front() {
            None if !self.more.is_empty() => {
                self.next_chunk();
                self.current.pop_front()
            }
            popped => popped,
        }
    }

    /// Appends up to `limit` values to `buffer`; returns how many.
    pub(super) fn pop_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        let mut count = 0;
        while count < limit {
            if self.current.is_empty() {
                if self.more.is_empty() {
                    break;
                }
                self.next_chunk();
            }
            let some = self.current.len().min(limit - count);
            buffer.extend(self.current.drain(..some));
            count += some;
        }
        count
    }

    /// For how many values there is room, with that in the queue.
    #[cfg(test)]
    pub(super) fn kept(&self, queue: &Queue<T>) -> usize {
        let more = self.more.iter().chain(&queue.full);
        let chunks = more.chain(&self.spare).chain(&queue.spare);
        chunks.map(Chunk::capacity).sum::<usize>()
            + self.current.capacity()
            + queue.filling.capacity()
    }

    #[cold]
    fn next_chunk(&mut self) {
        if let Some(next) = self.more.pop_front() {
            let used = mem::replace(&mut self.current, next);
            if self.spare.is_none() {
                self.spare = Some(used);
            }
            if self.more.is_empty() && self.more.capacity() > KEPT_CHUNKS {
                self.more = VecDeque::new();
            }
        }
    }

    /// Takes what is in the queue, or at least its full chunks; `false` if there is nothing. Only when nothing is left
    /// here. Frees nothing: the lock is held.
    #[inline]
    pub(super) fn refill(&mut self, queue: &mut Queue<T>) -> bool {
        debug_assert!(self.current.is_empty() && self.more.is_empty());
        if queue.full.is_empty() {
            if queue.filling.is_empty() {
                return false;
            }
            mem::swap(&mut self.current, &mut queue.filling);
        } else {
            mem::swap(&mut self.more, &mut queue.full);
            if queue.spare.is_none() {
                queue.spare = self.spare.take();
            }
        }
        true
    }
}
