//! Builds a runtime.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rt_sync::semaphore::Semaphore;

use super::config::Config;
use super::{Report, Runtime, UnhandledPanic, workers};
use crate::blocking;
use crate::debug;
use crate::scheduler::{Shared, launch};
use crate::trace;

/// Collects what a [`Runtime`] is to be like.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = rt::runtime::Builder::new_multi_thread().worker_threads(2).name("web").build()?;
/// assert_eq!(runtime.block_on(async { 1 + 1 }), 2);
/// # Ok(())
/// # }
/// ```
pub struct Builder {
    multi_thread: bool,
    workers: Option<usize>,
    name: Option<Arc<str>>,
    max_blocking_threads: usize,
    blocking_queue: Option<usize>,
    keep_alive: Duration,
    start_paused: bool,
    config: Config,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Builder {
    /// A runtime with workers of its own: by default as many as cores.
    #[must_use]
    pub fn new_multi_thread() -> Self {
        Self::new(true)
    }

    /// A runtime without threads: everything runs on the thread inside `block_on`, and nothing while there is none.
    #[must_use]
    pub fn new_current_thread() -> Self {
        Self::new(false)
    }

    fn new(multi_thread: bool) -> Self {
        Self {
            multi_thread,
            workers: None,
            name: None,
            max_blocking_threads: blocking::DEFAULT_MAX_THREADS,
            blocking_queue: None,
            keep_alive: blocking::DEFAULT_KEEP_ALIVE,
            start_paused: false,
            config: Config::new(),
        }
    }

    /// Sets the number of workers of a multi-thread runtime. The current-thread flavour has none and ignores it.
    ///
    /// Without it the number is that of the cores this process may use, cut to the CPU quota of its control group, or
    /// the value of the environment variable `RT_WORKER_THREADS`. A number of zero, or an absurd one, makes
    /// [`build`](Self::build) fail.
    pub fn worker_threads(&mut self, number: usize) -> &mut Self {
        self.workers = Some(number);
        self
    }

    /// Sets how many threads [`spawn_blocking`](crate::spawn_blocking) may start; 512 without it. Zero counts as one.
    pub fn max_blocking_threads(&mut self, number: usize) -> &mut Self {
        self.max_blocking_threads = number.max(1);
        self
    }

    /// Sets for how many closures that wait for a thread [`admit_blocking`](crate::admit_blocking) has slots, beside those
    /// that run; without it, as many as there may be threads. [`spawn_blocking`](crate::spawn_blocking) knows no limit.
    pub fn blocking_queue(&mut self, closures: usize) -> &mut Self {
        self.blocking_queue = Some(closures);
        self
    }

    /// Names the runtime: errors and reports say it. Without it a runtime is called `rt-1`, `rt-2` and so on.
    pub fn name(&mut self, name: impl AsRef<str>) -> &mut Self {
        self.name = Some(Arc::from(name.as_ref()));
        self
    }

    /// Names every thread of the runtime. Without it a thread is named for what it does: `rt-worker`, `rt-blocking`.
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name_fn(move || name.clone())
    }

    /// Names each thread of the runtime anew.
    pub fn thread_name_fn(
        &mut self,
        name: impl Fn() -> String + Send + Sync + 'static,
    ) -> &mut Self {
        self.config.thread_name = Some(Arc::new(name));
        self
    }

    /// Sets the size of the stack of each thread, in bytes.
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.config.thread_stack_size = Some(bytes);
        self
    }

    /// Sets how long a thread for blocking closures waits for its next one before it ends; 10 s without it.
    pub fn thread_keep_alive(&mut self, duration: Duration) -> &mut Self {
        self.keep_alive = duration;
        self
    }

    /// Runs `f` on each thread of the runtime when it starts.
    pub fn on_thread_start(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_start = Some(Arc::new(f));
        self
    }

    /// Runs `f` on each thread of the runtime before it ends.
    pub fn on_thread_stop(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_stop = Some(Arc::new(f));
        self
    }

    /// Runs `f` on each worker before it goes to sleep. It may spawn and wake; the selector is looked at all the same.
    pub fn on_thread_park(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_park = Some(Arc::new(f));
        self
    }

    /// Runs `f` on each worker after it woke up.
    pub fn on_thread_unpark(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_unpark = Some(Arc::new(f));
        self
    }

    /// Sets whether the runtime watches its workers; it does without this call.
    ///
    /// A thread of the runtime, the monitor, looks at the workers 125 times a second while any of them is awake, more often
    /// after one was stuck, and not at all while all of them sleep. It serves the sockets, timers and tasks of a worker
    /// that is stuck in a poll, calls [spare workers](Self::max_spare_threads) when all are, and notices
    /// [slow polls](Self::debug) while they last.
    ///
    /// Without it a task that blocks or computes delays whatever is registered with its worker or queued behind it, unless
    /// another worker happens to run out of work meanwhile; and slow polls are reported when they are over, except in the
    /// full debug mode. What is saved is about 0.2 % of one core. The current-thread flavour has no monitor.
    pub fn monitor(&mut self, on: bool) -> &mut Self {
        self.config.monitor = on;
        self
    }

    /// Sets how many spare workers may stand in when every worker is stuck in a poll that blocks or computes; as many as
    /// workers without it, and zero means that the runtime stalls then.
    ///
    /// They are called one by one while no worker makes a turn for some milliseconds and tasks wait, and go when a worker
    /// is back. The current-thread flavour has none: nothing of it ever runs elsewhere.
    pub fn max_spare_threads(&mut self, number: usize) -> &mut Self {
        self.config.max_spare_threads = Some(number);
        self
    }

    /// Sets how many tasks a busy worker polls at most before it looks at its sockets and timers; 61 without it. It
    /// looks after about 100 µs in any case. Zero counts as one.
    pub fn event_interval(&mut self, polls: u32) -> &mut Self {
        self.config.event_interval = polls.max(1);
        self
    }

    /// Sets how many tasks a busy worker polls before it looks at the queue of tasks from outside; 61 without it. Zero
    /// counts as one.
    pub fn global_queue_interval(&mut self, polls: u32) -> &mut Self {
        self.config.global_queue_interval = polls.max(1);
        self
    }

    /// Sets what happens when a task panics and nobody retrieves the error; without it the panic is reported on standard
    /// error, once.
    pub fn unhandled_panic(&mut self, policy: UnhandledPanic) -> &mut Self {
        self.config.unhandled_panic = policy;
        self
    }

    /// Hands every [`Report`] of this runtime to `hook` instead of writing it to standard error: panics that nobody
    /// retrieves, and in [debug mode](Self::debug) tasks that block, deadlocks and more.
    ///
    /// The hook is called on whatever thread noticed the thing, with no lock held, and should not take long. A panic in it
    /// goes no further. There are at most ten reports of one kind and place in ten seconds; the rest is counted
    /// ([`Report::missed`]).
    pub fn on_report(&mut self, hook: impl Fn(&Report) + Send + Sync + 'static) -> &mut Self {
        self.config.on_report = Some(Arc::new(hook));
        self
    }

    /// Turns debug mode on or off: the runtime tells who blocks its threads, and more.
    ///
    /// Without this call the environment variable `RT_DEBUG` decides (`1` or `0`); without that, builds with debug
    /// assertions do what costs little, and others nothing. What is reported, each as a [`Report`]:
    ///
    /// - **Slow polls**: a poll that takes longer than [`slow_poll_threshold`](Self::slow_poll_threshold), while it still
    ///   does, with task, spawn site, the place where it waited last and the stack of the blocked thread; and again at its
    ///   end. On the current-thread flavour, where nobody is there to look, only with `debug(true)` or `RT_DEBUG=1`;
    ///   otherwise just at the end.
    /// - **Errors that nobody retrieves**, of tasks of [`spawn_result`](crate::task::spawn_result).
    /// - **Objects of one runtime that wait in another.**
    /// - With `debug(true)` or `RT_DEBUG=1` also **deadlocks** of `block_on`, **locks and permits granted to futures that
    ///   nobody polls** for a second, and a **blocking pool** whose every thread waits inside `block_on`. A thread of its
    ///   own looks for these, on both flavours; it runs no task.
    ///
    /// # Signals
    /// The stack of a blocked thread is taken by sending it a real-time signal, once for each slow poll, on Linux on x86-64 and
    /// aarch64. It is one for which the process has no handler. `SA_RESTART` is set, but the kernel does not take up these
    /// calls again, which fail with `EINTR` in the blocked thread: `nanosleep` (`std::thread::sleep` goes on by itself),
    /// `poll`, `select`, `epoll_wait`, `semop`, `msgrcv`, `sigtimedwait`, and calls on sockets with a timeout set
    /// (`set_read_timeout`). Code that blocks a worker in one of these and does not expect
    /// [`Interrupted`](io::ErrorKind::Interrupted) sees a failure that it would not see otherwise. Names and lines come from the
    /// debug information of the program; `debug = "line-tables-only"` in a release profile is enough.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = rt::runtime::Builder::new_multi_thread().debug(true).build()?;
    /// runtime.block_on(async { /* ... */ });
    /// # Ok(())
    /// # }
    /// ```
    pub fn debug(&mut self, on: bool) -> &mut Self {
        self.config.debug = Some(on);
        self
    }

    /// Sets from when on a poll is reported as slow in [debug mode](Self::debug); 100 ms without it. It is measured to some
    /// milliseconds.
    pub fn slow_poll_threshold(&mut self, threshold: Duration) -> &mut Self {
        self.config.slow_poll_threshold = threshold;
        self
    }

    /// Sets how long dropping the runtime waits for blocking closures that still run; 2 s without it. Afterwards they
    /// are named on standard error and left behind.
    pub fn shutdown_grace(&mut self, grace: Duration) -> &mut Self {
        self.config.shutdown_grace = grace;
        self
    }

    /// Starts with the clock stopped, for tests: see [`time::pause`](crate::time::pause). For the current-thread flavour.
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.start_paused = paused;
        self
    }

    /// Accepted for tokio's sake: sockets and timers are always there.
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Accepted for tokio's sake: sockets are always there.
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Accepted for tokio's sake: timers are always there.
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Makes the runtime and starts its threads.
    ///
    /// # Errors
    /// If the number of workers makes no sense, in the builder or in `RT_WORKER_THREADS`; if the clock is to be stopped
    /// on a multi-thread runtime; if the operating system refuses a thread or a selector.
    pub fn build(&mut self) -> io::Result<Runtime> {
        if self.multi_thread && self.start_paused {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "start_paused needs the current-thread flavour: use Builder::new_current_thread, or \
                 `#[rt::test(start_paused = true)]` without `flavor`",
            ));
        }
        let workers = match (self.multi_thread, self.workers) {
            (false, _) => 0,
            (true, Some(number)) => workers::check(number)?,
            (true, None) => workers::default()?,
        };
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| format!("rt-{id}").into());
        let clock_paused = (!self.multi_thread).then_some(self.start_paused);
        let threads = self.max_blocking_threads;
        let slots = threads
            .saturating_add(self.blocking_queue.unwrap_or(threads))
            .min(Semaphore::MAX_PERMITS);
        let limits = (threads, slots, self.keep_alive);
        trace::start();
        let shared = Shared::new(id, name, workers, clock_paused, limits, self.config.clone());
        // Shuts down what was started if the rest cannot be.
        let runtime = Runtime::from_shared(shared.clone());
        launch::start(&shared)?;
        debug::start(&shared);
        super::entry::set_hooks();
        #[cfg(all(unix, feature = "inspect"))]
        crate::inspect::register(&shared);
        Ok(runtime)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("multi_thread", &self.multi_thread)
            .field("worker_threads", &self.workers)
            .field("name", &self.name)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .field("blocking_queue", &self.blocking_queue)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
