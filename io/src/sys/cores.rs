//! A fence on every thread of the process, for who can wait and has nothing better.
//!
//! # What it guarantees
//! When [`visit_all`] has returned `true`, every other thread has passed a full fence since the call, or has not run since.
//!
//! Whoever comes to a core takes it from who was there, and the kernel passes a full fence between two threads on one core
//! (`membarrier(2)` relies on that as well, and leaves out the cores that do not run the process). So it is enough to have
//! been on each of them.
//!
//! # What it costs
//! Some µs a core, or the time until the kernel's scheduler takes a core from who computes there: some ms. So it needs a thread
//! of its own, which is on one core only when it is over.

use std::{fs, io};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Takes the calling thread to each core of the machine where it may run. `false`: some other thread may run elsewhere.
pub(super) fn visit_all() -> io::Result<bool> {
    let mut visited = CpuSet::new();
    for core in 0..CpuSet::MAX_CPU {
        let mut only = CpuSet::new();
        only.set(core);
        match sched_setaffinity(None, &only) {
            Ok(()) => visited.set(core),
            // There is no such core, or not for us.
            Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for thread in fs::read_dir("/proc/self/task")? {
        let name = thread?.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw) else {
            return Ok(false);
        };
        match sched_getaffinity(Some(id)) {
            Ok(cores) => {
                if (0..CpuSet::MAX_CPU).any(|core| cores.is_set(core) && !visited.is_set(core)) {
                    return Ok(false);
                }
            }
            // It is over.
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use super::*;

    /// Also those on which somebody computes.
    #[test]
    fn every_core_is_visited() {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let cores = thread::available_parallelism().unwrap().get();
            for _ in 0..cores {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let visits = scope.spawn(|| {
                let all = visit_all();
                // It ends where it was last, which is a core of those that were allowed before.
                (all, sched_getaffinity(None).unwrap().count())
            });
            let (all, left) = visits.join().unwrap();
            stop.store(true, Relaxed);
            assert!(all.unwrap());
            assert_eq!(left, 1);
        });
    }
}
