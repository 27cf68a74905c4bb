//! Models of the task's state word and of the rights that it hands out (`rt/src/task/state.rs`).
//!
//! Conditions are relaxed, so that only the state word orders them. loom checks every access to future, output and
//! join waker, and that no task is leaked or freed twice.
//!
//! Seen to fail: an `end_poll` that does not look at `NOTIFIED` (`wake_against_run`, and joins); `Release` for `AcqRel` in
//! `complete` (joins), and a `take_join_waker` that succeeds after the end (`join_against_complete`: two threads at the
//! join waker); a `store_join_waker` that succeeds after the end (joins hang); a `complete` that takes one reference more
//! for its own (the task is freed under its waker); `Relaxed` in `ref_dec` (`waker_drop_against_complete`: the task is
//! freed under who completes it); an end of a poll that counts down although a waker has taken the reference over
//! (`waker_of_the_running_poll_against_its_end`, and those of listed tasks). Shutdown against a poll: see `live.rs`.
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use loom::future::block_on;
use loom::thread;

use rt::task::JoinHandle;
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::model::model_tasks;
use rt_loom_tests::scheduler::Scheduler;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicBool, AtomicUsize as ModelUsize, Ordering::Relaxed};

/// With tasks whose polls hold a reference, and with tasks that their list keeps alive, whose polls lend theirs to a waker.
fn check_both(preemptions: usize, body: impl Fn(Scheduler) + Send + Sync + Copy + 'static) {
    model_tasks(preemptions, move || body(Scheduler::new()));
    model_tasks(preemptions, move || body(Scheduler::listed()));
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A task that waits for `flag`, polled once already, and its waker.
fn waiting(
    scheduler: &Scheduler,
    flag: &Arc<AtomicBool>,
    drops: &StdArc<AtomicUsize>,
) -> (JoinHandle<CountDrop>, Waker) {
    let stored = StdArc::new(StdMutex::new(None));
    let (slot, flag, guard) = (stored.clone(), flag.clone(), CountDrop(drops.clone()));
    let mut output = Some(guard);
    let handle = scheduler.spawn(poll_fn(move |cx: &mut Context<'_>| {
        if flag.load(Relaxed) {
            return Poll::Ready(output.take().expect("polled once after the flag was set"));
        }
        let mut slot = slot.lock().unwrap();
        if slot.is_none() {
            *slot = Some(cx.waker().clone());
        }
        Poll::Pending
    }));
    assert_eq!(scheduler.run(), 1);
    let waker = stored.lock().unwrap().take().expect("polled");
    // A second poll would store another waker, which nobody takes out: a leak.
    *stored.lock().unwrap() = Some(Waker::noop().clone());
    (handle, waker)
}

fn new_flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn poll_once<T>(handle: &mut JoinHandle<T>, waker: &Waker) -> Poll<Result<T, rt::task::JoinError>> {
    Pin::new(handle).poll(&mut Context::from_waker(waker))
}

/// A wake against a poll that has begun or is about to: the poll sees what was done before the wake, or another follows.
#[test]
fn wake_against_run() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (handle, waker) = waiting(&scheduler, &flag, &drops);
        // A first wake, without news: the task is in the queue.
        waker.wake_by_ref();
        let other = thread::spawn(move || {
            flag.store(true, Relaxed);
            waker.wake();
        });
        scheduler.run();
        other.join().unwrap();
        scheduler.run();
        assert!(handle.is_finished(), "the wake is lost");
        drop(handle);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Two wakes with news each against a run: neither news is missed, and only one `Runnable` exists at a time.
#[test]
fn two_wakes_against_run() {
    check_both(2, |scheduler| {
        let news = Arc::new(ModelUsize::new(0));
        let wakers = StdArc::new(StdMutex::new(Vec::new()));
        let (seen, slot) = (news.clone(), wakers.clone());
        let handle = scheduler.spawn(poll_fn(move |cx: &mut Context<'_>| {
            if seen.load(Relaxed) == 2 {
                return Poll::Ready(());
            }
            let mut slot = slot.lock().unwrap();
            if slot.is_empty() {
                slot.extend([cx.waker().clone(), cx.waker().clone()]);
            }
            Poll::Pending
        }));
        scheduler.run();
        let taken = std::mem::replace(&mut *wakers.lock().unwrap(), vec![Waker::noop().clone()]);
        let threads: Vec<_> = taken
            .into_iter()
            .map(|waker| {
                let news = news.clone();
                thread::spawn(move || {
                    news.fetch_add(1, Relaxed);
                    waker.wake();
                })
            })
            .collect();
        scheduler.run();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(scheduler.run() <= 2);
        assert!(handle.is_finished(), "a wake is lost");
    });
}

/// A task that is woken while another thread completes it: no poll follows, and the last reference frees it.
#[test]
fn wake_against_complete() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (mut handle, waker) = waiting(&scheduler, &flag, &drops);
        flag.store(true, Relaxed);
        waker.wake_by_ref();
        let other = thread::spawn(move || {
            waker.wake_by_ref();
            waker.wake();
        });
        assert_eq!(scheduler.run(), 1);
        assert!(poll_once(&mut handle, Waker::noop()).is_ready());
        drop(handle);
        other.join().unwrap();
        assert_eq!(scheduler.run(), 0, "polled after its end");
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// A waker that outlives its task and the handle: whichever goes last frees the task.
#[test]
fn wake_after_completion() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (handle, waker) = waiting(&scheduler, &flag, &drops);
        flag.store(true, Relaxed);
        waker.wake_by_ref();
        assert_eq!(scheduler.run(), 1);
        let again = waker.clone();
        let other = thread::spawn(move || again.wake());
        let third = thread::spawn(move || drop(waker));
        drop(handle);
        other.join().unwrap();
        third.join().unwrap();
        assert_eq!(scheduler.run(), 0);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// The last waker of a detached task is dropped while the task completes: it is freed after both.
#[test]
fn waker_drop_against_complete() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (handle, waker) = waiting(&scheduler, &flag, &drops);
        drop(handle);
        flag.store(true, Relaxed);
        waker.wake_by_ref();
        let other = thread::spawn(move || drop(waker));
        assert_eq!(scheduler.run(), 1);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// An abort and a wake against a run: the future is dropped once, and the handle says which of the two came first.
#[test]
fn abort_against_wake_and_run() {
    check_both(2, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (mut handle, waker) = waiting(&scheduler, &flag, &drops);
        let abort = handle.abort_handle();
        let aborter = thread::spawn(move || abort.abort());
        let other = thread::spawn(move || {
            flag.store(true, Relaxed);
            waker.wake();
        });
        scheduler.run();
        aborter.join().unwrap();
        other.join().unwrap();
        scheduler.run();
        match poll_once(&mut handle, Waker::noop()) {
            Poll::Ready(Ok(output)) => drop(output),
            Poll::Ready(Err(error)) => assert!(error.is_cancelled()),
            Poll::Pending => panic!("neither cancelled nor over"),
        }
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// An abort against the end of the task: either the output is there or the error, and nothing is dropped twice.
#[test]
fn abort_against_complete() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (mut handle, waker) = waiting(&scheduler, &flag, &drops);
        flag.store(true, Relaxed);
        waker.wake();
        let abort = handle.abort_handle();
        let other = thread::spawn(move || {
            abort.abort();
            abort.abort();
        });
        assert_eq!(scheduler.run(), 1);
        match poll_once(&mut handle, Waker::noop()) {
            Poll::Ready(Ok(output)) => drop(output),
            Poll::Ready(Err(error)) => assert!(error.is_cancelled()),
            Poll::Pending => panic!("neither cancelled nor over"),
        }
        other.join().unwrap();
        assert_eq!(scheduler.run(), 0);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Aborts of an idle task from two threads: one `Runnable` comes of it, and the future is dropped by its poll.
#[test]
fn abort_against_abort() {
    check_both(3, |scheduler| {
        let (flag, drops) = (new_flag(), StdArc::default());
        let (handle, waker) = waiting(&scheduler, &flag, &drops);
        let abort = handle.abort_handle();
        let other = thread::spawn(move || abort.abort());
        handle.abort();
        other.join().unwrap();
        assert_eq!(scheduler.run(), 1);
        assert!(handle.is_finished());
        drop((handle, waker));
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// A joiner stores its waker while the task completes: it is woken, or sees the end; the output is published to it.
#[test]
fn join_against_complete() {
    model_tasks(3, || {
        let scheduler = Scheduler::new();
        let handle = scheduler.spawn(async { Arc::new(7) });
        let joiner = thread::spawn(move || *block_on(handle).expect("no panic"));
        assert_eq!(scheduler.run(), 1);
        assert_eq!(joiner.join().unwrap(), 7);
    });
}

/// The handle is polled again with another waker while the task completes: the last one is woken, and none is leaked.
#[test]
fn join_with_another_waker_against_complete() {
    model_tasks(3, || {
        let scheduler = Scheduler::new();
        let mut handle = scheduler.spawn(async { Arc::new(7) });
        let count = StdArc::new(Count(AtomicUsize::new(0)));
        let first = Waker::from(count.clone());
        assert!(poll_once(&mut handle, &first).is_pending());
        drop(first);
        let joiner = thread::spawn(move || *block_on(handle).expect("no panic"));
        assert_eq!(scheduler.run(), 1);
        assert_eq!(joiner.join().unwrap(), 7);
        assert_eq!(StdArc::strong_count(&count), 1, "the first waker is leaked");
    });
}

/// A handle that has stored a waker is dropped while the task completes: output and waker are dropped once.
#[test]
fn handle_drop_against_complete() {
    model_tasks(3, || {
        let scheduler = Scheduler::new();
        let drops = StdArc::new(AtomicUsize::new(0));
        let output = CountDrop(drops.clone());
        let mut handle = scheduler.spawn(async move { output });
        let count = StdArc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        assert!(poll_once(&mut handle, &waker).is_pending());
        drop(waker);
        let other = thread::spawn(move || drop(handle));
        assert_eq!(scheduler.run(), 1);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(StdArc::strong_count(&count), 1, "the waker is leaked");
    });
}

/// A handle that never waited is dropped while the task completes and an abort comes in.
#[test]
fn handle_drop_against_complete_and_abort() {
    check_both(2, |scheduler| {
        let drops = StdArc::new(AtomicUsize::new(0));
        let output = CountDrop(drops.clone());
        let handle = scheduler.spawn(async move { output });
        let abort = handle.abort_handle();
        let aborter = thread::spawn(move || abort.abort());
        let other = thread::spawn(move || drop(handle));
        assert_eq!(scheduler.run(), 1);
        aborter.join().unwrap();
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// A task of one runtime is awaited by a task of another: the waker goes home to its own queue.
#[test]
fn join_from_a_task_of_another_scheduler() {
    model_tasks(2, || {
        let (here, there) = (Scheduler::new(), Scheduler::new());
        let awaited = there.spawn(async { Arc::new(7) });
        let waits = here.spawn(async move { *awaited.await.expect("no panic") });
        let other = thread::spawn(move || {
            assert_eq!(there.run(), 1);
        });
        let mut polls = here.run();
        other.join().unwrap();
        polls += here.run();
        assert!(polls == 1 || polls == 2, "{polls} polls");
        assert_eq!(block_on(waits).expect("no panic"), 7);
    });
}

/// Shutdown claims a task that lies in the queue, while a worker takes it out and polls it, and a waker wakes it.
#[test]
fn claim_against_poll_and_wake() {
    model_tasks(2, || {
        let (scheduler, flag, drops) = (Scheduler::listed(), new_flag(), StdArc::default());
        let (mut handle, waker) = waiting(&scheduler, &flag, &drops);
        waker.wake_by_ref();
        let closing = scheduler.clone();
        let closer = thread::spawn(move || closing.shut_down());
        let other = thread::spawn(move || {
            flag.store(true, Relaxed);
            waker.wake();
        });
        scheduler.run();
        closer.join().unwrap();
        other.join().unwrap();
        scheduler.run();
        match poll_once(&mut handle, Waker::noop()) {
            Poll::Ready(Ok(output)) => drop(output),
            Poll::Ready(Err(error)) => assert!(error.is_runtime_closed()),
            Poll::Pending => panic!("neither closed nor over"),
        }
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(scheduler.living(), 0);
    });
}

/// A `Runnable` that is dropped, as with the queue of a dead worker, against a wake and a joiner: the task ends.
#[test]
fn dropped_runnable_against_wake_and_join() {
    model_tasks(2, || {
        let (scheduler, flag, drops) = (Scheduler::new(), new_flag(), StdArc::default());
        let (handle, waker) = waiting(&scheduler, &flag, &drops);
        waker.wake_by_ref();
        let other = thread::spawn(move || waker.wake());
        let joiner =
            thread::spawn(move || block_on(handle).is_err_and(|error| error.is_cancelled()));
        drop(scheduler.pop());
        other.join().unwrap();
        assert!(joiner.join().unwrap());
        assert_eq!(scheduler.run(), 0);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// A poll hands its waker to another thread, which uses it or drops it before the poll is over: the reference that the
/// waker took over is counted once, whether the poll returns `Pending` or is the last.
#[test]
fn waker_of_the_running_poll_against_its_end() {
    for (wakes, ready) in [(true, false), (false, false), (true, true), (false, true)] {
        model_tasks(3, move || {
            let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
            let other = StdArc::new(StdMutex::new(None));
            let (slot, mut output) = (other.clone(), Some(CountDrop(drops.clone())));
            let mut polled = false;
            let handle = scheduler.spawn(poll_fn(move |cx: &mut Context<'_>| {
                if mem::replace(&mut polled, true) {
                    return Poll::Ready(output.take());
                }
                // The second clone counts a reference of its own.
                let (waker, second) = (cx.waker().clone(), cx.waker().clone());
                *slot.lock().unwrap() = Some(thread::spawn(move || {
                    drop(second);
                    if wakes {
                        waker.wake();
                    }
                }));
                if ready {
                    Poll::Ready(output.take())
                } else {
                    Poll::Pending
                }
            }));
            scheduler.run();
            other.lock().unwrap().take().unwrap().join().unwrap();
            scheduler.run();
            assert_eq!(
                handle.is_finished(),
                wakes || ready,
                "a wake is lost, or one too many"
            );
            // Ends it, if it waits for ever.
            handle.abort();
            scheduler.run();
            drop(handle);
            assert_eq!(drops.load(SeqCst), 1);
            assert_eq!(scheduler.living(), 0);
        });
    }
}
