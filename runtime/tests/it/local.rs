//! `LocalSet`: where its futures run and are dropped, who wakes it, and that it gives way.

mod ends;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::panic::catch_unwind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::thread::ThreadId;

use futures_lite::future::{block_on, zip};
use rt::task::{LocalSet, spawn_local, yield_now};

use crate::support::within_limit;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A counter of wakes, with its waker.
fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Says on which thread it was dropped. Not `Send`.
struct DropThread {
    to: Arc<Mutex<Vec<ThreadId>>>,
    _not_send: Rc<()>,
}

fn drop_thread(to: &Arc<Mutex<Vec<ThreadId>>>) -> DropThread {
    DropThread {
        to: to.clone(),
        _not_send: Rc::new(()),
    }
}

impl Drop for DropThread {
    fn drop(&mut self) {
        self.to.lock().expect("lock").push(thread::current().id());
    }
}

/// A future that keeps its waker where another thread can take it, and is ready once `done` is set.
#[derive(Default)]
struct Gate {
    done: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    fn open(&self) {
        self.done.store(true, SeqCst);
        let waker = self.waker.lock().expect("lock").take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            *self.waker.lock().expect("lock") = Some(cx.waker().clone());
            if self.done.load(SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

#[test]
fn tasks_share_what_is_not_send() {
    within_limit(|| {
        let set = LocalSet::new();
        let log = Rc::new(RefCell::new(Vec::new()));
        let to = log.clone();
        let output = block_on(set.run_until(async move {
            let inner = to.clone();
            let first = spawn_local(async move {
                inner.borrow_mut().push("first");
                Rc::new(1)
            });
            let inner = to.clone();
            let second = spawn_local(async move {
                spawn_local(async move { inner.borrow_mut().push("nested") })
                    .await
                    .expect("no panic");
                2
            });
            *first.await.expect("no panic") + second.await.expect("no panic")
        }));
        assert_eq!(output, 3);
        assert_eq!(*log.borrow(), ["first", "nested"]);
    });
}

#[test]
fn awaiting_the_set_runs_every_task_to_its_end() {
    within_limit(|| {
        let set = LocalSet::new();
        let count = Rc::new(Cell::new(0));
        for rounds in 0..100 {
            let count = count.clone();
            drop(set.spawn_local(async move {
                for _ in 0..rounds {
                    yield_now().await;
                }
                count.set(count.get() + 1);
            }));
        }
        assert_eq!(format!("{set:?}"), "LocalSet { tasks: 100, .. }");
        block_on(set);
        assert_eq!(count.get(), 100);
    });
}

#[test]
fn an_empty_set_is_ready_at_once() {
    let mut set = pin!(LocalSet::new());
    let (count, waker) = counting();
    assert!(poll(set.as_mut(), &waker).is_ready());
    assert!(poll(set.as_mut(), &waker).is_ready());
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn tasks_that_are_left_wait_for_the_next_run() {
    let set = LocalSet::new();
    let done = Rc::new(Cell::new(false));
    let to = done.clone();
    block_on(set.run_until(async {
        drop(spawn_local(async move { to.set(true) }));
    }));
    assert!(!done.get());
    block_on(set.run_until(yield_now()));
    assert!(done.get());
}

#[test]
fn one_poll_polls_at_most_61_tasks_and_wakes_itself_for_the_rest() {
    let set = LocalSet::new();
    let polled = Rc::new(Cell::new(0));
    for _ in 0..100 {
        let polled = polled.clone();
        drop(set.spawn_local(async move { polled.set(polled.get() + 1) }));
    }
    let (count, waker) = counting();
    let mut run = pin!(set.run_until(pending::<()>()));
    assert!(poll(run.as_mut(), &waker).is_pending());
    assert_eq!(polled.get(), 61);
    assert_eq!(count.0.load(SeqCst), 1);
    assert!(poll(run.as_mut(), &waker).is_pending());
    assert_eq!(polled.get(), 100);
    assert_eq!(count.0.load(SeqCst), 1);
}

#[test]
fn a_task_that_yields_lets_the_root_have_a_turn_each_time() {
    let set = LocalSet::new();
    let yields = Rc::new(Cell::new(0));
    let to = yields.clone();
    drop(set.spawn_local(async move {
        loop {
            to.set(to.get() + 1);
            yield_now().await;
        }
    }));
    let (_, waker) = counting();
    let mut run = pin!(set.run_until(pending::<()>()));
    for turn in 1..=10 {
        assert!(poll(run.as_mut(), &waker).is_pending());
        assert_eq!(yields.get(), turn);
    }
}

#[test]
fn a_wake_from_another_thread_wakes_the_set_once_and_runs_in_order() {
    within_limit(|| {
        let set = LocalSet::new();
        let gates: Vec<_> = (0..10).map(|_| Arc::new(Gate::default())).collect();
        let order = Rc::new(RefCell::new(Vec::new()));
        for (number, gate) in gates.iter().cloned().enumerate() {
            let order = order.clone();
            drop(set.spawn_local(async move {
                gate.wait().await;
                order.borrow_mut().push(number);
            }));
        }
        let (count, waker) = counting();
        let mut run = pin!(set.run_until(pending::<()>()));
        assert!(poll(run.as_mut(), &waker).is_pending());
        let others = gates.clone();
        thread::spawn(move || others.iter().rev().for_each(|gate| gate.open()))
            .join()
            .expect("no panic");
        assert_eq!(count.0.load(SeqCst), 1);
        assert!(order.borrow().is_empty());
        assert!(poll(run.as_mut(), &waker).is_pending());
        assert_eq!(*order.borrow(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    });
}

#[test]
fn wakes_from_the_owners_thread_while_the_set_waits_wake_it_once() {
    let set = LocalSet::new();
    let gates: Vec<_> = (0..3).map(|_| Arc::new(Gate::default())).collect();
    for gate in &gates {
        let gate = gate.clone();
        drop(set.spawn_local(async move { gate.wait().await }));
    }
    let (count, waker) = counting();
    let mut run = pin!(set.run_until(pending::<()>()));
    assert!(poll(run.as_mut(), &waker).is_pending());
    gates.iter().for_each(|gate| gate.open());
    assert_eq!(count.0.load(SeqCst), 1);
    assert!(poll(run.as_mut(), &waker).is_pending());
    // As does a task that comes in from outside.
    drop(set.spawn_local(async {}));
    assert_eq!(count.0.load(SeqCst), 2);
}

#[test]
fn a_handle_is_awaited_on_another_thread() {
    within_limit(|| {
        let (send, receive) = mpsc::channel();
        let other = thread::spawn(move || {
            let handle: rt::task::JoinHandle<u32> = receive.recv().expect("a handle");
            block_on(handle).expect("no panic")
        });
        let set = LocalSet::new();
        let inner = Rc::new(5);
        send.send(set.spawn_local(async move {
            yield_now().await;
            *inner
        }))
        .expect("the thread waits");
        block_on(set);
        assert_eq!(other.join().expect("no panic"), 5);
    });
}

#[test]
fn an_abort_from_another_thread_drops_the_future_here() {
    within_limit(|| {
        let set = LocalSet::new();
        let drops = Arc::default();
        let guard = drop_thread(&drops);
        let handle = set.spawn_local(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        let abort = handle.abort_handle();
        let result = block_on(set.run_until(async move {
            yield_now().await;
            let other = thread::spawn(move || abort.abort());
            let result = handle.await;
            other.join().expect("no panic");
            result
        }));
        assert!(result.is_err_and(|error| error.is_aborted()));
        assert_eq!(*drops.lock().expect("lock"), [thread::current().id()]);
    });
}

#[test]
fn spawn_local_outside_a_set_says_what_to_do() {
    let panic = catch_unwind(|| drop(spawn_local(async {}))).expect_err("no set");
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    assert!(
        text.is_some_and(|text| text.contains("run_until") && text.contains("rt::spawn")),
        "{text:?}"
    );
}

#[test]
fn an_entered_set_takes_spawns_and_guards_nest() {
    let (outer, inner) = (LocalSet::new(), LocalSet::new());
    let entered = outer.enter();
    drop(spawn_local(async {}));
    {
        let _entered = inner.enter();
        drop(spawn_local(async {}));
        drop(spawn_local(async {}));
    }
    drop(spawn_local(async {}));
    drop(entered);
    assert!(catch_unwind(|| drop(spawn_local(async {}))).is_err());
    assert!(format!("{outer:?}").contains("tasks: 2"), "{outer:?}");
    assert!(format!("{inner:?}").contains("tasks: 2"), "{inner:?}");
    block_on(async { zip(outer, inner).await });
}

#[test]
fn a_set_inside_a_task_of_another_set_leaves_it_its_turns() {
    within_limit(|| {
        let outer = LocalSet::new();
        let turns = Rc::new(Cell::new(0));
        block_on(outer.run_until(async {
            let count = turns.clone();
            let neighbour = spawn_local(async move {
                for _ in 0..10 {
                    count.set(count.get() + 1);
                    yield_now().await;
                }
            });
            let inner = LocalSet::new();
            for _ in 0..3 {
                drop(inner.spawn_local(async {
                    loop {
                        yield_now().await;
                    }
                }));
            }
            let endless = spawn_local(inner);
            neighbour.await.expect("no panic");
            endless.abort();
            assert!(endless.await.is_err_and(|error| error.is_aborted()));
        }));
        assert_eq!(turns.get(), 10);
    });
}

#[test]
fn many_wakes_from_many_threads_are_all_seen() {
    within_limit(|| {
        const TASKS: usize = 64;
        const ROUNDS: usize = 200;
        let set = LocalSet::new();
        let cells: Vec<_> = (0..TASKS)
            .map(|_| Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>))))
            .collect();
        for cell in cells.iter().cloned() {
            drop(set.spawn_local(poll_fn(move |cx| {
                *cell.1.lock().expect("lock") = Some(cx.waker().clone());
                if cell.0.load(SeqCst) >= 3 * ROUNDS {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })));
        }
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let cells = cells.clone();
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        for cell in &cells {
                            cell.0.fetch_add(1, SeqCst);
                            let waker = cell.1.lock().expect("lock").take();
                            if let Some(waker) = waker {
                                waker.wake();
                            }
                        }
                    }
                })
            })
            .collect();
        block_on(set);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}
