//! A list of waiting tasks, first come first served, whose nodes lie in the waiting futures.
//!
//! # What it guarantees
//! The waiting side [polls its waiter](Waiter::poll) and *then* looks at its condition; the other side makes the
//! condition true and *then* notifies. Then the condition is seen, or the waiter is notified if it is its turn. A
//! notification goes to one waiter, which hands it out exactly once: from `poll`, from [`Waiter::remove`], or, if it is
//! dropped with a notification of [`notify_one`](WaitList::notify_one) that it has not handed out, to the next waiter.
//! Who comes after `notify_all` or `notify_matching` has begun is not notified by it.
//!
//! # Shape
//! One doubly linked list in two segments: *detached* waiters, which are as good as notified and whose wakers are about
//! to be taken, then *live* ones.
//!
//! ```text
//! head -> d1 <-> d2 <-> l1 <-> l2 <-> l3 <- tail
//!                       ^ live
//! ```
//!
//! `notify_all` detaches everybody in constant time: it moves `live` behind the tail and bumps `epoch`; a node is
//! detached if its epoch is not that of the list. `notify_matching` moves the nodes that match to the end of the first
//! segment. Then wakers are taken from the head, a [`WakeBatch`] at a time, and woken with the lock released. A
//! detached waiter that is polled or removed meanwhile takes its notification itself.
//!
//! # The state of a waiter
//!
//! | state     | in the list | `state` is left by                                    | `links` belong to |
//! |-----------|-------------|-------------------------------------------------------|-------------------|
//! | `IDLE`    | no          | the waiter, by joining the list                       | the waiter        |
//! | `WAITING` | yes         | who holds the lock: the waiter leaves, or is notified | who holds the lock|
//! | `ONE`     | no          | the waiter, which hands the notification out          | the waiter        |
//! | `ALL`     | no          | the waiter, which hands the notification out          | the waiter        |
//!
//! The store of `ONE` or `ALL` is the last thing a notifier does to a node: it may be gone right after it.
//!
//! # The race
//! A notifier that finds `occupied` clear does not take the lock. Waiter: join the list, fence, look at the condition.
//! Notifier: make the condition true, fence, look at `occupied`. Of the two fences one comes first, so one of the two
//! sees what the other did. With the lock taken, the lock orders them.
//!
//! # User code
//! Wakers are cloned, woken and dropped with the lock released and every list whole.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::fmt;
use std::marker::PhantomPinned;
use std::mem;
use std::panic;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, Waker};

use crate::primitive::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::primitive::cell::UnsafeCell;
use crate::primitive::{Mutex, MutexGuard};
use crate::wake_batch::{self, WakeBatch};

const IDLE: u8 = 0;
const WAITING: u8 = 1;
const ONE: u8 = 2;
const ALL: u8 = 3;

/// A first-in-first-out list of [waiters](Waiter), each with a tag.
///
/// # Examples
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use rt_sync::wait_list::{Notification, WaitList, Waiter};
///
/// let list = WaitList::new();
/// let mut first = pin!(Waiter::new(&list, ()));
/// let mut second = pin!(Waiter::new(&list, ()));
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(first.as_mut().poll(&mut cx).is_pending());
/// assert!(second.as_mut().poll(&mut cx).is_pending());
///
/// assert!(list.notify_one());
/// assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(Notification::One));
/// assert!(second.as_mut().poll(&mut cx).is_pending());
/// ```
pub struct WaitList<T: Copy = ()> {
    /// Whether there are live waiters; written under the lock, read without it.
    occupied: AtomicBool,
    list: Mutex<List<T>>,
}

/// How a waiter was notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// By [`WaitList::notify_one`]: this waiter only, which has to use the grant or pass it on.
    One,
    /// By [`WaitList::notify_all`] or [`WaitList::notify_matching`], as all its like.
    All,
}

/// How a waiter reaches its list: by reference, or by whatever keeps the list alive.
///
/// # Safety
/// `list` always returns the same list, and that list stays where it is for as long as `self` exists.
pub unsafe trait ListRef {
    /// The tag of the list's waiters.
    type Tag: Copy;

    /// The list.
    fn list(&self) -> &WaitList<Self::Tag>;
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl<T: Copy> ListRef for &WaitList<T> {
    type Tag = T;

    #[inline]
    fn list(&self) -> &WaitList<T> {
        self
    }
}

/// One waiting future's place in a [`WaitList`]: lies pinned in the future.
///
/// Dropping it leaves the list. A notification by [`notify_one`](WaitList::notify_one) that it has not handed out is
/// passed on to the next waiter; if there is none, it is gone. Who must not lose it then calls
/// [`remove`](Self::remove) first.
pub struct Waiter<R: ListRef> {
    list: R,
    node: Node<R::Tag>,
    _pinned: PhantomPinned,
}

struct Node<T> {
    state: AtomicU8,
    links: UnsafeCell<Links<T>>,
}

struct Links<T> {
    prev: *const Node<T>,
    next: *const Node<T>,
    waker: Option<Waker>,
    tag: T,
    epoch: u64,
}

/// What the lock guards. Each method leaves it whole.
struct List<T> {
    head: *const Node<T>,
    tail: *const Node<T>,
    /// The first live node.
    live: *const Node<T>,
    len: usize,
    /// How many of `len` are detached.
    detached: usize,
    /// Of the live nodes.
    epoch: u64,
}

// SAFETY: the pointers lead to nodes that are reached only under the lock, from whatever thread holds it; what is in
// them (wakers, tags) may go from thread to thread.
unsafe impl<T: Send> Send for List<T> {}

// SAFETY: a node is shared between its waiter and who holds the lock, by the table in the module head; what is in it
// may go from thread to thread.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: as above; a shared `Waiter` lets its state be read, nothing else.
unsafe impl<T: Send> Sync for Node<T> {}

impl<T: Copy> WaitList<T> {
    /// A list without waiters.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            occupied: AtomicBool::new(false),
            list: Mutex::new(List::new()),
        }
    }

    /// A list without waiters.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            occupied: AtomicBool::new(false),
            list: Mutex::new(List::new()),
        }
    }

    /// Whether there is nobody to notify. One fence and one load, no lock.
    ///
    /// A waiter that joins at the same time and is not seen here sees everything that this thread did before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // SeqCst: a store (the condition) before a load (`occupied`), against the opposite in `Waiter::poll`.
        fence(SeqCst);
        self.is_empty_after_fence()
    }

    /// Same as [`is_empty`](Self::is_empty) for callers that have a `fence(SeqCst)` of their own between their change
    /// of the condition and this call.
    #[inline]
    pub fn is_empty_after_fence(&self) -> bool {
        !self.occupied.load(Relaxed)
    }

    /// Notifies the waiter that has waited longest. `false` if there is none.
    #[inline]
    pub fn notify_one(&self) -> bool {
        !self.is_empty() && self.notify_first()
    }

    fn notify_first(&self) -> bool {
        let mut list = self.list.lock();
        let node = list.live;
        if node.is_null() {
            return false;
        }
        // SAFETY: we hold the lock and `node` is in the list.
        let waker = unsafe { list.notify(node, ONE) };
        self.publish(&list);
        drop(list);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Notifies everybody who waits now, and returns how many that were.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut list = self.list.lock();
        let count = list.detach_all();
        self.wake_detached(list);
        count
    }

    /// Notifies those who wait now and whose tag matches, and returns how many that were.
    ///
    /// `matches` is called under the lock, once for each: it must be short, must not panic and must not touch this list.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    #[inline]
    pub fn notify_matching(&self, matches: impl FnMut(T) -> bool) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut list = self.list.lock();
        let count = list.detach_matching(matches);
        if count > 0 {
            self.wake_detached(list);
        }
        count
    }

    /// Wakes everybody who is detached now, maybe on behalf of another notifier that is at it too.
    fn wake_detached<'a>(&'a self, mut list: MutexGuard<'a, List<T>>) {
        self.publish(&list);
        // Who is detached later stands behind these, so this is an end.
        let mut left = list.detached;
        let mut batch = WakeBatch::new();
        let mut panicked = None;
        loop {
            while left > 0 && !batch.is_full() {
                left -= 1;
                if list.detached == 0 {
                    left = 0;
                } else {
                    let head = list.head;
                    // SAFETY: we hold the lock and `head` is in the list, since somebody is.
                    if let Some(waker) = unsafe { list.notify(head, ALL) } {
                        batch.push(waker);
                    }
                }
            }
            drop(list);
            if let Some(payload) = batch.wake_all_caught() {
                match panicked {
                    None => panicked = Some(payload),
                    // The first panic is the one that goes on.
                    Some(_) => wake_batch::discard(payload),
                }
            }
            if left == 0 {
                break;
            }
            list = self.list.lock();
        }
        if let Some(payload) = panicked {
            panic::resume_unwind(payload);
        }
    }

    /// Makes `occupied` say what the list says.
    #[inline]
    fn publish(&self, list: &List<T>) {
        let occupied = !list.live.is_null();
        // Relaxed: ordered by the fences of the race in the module head, and between writers by the lock.
        if self.occupied.load(Relaxed) != occupied {
            self.occupied.store(occupied, Relaxed);
        }
    }
}

impl<R: ListRef> Waiter<R> {
    /// A waiter that is not in the list yet.
    #[cfg(not(rt_loom))]
    #[inline]
    pub const fn new(list: R, tag: R::Tag) -> Self {
        Self {
            list,
            node: Node {
                state: AtomicU8::new(IDLE),
                links: UnsafeCell::new(Links::new(tag)),
            },
            _pinned: PhantomPinned,
        }
    }

    /// A waiter that is not in the list yet.
    #[cfg(rt_loom)]
    pub fn new(list: R, tag: R::Tag) -> Self {
        Self {
            list,
            node: Node {
                state: AtomicU8::new(IDLE),
                links: UnsafeCell::new(Links::new(tag)),
            },
            _pinned: PhantomPinned,
        }
    }

    /// The reference to the list that was given to [`new`](Self::new).
    #[inline]
    pub fn list_ref(&self) -> &R {
        &self.list
    }

    /// Whether the waiter is in the list, or was and has not yet handed its notification out.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.node.state.load(Relaxed) != IDLE
    }

    /// Hands a notification out, or waits for one: joins the list with the waker of `cx`, or brings its waker up to
    /// date.
    ///
    /// After `Pending`, look at the condition once more: it may have come true before the waiter was in the list. After
    /// `Ready` the waiter is out of the list, and the next call joins again, at the end.
    #[inline]
    pub fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Notification> {
        let this = self.into_ref().get_ref();
        // Acquire: with the store of the notifier. What it did before is seen, and it is done with the node.
        match this.node.state.load(Acquire) {
            IDLE => {
                this.join(cx.waker());
                Poll::Pending
            }
            WAITING => this.update(cx.waker()),
            notified => Poll::Ready(this.hand_out(notified)),
        }
    }

    /// Leaves the list; returns the notification that was not handed out, which the caller has to use or pass on.
    #[inline]
    pub fn remove(self: Pin<&mut Self>) -> Option<Notification> {
        self.into_ref().get_ref().leave()
    }

    fn leave(&self) -> Option<Notification> {
        // Acquire: as in `poll`.
        match self.node.state.load(Acquire) {
            IDLE => None,
            WAITING => self.unlink(),
            notified => Some(self.hand_out(notified)),
        }
    }

    fn hand_out(&self, state: u8) -> Notification {
        debug_assert!(self.node.links.with(|links| {
            // SAFETY: out of the list, the node is the waiter's own.
            let links = unsafe { &*links };
            links.waker.is_none()
        }));
        // Relaxed: as above, nobody else looks at it.
        self.node.state.store(IDLE, Relaxed);
        if state == ONE {
            Notification::One
        } else {
            Notification::All
        }
    }

    fn join(&self, waker: &Waker) {
        let waker = waker.clone();
        let wait_list = self.list.list();
        let mut list = wait_list.list.lock();
        // SAFETY: the node is `IDLE`, so in no list. It is pinned, and dropping it removes it; by the contract of
        // `ListRef` the list lives until then.
        unsafe { list.push(&raw const self.node, waker) };
        wait_list.publish(&list);
        drop(list);
        // SeqCst: a store (`occupied`) before a load (the condition, by the caller), against the opposite in
        // `WaitList::is_empty`.
        fence(SeqCst);
    }

    /// The way of a waiter that was `WAITING` when it was looked at.
    #[inline]
    fn update(&self, waker: &Waker) -> Poll<Notification> {
        let mut replacement = None;
        loop {
            let mut list = self.list.list().list.lock();
            // Relaxed: the lock orders it.
            let state = self.node.state.load(Relaxed);
            if state != WAITING {
                drop(list);
                return Poll::Ready(self.hand_out(state));
            }
            let node = &raw const self.node;
            // SAFETY: we hold the lock and the node is in the list.
            if unsafe { list.is_detached(node) } {
                // SAFETY: the same.
                let stale = unsafe { list.notify(node, ALL) };
                drop(list);
                drop(stale);
                return Poll::Ready(self.hand_out(ALL));
            }
            // SAFETY: we hold the lock; nothing else looks at `links` in the closure, which runs no user code.
            let kept = unsafe {
                links(node, |links| {
                    if links.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                        return true;
                    }
                    match replacement.take() {
                        Some(new) => {
                            replacement = links.waker.replace(new);
                            true
                        }
                        None => false,
                    }
                })
            };
            drop(list);
            if kept {
                // A waker that was replaced, or was not needed after all, is dropped here, after the lock.
                return Poll::Pending;
            }
            replacement = Some(waker.clone());
        }
    }

    fn unlink(&self) -> Option<Notification> {
        let wait_list = self.list.list();
        let mut list = wait_list.list.lock();
        // Relaxed: the lock orders it.
        let state = self.node.state.load(Relaxed);
        if state != WAITING {
            drop(list);
            return Some(self.hand_out(state));
        }
        let node = &raw const self.node;
        // SAFETY: we hold the lock and the node is in the list.
        let notification = unsafe { list.is_detached(node) }.then_some(Notification::All);
        // SAFETY: the same.
        let waker = unsafe { list.notify(node, IDLE) };
        wait_list.publish(&list);
        drop(list);
        drop(waker);
        notification
    }
}

impl<R: ListRef> Drop for Waiter<R> {
    fn drop(&mut self) {
        if self.leave() == Some(Notification::One) {
            self.list.list().notify_one();
        }
    }
}

impl<T> Links<T> {
    const fn new(tag: T) -> Self {
        Self {
            prev: ptr::null(),
            next: ptr::null(),
            waker: None,
            tag,
            epoch: 0,
        }
    }
}

/// # Safety
/// The caller holds the lock of the list that `node` is in (or is about to enter), and does not call this from `f`.
#[inline]
unsafe fn links<T, R>(node: *const Node<T>, f: impl FnOnce(&mut Links<T>) -> R) -> R {
    // SAFETY: a node in the list is alive: it leaves the list before it goes.
    let node = unsafe { &*node };
    node.links.with_mut(|links| {
        // SAFETY: `links` of a node in the list belong to who holds the lock (module head).
        f(unsafe { &mut *links })
    })
}

impl<T: Copy> List<T> {
    const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
            live: ptr::null(),
            len: 0,
            detached: 0,
            epoch: 1,
        }
    }

    /// # Safety
    /// `node` is in this list, whose lock the caller holds.
    unsafe fn is_detached(&self, node: *const Node<T>) -> bool {
        // SAFETY: the caller's.
        unsafe { links(node, |links| links.epoch != self.epoch) }
    }

    /// Appends a node to the live ones.
    ///
    /// # Safety
    /// `node` is in no list, and stays where it is until it has left this one.
    unsafe fn push(&mut self, node: *const Node<T>, waker: Waker) {
        let before = self.tail;
        // SAFETY: the caller's; a node that is in no list belongs to its waiter, who is the caller.
        unsafe {
            links(node, |links| {
                links.prev = before;
                links.next = ptr::null();
                links.waker = Some(waker);
                links.epoch = self.epoch;
            });
        }
        // SAFETY: the caller's.
        let state = unsafe { &(*node).state };
        // Relaxed: the lock orders it.
        state.store(WAITING, Relaxed);
        if before.is_null() {
            self.head = node;
        } else {
            // SAFETY: `before` is in the list.
            unsafe { links(before, |links| links.next = node) };
        }
        self.tail = node;
        if self.live.is_null() {
            self.live = node;
        }
        self.len += 1;
    }

    /// Takes a node out of the chain, without a look at what else is counted.
    ///
    /// # Safety
    /// `node` is in this list, whose lock the caller holds.
    unsafe fn cut(&mut self, node: *const Node<T>) {
        // SAFETY: the caller's.
        let (prev, next) = unsafe { links(node, |links| (links.prev, links.next)) };
        if prev.is_null() {
            self.head = next;
        } else {
            // SAFETY: a neighbour in the list.
            unsafe { links(prev, |links| links.next = next) };
        }
        if next.is_null() {
            self.tail = prev;
        } else {
            // SAFETY: a neighbour in the list.
            unsafe { links(next, |links| links.prev = prev) };
        }
        if self.live == node {
            self.live = next;
        }
    }

    /// Takes a node out, sets its state and returns its waker. The node may be gone when this returns.
    ///
    /// # Safety
    /// `node` is in this list, whose lock the caller holds.
    unsafe fn notify(&mut self, node: *const Node<T>, state: u8) -> Option<Waker> {
        // SAFETY: the caller's.
        if unsafe { self.is_detached(node) } {
            self.detached -= 1;
        }
        self.len -= 1;
        // SAFETY: the caller's.
        unsafe { self.cut(node) };
        // SAFETY: the caller's: the lock is held, and nobody else has reached the node since.
        let waker = unsafe { links(node, |links| links.waker.take()) };
        // SAFETY: as above; the node is alive until the store below at least.
        let node = unsafe { &*node };
        // Release: with the Acquire of `Waiter::poll`; what we did to the node, and before, is done.
        node.state.store(state, Release);
        waker
    }

    /// Makes every live node a detached one; returns how many these were.
    fn detach_all(&mut self) -> usize {
        let count = self.len - self.detached;
        self.detached = self.len;
        self.live = ptr::null();
        self.epoch += 1;
        count
    }

    /// Makes the live nodes that match detached ones, in their order; returns how many these were.
    fn detach_matching(&mut self, mut matches: impl FnMut(T) -> bool) -> usize {
        let mut count = 0;
        let mut node = self.live;
        while !node.is_null() {
            // SAFETY: `node` is in the list, and the caller holds the lock.
            let (tag, next) = unsafe { links(node, |links| (links.tag, links.next)) };
            if matches(tag) {
                // SAFETY: the same.
                unsafe { self.detach(node) };
                count += 1;
            }
            node = next;
        }
        count
    }

    /// Moves a live node to the end of the detached ones.
    ///
    /// # Safety
    /// `node` is in this list and live; the caller holds the lock.
    unsafe fn detach(&mut self, node: *const Node<T>) {
        if self.live == node {
            // It is there already: only the border moves.
            // SAFETY: the caller's.
            self.live = unsafe { links(node, |links| links.next) };
        } else {
            // SAFETY: the caller's.
            unsafe { self.cut(node) };
            // `live` is before `node`, so it is not null.
            let next = self.live;
            // SAFETY: `live` is in the list.
            let prev = unsafe { links(next, |links| mem::replace(&mut links.prev, node)) };
            if prev.is_null() {
                self.head = node;
            } else {
                // SAFETY: a neighbour in the list.
                unsafe { links(prev, |links| links.next = node) };
            }
            // SAFETY: the caller's.
            unsafe {
                links(node, |links| {
                    links.prev = prev;
                    links.next = next;
                });
            }
        }
        self.detached += 1;
        let other = self.epoch - 1;
        // SAFETY: the caller's.
        unsafe { links(node, |links| links.epoch = other) };
    }
}

impl<T: Copy> Default for WaitList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> fmt::Debug for WaitList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitList")
            .field("occupied", &self.occupied.load(Relaxed))
            .finish_non_exhaustive()
    }
}

impl<R: ListRef> fmt::Debug for Waiter<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.node.state.load(Relaxed) {
            IDLE => "idle",
            WAITING => "waiting",
            _ => "notified",
        };
        f.debug_struct("Waiter")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
