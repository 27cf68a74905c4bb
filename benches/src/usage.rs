//! What this process has used: CPU time, resident memory; and its descriptor limit.
//!
//! # What would mislead
//! Resident memory counts whole pages, so a row divides by thousands of items. CPU time comes from the
//! kernel's per-process clock (nanoseconds), not from the ticks of `/proc/<pid>/stat` (10 ms). A server that is asked
//! leaves out the thread that answers: after a pause it takes 0.2 to 1 ms (its pages and caches are cold), which was all
//! that the row of an idle server measured once.

use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};

/// CPU time, user and system, that all threads of this process but the calling one have used so far.
#[must_use]
pub fn cpu_of_others() -> Duration {
    read(ClockId::ProcessCPUTime).saturating_sub(read(ClockId::ThreadCPUTime))
}

/// CPU time, user and system, that all threads of this process have used so far.
#[must_use]
pub fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time that the threads of this name have used so far.
///
/// # Panics
///
/// If `/proc` does not tell: the rows about the monitor need Linux.
#[must_use]
pub fn cpu_of_thread(name: &str) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc lists the threads");
    let of_thread = |path: std::path::PathBuf| {
        let comm = std::fs::read_to_string(path.join("comm")).ok()?;
        let times = std::fs::read_to_string(path.join("schedstat")).ok()?;
        let ran = times.split(' ').next()?.parse().ok()?;
        (comm.trim() == name).then(|| Duration::from_nanos(ran))
    };
    threads
        .filter_map(|thread| of_thread(thread.ok()?.path()))
        .sum()
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Resident set of this process in bytes.
///
/// # Panics
///
/// If `/proc/self/statm` cannot be read: the memory rows need Linux.
#[must_use]
pub fn resident() -> u64 {
    let statm =
        std::fs::read_to_string("/proc/self/statm").expect("the memory rows need /proc/self/statm");
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .expect("the second field of /proc/self/statm is a number");
    pages * rustix::param::page_size() as u64
}

/// Raises the soft limit of open descriptors to the hard one; children inherit it.
///
/// Returns the limit now in force.
pub fn raise_descriptor_limit() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let now = match rustix::process::setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    now.unwrap_or(u64::MAX)
}
