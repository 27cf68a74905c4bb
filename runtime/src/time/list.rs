//! The entries of one slot, linked in the order in which they came.
//!
//! All functions are called by [`super::wheel::Wheel`], which is reached only through its lock: that is what rule 2 of
//! [`super::entry`] asks for.
#![expect(
    unsafe_code,
    reason = "the links lie in the entries, behind the lock of the wheel"
)]

use super::entry::EntryRef;

/// A list of entries.
pub(super) struct List {
    head: Option<EntryRef>,
    tail: Option<EntryRef>,
}

impl List {
    pub(super) const EMPTY: List = List {
        head: None,
        tail: None,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Puts an entry that is in no list at the end, and notes in it which slot this list belongs to.
    #[inline]
    pub(super) fn push_back(&mut self, entry: EntryRef, slot: u16) {
        let tail = self.tail.replace(entry);
        // SAFETY: the wheel's lock is held (module head).
        unsafe {
            entry.node(|node| {
                node.prev = tail;
                node.next = None;
                node.slot = slot;
            });
        }
        match tail {
            // SAFETY: as above.
            Some(tail) => unsafe { tail.node(|node| node.next = Some(entry)) },
            None => self.head = Some(entry),
        }
    }

    /// Takes an entry of this very list out.
    #[inline]
    pub(super) fn unlink(&mut self, entry: EntryRef) {
        // SAFETY: the wheel's lock is held (module head).
        let (prev, next) = unsafe { entry.node(|node| (node.prev.take(), node.next.take())) };
        match prev {
            // SAFETY: as above.
            Some(prev) => unsafe { prev.node(|node| node.next = next) },
            None => self.head = next,
        }
        match next {
            // SAFETY: as above.
            Some(next) => unsafe { next.node(|node| node.prev = prev) },
            None => self.tail = prev,
        }
    }

    /// The oldest entry.
    #[inline]
    pub(super) fn front(&self) -> Option<EntryRef> {
        self.head
    }

    /// The slot that an entry was put in last.
    #[inline]
    pub(super) fn slot_of(entry: EntryRef) -> u16 {
        // SAFETY: the wheel's lock is held (module head).
        unsafe { entry.node(|node| node.slot) }
    }

    /// The entry behind this one.
    #[inline]
    pub(super) fn after(entry: EntryRef) -> Option<EntryRef> {
        // SAFETY: the wheel's lock is held (module head).
        unsafe { entry.node(|node| node.next) }
    }

    /// All entries, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = EntryRef> {
        std::iter::successors(self.head, |entry| List::after(*entry))
    }
}
