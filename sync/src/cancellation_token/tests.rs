use std::future::{pending, ready};
use std::task::Poll;

use super::*;
use crate::testing::{Task, limited, now, once, polls};
use crate::wait::{self, WaitKind};

/// Entries in use, and entries altogether.
fn entries(token: &CancellationToken) -> (usize, usize) {
    Tree::size(&token.node)
}

#[test]
fn cancel_wakes_everybody_and_is_for_good() {
    limited(|| {
        let token = CancellationToken::new();
        assert!(!token.is_cancelled());
        let clone = token.clone();
        let waiters: Vec<_> = (0..70).map(|_| Task::waiting(clone.cancelled())).collect();
        let owned = Task::waiting(clone.clone().cancelled_owned());
        token.cancel();
        token.cancel();
        assert!(clone.is_cancelled());
        for waiter in waiters {
            waiter.woken();
        }
        owned.woken();
        now(token.cancelled());
        now(token.cancelled_owned());
    });
}

#[test]
fn cancelling_goes_down_and_never_up() {
    let root = CancellationToken::new();
    let left = root.child_token();
    let right = root.child_token();
    let below = left.child_token();
    let deepest = below.child_token();
    let waits_below = Task::waiting(below.cancelled());
    let waits_right = Task::waiting(right.cancelled());
    left.cancel();
    assert!(left.is_cancelled() && below.is_cancelled() && deepest.is_cancelled());
    assert!(!root.is_cancelled() && !right.is_cancelled());
    waits_below.woken();
    assert_eq!(waits_right.wakes(), 0);
    assert_eq!(entries(&root).0, 2);
    root.cancel();
    waits_right.woken();
    assert_eq!(entries(&root).0, 0);
}

#[test]
fn a_child_of_a_cancelled_token_is_cancelled() {
    let token = CancellationToken::new();
    token.cancel();
    let child = token.child_token();
    assert!(child.is_cancelled());
    now(child.cancelled());
    assert!(child.child_token().is_cancelled());
}

#[test]
fn a_tree_of_which_the_middle_is_gone_is_cancelled_as_a_whole() {
    let root = CancellationToken::new();
    let middle = root.child_token();
    let other = root.child_token();
    let leaves: Vec<_> = (0..3).map(|_| middle.child_token()).collect();
    drop(middle);
    assert_eq!(entries(&root).0, 5);
    let waiting = Task::waiting(leaves[1].cancelled());
    leaves[0].cancel();
    assert!(!leaves[1].is_cancelled() && !other.is_cancelled());
    root.cancel();
    waiting.woken();
    assert!(leaves.iter().all(CancellationToken::is_cancelled));
    assert!(other.is_cancelled());
}

#[test]
fn children_outlive_their_root() {
    let root = CancellationToken::new();
    let children: Vec<_> = (0..3).map(|_| root.child_token()).collect();
    let grandchild = children[1].child_token();
    drop(root);
    children[1].cancel();
    assert!(grandchild.is_cancelled());
    assert!(!children[0].is_cancelled() && !children[2].is_cancelled());
    assert_eq!(entries(&children[0]).0, 2);
    let late = children[0].child_token();
    children[0].cancel();
    assert!(late.is_cancelled());
}

#[test]
fn a_parent_does_not_grow_with_a_million_short_lived_children() {
    let root = CancellationToken::new();
    for _ in 0..1_000_000 {
        drop(root.child_token());
    }
    assert_eq!(entries(&root), (1, 2));
    for _ in 0..1000 {
        root.child_token().cancel();
        drop((root.child_token().child_token(), root.child_token()));
    }
    assert!(entries(&root).0 == 1 && entries(&root).1 < 8);
}

#[test]
fn deep_chains_are_cancelled_and_dropped_without_recursion() {
    const DEPTH: usize = 200_000;
    limited(|| {
        for cancel in [true, false] {
            let mut chain = vec![CancellationToken::new()];
            for _ in 0..DEPTH {
                chain.push(chain[chain.len() - 1].child_token());
            }
            if cancel {
                chain[0].cancel();
                assert!(chain[DEPTH].is_cancelled());
            }
            // From the root on, so that every token has children when it goes.
            drop(chain);
        }
    });
}

#[test]
fn a_chain_of_which_only_the_end_is_kept_does_not_grow() {
    let mut token = CancellationToken::new();
    let root = token.clone();
    for _ in 0..10_000 {
        token = token.child_token();
    }
    assert_eq!(entries(&root).0, 2);
    root.cancel();
    assert!(token.is_cancelled());
}

#[test]
fn the_last_token_frees_all_there_is() {
    let token = CancellationToken::new();
    let node = token.node.clone();
    let child = token.child_token();
    assert_eq!(entries(&token).0, 2);
    drop(token);
    drop(child);
    // This one, which is not a token, is the last.
    assert_eq!(Arc::strong_count(&node), 1);
}

#[test]
fn a_random_tree_behaves_as_a_plain_one() {
    limited(|| {
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        // Tokens, the numbers of their ancestors at birth, whether they are cancelled.
        let mut tokens: Vec<(usize, CancellationToken, Vec<usize>, bool)> = Vec::new();
        let mut number = 0;
        for _ in 0..5000 {
            let at = (!tokens.is_empty()).then(|| random(tokens.len()));
            match (random(10), at) {
                (0..6, Some(at)) => {
                    let (parent, token, above, cancelled) = &tokens[at];
                    let mut above = above.clone();
                    above.push(*parent);
                    let child = (number, token.child_token(), above, *cancelled);
                    tokens.push(child);
                    number += 1;
                }
                (6..9, Some(at)) => drop(tokens.swap_remove(at)),
                (9, Some(at)) => {
                    let cancelled = tokens[at].0;
                    tokens[at].1.cancel();
                    for (number, _, above, is) in &mut tokens {
                        *is |= *number == cancelled || above.contains(&cancelled);
                    }
                }
                _ => {
                    tokens.push((number, CancellationToken::new(), Vec::new(), false));
                    number += 1;
                }
            }
            for (number, token, _, cancelled) in &tokens {
                assert_eq!(token.is_cancelled(), *cancelled, "token {number}");
            }
        }
    });
}

#[test]
fn guards_cancel_when_they_are_dropped_unless_they_are_disarmed() {
    let token = CancellationToken::new();
    let guard = token.clone().drop_guard();
    assert!(!guard.disarm().is_cancelled());
    assert!(!token.drop_guard_ref().disarm().is_cancelled());
    let child = token.child_token();
    drop(child.drop_guard_ref());
    assert!(child.is_cancelled() && !token.is_cancelled());
    drop(token.clone().drop_guard());
    assert!(token.is_cancelled());
}

#[test]
fn run_until_cancelled_gives_the_output_or_none() {
    let token = CancellationToken::new();
    assert_eq!(now(token.run_until_cancelled(ready(1))), Some(1));
    let borrowed = Task::waiting(token.run_until_cancelled(pending::<()>()));
    let owned = Task::waiting(token.clone().run_until_cancelled_owned(pending::<()>()));
    token.cancel();
    assert_eq!(borrowed.woken(), None);
    assert_eq!(owned.woken(), None);
    // Cancelled from the start: the future is not polled.
    let polled = async { panic!("polled") };
    assert_eq!(now(token.run_until_cancelled::<_>(polled)), None::<()>);
    assert_eq!(now(token.run_until_cancelled_owned(ready(1))), None);
}

#[test]
fn an_output_that_is_ready_when_the_token_is_cancelled_comes() {
    let token = CancellationToken::new();
    let (sender, receiver) = crate::oneshot::channel();
    let mut running = Task::waiting(token.run_until_cancelled(receiver));
    sender.send(5).unwrap();
    token.cancel();
    assert_eq!(running.poll(), Poll::Ready(Some(Ok(5))));
}

#[test]
fn a_cancelled_wait_leaves_nothing_behind() {
    let token = CancellationToken::new();
    let waiter = Task::waiting(token.cancelled());
    let probe = waiter.probe.clone();
    drop(waiter);
    token.cancel();
    assert_eq!((probe.wakes(), probe.alive()), (0, 0));
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    limited(|| {
        let root = CancellationToken::new();
        let children: Vec<_> = (0..3).map(|_| root.child_token()).collect();
        let waiters: Vec<_> = children
            .iter()
            .map(|child| Task::waiting(child.cancelled()))
            .collect();
        once(&waiters[1].probe.on_wake, || panic!("a bad waker"));
        let (other, gone) = (children[0].clone(), children[2].clone());
        once(&waiters[0].probe.on_wake, move || {
            // Would hang if the tree was locked.
            other.cancel();
            assert!(other.child_token().is_cancelled());
            drop(gone);
        });
        panic::catch_unwind(AssertUnwindSafe(|| root.cancel())).unwrap_err();
        for waiter in waiters {
            waiter.woken();
        }
    });
}

#[test]
fn a_task_that_waits_for_a_cancelled_token_gives_way() {
    let token = CancellationToken::new();
    token.cancel();
    let polls = polls(async {
        for _ in 0..10_000 {
            token.cancelled().await;
        }
    });
    assert!(polls > 50, "{polls} polls");
    let polls = crate::testing::polls(async {
        for _ in 0..10_000 {
            token.run_until_cancelled(pending::<()>()).await;
        }
    });
    assert!(polls > 50, "{polls} polls");
}

#[test]
fn a_waiting_task_tells_what_it_waits_for() {
    let token = CancellationToken::new();
    let _waiter = Task::waiting(token.cancelled());
    let waits = wait::take();
    assert_eq!(waits.kind, WaitKind::CancellationToken);
    assert_eq!(waits.site.unwrap().line(), line!() - 3);
}

#[test]
fn it_goes_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<CancellationToken>();
    send_sync::<WaitForCancellationFuture<'_>>();
    send_sync::<WaitForCancellationFutureOwned>();
    send_sync::<DropGuard>();
    let token = CancellationToken::default();
    assert!(format!("{token:?}").contains("cancelled: false"));
}
