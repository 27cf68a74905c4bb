//! Stacks of blocked threads. A binary of its own: signals belong to the whole process.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![expect(unsafe_code, reason = "installs a signal handler, as a program may")]

use std::collections::HashMap;
use std::hint::black_box;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt_io::stack::{Frame, NoStack, Thread, capture, symbolise};

/// One test at a time, since there is one signal; and none for ever.
struct Watchdog {
    _over: mpsc::Sender<()>,
    _alone: MutexGuard<'static, ()>,
}

fn watchdog(what: &'static str) -> Watchdog {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (over, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{what} did not end within 60 seconds");
            std::process::abort();
        }
    });
    Watchdog {
        _over: over,
        _alone: alone,
    }
}

/// Starts `body` on a thread and takes its stack until `wanted` is on it.
fn stack_of(body: impl FnOnce() + Send + 'static, wanted: &str) -> Vec<Frame> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        sender.send(Thread::current().unwrap()).unwrap();
        body();
    });
    let thread = receiver.recv().unwrap();
    let poll = AtomicU64::new(1);
    let began = Instant::now();
    loop {
        let addresses = capture(&thread, &poll, 1).expect("a stack");
        let asked = Instant::now();
        let frames = symbolise(&addresses);
        println!("{} frames named in {:?}", frames.len(), asked.elapsed());
        if frames.iter().any(|frame| {
            frame
                .name
                .as_deref()
                .is_some_and(|name| name.contains(wanted))
        }) {
            return frames;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{frames:#?}");
    }
}

fn line_of<'a>(frames: &'a [Frame], name: &str) -> &'a Frame {
    frames
        .iter()
        .find(|frame| {
            frame
                .name
                .as_deref()
                .is_some_and(|found| found.contains(name))
        })
        .unwrap_or_else(|| panic!("no `{name}` in {frames:#?}"))
}

#[inline(never)]
fn sleeps() {
    thread::sleep(Duration::from_secs(3600));
    black_box(());
}

#[inline(never)]
fn spins(stop: &AtomicBool) {
    let mut x = 1_u64;
    while !stop.load(Relaxed) {
        x = black_box(x.wrapping_mul(3));
    }
}

#[inline(never)]
fn locks(mutex: &Mutex<()>) {
    drop(mutex.lock().unwrap());
    black_box(());
}

#[inline(never)]
fn reads(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 8]);
    black_box(());
}

#[test]
fn names_what_blocks() {
    let _watchdog = watchdog("naming");
    let frames = stack_of(sleeps, "nanosleep");
    let own = line_of(&frames, "sleeps");
    assert!(
        own.file.as_ref().unwrap().ends_with("tests/stack.rs"),
        "{own}"
    );
    assert!(own.line.is_some());
    // `std::thread::sleep`, in whatever module it is defined.
    assert!(
        frames.iter().any(|frame| frame
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("std::thread::") && name.ends_with("sleep"))),
        "{frames:#?}"
    );

    let stop: &'static AtomicBool = Box::leak(Box::default());
    let frames = stack_of(|| spins(stop), "spins");
    line_of(&frames, "spins");
    stop.store(true, Relaxed);

    let mutex: &'static Mutex<()> = Box::leak(Box::default());
    let guard = mutex.lock().unwrap();
    let frames = stack_of(|| locks(mutex), "locks");
    let frames = if frames.iter().any(|frame| {
        frame
            .name
            .as_deref()
            .is_some_and(|name| name.contains("futex"))
    }) {
        frames
    } else {
        stack_of(|| locks(mutex), "futex")
    };
    line_of(&frames, "locks");
    drop(guard);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let frames = stack_of(move || reads(stream), "reads");
    line_of(&frames, "reads");
}

#[inline(never)]
fn deep(levels: usize) {
    if levels == 0 {
        std::panic::resume_unwind(Box::new(()));
    }
    deep(levels - 1);
    black_box(());
}

/// Stands for what the handler must not disturb: a thread that is inside the unwinder, the allocator, the loader.
fn unwinds(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let _ = black_box(catch_unwind(|| deep(black_box(20))));
        black_box(vec![0_u8; 100_000]);
        drop(black_box(std::backtrace::Backtrace::force_capture()));
    }
}

#[test]
fn thousands_of_captures_crash_nothing_while_panics_unwind() {
    let _watchdog = watchdog("capturing");
    let rounds = std::env::var("RT_STACK_ROUNDS").map_or(3_000, |rounds| rounds.parse().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            let (sender, receiver) = mpsc::channel();
            let thread = thread::spawn(move || {
                sender.send(Thread::current().unwrap()).unwrap();
                unwinds(&stop);
            });
            (receiver.recv().unwrap(), thread)
        })
        .collect();
    let poll = AtomicU64::new(1);
    let mut ends = HashMap::new();
    let mut depth = 0;
    for round in 0..rounds {
        let (thread, _) = &threads[round % threads.len()];
        match capture(thread, &poll, 1) {
            Ok(addresses) => {
                depth += addresses.len();
                *ends.entry(addresses.last().copied()).or_insert(0) += 1;
            }
            // The machine is busy: the thread had no processor for a while.
            Err(NoStack::NoAnswer) => {}
            Err(other) => panic!("{other}"),
        }
    }
    stop.store(true, Relaxed);
    for (_, thread) in threads {
        thread.join().unwrap();
    }
    // Those that were unwound to their end, where each thread began.
    let whole = ends.values().max().copied().unwrap_or(0);
    println!(
        "{whole} of {rounds} stacks whole, {} frames on average",
        depth / rounds
    );
    assert!(
        whole * 100 >= rounds * 90,
        "{whole} of {rounds} stacks were unwound: {ends:?}"
    );
}

#[test]
fn nothing_is_taken_of_a_poll_that_is_over() {
    let _watchdog = watchdog("a poll that is over");
    let thread = Thread::current().unwrap();
    let poll = AtomicU64::new(2);
    assert_eq!(capture(&thread, &poll, 1), Err(NoStack::Over));
}

/// The poll ends while the thread is waited for, which takes no signals.
#[test]
fn a_poll_that_ends_meanwhile_is_not_taken_for_a_thread_that_takes_no_signals() {
    let _watchdog = watchdog("a poll that ends");
    let (sender, receiver) = mpsc::channel();
    let (over, end) = mpsc::channel::<()>();
    let deaf = thread::spawn(move || {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the place is ours.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: filled in by the call above, and the old set is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut()) };
        // SAFETY: always succeeds.
        let id = unsafe { libc::gettid() };
        sender.send((Thread::current().unwrap(), id)).unwrap();
        let _ = end.recv();
    });
    let (thread, id) = receiver.recv().unwrap();
    let poll = Arc::new(AtomicU64::new(1));
    let ending = thread::spawn({
        let poll = poll.clone();
        move || {
            let status = || std::fs::read_to_string(format!("/proc/self/task/{id}/status"));
            let asked = |text: &String| !text.contains("SigPnd:\t0000000000000000");
            while !status().is_ok_and(|text| asked(&text)) {}
            poll.store(2, Relaxed);
        }
    });
    assert_eq!(capture(&thread, &poll, 1), Err(NoStack::Over));
    ending.join().unwrap();
    drop(over);
    deaf.join().unwrap();
}

#[test]
fn a_thread_that_is_gone_has_no_stack() {
    let _watchdog = watchdog("a thread that is gone");
    let thread = thread::spawn(|| Thread::current().unwrap()).join().unwrap();
    let gone = capture(&thread, &AtomicU64::new(1), 1);
    assert!(
        matches!(gone, Err(NoStack::Gone | NoStack::NoAnswer)),
        "{gone:?}"
    );
}

static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn program_handler(_: libc::c_int) {
    SEEN.fetch_add(1, Relaxed);
}

fn handler_of(signal: libc::c_int) -> usize {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks only, and the place is ours.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: filled in by the call above.
    unsafe { action.assume_init() }.sa_sigaction
}

/// A signal for which the program has a handler is left to it, also when it came after us.
#[test]
fn no_signal_is_taken_from_the_program() {
    let _watchdog = watchdog("signals");
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let stopped = stop.clone();
    let spinning = thread::spawn(move || {
        sender.send(Thread::current().unwrap()).unwrap();
        spins(&stopped);
    });
    let thread = receiver.recv().unwrap();
    let poll = AtomicU64::new(1);
    let take = || {
        let began = Instant::now();
        while capture(&thread, &poll, 1).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "no stack");
        }
    };
    take();
    let ours = (libc::SIGRTMIN()..=libc::SIGRTMAX())
        .rev()
        .find(|signal| handler_of(*signal) != libc::SIG_DFL)
        .expect("a signal of ours");
    // SAFETY: the handler only counts.
    unsafe { libc::signal(ours, program_handler as *const () as usize) };
    take();
    take();
    assert_eq!(
        SEEN.load(Relaxed),
        0,
        "the program got a signal that it had not asked for"
    );
    assert_eq!(handler_of(ours), program_handler as *const () as usize);
    // SAFETY: there is a handler.
    unsafe { libc::raise(ours) };
    assert_eq!(SEEN.load(Relaxed), 1);
    stop.store(true, Relaxed);
    spinning.join().unwrap();
}
