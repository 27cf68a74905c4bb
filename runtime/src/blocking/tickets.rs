//! The handshake of a pool of threads: who runs a submitted job, when a thread starts and when it ends.
//!
//! This file knows nothing of jobs and threads: it counts. A *ticket* stands for one job that lies in the pool's
//! channel, and gives its holder the right to take one job of its priority out. It deals in tickets and not in threads: "wake an idle
//! thread or start one" goes wrong as soon as the thread that was counted as idle is about to leave, or is counted by
//! two submitters.
//!
//! # What it guarantees
//! Every [`submit`](Tickets::submit) draws one ticket, and says at once who has it:
//! 1. an idle thread: it was taken off the idle stack in the same step, so no other submitter counts on it and its own
//!    keep-alive can no longer end it;
//! 2. a thread that the caller starts;
//! 3. the queue of waiting tickets, which is looked at by every thread before it goes idle or ends, and by the next
//!    thread to start. While tickets wait nobody is idle, and at least one thread exists or a retry is due; but for
//! 4. a ticket that a thread of the pool draws while it is about to be free ([`promise`](Tickets::promise)): it waits as in
//!    3, and nobody is called, since that thread will look. Until it has, others may be idle. If that takes too long
//!    somebody calls [`redeem`](Tickets::redeem), which gives a ticket to an idle thread or to a new one.
//!
//! The job must be in its channel before its ticket is drawn; then the holder of a ticket always finds one, unless the
//! pool closed, which empties the channels.
//!
//! # Growth
//! Up to `eager` threads start at once, each with its ticket in hand. Beyond that one thread at a time *warms up*: it
//! starts, lets `pace` pass, and only then takes a ticket, if one still waits; if more wait it is followed by the next.
//! So a burst of short jobs is not answered with hundreds of threads, while jobs that wait for each other all get a
//! thread in the end, up to `max`.
//!
//! # Refused threads
//! Only threads of this pool count, and one that is being started counts as one until it turns out to have failed. If
//! the failed one was the last and tickets wait, nobody would ever take them: [`start_failed`](Tickets::start_failed)
//! tells that caller to retry later, and nobody else starts a thread until that has worked or was given up.
//!
//! # Who may touch what
//! Everything is behind one lock, held for some ten instructions and never while a thread is woken or started, nor
//! while a job is run or dropped. The fields of an [`Idler`] are written and read under that lock only.
//!
//! # Where it comes from
//! A condition variable for each idle thread and a stack of them: the last to go idle is the first to work, so spare
//! threads reach their keep-alive. crossbeam-channel's own waiting was rejected: it is first-in-first-out, spins before
//! it parks, and cannot say whether somebody waits.

use std::mem;
use std::time::{Duration, Instant};

use rt_sync::primitive::atomic::{AtomicU8, Ordering::Relaxed};
use rt_sync::primitive::{Arc, Condvar, Mutex, MutexGuard, thread};

use super::BlockingPriority;
use super::waiting::{ByPriority, Ticket, Waiting};

/// After the OS refused a thread nobody asks it again for so long, as long as other threads of the pool are there.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);

/// How many threads, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Never more threads than this.
    pub max: usize,
    /// Up to so many threads start without delay.
    pub eager: usize,
    /// How long an idle thread waits for work before it ends.
    pub keep_alive: Duration,
    /// How long a thread beyond `eager` lets its ticket wait for the other threads.
    pub pace: Duration,
}

/// The handshake. See the module head.
#[derive(Debug)]
pub struct Tickets {
    limits: Limits,
    state: Mutex<State>,
    /// Told of every thread that ends once the pool is closed.
    gone: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Waiting,
    /// The last to go idle is the first to be called.
    idle: Vec<Arc<Idler>>,
    /// Threads that are idle, have a ticket, or will look for one: started, or being started.
    threads: usize,
    /// As `threads`, and those that ended for the pool but still run their last instructions.
    alive: usize,
    /// The most that `threads` has been.
    peak: usize,
    /// Whether a thread warms up.
    warming: bool,
    /// When the OS last refused a thread.
    refused: Option<Instant>,
    /// Threads that are to look for a ticket, for whose sake nobody was called.
    promises: Vec<Arc<Idler>>,
    /// A retry is due, because there were tickets but no thread; since when.
    orphaned: Option<Instant>,
    closed: bool,
}

/// What an idle thread sleeps on. One for each thread.
#[derive(Debug, Default)]
pub struct Idler {
    /// Zero, or the priority of a ticket that it was given, as a number.
    granted: AtomicU8,
    call: Condvar,
}

impl Idler {
    /// For a thread that is not idle.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            granted: AtomicU8::new(0),
            call: Condvar::new(),
        })
    }

    fn grant(&self, priority: BlockingPriority) {
        self.granted.store(priority as u8 + 1, Relaxed);
    }

    fn take_granted(&self) -> Option<BlockingPriority> {
        let priority = match self.granted.load(Relaxed) {
            0 => return None,
            HIGH => BlockingPriority::High,
            _ => BlockingPriority::Normal,
        };
        self.granted.store(0, Relaxed);
        Some(priority)
    }
}

/// In [`Idler::granted`].
const HIGH: u8 = BlockingPriority::High as u8 + 1;

/// With what a thread starts.
#[derive(Debug, Clone, Copy)]
pub enum Entry {
    /// A ticket.
    Ticket(Ticket),
    /// Nothing; it warms up.
    Warming,
}

/// What became of a new ticket.
#[derive(Debug)]
#[must_use]
pub enum Submitted {
    /// A thread has it, or will.
    Taken,
    /// The caller starts a thread, or reports [`Tickets::start_failed`].
    Start(Entry),
    /// The pool is closed: no ticket was drawn, and the caller empties the channel.
    Closed,
}

/// What a thread of the pool does next.
#[derive(Debug)]
#[must_use]
pub enum Next {
    /// Take one job of this priority out of the channel and run it; first start another thread, if one is given.
    Work(BlockingPriority, Option<Entry>),
    /// End.
    Leave,
}

/// Whether a promise was redeemed in place of who gave it.
#[derive(Debug)]
#[must_use]
pub enum Redeemed {
    /// A thread has the ticket now, or gets it with the one that the caller has to start.
    Yes(Option<Entry>),
    /// There is none that has waited for so long.
    No,
}

/// Whether somebody takes care of the tickets after a thread could not be started.
#[derive(Debug)]
#[must_use]
pub enum AfterFailure {
    /// Other threads of the pool will take them, or none wait.
    Covered,
    /// There is no thread: the caller calls [`Tickets::retry`] after a while, or [`Tickets::give_up`] if it has been
    /// like that for too long since the given time.
    Orphaned(Instant),
}

/// A look at the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "see the fields of `Metrics`")]
pub struct Snapshot {
    pub threads: usize,
    pub idle: usize,
    pub peak: usize,
    pub waiting: usize,
    pub oldest: Option<Instant>,
}

impl Tickets {
    /// No thread, no ticket.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Limits {
                max: limits.max.max(1),
                eager: limits.eager.max(1),
                ..limits
            },
            state: Mutex::new(State::default()),
            gone: Condvar::new(),
        }
    }

    /// Draws a ticket for the job that the caller has put into the channel.
    #[inline]
    pub fn submit(&self) -> Submitted {
        self.submit_as(BlockingPriority::Normal)
    }

    /// As [`submit`](Self::submit), for a job of this priority.
    #[inline]
    pub fn submit_as(&self, priority: BlockingPriority) -> Submitted {
        let mut state = self.state.lock();
        if state.closed {
            return Submitted::Closed;
        }
        if let Some(idler) = state.grant(priority) {
            drop(state);
            idler.call.notify_one();
            return Submitted::Taken;
        }
        self.submit_without_idle(&mut state, priority)
    }

    /// As [`submit_as`](Self::submit_as), for a thread of the pool that calls [`next`](Self::next) soon.
    pub fn promise(&self, me: &Arc<Idler>, priority: BlockingPriority) -> Submitted {
        let mut state = self.state.lock();
        if state.closed {
            return Submitted::Closed;
        }
        state.waiting.push(Ticket {
            drawn: Instant::now(),
            priority,
        });
        state.promises.push(me.clone());
        Submitted::Taken
    }

    /// Whether somebody has promised to look for a ticket, and has not yet.
    #[must_use]
    pub fn has_promises(&self) -> bool {
        !self.state.lock().promises.is_empty()
    }

    /// Redeems a promise in place of who gave it, if a ticket has waited for so long.
    pub fn redeem(&self, patience: Duration) -> Redeemed {
        let mut state = self.state.lock();
        let is_due = |drawn: Instant| drawn.elapsed() >= patience;
        if state.closed || state.promises.is_empty() || !state.waiting.oldest().is_some_and(is_due)
        {
            return Redeemed::No;
        }
        let (call, start) = state.call_for_waiting(&self.limits);
        if call.is_none() && start.is_none() {
            return Redeemed::No;
        }
        // Whoever gave it: it will find another ticket, or none.
        state.promises.pop();
        drop(state);
        if let Some(idler) = call {
            idler.call.notify_one();
        }
        Redeemed::Yes(start)
    }

    /// Whether nothing waits for a thread, and there is one, or may be, for the next ticket besides the caller, who has
    /// one of the pool's threads.
    #[must_use]
    pub fn is_free(&self) -> bool {
        let state = self.state.lock();
        !state.closed
            && state.waiting.is_empty()
            && (!state.idle.is_empty() || state.threads < self.limits.max)
    }

    fn submit_without_idle(&self, state: &mut State, priority: BlockingPriority) -> Submitted {
        let ticket = Ticket {
            drawn: Instant::now(),
            priority,
        };
        if state.threads < self.limits.eager && state.may_start(&self.limits) {
            state.add_thread();
            return Submitted::Start(Entry::Ticket(ticket));
        }
        state.waiting.push(ticket);
        match state.grow(&self.limits) {
            Some(entry) => Submitted::Start(entry),
            None => Submitted::Taken,
        }
    }

    /// The first step of a thread that was started.
    pub fn begin(&self, me: &Arc<Idler>, entry: Entry) -> Next {
        if let Entry::Ticket(ticket) = entry {
            return Next::Work(ticket.priority, None);
        }
        let mut state = self.state.lock();
        if !state.closed {
            // Not on the idle stack, so nobody calls: this only lets the time pass.
            (state, _) = nap(&self.state, state, me, self.limits.pace);
        }
        state.warming = false;
        self.next_with(state, me)
    }

    /// What a thread that is through with a job does next; waits for a ticket if there is none.
    #[inline]
    pub fn next(&self, me: &Arc<Idler>) -> Next {
        self.next_with(self.state.lock(), me)
    }

    fn next_with<'a>(&'a self, mut state: MutexGuard<'a, State>, me: &Arc<Idler>) -> Next {
        state.forget_promise(me);
        if state.closed {
            state.threads -= 1;
            return Next::Leave;
        }
        if let Some(ticket) = state.waiting.pop() {
            return Next::Work(ticket.priority, state.grow(&self.limits));
        }
        state.idle.push(me.clone());
        loop {
            let timed_out;
            (state, timed_out) = nap(&self.state, state, me, self.limits.keep_alive);
            // A grant counts also when the time ran out meanwhile: the submitter relies on it.
            if let Some(priority) = me.take_granted() {
                return Next::Work(priority, None);
            }
            if state.closed {
                state.threads -= 1;
                return Next::Leave;
            }
            if timed_out {
                state.idle.retain(|other| !Arc::ptr_eq(other, me));
                state.threads -= 1;
                return Next::Leave;
            }
        }
    }

    /// A thread that was to start with `entry` could not: gives its ticket back.
    pub fn start_failed(&self, entry: Entry) -> AfterFailure {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.alive -= 1;
        let now = Instant::now();
        state.refused = Some(now);
        let mut call = None;
        match entry {
            Entry::Warming => state.warming = false,
            Entry::Ticket(_) if state.closed => {}
            Entry::Ticket(ticket) => match state.grant(ticket.priority) {
                Some(idler) => call = Some(idler),
                None => state.waiting.push_front(ticket),
            },
        }
        let closed = state.closed;
        let outcome = if !closed && state.threads == 0 && !state.waiting.is_empty() {
            AfterFailure::Orphaned(*state.orphaned.get_or_insert(now))
        } else {
            AfterFailure::Covered
        };
        drop(state);
        if let Some(idler) = call {
            idler.call.notify_one();
        }
        if closed {
            self.gone.notify_all();
        }
        outcome
    }

    /// Tries again what [`AfterFailure::Orphaned`] told the caller to: the thread to start, if it is still wanted.
    ///
    /// That thread calls [`recovered`](Self::recovered) when it begins.
    pub fn retry(&self) -> Option<Entry> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        let ticket = state.waiting.pop()?;
        state.add_thread();
        Some(Entry::Ticket(ticket))
    }

    /// The OS gives threads again: growth goes on as usual. The thread to start next, if one is wanted.
    pub fn recovered(&self) -> Option<Entry> {
        let mut state = self.state.lock();
        state.orphaned = None;
        state.refused = None;
        state.grow(&self.limits)
    }

    /// Ends the retries: how many tickets there were, whose jobs the caller takes out of the channels and fails.
    pub fn give_up(&self) -> ByPriority<usize> {
        let mut state = self.state.lock();
        state.orphaned = None;
        mem::take(&mut state.waiting).counts()
    }

    /// A thread died in the middle of its work: the thread to start in its place, if one is wanted.
    pub fn abandoned(&self, me: &Arc<Idler>) -> Option<Entry> {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.forget_promise(me);
        if state.closed {
            return None;
        }
        let (call, start) = state.call_for_waiting(&self.limits);
        drop(state);
        if let Some(idler) = call {
            idler.call.notify_one();
        }
        start
    }

    /// The last step of every thread that was started, whatever came before.
    pub fn left(&self) {
        let mut state = self.state.lock();
        state.alive -= 1;
        let closed = state.closed;
        drop(state);
        if closed {
            self.gone.notify_all();
        }
    }

    /// Closes the pool: no further ticket, and idle threads end. The caller empties the channel afterwards.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.orphaned = None;
        let waiting = mem::take(&mut state.waiting);
        let idle = mem::take(&mut state.idle);
        drop(state);
        drop(waiting);
        for idler in &idle {
            idler.call.notify_one();
        }
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits until no more than `rest` threads are left, at most for `grace`; `true` if it came to that. For closed
    /// pools.
    pub fn wait_gone(&self, rest: usize, grace: Duration) -> bool {
        let start = Instant::now();
        let mut state = self.state.lock();
        while state.alive > rest {
            let left = grace.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            (state, _) = self.gone.wait_timeout(state, left);
        }
        true
    }

    /// The counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        Snapshot {
            threads: state.threads,
            idle: state.idle.len(),
            peak: state.peak,
            waiting: state.waiting.len(),
            oldest: state.waiting.oldest(),
        }
    }
}

impl State {
    /// Gives a ticket to the thread that went idle last. The caller calls it once the lock is released.
    #[inline]
    fn grant(&mut self, priority: BlockingPriority) -> Option<Arc<Idler>> {
        let idler = self.idle.pop()?;
        idler.grant(priority);
        Some(idler)
    }

    /// Gives the first of the tickets that wait to an idle thread, which the caller calls, or to one that it starts. If there
    /// is neither, one that is at work takes it in its turn.
    fn call_for_waiting(&mut self, limits: &Limits) -> (Option<Arc<Idler>>, Option<Entry>) {
        let Some(ticket) = self.waiting.pop() else {
            return (None, None);
        };
        if let Some(idler) = self.grant(ticket.priority) {
            return (Some(idler), None);
        }
        if self.may_start(limits) {
            self.add_thread();
            return (None, Some(Entry::Ticket(ticket)));
        }
        self.waiting.push_front(ticket);
        (None, None)
    }

    #[inline]
    fn forget_promise(&mut self, me: &Arc<Idler>) {
        if !self.promises.is_empty() {
            self.promises.retain(|other| !Arc::ptr_eq(other, me));
        }
    }

    fn may_start(&mut self, limits: &Limits) -> bool {
        if self.threads >= limits.max || self.orphaned.is_some() {
            return false;
        }
        match self.refused {
            Some(at) if self.threads > 0 && at.elapsed() < REFUSAL_PAUSE => false,
            _ => {
                self.refused = None;
                true
            }
        }
    }

    /// The thread that has to warm up because tickets wait, if none does so already.
    fn grow(&mut self, limits: &Limits) -> Option<Entry> {
        if self.closed || self.warming || self.waiting.is_empty() || !self.may_start(limits) {
            return None;
        }
        self.warming = true;
        self.add_thread();
        Some(Entry::Warming)
    }

    fn add_thread(&mut self) {
        self.threads += 1;
        self.alive += 1;
        self.peak = self.peak.max(self.threads);
    }
}

/// Sleeps until called, spuriously, or until `time` has passed; `true` says that it passed.
fn nap<'a>(
    lock: &'a Mutex<State>,
    guard: MutexGuard<'a, State>,
    me: &Idler,
    time: Duration,
) -> (MutexGuard<'a, State>, bool) {
    if time.is_zero() {
        // No sleep at all, but everyone else gets a chance at the lock. Models use this: in them no time passes.
        drop(guard);
        thread::yield_now();
        return (lock.lock(), true);
    }
    me.call.wait_timeout(guard, time)
}
