//! Whether another thread of this process blocks, computes, or waits for a core.

use std::time::{Duration, Instant};

/// A thread of this process, as the system numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(u32);

/// What a thread does at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for something that is not a core: an event, a lock, a disk.
    Blocked,
    /// It computes, or would if it had a core. Says how long it has had one so far; what it has used since the
    /// kernel's last tick (1 to 4 ms) may be missing.
    Runnable(Duration),
}

/// What a thread has done until some moment.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// The moment lies between these.
    asked: Instant,
    told: Instant,
    /// Whether it computed then, or would have if it had had a core.
    runnable: bool,
    /// How often it had blocked.
    blocks: u64,
    /// How long it had had a core.
    ran: Duration,
    /// How long it had waited for one, before it got it.
    delayed: Duration,
}

impl Account {
    /// How long the thread has waited for a core since an earlier account, as far as that is sure.
    ///
    /// The kernel adds a wait up when it is over. Of a thread that waits now, all the time in which it did not run was
    /// such a wait if it was runnable the first time as well and has not blocked in between.
    #[must_use]
    pub fn delayed_since(&self, before: &Self) -> Duration {
        if self.runnable && before.runnable && self.blocks == before.blocks {
            let elapsed = self.asked.saturating_duration_since(before.told);
            elapsed.saturating_sub(self.ran.saturating_sub(before.ran))
        } else {
            self.delayed.saturating_sub(before.delayed)
        }
    }
}

impl ThreadId {
    /// The calling thread. A system call, so keep it.
    #[must_use]
    pub fn current() -> Self {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        Self(u32::try_from(id).unwrap_or(0))
    }

    /// The number by itself, never zero for a thread that exists; for keeping it in an atomic.
    #[must_use]
    pub fn as_raw(self) -> u32 {
        self.0
    }

    /// Of what [`as_raw`](Self::as_raw) gave.
    #[must_use]
    pub fn from_raw(id: u32) -> Self {
        Self(id)
    }

    /// What the thread does now. `None` if it cannot be found out: the thread is over, or the system does not tell.
    ///
    /// Reads two files of `/proc`, some 20 µs.
    #[must_use]
    pub fn activity(self) -> Option<Activity> {
        // The name of the thread stands before the state in parentheses, and may hold any character.
        let stat = self.read("stat")?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        if state != 'R' {
            return Some(Activity::Blocked);
        }
        let ran = self.read("schedstat")?.split(' ').next()?.parse().ok()?;
        Some(Activity::Runnable(Duration::from_nanos(ran)))
    }

    /// What the thread has done so far. `None` if it cannot be found out, as for [`activity`](Self::activity).
    ///
    /// Reads two files of `/proc`, some 30 µs.
    #[must_use]
    pub fn account(self) -> Option<Account> {
        let asked = Instant::now();
        let status = self.read("status")?;
        let times = self.read("schedstat")?;
        let field = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim)
        };
        let mut times = times
            .split_whitespace()
            .map(|ns| ns.parse().map(Duration::from_nanos));
        Some(Account {
            asked,
            told: Instant::now(),
            runnable: field("State:")?.starts_with('R'),
            blocks: field("voluntary_ctxt_switches:")?.parse().ok()?,
            ran: times.next()?.ok()?,
            delayed: times.next()?.ok()?,
        })
    }

    fn read(self, file: &str) -> Option<String> {
        std::fs::read_to_string(format!("/proc/self/task/{}/{file}", self.0)).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_sleeper_is_blocked_and_a_loop_computes() {
        let deadline = Instant::now() + Duration::from_secs(30);
        let (sender, receiver) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let computing = thread::Builder::new().name("a) R (b".into());
        let computing = computing.spawn({
            let (sender, stop) = (sender.clone(), stop.clone());
            move || {
                sender.send(ThreadId::current()).unwrap();
                while !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            }
        });
        let busy = receiver.recv().unwrap();
        let ran = |thread: ThreadId| match thread.activity() {
            Some(Activity::Runnable(ran)) => ran,
            other => panic!("a loop is {other:?}"),
        };
        let before = ran(busy);
        while ran(busy) < before + Duration::from_millis(10) {
            assert!(Instant::now() < deadline, "its time does not grow");
        }
        stop.store(true, Relaxed);
        computing.unwrap().join().unwrap();

        let (release, wait) = mpsc::channel::<()>();
        let sleeping = thread::spawn(move || {
            sender.send(ThreadId::current()).unwrap();
            let _ = wait.recv();
        });
        let asleep = receiver.recv().unwrap();
        while asleep.activity() != Some(Activity::Blocked) {
            assert!(Instant::now() < deadline, "it does not fall asleep");
        }
        // Who blocks does not wait for a core, however long it is.
        let before = asleep.account().unwrap();
        thread::sleep(Duration::from_millis(20));
        let delayed = asleep.account().unwrap().delayed_since(&before);
        assert_eq!(delayed, Duration::ZERO);
        drop(release);
        sleeping.join().unwrap();
        while busy.activity().is_some() {
            assert!(
                Instant::now() < deadline,
                "a thread that is over has no activity"
            );
        }
    }
    /// Many threads that compute: each waits for a core most of the time.
    #[test]
    fn a_wait_for_a_core_is_told_from_a_block() {
        let cores = thread::available_parallelism().unwrap().get();
        let stop = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..8 * cores)
            .map(|_| {
                let stop = stop.clone();
                let (sender, receiver) = mpsc::channel();
                let computing = thread::spawn(move || {
                    sender.send(ThreadId::current()).unwrap();
                    while !stop.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                (receiver.recv().unwrap(), computing)
            })
            .collect();
        let (id, _) = threads[0];
        let (start, before) = (Instant::now(), id.account().unwrap());
        let deadline = start + Duration::from_secs(30);
        loop {
            let now = id.account().unwrap();
            let (delayed, elapsed) = (now.delayed_since(&before), start.elapsed());
            assert!(delayed <= elapsed);
            // It gets an eighth of a core; say that it waits for half of the time.
            if elapsed >= Duration::from_millis(100) && delayed >= elapsed / 2 {
                break;
            }
            assert!(Instant::now() < deadline, "{delayed:?} of {elapsed:?}");
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Relaxed);
        for (_, computing) in threads {
            computing.join().unwrap();
        }
    }
}
