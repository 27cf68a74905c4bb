//! What a pool is made of: its limits, and the hooks through which the runtime takes part.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::debug::tell_without_runtime;
use crate::task::PanicReport;

/// The most threads of a pool: tokio's number. See the module head of `blocking`.
pub const DEFAULT_MAX_THREADS: usize = 512;

/// Threads that start without delay, for each core. Four closures a core wait for a disk or a name server at the same
/// time without anybody noticing; at least sixteen start at once on small machines.
pub const DEFAULT_EAGER_PER_CORE: usize = 4;

/// How long an idle thread is kept: tokio's number.
pub const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Beyond the eager threads one more starts each time this has passed with a closure waiting.
///
/// 10,000 closures of 1 ms submitted at once then end on about 150 threads instead of 512, while 512 closures that wait
/// for each other all run after half a second.
pub const DEFAULT_PACE: Duration = Duration::from_millis(1);

/// Called on every new thread with what the thread is to do, which it has to call once.
pub type Run = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// Starts a thread; an error is what the operating system said.
pub type Start =
    Arc<dyn Fn(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync>;

/// Calls the closure once the time has passed, or drops it if the runtime ends before.
pub type Later = Arc<dyn Fn(Duration, Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Makes a guard that is dropped once the result of a closure is delivered.
pub type Inhibit = Arc<dyn Fn() -> Box<dyn Any + Send> + Send + Sync>;

pub(crate) type Panicked = Arc<dyn Fn(&Arc<PanicReport>, bool) + Send + Sync>;
pub(crate) type DestructorPanicked = Arc<dyn Fn(&Arc<PanicReport>) + Send + Sync>;

/// What a pool is made of.
#[derive(Clone)]
pub struct Config {
    /// Names the next thread.
    pub name: Arc<dyn Fn() -> String + Send + Sync>,
    /// Never more threads than this; at least one.
    pub max_threads: usize,
    /// Up to so many threads start without delay.
    pub eager: usize,
    /// See [`DEFAULT_PACE`].
    pub pace: Duration,
    /// How long an idle thread waits for work before it ends.
    pub keep_alive: Duration,
    /// The stack of each thread; the default of `std` if `None`.
    pub stack_size: Option<usize>,
    /// Enters the runtime's context and calls the user's hooks around a thread's life.
    pub run: Run,
    /// Starts threads: [`std::thread::Builder::spawn`], but for tests.
    pub start: Start,
    /// By which a pool to which the operating system refused its first thread asks again. In real time, also where the
    /// runtime's clock stands still. Without it the closures fail at once.
    pub later: Option<Later>,
    /// Keeps virtual time from passing between the submission of a closure and the delivery of its result.
    pub inhibit: Option<Inhibit>,
    /// A closure panicked; the flag says whether its handle is alive. As
    /// [`Schedule::task_panicked`](crate::task::Schedule::task_panicked).
    pub(crate) panicked: Panicked,
    /// The destructor of a closure or of its result panicked.
    pub(crate) destructor_panicked: DestructorPanicked,
}

impl Config {
    /// The pool of `spawn_blocking`.
    #[must_use]
    pub fn blocking() -> Self {
        let cores = num_cpus::get();
        Self::new(
            "rt-blocking",
            DEFAULT_MAX_THREADS,
            (cores * DEFAULT_EAGER_PER_CORE).max(16),
        )
    }

    /// The pool of `spawn_compute`: a thread for each core.
    #[must_use]
    pub fn compute() -> Self {
        let cores = num_cpus::get();
        Self::new("rt-compute", cores, cores)
    }

    fn new(name: &'static str, max_threads: usize, eager: usize) -> Self {
        Self {
            name: Arc::new(move || name.to_owned()),
            max_threads,
            eager,
            pace: DEFAULT_PACE,
            keep_alive: DEFAULT_KEEP_ALIVE,
            stack_size: None,
            run: Arc::new(|body| body()),
            start: Arc::new(|builder, body| builder.spawn(body).map(drop)),
            later: None,
            inhibit: None,
            // Of a pool without a runtime; a runtime sets its own.
            panicked: Arc::new(|report, handle_alive| {
                if !handle_alive && report.settle() {
                    tell_without_runtime(&format_args!("{report}, and nobody took the error"));
                }
            }),
            destructor_panicked: Arc::new(|report| {
                tell_without_runtime(&format_args!("{report} (in a destructor)"));
            }),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("max_threads", &self.max_threads)
            .field("eager", &self.eager)
            .field("pace", &self.pace)
            .field("keep_alive", &self.keep_alive)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}
