//! `task_local!`: scopes, threads, destructors, errors.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;

use futures_lite::future::{block_on, zip};
use rt::task::{LocalSet, yield_now};

rt::task_local! {
    /// A number.
    pub static NUMBER: u32;
    static NAME: String;
    static CELL: Rc<Cell<u32>>
}

rt::task_local! {}

#[test]
fn a_value_is_there_inside_its_scope_only() {
    assert!(NUMBER.try_get().is_err());
    block_on(async {
        let output = NUMBER
            .scope(1, async {
                assert_eq!(NUMBER.get(), 1);
                yield_now().await;
                NUMBER.scope(2, async { assert_eq!(NUMBER.get(), 2) }).await;
                NAME.scope("x".to_owned(), async {
                    assert_eq!((NUMBER.get(), NAME.get()), (1, "x".to_owned()))
                })
                .await;
                NUMBER.with(|number| *number)
            })
            .await;
        assert_eq!(output, 1);
    });
    let error = NUMBER.try_with(|_| ()).expect_err("no scope");
    assert!(error.to_string().contains("scope"), "{error}");
}

#[test]
fn futures_in_one_task_keep_their_own_values() {
    block_on(async {
        let task = |number| {
            NUMBER.scope(number, async move {
                for _ in 0..10 {
                    assert_eq!(NUMBER.get(), number);
                    yield_now().await;
                }
            })
        };
        zip(task(1), task(2)).await;
    });
}

#[test]
fn a_value_follows_its_future_to_another_thread() {
    let mut future = Box::pin(NUMBER.scope(5, async {
        yield_now().await;
        NUMBER.get()
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    assert!(NUMBER.try_get().is_err());
    let output = thread::spawn(move || {
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    })
    .join();
    assert_eq!(output.expect("no panic"), Poll::Ready(5));
}

#[test]
fn sync_scopes_nest_and_restore_also_after_a_panic() {
    NUMBER.sync_scope(1, || {
        assert_eq!(NUMBER.sync_scope(2, || NUMBER.get()), 2);
        let panic = catch_unwind(|| NUMBER.sync_scope(3, || panic!("inside")));
        assert!(panic.is_err());
        assert_eq!(NUMBER.get(), 1);
    });
    assert!(NUMBER.try_get().is_err());
}

#[test]
fn a_poll_that_panics_restores_what_was_there() {
    NUMBER.sync_scope(1, || {
        let mut future = pin!(NUMBER.scope(2, poll_fn(|_| -> Poll<()> { panic!("in poll") })));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx))).is_err());
        assert_eq!(NUMBER.get(), 1);
    });
}

struct SeesOnDrop(Rc<RefCell<Vec<Option<u32>>>>);

impl Drop for SeesOnDrop {
    fn drop(&mut self) {
        self.0.borrow_mut().push(NUMBER.try_get().ok());
    }
}

#[test]
fn destructors_of_the_future_see_the_value() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let task = |guard: SeesOnDrop, end: bool| async move {
        let _guard = guard;
        if !end {
            pending::<()>().await;
        }
    };
    // At the end, after a poll, and before the first poll.
    block_on(NUMBER.scope(1, task(SeesOnDrop(seen.clone()), true)));
    {
        let mut future = pin!(NUMBER.scope(2, task(SeesOnDrop(seen.clone()), false)));
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    drop(NUMBER.scope(3, task(SeesOnDrop(seen.clone()), false)));
    assert_eq!(*seen.borrow(), [Some(1), Some(2), Some(3)]);
}

#[test]
fn an_aborted_task_drops_its_future_inside_the_scope() {
    let set = LocalSet::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let guard = SeesOnDrop(seen.clone());
    let handle = set.spawn_local(NUMBER.scope(9, async move {
        let _guard = guard;
        pending::<()>().await;
    }));
    block_on(set.run_until(async {
        yield_now().await;
        handle.abort();
        assert!(handle.await.is_err());
    }));
    assert_eq!(*seen.borrow(), [Some(9)]);
}

#[test]
fn tasks_do_not_inherit_a_value() {
    let set = LocalSet::new();
    block_on(set.run_until(NUMBER.scope(1, async {
        let inherited = rt::task::spawn_local(async { NUMBER.try_get().is_ok() });
        assert!(!inherited.await.expect("no panic"));
    })));
}

#[test]
fn a_value_is_taken_back() {
    let cell = Rc::new(Cell::new(0));
    let mut future = Box::pin(CELL.scope(cell.clone(), async { CELL.with(|cell| cell.set(4)) }));
    block_on(future.as_mut());
    let taken = future.as_mut().take_value().expect("not taken yet");
    assert!(Rc::ptr_eq(&taken, &cell));
    assert!(future.as_mut().take_value().is_none());
    assert_eq!(cell.get(), 4);
    // Taken before the end: the future finds none.
    let mut future = Box::pin(NUMBER.scope(1, async { NUMBER.try_get().is_err() }));
    assert_eq!(future.as_mut().take_value(), Some(1));
    assert!(block_on(future));
}

#[test]
fn misuse_says_what_is_wrong() {
    let text = |panic: Box<dyn std::any::Any + Send>| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or(panic.downcast_ref::<&str>().map(ToString::to_string))
    };
    let outside = text(catch_unwind(|| NUMBER.get()).expect_err("no scope")).expect("a text");
    assert!(outside.contains("try_with"), "{outside}");
    let inside =
        catch_unwind(|| NUMBER.sync_scope(1, || NUMBER.with(|_| NUMBER.sync_scope(2, || ()))));
    let inside = text(inside.expect_err("borrowed")).expect("a text");
    assert!(inside.contains("inside `with`"), "{inside}");
    let mut future = pin!(NUMBER.scope(1, ready(())));
    block_on(future.as_mut());
    let again = catch_unwind(AssertUnwindSafe(|| block_on(future.as_mut()))).expect_err("over");
    assert!(text(again).expect("a text").contains("after its end"));
}
