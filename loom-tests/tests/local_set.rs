//! Models of `LocalSet`: its queue for wakes from other threads (`JoinSet` has the same one), and the set as a whole
//! against such wakes.
//!
//! Seen to fail: with `filled` set after the wake (`pushes_of_one_thread_keep_their_order` and others deadlock), and
//! with the queue closed before the tasks are shut down (`a_wake_against_the_drop`: another thread drops the future).
#![cfg(rt_loom)]

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::task::{Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt::internals::task::WakeQueue;
use rt::task::{JoinHandle, LocalSet, yield_now};
use rt_sync::AtomicWaker;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};

fn check(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(body);
}

/// Waits until `count` items came out.
async fn take(queue: &WakeQueue<u32>, count: usize) -> Vec<u32> {
    let mut items = VecDeque::new();
    poll_fn(|cx| {
        queue.register(cx.waker());
        queue.take_into(&mut items);
        if items.len() == count {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    items.into()
}

/// Two pushes, of which only one wakes, against the taking side on its way to sleep: nothing is left behind.
#[test]
fn pushes_against_the_end_of_a_turn() {
    check(2, || {
        let queue = Arc::new(WakeQueue::new());
        let pushers: Vec<_> = (0..2)
            .map(|item| {
                let queue = queue.clone();
                thread::spawn(move || queue.push(item).expect("open"))
            })
            .collect();
        let mut items = block_on(take(&queue, 2));
        items.sort_unstable();
        assert_eq!(items, [0, 1]);
        for pusher in pushers {
            pusher.join().unwrap();
        }
    });
}

/// One thread pushes twice: the order is kept whether or not the taking side comes between.
#[test]
fn pushes_of_one_thread_keep_their_order() {
    check(3, || {
        let queue = Arc::new(WakeQueue::new());
        let other = queue.clone();
        let pusher = thread::spawn(move || {
            other.push(0).expect("open");
            other.push(1).expect("open");
        });
        assert_eq!(block_on(take(&queue, 2)), [0, 1]);
        pusher.join().unwrap();
    });
}

/// A push against the close: the item is in what `close` gives back, or comes back to the pusher.
#[test]
fn a_push_against_the_close() {
    loom::model(|| {
        let queue = Arc::new(WakeQueue::new());
        let other = queue.clone();
        let pusher = thread::spawn(move || other.push(7).is_err());
        let left = queue.close().len();
        let refused = pusher.join().unwrap();
        assert_eq!(left + usize::from(refused), 1);
    });
}

/// A condition that another thread makes true.
struct Gate {
    open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        })
    }

    fn open(&self) {
        self.open.store(true, Relaxed);
        self.waker.wake();
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.open.load(Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Notes on which thread of the model it is dropped.
struct DropThread(StdArc<StdMutex<Vec<thread::ThreadId>>>);

impl Drop for DropThread {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(thread::current().id());
    }
}

/// A task of the set is woken from another thread while the set ends its turn and goes to sleep.
#[test]
fn a_wake_against_the_end_of_a_turn() {
    check(2, || {
        let gate = Gate::new();
        let other = gate.clone();
        let waker = thread::spawn(move || other.open());
        let set = LocalSet::new();
        let task: JoinHandle<()> = set.spawn_local(async move { gate.wait().await });
        block_on(set.run_until(task)).expect("no panic");
        waker.join().unwrap();
    });
}

/// A wake from another thread against the drop of the set: the future is dropped once, by the owner, and nothing leaks
/// (loom checks that).
#[test]
fn a_wake_against_the_drop() {
    check(2, || {
        let drops = StdArc::default();
        let set = LocalSet::new();
        let stored: Arc<AtomicWaker> = Arc::new(AtomicWaker::new());
        let (slot, guard) = (stored.clone(), DropThread(StdArc::clone(&drops)));
        drop(set.spawn_local(async move {
            let _guard = guard;
            poll_fn(|cx| {
                slot.register(cx.waker());
                Poll::<()>::Pending
            })
            .await;
        }));
        block_on(set.run_until(yield_now()));
        let waker: Waker = stored.take().expect("the task was polled");
        let other = thread::spawn(move || waker.wake());
        drop(set);
        other.join().unwrap();
        assert_eq!(*drops.lock().unwrap(), [thread::current().id()]);
    });
}

/// An abort from another thread against a turn: the owner drops the future, and the handle hears of it.
#[test]
fn an_abort_against_a_turn() {
    check(2, || {
        let drops = StdArc::default();
        let guard = DropThread(StdArc::clone(&drops));
        let set = LocalSet::new();
        let task: JoinHandle<()> = set.spawn_local(async move {
            let _guard = guard;
            pending().await
        });
        let abort = task.abort_handle();
        let other = thread::spawn(move || abort.abort());
        assert!(block_on(set.run_until(task)).is_err_and(|error| error.is_aborted()));
        other.join().unwrap();
        assert_eq!(*drops.lock().unwrap(), [thread::current().id()]);
    });
}
