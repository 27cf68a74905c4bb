//! The entries of a wheel, slot by slot, linked in the order in which they came.
//!
//! # Why the links do not lie in the entries
//! An entry lies in the future that waits, somewhere among the tasks. To take 50,000 of them from one slot to others by
//! links in the entries is 50,000 misses of cache and TLB, one after the other: 5 to 15 ms, in which nothing fires. Here
//! the links of all entries lie side by side, with what the wheel has to know of each, and only what fires is touched.
//!
//! # How it works
//! A node is known by its place in `nodes`. The first nodes belong to no entry: each is the head of the ring of one slot,
//! so that linking and unlinking have no special cases. Nodes that are free form a stack, linked by `next`.
//!
//! # The rule
//! A [`Key`] in a node, in `free` or outside is that of a node: [`Lists::grow`] makes keys together with their nodes, and
//! nodes go only when there is no entry left, and so no key outside, together with the stack.
#![expect(
    unsafe_code,
    reason = "a check of each key against the length costs 20 instructions for a timeout that does not strike"
)]

use super::entry::EntryRef;

/// Place of a node. Only [`Lists`] can make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u32);

impl Key {
    /// Stands for none: the head of slot 0.
    pub(super) const NONE: Key = Key(0);
}

/// How many lists there are.
pub(super) const SLOTS: u32 = 512;

/// The bottom of the stack of free nodes: a head, which is never free.
const BOTTOM: Key = Key::NONE;

/// Nodes that are kept when no entry is left, beyond the heads.
const KEEP: usize = 1024;

struct Node {
    /// `None`: a head. Means nothing in a node that is free.
    entry: Option<EntryRef>,
    /// The deadline that the entry had when it was last looked at. By now it may be a later one.
    deadline: u64,
    prev: Key,
    next: Key,
}

/// Rings of nodes, one for each slot.
pub(super) struct Lists {
    nodes: Vec<Node>,
    free: Key,
}

impl Lists {
    /// [`SLOTS`] empty lists.
    pub(super) fn new() -> Lists {
        let head = |slot| Node {
            entry: None,
            deadline: 0,
            prev: Key(slot),
            next: Key(slot),
        };
        Lists {
            nodes: (0..SLOTS).map(head).collect(),
            free: BOTTOM,
        }
    }

    /// How many nodes there are, used or free.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len() - SLOTS as usize
    }

    #[inline]
    fn node(&self, key: Key) -> &Node {
        debug_assert!((key.0 as usize) < self.nodes.len());
        // SAFETY: every key is that of a node (module head).
        unsafe { self.nodes.get_unchecked(key.0 as usize) }
    }

    #[inline]
    fn node_mut(&mut self, key: Key) -> &mut Node {
        debug_assert!((key.0 as usize) < self.nodes.len());
        // SAFETY: every key is that of a node (module head).
        unsafe { self.nodes.get_unchecked_mut(key.0 as usize) }
    }

    /// A node for an entry of this wheel, in no list yet. The entry knows it.
    #[inline]
    pub(super) fn add(&mut self, entry: EntryRef, deadline: u64) -> Key {
        let key = if self.free == BOTTOM {
            self.grow(entry, deadline)
        } else {
            self.reuse(entry, deadline)
        };
        // SAFETY: these lists are part of a wheel, which is reached by `&mut` under its lock only.
        unsafe { entry.set_key(key) };
        key
    }

    /// The node of an entry of this wheel.
    #[inline]
    pub(super) fn key_of(&mut self, entry: EntryRef) -> Key {
        // SAFETY: as in `add`.
        unsafe { entry.key() }
    }

    #[inline]
    fn reuse(&mut self, entry: EntryRef, deadline: u64) -> Key {
        let key = self.free;
        let node = self.node_mut(key);
        node.entry = Some(entry);
        node.deadline = deadline;
        self.free = node.next;
        key
    }

    #[cold]
    fn grow(&mut self, entry: EntryRef, deadline: u64) -> Key {
        let len = u32::try_from(self.nodes.len());
        let key = Key(len.expect("a seat has less than 2^32 timers"));
        self.nodes.push(Node {
            entry: Some(entry),
            deadline,
            prev: key,
            next: key,
        });
        key
    }

    /// Gives the node of an entry back that is in no list any more.
    #[inline]
    pub(super) fn free(&mut self, key: Key) {
        let free = std::mem::replace(&mut self.free, key);
        self.node_mut(key).next = free;
    }

    /// There is no entry left: gives memory back that a crowd has needed.
    #[inline]
    pub(super) fn trim(&mut self) {
        if self.nodes.len() > SLOTS as usize + KEEP {
            self.drop_nodes();
        }
    }

    #[cold]
    fn drop_nodes(&mut self) {
        self.nodes.truncate(SLOTS as usize);
        self.nodes.shrink_to_fit();
        self.free = BOTTOM;
    }

    /// Puts a node that is in no list at the end of one.
    #[inline]
    pub(super) fn push_back(&mut self, slot: u16, key: Key) {
        let head = head_of(slot);
        let tail = std::mem::replace(&mut self.node_mut(head).prev, key);
        self.node_mut(tail).next = key;
        let node = self.node_mut(key);
        node.prev = tail;
        node.next = head;
    }

    /// Takes a node out of its list; says which slot it leaves empty, if it does.
    #[inline]
    pub(super) fn unlink(&mut self, key: Key) -> Option<u16> {
        let &Node { prev, next, .. } = self.node(key);
        self.node_mut(prev).next = next;
        self.node_mut(next).prev = prev;
        // Between a head and itself: the last one.
        (prev == next && prev.0 < SLOTS).then_some(prev.0 as u16)
    }

    /// The oldest node of a slot.
    #[inline]
    pub(super) fn front(&self, slot: u16) -> Option<Key> {
        self.after(head_of(slot))
    }

    /// The node behind this one.
    #[inline]
    pub(super) fn after(&self, key: Key) -> Option<Key> {
        let next = self.node(key).next;
        (next.0 >= SLOTS).then_some(next)
    }

    /// All nodes of a slot, oldest first.
    #[inline]
    pub(super) fn iter(&self, slot: u16) -> impl Iterator<Item = Key> {
        std::iter::successors(self.front(slot), |&key| self.after(key))
    }

    /// The entry of a node that has one.
    #[inline]
    pub(super) fn entry(&self, key: Key) -> EntryRef {
        self.node(key).entry.expect("a head has no entry")
    }

    /// The deadline that was noted last; the entry's own is the same, or later.
    #[inline]
    pub(super) fn deadline(&self, key: Key) -> u64 {
        self.node(key).deadline
    }

    /// Notes the deadline of the entry.
    #[inline]
    pub(super) fn set_deadline(&mut self, key: Key, deadline: u64) {
        self.node_mut(key).deadline = deadline;
    }
}

#[inline]
fn head_of(slot: u16) -> Key {
    assert!(u32::from(slot) < SLOTS);
    Key(u32::from(slot))
}
