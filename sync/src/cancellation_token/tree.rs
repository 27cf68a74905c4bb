//! Which token descends from which: an arena and one lock for each tree.
//!
//! # What it guarantees
//! An entry is in the arena for as long as its node has tokens, is not cancelled, and has (or had) relatives. So the
//! arena is as large as the most tokens that were there at a time. When the tokens of a node go before its children,
//! these become children of its parent.
//!
//! # How it works
//! Entries refer to each other by number: parent, first child, and siblings in a ring without a head. Cancelling takes
//! a whole subtree out, in a list that is also the work list: no recursion, however deep the tree is.
//!
//! # Who may touch what
//! `Node::entry` is written under the lock. Without it, it is read only by who dropped the last token: nobody can make
//! children any more then, and if it is `NONE` it stays so. An entry keeps its node; the node keeps the tree. That circle
//! is broken by `leave` and by `cancel`, one of which comes for every entry.

use std::mem;

use crate::primitive::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::primitive::{Arc, Mutex};
use crate::wait_list::WaitList;

const NONE: usize = usize::MAX;

/// What the clones of a token share.
pub(super) struct Node {
    cancelled: AtomicBool,
    /// How many clones of the token there are.
    pub(super) tokens: AtomicUsize,
    pub(super) waiters: WaitList,
    entry: AtomicUsize,
    tree: Arc<Tree>,
}

pub(super) struct Tree {
    arena: Mutex<Arena>,
}

struct Arena {
    entries: Vec<Entry>,
    /// The first free entry; `next` leads on.
    free: usize,
}

struct Entry {
    /// `None` if the entry is free.
    node: Option<Arc<Node>>,
    parent: usize,
    first_child: usize,
    /// The siblings, in a ring.
    prev: usize,
    next: usize,
}

impl Node {
    /// A node with one token, in no arena.
    pub(super) fn new(tree: Arc<Tree>, cancelled: bool) -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicBool::new(cancelled),
            tokens: AtomicUsize::new(1),
            waiters: WaitList::new(),
            entry: AtomicUsize::new(NONE),
            tree,
        })
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: what was done before `cancel` is seen.
        self.cancelled.load(Acquire)
    }
}

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            arena: Mutex::new(Arena {
                entries: Vec::new(),
                free: NONE,
            }),
        }
    }

    /// A child of a node that has a token.
    pub(super) fn child(parent: &Arc<Node>) -> Arc<Node> {
        let child = Node::new(parent.tree.clone(), parent.is_cancelled());
        if child.cancelled.load(Relaxed) {
            return child;
        }
        let mut arena = parent.tree.arena.lock();
        // Relaxed, here and below: written under the lock.
        if parent.cancelled.load(Relaxed) {
            drop(arena);
            child.cancelled.store(true, Relaxed);
            return child;
        }
        let mut above = parent.entry.load(Relaxed);
        if above == NONE {
            above = arena.insert(parent);
        }
        let entry = arena.insert(&child);
        arena.link(entry, above);
        drop(arena);
        child
    }

    /// Cancels a node and all that descend from it; returns them, parents before children. Empty if it was cancelled.
    pub(super) fn cancel(node: &Arc<Node>) -> Vec<Arc<Node>> {
        let mut arena = node.tree.arena.lock();
        if node.cancelled.load(Relaxed) {
            return Vec::new();
        }
        let entry = node.entry.load(Relaxed);
        let nodes = if entry == NONE {
            vec![node.clone()]
        } else {
            arena.unlink(entry);
            arena.take_subtree(entry)
        };
        for node in &nodes {
            // Release: with `is_cancelled`.
            node.cancelled.store(true, Release);
        }
        drop(arena);
        nodes
    }

    /// The last token of the node has gone: its children go to its parent.
    pub(super) fn leave(node: &Arc<Node>) {
        // Relaxed: module head, "Who may touch what".
        if node.entry.load(Relaxed) == NONE {
            return;
        }
        let mut arena = node.tree.arena.lock();
        let entry = node.entry.load(Relaxed);
        // It may have been cancelled meanwhile, with its parent.
        let gone = (entry != NONE).then(|| {
            arena.hand_up_children(entry);
            arena.unlink(entry);
            arena.remove(entry)
        });
        drop(arena);
        drop(gone);
    }

    #[cfg(all(test, not(rt_loom)))]
    pub(super) fn size(node: &Node) -> (usize, usize) {
        let arena = node.tree.arena.lock();
        let used = arena.entries.iter().filter(|entry| entry.node.is_some());
        (used.count(), arena.entries.len())
    }
}

impl Arena {
    /// A new entry without relatives.
    fn insert(&mut self, node: &Arc<Node>) -> usize {
        let mut entry = Entry {
            node: Some(node.clone()),
            parent: NONE,
            first_child: NONE,
            prev: NONE,
            next: NONE,
        };
        let number = if self.free == NONE {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let number = self.free;
            mem::swap(&mut entry, &mut self.entries[number]);
            self.free = entry.next;
            number
        };
        node.entry.store(number, Relaxed);
        number
    }

    /// Frees an entry, and returns its node.
    fn remove(&mut self, number: usize) -> Arc<Node> {
        let entry = &mut self.entries[number];
        let node = entry.node.take().expect("an entry that is in use");
        entry.next = self.free;
        self.free = number;
        node.entry.store(NONE, Relaxed);
        node
    }

    /// Makes an entry without a parent a child of `parent`.
    fn link(&mut self, number: usize, parent: usize) {
        let first = mem::replace(&mut self.entries[parent].first_child, number);
        let (prev, next) = if first == NONE {
            (number, number)
        } else {
            (self.entries[first].prev, first)
        };
        let entry = &mut self.entries[number];
        entry.parent = parent;
        entry.prev = prev;
        entry.next = next;
        self.entries[prev].next = number;
        self.entries[next].prev = number;
    }

    /// Takes an entry away from its parent, if it has one.
    fn unlink(&mut self, number: usize) {
        let entry = &mut self.entries[number];
        let (prev, next) = (entry.prev, entry.next);
        let parent = mem::replace(&mut entry.parent, NONE);
        if parent == NONE {
            return;
        }
        self.entries[prev].next = next;
        self.entries[next].prev = prev;
        let above = &mut self.entries[parent];
        if above.first_child == number {
            above.first_child = if next == number { NONE } else { next };
        }
    }

    /// Makes the children of an entry children of its parent, or lets them be without one.
    fn hand_up_children(&mut self, number: usize) {
        let parent = self.entries[number].parent;
        let first = mem::replace(&mut self.entries[number].first_child, NONE);
        if first == NONE {
            return;
        }
        let mut child = first;
        loop {
            let next = self.entries[child].next;
            if parent == NONE {
                self.entries[child].parent = NONE;
            } else {
                self.link(child, parent);
            }
            child = next;
            if child == first {
                break;
            }
        }
    }

    /// Takes an entry that was unlinked and all that descend from it out of the arena.
    fn take_subtree(&mut self, number: usize) -> Vec<Arc<Node>> {
        let mut nodes = Vec::new();
        let mut numbers = vec![number];
        let mut at = 0;
        while let Some(&number) = numbers.get(at) {
            at += 1;
            let first = self.entries[number].first_child;
            let mut child = first;
            while child != NONE {
                numbers.push(child);
                child = self.entries[child].next;
                if child == first {
                    break;
                }
            }
            nodes.push(self.remove(number));
        }
        nodes
    }
}
