//! Tests of the queues: what asyncio's do (`rows`), fairness and ends (`ends`), the heap (`heap`).

mod ends;
mod heap;
mod rows;

use std::sync::Arc;
use std::task::Poll;

use super::base::BaseQueue;
use super::*;
use crate::testing::{Task, limited, now};

/// What a test needs to know of a kind: in which order it gives items back that were put in this order.
trait Kind: Store<Item = i32> + Send + 'static {
    fn order(put: &[i32]) -> Vec<i32>;
}

impl Kind for Fifo<i32> {
    fn order(put: &[i32]) -> Vec<i32> {
        put.to_vec()
    }
}

impl Kind for Lifo<i32> {
    fn order(put: &[i32]) -> Vec<i32> {
        put.iter().rev().copied().collect()
    }
}

impl Kind for Heap<i32> {
    fn order(put: &[i32]) -> Vec<i32> {
        let mut items = put.to_vec();
        items.sort_unstable();
        items
    }
}

/// A test of each kind of queue: the queue, its kind, its max size, the body.
macro_rules! each_kind {
    ($($(#[$meta:meta])* fn $name:ident($queue:ident: $kind:ident, $max:expr) $body:block)*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            fn run<$kind: Kind>() {
                let $queue = Arc::new(BaseQueue::<$kind>::with_max_size($max));
                $body
            }
            limited(|| {
                run::<Fifo<i32>>();
                run::<Lifo<i32>>();
                run::<Heap<i32>>();
            });
        }
    )*};
}
use each_kind;

fn put_all<S: Kind>(queue: &BaseQueue<S>, items: &[i32]) {
    for &item in items {
        now(queue.put(item)).unwrap();
    }
}

fn get_all<S: Kind>(queue: &BaseQueue<S>) -> Vec<i32> {
    std::iter::from_fn(|| queue.try_get().ok()).collect()
}

/// Nobody is counted as waiting or granted: a queue of that max size takes so many items, and gives them.
#[track_caller]
fn whole<S: Kind>(queue: &BaseQueue<S>) {
    let text = format!("{queue:?}");
    assert!(
        text.contains("getters: 0") && text.contains("putters: 0"),
        "{text}"
    );
    get_all(queue);
    for item in 0..queue.max_size().max(1) {
        queue.try_put(item as i32).unwrap();
    }
    assert_eq!(queue.try_put(9).is_err(), queue.max_size() > 0);
    get_all(queue);
    assert!(queue.is_empty());
}
