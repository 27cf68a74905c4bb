//! The pool: jobs in a channel for each priority, threads that take them, and what happens when there is no thread to be had.
//!
//! # Where user code runs
//! Closures run, and are dropped, inside [`Runnable::run`] or its destructor, which contain their panics, and never
//! under a lock. A thread on which something else panics (a start or stop hook of the runtime) is replaced if it is
//! still needed.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::iter;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use rt_sync::coop;
use rt_sync::primitive::Arc as ModelArc;

use super::BlockingPriority;
use super::config::Config;
use super::follow_up::{self, Promiser, Stage as FollowUp};
use super::running::{Desk, Desks, Kind, Running};
use super::tickets::{AfterFailure, Entry, Idler, Limits, Next, Redeemed, Submitted, Tickets};
use super::waiting::ByPriority;
use crate::context;
use crate::task::{
    Header, JoinError, JoinHandle, Meta, NewTask, PanicReport, Runnable, Schedule, new_task,
};

/// How long a pool without any thread keeps asking the operating system for one, before its closures fail.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The first pause between two such attempts; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// Threads that run blocking closures.
///
/// Dropping it [closes](Self::close) it.
pub struct Pool {
    shared: Arc<Shared>,
}

/// Counts of a pool at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Threads of the pool, idle ones among them.
    pub threads: usize,
    /// Threads that wait for a closure.
    pub idle_threads: usize,
    /// The most threads there have been.
    pub peak_threads: usize,
    /// Closures that wait for a thread.
    pub queue_depth: usize,
    /// How long the oldest of them has waited.
    pub oldest_queued: Option<Duration>,
}

impl Pool {
    /// A pool without threads: they start when they are needed.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let tickets = Tickets::new(Limits {
            max: config.max_threads,
            eager: config.eager.min(config.max_threads),
            keep_alive: config.keep_alive,
            pace: config.pace,
        });
        let shared = Shared {
            tickets,
            jobs: ByPriority {
                high: unbounded(),
                normal: unbounded(),
            },
            desks: Desks::default(),
            config,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs a closure on a thread of the pool. Never blocks and never panics: what goes wrong, the handle tells.
    ///
    /// Aborting the handle before the closure starts drops the closure; afterwards it does nothing.
    pub(crate) fn spawn<F, R>(&self, closure: F, meta: Meta) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_as(closure, meta, BlockingPriority::Normal)
    }

    /// As `spawn`; see [`BlockingPriority`].
    pub(crate) fn spawn_as<F, R>(
        &self,
        closure: F,
        meta: Meta,
        priority: BlockingPriority,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let shared = &self.shared;
        let inhibit = shared.config.inhibit.as_ref().map(|hook| hook());
        let future = Closure(Some(closure));
        let NewTask {
            runnable, handle, ..
        } = new_task(future, Owner(shared.clone()), meta, false);
        let job = Job {
            runnable,
            _inhibit: inhibit,
        };
        shared.submit(job, priority);
        handle
    }

    /// As `spawn`, without a name and with the caller's place. For tests and benchmarks.
    #[doc(hidden)]
    #[track_caller]
    pub fn spawn_here<F, R>(&self, closure: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn(closure, Meta::here())
    }

    /// Refuses further closures and drops those that wait: their handles, and those of later submissions, say that the
    /// runtime closed. Idle threads end, busy ones after their closure.
    pub fn close(&self) {
        self.shared.tickets.close();
        self.shared.drain();
    }

    /// Closes the pool and waits for the threads that run closures, at most for `grace`. Tells which closures it leaves
    /// running on detached threads, if any.
    ///
    /// A closure that calls this on its own pool is neither waited for nor told of.
    #[must_use = "somebody should hear which closures are left running"]
    pub fn shutdown(&self, grace: Duration) -> Vec<Running> {
        self.close();
        // Nobody's own while the thread's variables go.
        let own = OWN.try_with(|own| {
            own.borrow()
                .as_ref()
                .filter(|own| own.pool == self.shared.address())?
                .desk
                .clone()
        });
        let own = own.ok().flatten();
        if self
            .shared
            .tickets
            .wait_gone(usize::from(own.is_some()), grace)
        {
            return Vec::new();
        }
        self.shared.desks.running(own.as_ref())
    }

    /// Whether a closure waits for a thread that has promised to take it up.
    pub(crate) fn has_promises(&self) -> bool {
        self.shared.tickets.has_promises()
    }

    /// Gives such closures to other threads if they have waited for too long.
    pub(crate) fn redeem_promises(&self) {
        while let Redeemed::Yes(start) = self.shared.tickets.redeem(follow_up::PATIENCE) {
            if let Some(entry) = start {
                self.shared.start(entry, FIRST_PAUSE);
            }
        }
    }

    /// The most threads that it has.
    pub(crate) fn max_threads(&self) -> usize {
        self.shared.config.max_threads
    }

    /// Counts of this moment.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let counts = self.shared.tickets.snapshot();
        Metrics {
            threads: counts.threads,
            idle_threads: counts.idle,
            peak_threads: counts.peak,
            queue_depth: counts.waiting,
            oldest_queued: counts.oldest.map(|drawn| drawn.elapsed()),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.shared.config)
            .field("metrics", &self.metrics())
            .finish()
    }
}

struct Shared {
    tickets: Tickets,
    /// Jobs lie here from before their ticket is drawn until its holder takes them.
    jobs: ByPriority<(Sender<Job>, Receiver<Job>)>,
    desks: Desks,
    config: Config,
}

/// What lies in the channel. The closure goes first when it is dropped.
struct Job {
    runnable: Runnable,
    _inhibit: Option<Box<dyn Any + Send>>,
}

impl Shared {
    fn submit(self: &Arc<Self>, job: Job, priority: BlockingPriority) {
        // Cannot fail: we hold both ends. If it could, the job would be dropped and its handle told so.
        let _ = self.jobs.of(priority).0.send(job);
        let submitted = match follow_up::take_promiser(self.address()) {
            None => self.tickets.submit_as(priority),
            Some(idler) => {
                let submitted = self.tickets.promise(&idler, priority);
                follow_up::promised();
                submitted
            }
        };
        match submitted {
            Submitted::Taken => {}
            Submitted::Start(entry) => self.start(entry, FIRST_PAUSE),
            // Shutdown emptied the channels, perhaps before our job was there.
            Submitted::Closed => self.drain(),
        }
    }

    /// Drops every job of a closed pool. A job that somebody else drops meanwhile fares no worse.
    fn drain(&self) {
        for priority in [BlockingPriority::High, BlockingPriority::Normal] {
            while let Some(job) = self.take_job(priority) {
                drop(job);
            }
        }
    }

    /// The first job of this priority. Who has a ticket for one finds it, unless the pool closed.
    fn take_job(&self, priority: BlockingPriority) -> Option<Job> {
        self.jobs.of(priority).1.try_recv().ok()
    }

    /// Starts a thread; if there is none to be had and nobody else for the work, tries again later.
    fn start(self: &Arc<Self>, entry: Entry, pause: Duration) {
        if let Err(text) = self.try_start(entry, false) {
            self.start_failed(entry, text, pause);
        }
    }

    fn try_start(self: &Arc<Self>, entry: Entry, rescue: bool) -> Result<(), String> {
        let mut builder = thread::Builder::new().name((self.config.name)());
        if let Some(size) = self.config.stack_size {
            builder = builder.stack_size(size);
        }
        let shared = self.clone();
        let body = Box::new(move || {
            Life {
                shared,
                stage: Stage::Entering(entry),
                rescue,
                desk: None,
                idler: Idler::new(),
            }
            .live()
        });
        (self.config.start)(builder, body).map_err(|error| error.to_string())
    }

    #[cold]
    fn start_failed(self: &Arc<Self>, entry: Entry, text: String, pause: Duration) {
        let since = match self.tickets.start_failed(entry) {
            AfterFailure::Covered => return,
            AfterFailure::Orphaned(since) => since,
        };
        match &self.config.later {
            Some(later) if since.elapsed() < PATIENCE => {
                let shared = self.clone();
                later(pause, Box::new(move || shared.retry(pause)));
            }
            _ => self.give_up(text),
        }
    }

    fn retry(self: &Arc<Self>, pause: Duration) {
        let Some(entry) = self.tickets.retry() else {
            return;
        };
        if let Err(text) = self.try_start(entry, true) {
            self.start_failed(entry, text, (pause * 2).min(LONGEST_PAUSE));
        }
    }

    /// Fails every closure that waits, with what the operating system said.
    fn give_up(&self, text: String) {
        let counts = self.tickets.give_up();
        let jobs_of =
            |priority| iter::from_fn(move || self.take_job(priority)).take(*counts.of(priority));
        let jobs: Vec<Job> = jobs_of(BlockingPriority::High)
            .chain(jobs_of(BlockingPriority::Normal))
            .collect();
        REFUSAL.set(Some(text));
        drop(jobs);
        REFUSAL.set(None);
    }

    fn run_one(
        self: &Arc<Self>,
        priority: BlockingPriority,
        desk: &Desk,
        idler: &ModelArc<Idler>,
        cx: Option<&Rc<context::Context>>,
    ) {
        // No job: the pool closed after the ticket was drawn, and the channels were emptied.
        let Some(Job { runnable, _inhibit }) = self.take_job(priority) else {
            return;
        };
        desk.take_up(Kind::Closure, runnable.header());
        runnable.run();
        if let Some(cx) = cx
            && let Some(task) = follow_up::take_caught(cx)
        {
            desk.take_up(Kind::Task, task.header());
            let promiser = Promiser {
                pool: self.address(),
                idler: idler.clone(),
            };
            follow_up::run(cx, task, promiser, self.tickets.is_free());
        }
        desk.clear();
        // The clock's guard goes now, when whoever awaits the result has been woken.
    }

    fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

thread_local! {
    /// Why the jobs that this thread drops at the moment fail; see `give_up`.
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The pool whose thread this is.
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

struct Own {
    pool: usize,
    desk: Option<Arc<Desk>>,
}

/// The life of one thread; its destructor puts the accounts right however the life ended.
struct Life {
    shared: Arc<Shared>,
    stage: Stage,
    /// Whether this thread ends a time without any.
    rescue: bool,
    desk: Option<Arc<Desk>>,
    idler: ModelArc<Idler>,
}

#[derive(Clone, Copy)]
enum Stage {
    /// `run` has not called us yet.
    Entering(Entry),
    Working,
    Over,
}

impl Life {
    fn live(mut self) {
        let run = self.shared.config.run.clone();
        run(&mut || self.work());
    }

    fn work(&mut self) {
        let Stage::Entering(entry) = self.stage else {
            return;
        };
        self.stage = Stage::Working;
        let shared = &self.shared;
        let desk = self.desk.insert(shared.desks.add());
        OWN.set(Some(Own {
            pool: shared.address(),
            desk: Some(desk.clone()),
        }));
        if self.rescue
            && let Some(entry) = shared.tickets.recovered()
        {
            shared.start(entry, FIRST_PAUSE);
        }
        let cx = context::innermost();
        if let Some(cx) = &cx {
            cx.stage.set(FollowUp::Closed);
        }
        let idler = &self.idler;
        let mut next = shared.tickets.begin(idler, entry);
        while let Next::Work(priority, another) = next {
            if let Some(entry) = another {
                shared.start(entry, FIRST_PAUSE);
            }
            shared.run_one(priority, desk, idler, cx.as_ref());
            next = shared.tickets.next(idler);
        }
        self.stage = Stage::Over;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let shared = &self.shared;
        if let Some(desk) = &self.desk {
            shared.desks.remove(desk);
        }
        // Not when the thread's own variables are gone already: then nobody can ask either.
        let _ = OWN.try_with(|own| own.take());
        match self.stage {
            Stage::Over => {}
            Stage::Working => {
                if let Some(entry) = shared.tickets.abandoned(&self.idler) {
                    shared.start(entry, FIRST_PAUSE);
                }
            }
            Stage::Entering(entry) => {
                let text =
                    "the thread's start hook panicked, or did not run the pool's part".to_owned();
                return shared.start_failed(entry, text, FIRST_PAUSE);
            }
        }
        shared.tickets.left();
    }
}

/// A future that runs a closure in its first poll, which is its last.
struct Closure<F>(Option<F>);

impl<F> Unpin for Closure<F> {}

impl<F: FnOnce() -> R, R> Future for Closure<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        struct Lifted(coop::Saved);
        impl Drop for Lifted {
            fn drop(&mut self) {
                coop::restore(self.0);
            }
        }
        let Some(closure) = self.0.take() else {
            unreachable!("a blocking closure was polled twice")
        };
        // A closure is no task that should give way: `block_on` inside it has no budget.
        let _lifted = Lifted(coop::lift());
        let result = closure();
        follow_up::open();
        Poll::Ready(result)
    }
}

/// The scheduler of closures.
struct Owner(Arc<Shared>);

impl Schedule for Owner {
    fn schedule(&self, task: Runnable) {
        // Nobody has a waker of a closure, and one that waits in the channel is scheduled already.
        debug_assert!(false, "a blocking closure was woken");
        drop(task);
    }

    fn release(&self, _: &Header) -> bool {
        false
    }

    fn is_closed(&self) -> bool {
        self.0.tickets.is_closed()
    }

    fn cancel_error(&self, task: &Header) -> JoinError {
        let id = task.id;
        match REFUSAL
            .try_with(|text| text.borrow().clone())
            .ok()
            .flatten()
        {
            Some(text) => JoinError::no_thread(id, text),
            None if self.is_closed() => JoinError::closed(id),
            None => JoinError::cancelled(id),
        }
    }

    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        (self.0.config.panicked)(report, handle_alive);
    }

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        (self.0.config.destructor_panicked)(report);
    }
}
