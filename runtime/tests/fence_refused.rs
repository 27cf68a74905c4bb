//! A filter of system calls that comes after the start takes away what the runtime relied on. A binary of its own: it does so for
//! the whole process.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "a filter is installed by system calls")]

#[path = "debug/support.rs"]
mod support;

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use rt::runtime::{Builder, ReportKind, Runtime};
use rustix::thread::{MembarrierQuery, membarrier_query};

use self::support::{Reports, within_limit};

const LONG: Duration = Duration::from_secs(40);

/// From now on `membarrier` fails in every thread of this process.
fn refuse_membarrier() -> io::Result<()> {
    let instruction = |code: u32, jf, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let mut filter = [
        // The number of the system call lies at the beginning.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            libc::SYS_membarrier as u32,
        ),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the program and its instructions live until the call is over, which copies them.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    match failed {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!("thread {thread} has a filter"))),
    }
}

/// A task that blocks the worker, with another in the next slot of that worker.
struct Blocked {
    release: mpsc::Sender<()>,
    next: mpsc::Receiver<()>,
}

impl Blocked {
    fn worker(runtime: &Runtime) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (ran, next) = mpsc::channel();
        let (entered, begun) = mpsc::channel();
        runtime.spawn(async move {
            rt::spawn(async move { ran.send(()).unwrap() });
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        begun.recv_timeout(LONG).unwrap();
        Self { release, next }
    }
}

#[test]
fn a_kernel_that_refuses_later_is_told_of_and_done_without() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();

        // Rescued while the worker is blocked.
        let blocked = Blocked::worker(&runtime);
        blocked.next.recv_timeout(LONG).unwrap();
        drop(blocked.release);

        if !membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED) {
            return;
        }
        if let Err(error) = refuse_membarrier() {
            eprintln!("not tested: no filter can be had: {error}");
            return;
        }
        let blocked = Blocked::worker(&runtime);
        let report = reports.next(ReportKind::FenceRefused);
        let text = report.to_string();
        assert!(text.contains("membarrier"), "{text}");
        // Whether the worker was about to take the task cannot be told.
        assert_eq!(blocked.next.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(blocked.release);
        blocked.next.recv_timeout(LONG).unwrap();

        // From here on it fences for itself, and its tasks are rescued again.
        for _ in 0..3 {
            let blocked = Blocked::worker(&runtime);
            blocked.next.recv_timeout(LONG).unwrap();
            drop(blocked.release);
        }
        drop(runtime);
        let again = reports.rest(Duration::ZERO);
        assert!(
            again
                .iter()
                .all(|report| report.kind() != ReportKind::FenceRefused)
        );
    });
}
