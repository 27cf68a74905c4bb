//! A thread of a pool that is through with its closure polls the task that waited for it.
//!
//! Else a trip to the pool and back is two wake-ups across threads, which is all that it costs: the task's worker calls a
//! thread of the pool and falls asleep, and that thread calls the worker and falls asleep. A thread that follows its
//! closure up spares the second, and, if the task then sends the next closure, the first as well, since it takes that one
//! itself. Programs that go to the disk all the time do just this.
//!
//! # When
//! The last thing that the end of a closure does is to wake whoever waits for it. A task that is woken then is caught
//! ([`catch`]), and polled once by this thread, if
//! - a worker would have to be woken for it: one sleeps, and none searches;
//! - the thread has nothing else to do: no closure waits, and the pool has other threads for those that come, or may
//!   start some;
//! - no more such polls go on than there are workers: those are the capacity.
//!
//! Not on the current-thread flavour, whose tasks stay where they are; not in debug mode or while a trace is taken, since
//! those tell of polls by the seat on which they were; and not without the monitor, for the next reason.
//!
//! # Who is held up
//! Nobody. The worker sleeps on in its selector, and wakes up for its sockets and timers as ever. The task runs without a
//! seat, as one does that has lent its own: what it wakes and spawns goes to the injector. If it blocks, that costs the
//! pool one of its threads.
//!
//! The first closure that it sends to this pool calls nobody: this thread *promises* to look for it once the poll is over
//! (`tickets.rs`). If the poll takes long, perhaps since it waits for that closure, the monitor gives the closure to
//! another thread: at its next look, so after 9 ms at most.
//!
//! A callback of `on_done` runs after the wake, and may block: what was caught is given to the workers before.

use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rt_sync::primitive::Arc as ModelArc;

use super::tickets::Idler;
use crate::context::{self, Context, Phase};
use crate::scheduler::Shared;
use crate::scheduler::metrics::Count;
use crate::task::Runnable;
use crate::trace;

/// How old a closure has to be that was promised to be taken up, for the monitor to give it to somebody else. Long against a
/// poll that goes on after it has sent a closure.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1);

/// Where a thread is between its closure and the poll of the task that waited for it.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    /// It is no thread of a pool.
    #[default]
    Never,
    /// It is one, and has not come to the end of a closure.
    Closed,
    /// The closure has returned.
    Open,
    /// The closure's end has woken this task.
    Caught(Runnable),
    /// It polls such a task, and is free afterwards for a closure of its pool.
    Polls(Promiser),
}

/// Who can promise to take up a closure.
#[derive(Debug, Clone)]
pub(crate) struct Promiser {
    /// The address of its pool.
    pub(crate) pool: usize,
    pub(crate) idler: ModelArc<Idler>,
}

/// The polls of a runtime's tasks on the threads of its pools.
#[derive(Debug)]
pub(crate) struct FollowUps {
    most: usize,
    running: AtomicUsize,
    /// How many there were.
    pub(crate) count: Count,
}

impl FollowUps {
    /// `most` at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            running: AtomicUsize::new(0),
            count: Count::default(),
        }
    }

    fn begin(&self) -> bool {
        // Relaxed: a number, and nothing that it guards.
        if self.running.fetch_add(1, Relaxed) < self.most {
            self.count.add(1);
            return true;
        }
        self.end();
        false
    }

    fn end(&self) {
        self.running.fetch_sub(1, Relaxed);
    }
}

/// The closure has returned: the next task that this thread wakes is what it may follow up.
pub(super) fn open() {
    context::with(|cx| {
        if let Some(cx) = cx
            && let Stage::Closed = cx.stage.take()
        {
            let opens =
                cx.shared.follow_ups.most > 0 && !cx.shared.debug.notes_polls() && !trace::is_on();
            cx.stage
                .set(if opens { Stage::Open } else { Stage::Closed });
        }
    });
}

/// A task was woken on a thread without a seat: keeps it, if this is the end of a closure.
#[cold]
pub(crate) fn catch(cx: &Context, task: Runnable) -> Result<(), Runnable> {
    match cx.stage.take() {
        // Unfenced: nobody else is to see the task.
        Stage::Open if cx.shared.idle.has_sleeper() => {
            cx.stage.set(Stage::Caught(task));
            Ok(())
        }
        stage => {
            cx.stage.set(stage);
            Err(task)
        }
    }
}

/// Gives what was caught to the workers: something follows that may take long.
#[cold]
pub(crate) fn let_go() {
    let caught = context::with(|cx| {
        let cx = cx?;
        match cx.stage.take() {
            Stage::Caught(task) => {
                cx.stage.set(Stage::Closed);
                Some((cx.shared.clone(), task))
            }
            stage => {
                cx.stage.set(stage);
                None
            }
        }
    });
    if let Some((shared, task)) = caught {
        shared.inject(task);
    }
}

/// What the end of the last closure has woken, of a thread that entered its runtime by `cx`.
pub(super) fn take_caught(cx: &Context) -> Option<Runnable> {
    match cx.stage.replace(Stage::Closed) {
        Stage::Caught(task) => Some(task),
        _ => None,
    }
}

/// Polls a task that was caught, if `is_free` says that the thread has nothing else to do; or gives it to the workers.
pub(super) fn run(cx: &Rc<Context>, task: Runnable, promiser: Promiser, is_free: bool) {
    struct End<'a>(&'a Shared);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.follow_ups.end();
        }
    }
    let shared = &cx.shared;
    if !is_free || shared.is_closed() || !shared.follow_ups.begin() {
        return shared.inject(task);
    }
    let _end = End(shared);
    let polling = Context::new(shared.clone(), Phase::Polling);
    polling.stage.set(Stage::Polls(promiser));
    let _context = context::enter(polling);
    task.run();
}

/// Whether this thread may promise to take up a closure for this pool; it may do so once in a poll.
pub(super) fn take_promiser(pool: usize) -> Option<ModelArc<Idler>> {
    context::with(|cx| {
        let cx = cx?;
        match cx.stage.take() {
            Stage::Never => None,
            Stage::Polls(promiser) if promiser.pool == pool => Some(promiser.idler),
            stage => {
                cx.stage.set(stage);
                None
            }
        }
    })
}

/// A closure was promised to be taken up: the monitor has to stay awake.
pub(super) fn promised() {
    context::with(|cx| {
        if let Some(cx) = cx {
            cx.shared.monitor.bed.wake();
        }
    });
}
