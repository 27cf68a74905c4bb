//! A list against a `VecDeque`, through random pushes, removals and moves.

use std::collections::VecDeque;
use std::pin::Pin;

use super::*;

type Pinned = Pin<Box<Node<usize, u32>>>;

/// xorshift: the same steps in each run.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 33) as usize
}

fn pointer(node: &Pinned) -> *const Node<usize, u32> {
    &raw const **node
}

/// The names of the nodes, first to last, as `next` says; and backwards, as `prev` says.
fn names(list: &List<usize, u32>) -> VecDeque<usize> {
    let mut forwards = VecDeque::new();
    let mut last = ptr::null();
    let mut at = list.head();
    // SAFETY: nodes of the list, which lie in the test's boxes.
    while let Some(node) = unsafe { at.as_ref() } {
        // SAFETY: the list has one user, this thread.
        let prev = unsafe { node.links(|links| links.prev) };
        assert!(ptr::eq(prev, last), "a node does not know who is before it");
        forwards.push_back(*node.shared());
        last = at;
        // SAFETY: a node of the list.
        at = unsafe { list.next(at) };
    }
    assert!(ptr::eq(list.tail, last));
    forwards
}

#[test]
fn nodes_keep_their_order_whichever_is_removed_or_moved() {
    const NODES: usize = 9;
    let nodes: Vec<Pinned> = (0..NODES).map(|name| Box::pin(Node::new(name))).collect();
    let mut list = List::new();
    let mut model = VecDeque::new();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for step in 0..20_000 {
        let name = random(&mut state) % NODES;
        let node = pointer(&nodes[name]);
        match model.iter().position(|there| *there == name) {
            None => {
                // SAFETY: it is in no list, and its box outlives the list.
                unsafe { list.push(node, step) };
                model.push_back(name);
            }
            Some(at) => {
                // SAFETY: it is in the list.
                let next = unsafe { list.remove(node) };
                model.remove(at);
                // SAFETY: a node of the list, if there is one.
                let behind = unsafe { next.as_ref() }.map(|node| *node.shared());
                assert_eq!(behind, model.get(at).copied());
                if random(&mut state).is_multiple_of(2) && !model.is_empty() {
                    let to = random(&mut state) % model.len();
                    let next = pointer(&nodes[model[to]]);
                    // SAFETY: `node` was removed above, and `next` is in the list.
                    unsafe { list.insert_before(next, node) };
                    model.insert(to, name);
                }
            }
        }
        assert_eq!(names(&list), model);
        assert_eq!(list.is_empty(), model.is_empty());
    }
}

#[test]
fn a_value_stays_while_its_node_is_moved() {
    let (first, second): (Pinned, Pinned) = (Box::pin(Node::new(1)), Box::pin(Node::new(2)));
    let mut list = List::new();
    // SAFETY: both are in no list, and outlive it.
    unsafe { list.push(pointer(&first), 10) };
    // SAFETY: the same.
    unsafe { list.push(pointer(&second), 20) };
    // SAFETY: it is in the list.
    unsafe { list.remove(pointer(&second)) };
    // SAFETY: it was removed, and `first` is in the list.
    unsafe { list.insert_before(pointer(&first), pointer(&second)) };
    // SAFETY: the list has one user, this thread.
    assert_eq!(unsafe { second.value(|value| *value) }, 20);
    assert_eq!(names(&list), [2, 1]);
}
