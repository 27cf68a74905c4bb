//! Polls that take too long: who is polled, and who looks.
//!
//! Each seat has a [`Note`] of the poll that its sitter is in, and of the poll of a `LocalSet`'s task within that. In debug mode
//! they are filled in for every poll ([`run`], [`root`], [`run_local`]); otherwise that costs one predictable branch. Somebody
//! else looks at it every few milliseconds ([`look`]): the monitor, or the watcher (`watcher.rs`) where there is no monitor. What they find the second
//! time after the threshold is reported, once, by the reporter's thread, which also takes the stack.
//!
//! A thread that is kept from its core by others does not block. When a poll has lasted for an eighth of the threshold, the
//! system is asked how long its thread has computed and waited so far, and once more at the threshold: time in which the
//! thread would have run if it had had a core does not count.
//!
//! # Polls within polls
//! While a local task is polled, the poll around it does not give way either. What a slow poll of a local task takes is told of
//! that task, and does not count for the one around it, which is reported if the rest is too much, such as many local tasks of
//! which each is quick. So the looker judges the inner poll if that was there at its last look, and else the outer one.
//!
//! # Who may touch what
//! `number` changes with each beginning and each end of a poll: it is odd while one lasts. It changes under the lock of
//! `polled`, and is read without. `seen` and `seen_at` belong to the looker.
//!
//! # The races
//! A seat that is lent has a stand-in, which polls other tasks while the thread that lent it is in its poll: that poll is
//! taken off the note ([`Note::forget`]), and its end finds another number and leaves the note alone. A poll may end
//! while it is reported: the stack is taken only if the number is still the same (`rt_io::stack`). A local task may poll a set
//! of its own: when the task within it is over, its poll gets another number, and is looked at as if it began then.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rt_io::stack::{self, NoStack, Thread};
use rt_io::thread::{Account, ThreadId};
use rt_sync::wait::WaitSlot;

use super::report::{Report, ReportKind, ReportedTask};
use super::reporter::Job;
use super::sink::{Admitted, Sink};
use super::{reporter, stack as own_stack};
use crate::context;
use crate::scheduler::{Seat, Shared};
use crate::task::{Id, Runnable, TaskRef};
use crate::unpoisoned::lock;

/// What the sitter of a seat polls.
pub(crate) struct Note {
    /// A task of the seat, or the root future.
    outer: Track,
    /// A local task within that.
    inner: Track,
    /// The root future of the guest on this seat.
    root: Mutex<Option<&'static Location<'static>>>,
    pub(crate) root_wait: WaitSlot,
}

/// One poll after the other.
struct Track {
    number: Arc<AtomicU64>,
    polled: Mutex<Option<Polled>>,
    seen: AtomicU64,
    /// As [`Shared::stamp`].
    seen_at: AtomicU64,
}

struct Polled {
    /// Its number at its beginning.
    key: u64,
    /// Its number now.
    number: u64,
    subject: Subject,
    thread: Option<Thread>,
    id: ThreadId,
    /// When the poll was first found to be long.
    first: Option<First>,
    /// Only where nobody looks.
    began: Option<Instant>,
    /// Whether it was found to be slow.
    slow: bool,
    /// When it was first seen, once it is reported.
    reported: Option<Instant>,
    /// How much of it was told of local tasks.
    told_within: Duration,
}

/// See the module head.
#[derive(Clone, Copy)]
struct First {
    /// What the thread had done; `None` where that is not known.
    account: Option<Account>,
    /// How much later that was than it should have been: the looker waited for a core itself, so the poll may have as well.
    late: Duration,
}

enum Subject {
    Task(TaskRef),
    Root(&'static Location<'static>),
}

impl Note {
    pub(crate) fn new() -> Self {
        Self {
            outer: Track::new(),
            inner: Track::new(),
            root: Mutex::new(None),
            root_wait: WaitSlot::new(),
        }
    }

    /// The present poll blocks on purpose.
    pub(crate) fn forget(&self) {
        self.inner.forget();
        self.outer.forget();
    }

    /// The task that is being polled, and for how long by now: since somebody looked first, which is a tick of the looker
    /// after its beginning at most.
    pub(crate) fn running(&self, shared: &Shared, now: Instant) -> Option<(Id, Duration)> {
        let polled = self.outer.lock();
        let polled = polled.as_ref()?;
        let Subject::Task(task) = &polled.subject else {
            return None;
        };
        let age = match polled.began {
            Some(began) => now.saturating_duration_since(began),
            None => self.outer.age(polled.number, shared.stamp(now)),
        };
        Some((task.header().id, age))
    }

    /// The root future on this seat, for reports.
    pub(super) fn root(&self) -> Option<&'static Location<'static>> {
        *lock(&self.root)
    }

    /// The same, which is not on this seat any more.
    pub(crate) fn take_root(&self) -> Option<&'static Location<'static>> {
        lock(&self.root).take()
    }

    /// A guest sits down with its root future, or leaves.
    pub(crate) fn set_root(&self, site: Option<&'static Location<'static>>) {
        *lock(&self.root) = site;
    }
}

impl Track {
    fn new() -> Self {
        Self {
            number: Arc::new(AtomicU64::new(0)),
            polled: Mutex::new(None),
            seen: AtomicU64::new(0),
            seen_at: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Polled>> {
        lock(&self.polled)
    }

    /// The key of the poll that begins, and what was noted before.
    fn begin(&self, subject: Subject, watched: bool) -> (u64, Option<Polled>) {
        let (thread, id) = this_thread();
        let began = (!watched).then(Instant::now);
        let mut polled = self.lock();
        let number = self.step(true);
        let before = polled.replace(Polled {
            key: number,
            number,
            subject,
            thread,
            id,
            first: None,
            began,
            slow: false,
            reported: None,
            told_within: Duration::ZERO,
        });
        (number, before)
    }

    /// To the next odd number, or the next even one. Under the lock.
    fn step(&self, odd: bool) -> u64 {
        let number = self.number.load(Relaxed);
        let number = number + 1 + u64::from(number.is_multiple_of(2) != odd);
        self.number.store(number, Relaxed);
        number
    }

    fn forget(&self) {
        let mut polled = self.lock();
        if polled.is_some() {
            self.step(false);
        }
        let before = polled.take();
        drop(polled);
        drop(before);
    }

    /// For how long the poll of that number has lasted, as far as the looker has seen it.
    fn age(&self, number: u64, stamp: u64) -> Duration {
        if self.seen.load(Relaxed) == number {
            Duration::from_nanos(stamp.saturating_sub(self.seen_at.load(Relaxed)))
        } else {
            Duration::ZERO
        }
    }
}

impl Subject {
    fn describe(&self, root_wait: &WaitSlot) -> ReportedTask {
        match self {
            Subject::Task(task) => ReportedTask::of(task.header()),
            Subject::Root(site) => ReportedTask::root(site, root_wait.load()),
        }
    }
}

fn this_thread() -> (Option<Thread>, ThreadId) {
    thread_local! {
        static THIS: (Option<Thread>, ThreadId) = (Thread::current(), ThreadId::current());
    }
    THIS.try_with(|this| *this)
        .unwrap_or((None, ThreadId::from_raw(0)))
}

/// Polls a task with a note of it.
#[cold]
#[inline(never)]
pub(crate) fn run(seat: &Seat, task: Runnable) {
    let watched = seat.shared.debug.is_watched();
    let (key, before) = seat.note.outer.begin(Subject::Task(task.to_ref()), watched);
    // Perhaps the last reference to a task.
    drop(before);
    // Contains the panics of the task.
    task.run();
    ended(seat, key);
}

/// Notes a poll of the root future, until the guard is dropped.
#[cold]
pub(crate) fn root<'a>(seat: &'a Seat, site: &'static Location<'static>) -> RootPoll<'a> {
    let watched = seat.shared.debug.is_watched();
    let (key, before) = seat.note.outer.begin(Subject::Root(site), watched);
    drop(before);
    RootPoll { seat, key }
}

/// See [`root`].
pub(crate) struct RootPoll<'a> {
    seat: &'a Seat,
    key: u64,
}

impl Drop for RootPoll<'_> {
    fn drop(&mut self) {
        ended(self.seat, self.key);
    }
}

/// Whether the polls of this thread are noted, so that those of local tasks have to be, by [`run_local`].
#[inline]
pub(crate) fn notes_here() -> bool {
    context::with(|cx| cx.is_some_and(|cx| cx.shared.debug.notes_polls()))
}

/// Polls a local task with a note of it, within the poll of what drives its set.
#[cold]
#[inline(never)]
pub(crate) fn run_local(task: Runnable) {
    // There is none if the poll around blocks on purpose: then it is not noted either.
    let seat = context::with(|cx| Some(cx?.sitting.borrow().as_ref()?.seat.clone()));
    let Some(seat) = seat else {
        return task.run();
    };
    let (note, debug) = (&seat.note, &seat.shared.debug);
    let subject = Subject::Task(task.to_ref());
    let (key, before) = note.inner.begin(subject, debug.is_watched());
    task.run();
    let mut noted = note.inner.lock();
    let Some(polled) = noted.take_if(|polled| polled.key == key) else {
        return;
    };
    let told = polled.told(&seat, &note.inner);
    // Before the looker sees that the inner poll is over: from then on it judges the one around it.
    if let Some(around) = note.outer.lock().as_mut() {
        // Of the rest it was told when that was over.
        around.told_within += told.saturating_sub(polled.told_within);
        if polled.slow {
            // The looker may have come late, and counts the inner poll from then on, but the outer one from before.
            let age = note
                .outer
                .age(around.number, seat.shared.stamp(Instant::now()));
            around.told_within = around.told_within.max(age);
        }
    }
    if let Some(mut before) = before {
        before.told_within += told;
        before.number = note.inner.step(true);
        before.first = None;
        *noted = Some(before);
    } else {
        note.inner.step(false);
    }
    drop(noted);
    tell_end(&seat, &polled);
}

fn ended(seat: &Seat, key: u64) {
    let note = &seat.note.outer;
    let mut noted = note.lock();
    let Some(polled) = noted.take_if(|polled| polled.key == key) else {
        return;
    };
    note.step(false);
    drop(noted);
    tell_end(seat, &polled);
}

/// A poll is over, and off the note.
fn tell_end(seat: &Seat, polled: &Polled) {
    let debug = &seat.shared.debug;
    let subject = || polled.subject.describe(&seat.note.root_wait);
    if let Some(since) = polled.reported {
        let report = over(&debug.sink, subject(), since.elapsed());
        // Behind the report of its beginning.
        reporter::later(Arc::new(Ended {
            sink: Arc::clone(&debug.sink),
            report: Mutex::new(Some(report)),
        }));
    } else if let Some(began) = polled.began {
        let took = began.elapsed();
        if polled.is_slow(took, debug.threshold) {
            debug.sink.report(over(&debug.sink, subject(), took));
        }
    }
}

fn over(sink: &Sink, task: ReportedTask, took: Duration) -> Report {
    Report {
        site: Some(task.site),
        task: Some(ReportedTask { wait: None, ..task }),
        duration: Some(took),
        ..Report::new(
            ReportKind::SlowPollEnded,
            &sink.runtime,
            format!("has given its thread back: that poll took {took:.1?}"),
        )
    }
}

/// Looks whether the sitter of a seat is in a poll that takes too long. For one looker, every few milliseconds.
#[inline]
pub(crate) fn look(shared: &Shared, seat: &Seat, now: Instant) {
    if shared.debug.notes_polls() {
        seat.note.look(shared, now);
    }
}

impl Note {
    fn look(&self, shared: &Shared, now: Instant) {
        let stamp = shared.stamp(now);
        let inner = self.inner.lasts(stamp);
        if inner {
            self.inner.judge(shared, now, &self.root_wait, true);
        }
        if self.outer.lasts(stamp) {
            self.outer.judge(shared, now, &self.root_wait, !inner);
        }
    }
}

impl Track {
    /// Whether a poll lasts that was seen at the last look.
    fn lasts(&self, stamp: u64) -> bool {
        let number = self.number.load(Relaxed);
        if self.seen.swap(number, Relaxed) != number {
            self.seen_at.store(stamp, Relaxed);
            return false;
        }
        !number.is_multiple_of(2)
    }

    /// Looks how long the poll takes that was seen last, and reports it if that `may` be.
    fn judge(&self, shared: &Shared, now: Instant, root_wait: &WaitSlot, may: bool) {
        let number = self.seen.load(Relaxed);
        let age = self.age(number, shared.stamp(now));
        let threshold = shared.debug.threshold;
        if age < threshold / 8 {
            return;
        }
        let Some((id, before, told_within)) = self.is_long(number) else {
            return;
        };
        // The system is asked, so not under the lock.
        let Some(before) = before else {
            let late = age.saturating_sub(threshold / 4);
            return self.note_account(
                number,
                First {
                    account: id.account(),
                    late,
                },
            );
        };
        if age < threshold || !may {
            return;
        }
        let delayed = before
            .account
            .and_then(|before| Some(id.account()?.delayed_since(&before)))
            .unwrap_or_default();
        if age.saturating_sub(delayed + before.late + told_within) < threshold {
            return;
        }
        let mut guard = self.lock();
        let Some(polled) = guard.as_mut().filter(|polled| polled.is(number)) else {
            return;
        };
        // The next look must not ask again, whatever the answer is.
        polled.slow = true;
        let task = polled.subject.describe(root_wait);
        let thread = polled.thread;
        let sink = Arc::clone(&shared.debug.sink);
        let Some(admitted) = sink.admit(ReportKind::SlowPoll, Some(task.site)) else {
            return;
        };
        let since = now.checked_sub(age).unwrap_or(now);
        polled.reported = Some(since);
        drop(guard);
        reporter::later(Arc::new(Slow {
            sink,
            admitted: Mutex::new(Some(admitted)),
            task,
            since,
            delayed,
            thread,
            poll: Arc::clone(&self.number),
            number,
        }));
    }
}

impl Track {
    /// Whose poll it is, what was noted of its thread, and how much was told of polls within, if it was not found slow yet.
    fn is_long(&self, number: u64) -> Option<(ThreadId, Option<First>, Duration)> {
        let guard = self.lock();
        let polled = guard.as_ref().filter(|polled| polled.is(number))?;
        Some((polled.id, polled.first, polled.told_within))
    }

    fn note_account(&self, number: u64, first: First) {
        if let Some(polled) = self.lock().as_mut().filter(|polled| polled.is(number)) {
            polled.first = Some(first);
        }
    }
}

impl Polled {
    /// Whether this is the poll of that number, somebody looks, and it was not found slow yet.
    fn is(&self, number: u64) -> bool {
        self.number == number && !self.slow && self.began.is_none()
    }

    /// Whether it took too long, without what was told of polls within.
    fn is_slow(&self, took: Duration, threshold: Duration) -> bool {
        took.saturating_sub(self.told_within) >= threshold
    }

    /// How much of the time that it took is told, of it or of polls within. It is over, and was the last on its track.
    fn told(&self, seat: &Seat, track: &Track) -> Duration {
        match self.began {
            Some(began) => {
                let took = began.elapsed();
                if self.is_slow(took, seat.shared.debug.threshold) {
                    return took;
                }
            }
            None if self.slow => {
                let stamp = seat.shared.stamp(Instant::now());
                return track.age(self.number, stamp) + self.told_within;
            }
            None => {}
        }
        self.told_within
    }
}

/// The report of a poll that is slow.
struct Slow {
    sink: Arc<Sink>,
    /// Who takes it tells.
    admitted: Mutex<Option<Admitted>>,
    task: ReportedTask,
    since: Instant,
    /// For how much of the time its thread had no core.
    delayed: Duration,
    thread: Option<Thread>,
    poll: Arc<AtomicU64>,
    number: u64,
}

impl Slow {
    fn tell(&self, blocked: Duration, what: &str, stack: Vec<String>) {
        let admitted = self.admitted.lock();
        let Some(admitted) = admitted.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let delayed = if self.delayed >= blocked / 10 {
            format!(
                " (for {:.1?} of it its thread waited for a core)",
                self.delayed
            )
        } else {
            String::new()
        };
        let report = Report {
            site: Some(self.task.site),
            task: Some(self.task.clone()),
            duration: Some(blocked),
            stack,
            ..Report::new(
                ReportKind::SlowPoll,
                &self.sink.runtime,
                format!("has not given way for {blocked:.1?}{delayed} and {what}"),
            )
        };
        self.sink.deliver(admitted, report);
    }
}

impl Job for Slow {
    fn sink(&self) -> &Sink {
        &self.sink
    }

    fn run(&self) {
        let stack = match &self.thread {
            Some(thread) => stack::capture(thread, &self.poll, self.number),
            None => Err(NoStack::Unsupported),
        };
        let blocked = self.since.elapsed();
        match stack {
            Ok(addresses) => {
                self.tell(
                    blocked,
                    "blocks its thread here:",
                    own_stack::lines(&addresses),
                );
            }
            Err(NoStack::Over) => {
                self.tell(
                    blocked,
                    "blocked its thread, and has just stopped",
                    Vec::new(),
                );
            }
            Err(why) => {
                let what = format!("blocks its thread (no stack: {why})");
                self.tell(blocked, &what, Vec::new());
            }
        }
    }

    fn tell_now(&self) {
        let what =
            "blocked its thread (no stack: the runtime ended before the names were looked up)";
        self.tell(self.since.elapsed(), what, Vec::new());
    }
}

/// The report of the end of a poll that was slow.
struct Ended {
    sink: Arc<Sink>,
    report: Mutex<Option<Report>>,
}

impl Job for Ended {
    fn sink(&self) -> &Sink {
        &self.sink
    }

    fn run(&self) {
        let report = self.report.lock();
        let report = report.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(report) = report {
            self.sink.report(report);
        }
    }

    fn tell_now(&self) {
        self.run();
    }
}
