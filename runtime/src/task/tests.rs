//! Tests of the task cell alone, under a scheduler that keeps its runnables in a list.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::*;

#[derive(Default)]
struct Inner {
    queue: Mutex<Vec<Runnable>>,
    panics: Mutex<Vec<(String, bool)>>,
    destructors: AtomicUsize,
}

#[derive(Clone, Default)]
struct TestScheduler(Arc<Inner>);

impl TestScheduler {
    fn spawn<F: Future + Send + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        let task = new_task(future, self.clone(), Meta::here(), false);
        self.0.queue.lock().expect("lock").push(task.runnable);
        task.handle
    }

    /// Polls until the queue is empty; the number of polls.
    fn run(&self) -> usize {
        let mut polls = 0;
        loop {
            let next = self.0.queue.lock().expect("lock").pop();
            match next {
                Some(task) => task.run(),
                None => return polls,
            }
            polls += 1;
        }
    }
}

impl Schedule for TestScheduler {
    fn schedule(&self, task: Runnable) {
        self.0.queue.lock().expect("lock").push(task);
    }
    fn release(&self, _task: &Header) -> bool {
        false
    }
    fn is_closed(&self) -> bool {
        false
    }
    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        self.0.panics.lock().expect("lock").push((
            report.message.clone().unwrap_or_default().into(),
            handle_alive,
        ));
    }
    fn destructor_panicked(&self, _report: &Arc<PanicReport>) {
        self.0.destructors.fetch_add(1, SeqCst);
    }
}

struct CountDrop(Arc<AtomicUsize>);
impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct PanicDrop;
impl Drop for PanicDrop {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

fn poll_now<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
    std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_overhead_stays_within_128_bytes() {
    // Header and scheduler; the stage adds a tag to the future.
    let overhead = size_of::<Header>() + size_of::<usize>();
    assert!(overhead <= 120, "{overhead}");
}

#[test]
fn an_output_is_handed_to_the_handle() {
    let scheduler = TestScheduler::default();
    let mut handle = scheduler.spawn(ready(5));
    assert!(poll_now(&mut handle).is_pending());
    assert_eq!(scheduler.run(), 1);
    assert!(handle.is_finished());
    assert!(matches!(poll_now(handle), Poll::Ready(Ok(5))));
}

#[test]
fn wakes_before_the_poll_make_one_poll_and_a_wake_in_it_another() {
    let scheduler = TestScheduler::default();
    let kept = Arc::new(Mutex::new(None::<Waker>));
    let slot = kept.clone();
    let mut wakes_itself = true;
    let handle = scheduler.spawn(std::future::poll_fn(move |cx| {
        let known = slot.lock().expect("lock").replace(cx.waker().clone());
        if known.is_some() && std::mem::replace(&mut wakes_itself, false) {
            cx.waker().wake_by_ref();
        }
        Poll::<()>::Pending
    }));
    assert_eq!(scheduler.run(), 1);
    let waker = kept.lock().expect("lock").clone().expect("polled");
    for _ in 0..3 {
        waker.wake_by_ref();
    }
    assert_eq!(scheduler.run(), 2);
    assert_eq!(scheduler.run(), 0);
    handle.abort();
    assert_eq!(scheduler.run(), 1);
    assert!(handle.is_finished());
    drop(kept.lock().expect("lock").take());
}

#[test]
fn a_joiner_is_woken_once_and_its_waker_freed() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let scheduler = TestScheduler::default();
    let mut handle = scheduler.spawn(ready(()));
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    for _ in 0..3 {
        assert!(
            std::pin::Pin::new(&mut handle)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 2);
    scheduler.run();
    assert_eq!(count.0.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_dropped_handle_frees_its_stored_waker() {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let scheduler = TestScheduler::default();
    let mut handle = scheduler.spawn(pending::<()>());
    let count = Arc::new(Nothing);
    let waker = Waker::from(count.clone());
    assert!(
        std::pin::Pin::new(&mut handle)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    drop(handle);
    assert_eq!(Arc::strong_count(&count), 1);
    scheduler.run();
}

#[test]
fn abort_drops_the_future_once_and_is_sticky() {
    let scheduler = TestScheduler::default();
    let drops = Arc::new(AtomicUsize::new(0));
    let guard = CountDrop(drops.clone());
    let handle = scheduler.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    scheduler.run();
    let abort = handle.abort_handle();
    abort.abort();
    abort.abort();
    assert_eq!(drops.load(SeqCst), 0);
    assert_eq!(scheduler.run(), 1);
    assert_eq!(drops.load(SeqCst), 1);
    abort.abort();
    assert!(abort.is_finished());
    match poll_now(handle) {
        Poll::Ready(Err(error)) => {
            assert!(error.is_cancelled() && error.is_aborted() && !error.is_panic())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn abort_before_the_first_poll_never_polls() {
    let scheduler = TestScheduler::default();
    let handle = scheduler.spawn(async { panic!("polled") });
    handle.abort();
    scheduler.run();
    assert!(matches!(poll_now(handle), Poll::Ready(Err(error)) if error.is_cancelled()));
}

#[test]
fn a_dropped_runnable_cancels_its_task() {
    let scheduler = TestScheduler::default();
    let drops = Arc::new(AtomicUsize::new(0));
    let guard = CountDrop(drops.clone());
    let handle = scheduler.spawn(async move { drop(guard) });
    scheduler.0.queue.lock().expect("lock").clear();
    assert_eq!(drops.load(SeqCst), 1);
    assert!(matches!(poll_now(handle), Poll::Ready(Err(error)) if error.is_cancelled()));
}

#[test]
fn a_panic_in_poll_ends_the_task_with_its_payload() {
    let scheduler = TestScheduler::default();
    let one = scheduler.0.destructors.load(SeqCst) + 1;
    let handle = scheduler.spawn(async move { panic!("boom {one}") });
    scheduler.run();
    assert_eq!(
        *scheduler.0.panics.lock().expect("lock"),
        [("boom 1".to_owned(), true)]
    );
    let Poll::Ready(Err(error)) = poll_now(handle) else {
        panic!("no error")
    };
    assert!(error.is_panic());
    assert!(error.to_string().contains("boom 1"), "{error}");
    assert_eq!(
        error
            .into_panic()
            .downcast_ref::<String>()
            .map(String::as_str),
        Some("boom 1")
    );
}

#[test]
fn a_panic_that_nobody_takes_is_reported_when_the_handle_goes() {
    let scheduler = TestScheduler::default();
    let handle = scheduler.spawn(async { panic!("boom") });
    scheduler.run();
    drop(handle);
    assert_eq!(
        *scheduler.0.panics.lock().expect("lock"),
        [("boom".to_owned(), true), ("boom".to_owned(), false)]
    );
}

#[test]
fn panics_in_destructors_reach_no_caller() {
    let scheduler = TestScheduler::default();
    // The future's own destructor, while the output is stored.
    let guard = PanicDrop;
    let handle = scheduler.spawn(async move {
        let _guard = &guard;
        pending::<()>().await;
    });
    scheduler.run();
    handle.abort();
    scheduler.run();
    assert!(matches!(poll_now(handle), Poll::Ready(Err(error)) if error.is_cancelled()));
    assert_eq!(scheduler.0.destructors.load(SeqCst), 1);
    // The output's, without a handle and with one.
    drop(scheduler.spawn(async { PanicDrop }));
    scheduler.run();
    assert_eq!(scheduler.0.destructors.load(SeqCst), 2);
    let handle = scheduler.spawn(async { PanicDrop });
    scheduler.run();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(handle))).is_ok());
    assert_eq!(scheduler.0.destructors.load(SeqCst), 3);
}

#[test]
fn a_wake_during_the_poll_reschedules() {
    let scheduler = TestScheduler::default();
    let mut first = true;
    let handle = scheduler.spawn(std::future::poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        if std::mem::take(&mut first) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }));
    assert_eq!(scheduler.run(), 2);
    assert!(matches!(poll_now(handle), Poll::Ready(Ok(()))));
}

#[test]
fn a_waker_outlives_its_task() {
    let scheduler = TestScheduler::default();
    let slot = Arc::new(Mutex::new(None::<Waker>));
    let to = slot.clone();
    let handle = scheduler.spawn(std::future::poll_fn(move |cx| {
        *to.lock().expect("lock") = Some(cx.waker().clone());
        Poll::Ready(())
    }));
    scheduler.run();
    drop(handle);
    let waker = slot.lock().expect("lock").take().expect("stored");
    waker.wake_by_ref();
    assert_eq!(scheduler.run(), 0);
    let second = waker.clone();
    waker.wake();
    second.wake();
}
