//! Models of the blocking pool's handshake (`rt/src/blocking/tickets.rs`), with numbers as jobs.
//!
//! In a model no time passes: a keep-alive of zero stands for one that runs out at any moment, a long one for one that
//! never does. A job that nobody runs shows as a deadlock, since the submitter waits for it.
//!
//! Everything is behind one lock, so what can be weakened is a step, not an ordering. Seen to fail: a thread that ends on
//! a time-out without a look at `granted`, one that goes idle without a look at the waiting tickets, an idle thread
//! that is granted two tickets, `close` that does not call the idle threads, `submit` that does not see the pool closed
//! or starts no thread beyond the eager ones, a job that is put into its channel only when its ticket is drawn, `start_failed` that drops its ticket or tells nobody that it was the last,
//! a promise that is redeemed without a call to the idle thread that got its ticket, a thread that dies and leaves what it
//! has promised to nobody.
#![cfg(rt_loom)]

use std::collections::VecDeque;
use std::time::Duration;

use loom::thread;

use rt::internals::blocking::BlockingPriority;
use rt::internals::blocking::tickets::{
    AfterFailure, Entry, Idler, Limits, Next, Redeemed, Submitted, Tickets,
};
use rt_loom_tests::model::model;
use rt_sync::primitive::{Arc, Condvar, Mutex};

const LONG: Duration = Duration::from_secs(100_000);

#[derive(Clone)]
struct Pool(Arc<Shared>);

struct Shared {
    tickets: Tickets,
    /// One for each priority, the high one first.
    channels: [Mutex<VecDeque<u32>>; 2],
    /// Bits of the jobs that ran, and of those that were dropped.
    over: Mutex<(u32, u32)>,
    changed: Condvar,
    /// Waited for by job 1, if they meet.
    meet: bool,
    then: Then,
}

/// What the thread that has run job 1 does before it asks for its next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// It promises to take up job 2.
    Promises,
    /// And waits until that has run.
    Waits,
    /// And ends.
    Dies,
}

impl std::ops::Deref for Pool {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Pool {
    fn new(max: usize, eager: usize, keep_alive: Duration) -> Self {
        Self::with(max, eager, keep_alive, false)
    }

    fn after(then: Then, keep_alive: Duration) -> Self {
        Self::make(2, 2, keep_alive, false, then)
    }

    fn with(max: usize, eager: usize, keep_alive: Duration, meet: bool) -> Self {
        Self::make(max, eager, keep_alive, meet, Then::Nothing)
    }

    fn make(max: usize, eager: usize, keep_alive: Duration, meet: bool, then: Then) -> Self {
        let limits = Limits {
            max,
            eager,
            keep_alive,
            pace: Duration::ZERO,
        };
        Self(Arc::new(Shared {
            tickets: Tickets::new(limits),
            channels: [const { VecDeque::new() }; 2].map(Mutex::new),
            over: Mutex::new((0, 0)),
            changed: Condvar::new(),
            meet,
            then,
        }))
    }

    fn submit(&self, job: u32) -> Option<Entry> {
        self.submit_as(job, BlockingPriority::Normal)
    }

    fn submit_as(&self, job: u32, priority: BlockingPriority) -> Option<Entry> {
        self.channel(priority).lock().push_back(job);
        match self.tickets.submit_as(priority) {
            Submitted::Taken => None,
            Submitted::Start(entry) => Some(entry),
            Submitted::Closed => {
                self.drain();
                None
            }
        }
    }

    fn submit_and_start(&self, job: u32) {
        if let Some(entry) = self.submit(job) {
            self.start(entry);
        }
    }

    fn start(&self, entry: Entry) {
        let pool = self.clone();
        thread::spawn(move || {
            let me = Idler::new();
            let mut next = pool.tickets.begin(&me, entry);
            while let Next::Work(priority, another) = next {
                if let Some(entry) = another {
                    pool.start(entry);
                }
                let job = pool.channel(priority).lock().pop_front();
                match job {
                    Some(job) => {
                        pool.run(job);
                        if job == 1 && pool.then != Then::Nothing && !pool.promise(&me) {
                            return;
                        }
                    }
                    None => assert!(pool.tickets.is_closed(), "a ticket without a job"),
                }
                next = pool.tickets.next(&me);
            }
            pool.tickets.left();
        });
    }

    /// `false`: the thread ends.
    fn promise(&self, me: &Arc<Idler>) -> bool {
        self.channel(BlockingPriority::Normal).lock().push_back(2);
        let closed = matches!(
            self.tickets.promise(me, BlockingPriority::Normal),
            Submitted::Closed
        );
        if closed {
            self.drain();
            return true;
        }
        let mut over = self.over.lock();
        self.changed.notify_all();
        match self.then {
            Then::Waits => {
                while over.0 & 0b100 == 0 {
                    over = self.changed.wait(over);
                }
                true
            }
            Then::Dies => {
                drop(over);
                if let Some(entry) = self.tickets.abandoned(me) {
                    self.start(entry);
                }
                self.tickets.left();
                false
            }
            Then::Nothing | Then::Promises => true,
        }
    }

    fn redeem(&self) {
        if let Redeemed::Yes(Some(entry)) = self.tickets.redeem(Duration::ZERO) {
            self.start(entry);
        }
    }

    fn channel(&self, priority: BlockingPriority) -> &Mutex<VecDeque<u32>> {
        &self.channels[priority as usize]
    }

    fn run(&self, job: u32) {
        let mut over = self.over.lock();
        assert_eq!((over.0 | over.1) & (1 << job), 0, "job {job} twice");
        over.0 |= 1 << job;
        self.changed.notify_all();
        while self.meet && over.0 & 0b110 != 0b110 {
            over = self.changed.wait(over);
        }
    }

    fn drain(&self) {
        for channel in &self.channels {
            loop {
                let Some(job) = channel.lock().pop_front() else {
                    break;
                };
                self.over.lock().1 |= 1 << job;
            }
        }
    }

    fn wait_for(&self, ran: u32) {
        let mut over = self.over.lock();
        while over.0 != ran {
            over = self.changed.wait(over);
        }
    }

    /// Closes the pool and waits for its threads.
    fn shut_down(&self) {
        self.tickets.close();
        self.drain();
        assert!(self.tickets.wait_gone(0, LONG));
        let counts = self.tickets.snapshot();
        assert_eq!((counts.threads, counts.idle, counts.waiting), (0, 0, 0));
    }
}

/// A job comes while the only thread is about to go idle, is idle, or ends: it runs all the same, on that thread or on
/// a new one, and never on a second one beside it.
#[test]
fn submit_against_idle_exit() {
    model(3, || {
        let pool = Pool::new(1, 1, Duration::ZERO);
        pool.submit_and_start(1);
        pool.submit_and_start(2);
        pool.wait_for(0b110);
        assert_eq!(pool.tickets.snapshot().peak, 1);
        pool.shut_down();
    });
}

/// Two submitters and one thread that is about to go: not both may count on it.
#[test]
fn two_submitters_against_idle_exit() {
    model(2, || {
        let pool = Pool::new(2, 2, Duration::ZERO);
        pool.submit_and_start(1);
        let other = pool.clone();
        let submitter = thread::spawn(move || other.submit_and_start(2));
        pool.submit_and_start(3);
        submitter.join().unwrap();
        pool.wait_for(0b1110);
        assert!(pool.tickets.snapshot().peak <= 2);
        pool.shut_down();
    });
}

/// Two jobs that wait for each other, submitted by two threads to a pool of two, with an idle thread or without: each
/// gets a thread of its own.
#[test]
fn jobs_that_meet() {
    for keep_alive in [Duration::ZERO, LONG] {
        model(2, move || {
            let pool = Pool::with(2, 2, keep_alive, true);
            let other = pool.clone();
            let submitter = thread::spawn(move || other.submit_and_start(1));
            pool.submit_and_start(2);
            submitter.join().unwrap();
            pool.wait_for(0b110);
            pool.shut_down();
        });
    }
}

/// The same where only one thread starts at once: the second job waits for the one that warms up.
#[test]
fn jobs_that_meet_beyond_the_eager_threads() {
    model(2, || {
        let pool = Pool::with(2, 1, LONG, true);
        let other = pool.clone();
        let submitter = thread::spawn(move || other.submit_and_start(1));
        pool.submit_and_start(2);
        submitter.join().unwrap();
        pool.wait_for(0b110);
        pool.shut_down();
    });
}

/// Jobs of both priorities, two submitters, two threads: each ticket finds a job of its own priority.
#[test]
fn both_priorities() {
    for keep_alive in [Duration::ZERO, LONG] {
        model(2, move || {
            let pool = Pool::new(2, 2, keep_alive);
            let other = pool.clone();
            let submitter = thread::spawn(move || {
                if let Some(entry) = other.submit_as(1, BlockingPriority::High) {
                    other.start(entry);
                }
            });
            pool.submit_and_start(2);
            pool.submit_and_start(3);
            submitter.join().unwrap();
            pool.wait_for(0b1110);
            pool.shut_down();
        });
    }
}

/// A thread of the pool that is about to be free draws a ticket and calls nobody; meanwhile somebody finds that this
/// takes too long, and another submitter wants a thread. Each job runs once.
#[test]
fn a_promise_against_its_redemption_and_another_job() {
    for keep_alive in [Duration::ZERO, LONG] {
        model(2, move || {
            let pool = Pool::after(Then::Promises, keep_alive);
            pool.submit_and_start(1);
            let other = pool.clone();
            let monitor = thread::spawn(move || other.redeem());
            pool.submit_and_start(3);
            monitor.join().unwrap();
            pool.wait_for(0b1110);
            pool.shut_down();
            assert!(!pool.tickets.has_promises());
        });
    }
}

/// The same thread waits for the job that it has sent, so that only a redemption helps; the other thread of the pool is
/// about to be idle, or not there.
#[test]
fn who_waits_for_what_it_has_promised() {
    for third in [false, true] {
        for keep_alive in [Duration::ZERO, LONG] {
            model(2, move || {
                let pool = Pool::after(Then::Waits, keep_alive);
                pool.submit_and_start(1);
                if third {
                    pool.submit_and_start(3);
                }
                let mut over = pool.over.lock();
                while !pool.tickets.has_promises() && over.0 & 0b100 == 0 {
                    over = pool.changed.wait(over);
                }
                drop(over);
                pool.redeem();
                pool.wait_for(if third { 0b1110 } else { 0b110 });
                pool.shut_down();
            });
        }
    }
}

/// The pool closes while a promise is given, or the thread dies that has given it and another one is idle, or about to be.
#[test]
fn a_promise_against_close_and_death() {
    model(3, || {
        let pool = Pool::after(Then::Promises, LONG);
        pool.submit_and_start(1);
        pool.tickets.close();
        pool.drain();
        assert!(pool.tickets.wait_gone(0, LONG));
        let (ran, dropped) = *pool.over.lock();
        assert_eq!(ran & dropped, 0);
        // Either job 1 did not come to run, or what it sent went as well.
        assert_eq!(ran & 0b10 != 0, (ran | dropped) & 0b100 != 0);
        assert!(!pool.tickets.has_promises());
    });
    model(2, || {
        let pool = Pool::after(Then::Dies, LONG);
        pool.submit_and_start(1);
        pool.submit_and_start(3);
        pool.wait_for(0b1110);
        pool.shut_down();
        assert!(!pool.tickets.has_promises());
    });
}

/// A job comes while the pool closes: it runs or is dropped, and no thread is left, idle ones neither.
#[test]
fn submit_against_close() {
    model(3, || {
        let pool = Pool::new(1, 1, LONG);
        pool.submit_and_start(1);
        let other = pool.clone();
        let closer = thread::spawn(move || {
            other.tickets.close();
            other.drain();
        });
        pool.submit_and_start(2);
        closer.join().unwrap();
        // Nobody empties the channel a second time.
        assert!(pool.tickets.wait_gone(0, LONG));
        let (ran, dropped) = *pool.over.lock();
        assert_eq!((ran | dropped, ran & dropped), (0b110, 0));
    });
}

/// A second thread is refused while the first one is about to end: the first one takes the job, or the submitter is
/// told that nobody will, and its retry finds the ticket.
#[test]
fn refused_thread_against_idle_exit() {
    model(3, || {
        let pool = Pool::new(2, 2, Duration::ZERO);
        pool.submit_and_start(1);
        if let Some(entry) = pool.submit(2)
            && let AfterFailure::Orphaned(_) = pool.tickets.start_failed(entry)
        {
            assert_eq!(pool.tickets.snapshot().threads, 0);
            let entry = pool.tickets.retry().expect("a ticket waits");
            pool.start(entry);
            assert!(pool.tickets.recovered().is_none());
        }
        pool.wait_for(0b110);
        pool.shut_down();
    });
}

/// Two submitters are refused at the same time: exactly one of them, the last, has to care for both jobs.
#[test]
fn two_refused_threads() {
    model(3, || {
        let pool = Pool::new(2, 2, Duration::ZERO);
        let refused = |pool: &Pool, job| match pool.submit(job) {
            Some(entry) => matches!(pool.tickets.start_failed(entry), AfterFailure::Orphaned(_)),
            None => false,
        };
        let other = pool.clone();
        let submitter = thread::spawn(move || refused(&other, 1));
        let mine = refused(&pool, 2);
        let theirs = submitter.join().unwrap();
        // Both are told only if the first was through before the second came, which is then part of the same retry.
        assert!(mine || theirs);
        assert_eq!(pool.tickets.give_up().normal, 2);
        pool.drain();
        pool.shut_down();
    });
}
