//! Models of `CancellationToken`: cancelling against waiting, against children that are made, and against tokens that
//! go.
//!
//! Seen to fail: with a child that is made without a look at its parent under the lock (`cancel_against_child_token` hangs);
//! with a node that does not hand its children up, or that reads its entry before it has the lock
//! (`cancel_against_drop_of_the_middle`, `cancel_against_child_token_against_drop`); without the fence of the last clone
//! (`the_last_of_two_clones_of_a_root_sees_its_child`). `Relaxed` for the `Release` of the flag is *not* seen to fail:
//! the lock that `cancel` takes before is a fence too for loom.
#![cfg(rt_loom)]

use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::cancellation_token::CancellationToken;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

/// Cancelling while a waiter gets in line: it goes on, and sees what was done before.
#[test]
fn cancel_against_cancelled() {
    model(3, || {
        let token = CancellationToken::new();
        let before = Arc::new(AtomicUsize::new(0));
        let (other, done) = (token.clone(), before.clone());
        let canceller = thread::spawn(move || {
            done.store(1, Relaxed);
            other.cancel();
        });
        block_on(token.cancelled());
        assert_eq!(before.load(Relaxed), 1);
        canceller.join().unwrap();
    });
}

/// A child is made while its parent is cancelled: it is cancelled with it or from the start, and who waits for it goes
/// on.
#[test]
fn cancel_against_child_token() {
    model(3, || {
        let root = CancellationToken::new();
        let other = root.clone();
        let canceller = thread::spawn(move || other.cancel());
        let child = root.child_token();
        let grandchild = child.child_token();
        block_on(grandchild.cancelled());
        canceller.join().unwrap();
        assert!(child.is_cancelled() && grandchild.is_cancelled());
    });
}

/// The token between two others goes while the upper one is cancelled: the lower one is cancelled in any case, and
/// nothing is left in the tree (loom counts what is leaked).
#[test]
fn cancel_against_drop_of_the_middle() {
    model(3, || {
        let root = CancellationToken::new();
        let middle = root.child_token();
        let leaf = middle.child_token();
        let canceller = thread::spawn(move || root.cancel());
        drop(middle);
        block_on(leaf.cancelled());
        canceller.join().unwrap();
    });
}

/// Three at once: one cancels the root, one makes a child of the middle and drops the middle, one drops a leaf.
#[test]
fn cancel_against_child_token_against_drop() {
    model(2, || {
        let root = CancellationToken::new();
        let middle = root.child_token();
        let leaf = middle.child_token();
        let other = root.clone();
        let canceller = thread::spawn(move || other.cancel());
        let dropper = thread::spawn(move || drop(leaf));
        let late = middle.child_token();
        drop(middle);
        block_on(late.cancelled());
        dropper.join().unwrap();
        canceller.join().unwrap();
        assert!(root.child_token().is_cancelled());
    });
}

/// Two clones go at the same time, one of which made a child: who is last sees the child, and hands it up.
#[test]
fn the_last_of_two_clones_hands_children_up() {
    model(3, || {
        let root = CancellationToken::new();
        let middle = root.child_token();
        let other = middle.clone();
        let maker = thread::spawn(move || other.child_token());
        drop(middle);
        let leaf = maker.join().unwrap();
        root.cancel();
        assert!(leaf.is_cancelled());
    });
}

/// The same for a token without relatives until then: if the last one took it for one, the tree would keep the node for
/// ever, and loom would tell of the leak.
#[test]
fn the_last_of_two_clones_of_a_root_sees_its_child() {
    model(3, || {
        let root = CancellationToken::new();
        let other = root.clone();
        let maker = thread::spawn(move || other.child_token());
        drop(root);
        drop(maker.join().unwrap());
    });
}

/// Parent and child are cancelled at the same time, and a waiter of the child goes: each is woken at most once, and
/// nobody is lost.
#[test]
fn cancel_against_cancel_of_the_parent() {
    model(2, || {
        let root = CancellationToken::new();
        let child = root.child_token();
        let mut gone = Box::pin(child.cancelled());
        assert!(
            gone.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        let (upper, lower) = (root.clone(), child.clone());
        let first = thread::spawn(move || upper.cancel());
        let second = thread::spawn(move || lower.cancel());
        drop(gone);
        block_on(child.cancelled());
        first.join().unwrap();
        second.join().unwrap();
        assert!(root.is_cancelled());
    });
}
