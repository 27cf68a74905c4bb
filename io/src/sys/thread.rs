//! Whether another thread of this process blocks, computes, or waits for a core.

use std::time::Duration;

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
        let read =
            |file| std::fs::read_to_string(format!("/proc/self/task/{}/{file}", self.0)).ok();
        // The name of the thread stands before the state in parentheses, and may hold any character.
        let stat = read("stat")?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        if state != 'R' {
            return Some(Activity::Blocked);
        }
        let ran = read("schedstat")?.split(' ').next()?.parse().ok()?;
        Some(Activity::Runnable(Duration::from_nanos(ran)))
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
        drop(release);
        sleeping.join().unwrap();
        while busy.activity().is_some() {
            assert!(
                Instant::now() < deadline,
                "a thread that is over has no activity"
            );
        }
    }
}
