//! Asking a thread for its stack: the signal, its handler, and the one place where the copy goes.
//!
//! # Who may touch what
//! There is one [`SLOT`], and one thread at a time has it: who holds [`ASKING`]. It passes to the handler and back by
//! the state word, which carries the number of the question:
//!
//! | state     | the slot belongs to     | left by                                                     |
//! |-----------|-------------------------|-------------------------------------------------------------|
//! | `IDLE`    | the holder of `ASKING`  | the holder, who asks                                        |
//! | `ASKED`   | nobody                  | the handler, who copies; or the holder, who gives up        |
//! | `COPYING` | the handler             | the handler, who is done                                    |
//! | `DONE`    | the holder              | the holder                                                  |
//!
//! # The races
//! The poll may be over when the signal arrives: the handler compares the number of the poll and copies nothing. The
//! signal may arrive after the holder has given up, or after another question: the number that it carries is not that
//! of the word, and the handler does nothing.
//!
//! # Whose signal
//! The highest real-time signal for which the process has no handler. Before each question it is checked that the handler is
//! still ours; if somebody has put their own there, we leave the signal to them and take another one. A signal that we
//! have not sent does what it would do without us.
#![expect(
    unsafe_code,
    reason = "installs a signal handler, which reads the stack of its own thread"
)]

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::registers::{self, REGISTERS, SP};
use crate::stack::NoStack;

/// Words of stack that are copied: 256 KiB. What lies beyond are the outermost frames, which say least.
const WORDS: usize = 32 * 1024;

/// How long a thread may take to enter the handler. One that runs, or sleeps in the kernel, takes microseconds; one that
/// has no processor, or waits for a broken disk, may take as long as it likes.
const PATIENCE: Duration = Duration::from_millis(100);

const IDLE: u64 = 0;
const ASKED: u64 = 1;
const COPYING: u64 = 2;
const DONE: u64 = 3;

/// Bits of the state; the number of the question lies above.
const BITS: u32 = 2;

struct Slot {
    state: AtomicU64,
    /// The number of the poll in which the thread was; points into what the holder of `ASKING` has borrowed.
    poll: AtomicPtr<AtomicU64>,
    expected: AtomicU64,
    /// Bounds of the thread's stack.
    low: AtomicUsize,
    top: AtomicUsize,
    registers: [AtomicU64; REGISTERS],
    /// How many words were copied; `usize::MAX` if the poll was over.
    copied: AtomicUsize,
    words: [AtomicU64; WORDS],
}

static SLOT: Slot = Slot {
    state: AtomicU64::new(IDLE),
    poll: AtomicPtr::new(ptr::null_mut()),
    expected: AtomicU64::new(0),
    low: AtomicUsize::new(0),
    top: AtomicUsize::new(0),
    registers: [const { AtomicU64::new(0) }; REGISTERS],
    copied: AtomicUsize::new(0),
    words: [const { AtomicU64::new(0) }; WORDS],
};

/// The right to ask, and the number of the last question.
static ASKING: Mutex<u64> = Mutex::new(0);

/// The signal that we have, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// No signal above this one can be sent.
static HIGHEST: AtomicI32 = AtomicI32::new(i32::MAX);

/// A thread, as far as its stack is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    id: libc::pid_t,
    low: usize,
    top: usize,
}

impl Thread {
    /// This thread. For the main thread the system reads a file, so the result should be kept.
    #[must_use]
    pub fn current() -> Option<Self> {
        let mut attributes = mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: always succeeds.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread is alive, and the place is ours.
        if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: filled in by the call above, which did not fail.
        let mut attributes = unsafe { attributes.assume_init() };
        let (mut low, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the attributes are valid, and the places are ours.
        let failed = unsafe { libc::pthread_attr_getstack(&attributes, &mut low, &mut size) };
        // SAFETY: made by `pthread_getattr_np`, and not used afterwards.
        unsafe { libc::pthread_attr_destroy(&mut attributes) };
        if failed != 0 {
            return None;
        }
        // SAFETY: always succeeds.
        let id = unsafe { libc::gettid() };
        Some(Self {
            id,
            low: low.addr(),
            top: low.addr() + size,
        })
    }
}

/// What a handler has copied.
pub(super) struct Copied {
    pub(super) registers: [u64; REGISTERS],
    /// The address of the first word.
    sp: usize,
    words: Vec<u64>,
}

impl Copied {
    /// A word of the stack.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address).ok()?.checked_sub(self.sp)?;
        if !offset.is_multiple_of(size_of::<u64>()) {
            return None;
        }
        self.words.get(offset / size_of::<u64>()).copied()
    }
}

/// The addresses at which the frames of a thread are, the innermost first, as long as `poll` has the value `expected`.
///
/// # Errors
/// Why there is no stack: the poll is over, or the thread does not take the signal.
pub fn capture(thread: &Thread, poll: &AtomicU64, expected: u64) -> Result<Vec<usize>, NoStack> {
    let copied = copy(thread, poll, expected)?;
    Ok(super::unwind::unwind(copied))
}

fn copy(thread: &Thread, poll: &AtomicU64, expected: u64) -> Result<Copied, NoStack> {
    let mut asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut signal = our_signal()?;
    if poll.load(Relaxed) != expected {
        return Err(NoStack::Over);
    }
    *asking += 1;
    let word = |state: u64| *asking << BITS | state;
    SLOT.poll.store(ptr::from_ref(poll).cast_mut(), Relaxed);
    SLOT.expected.store(expected, Relaxed);
    SLOT.low.store(thread.low, Relaxed);
    SLOT.top.store(thread.top, Relaxed);
    // Release: pairs with the exchange in `answer`.
    SLOT.state.store(word(ASKED), Release);
    while let Err(error) = send(thread, signal, *asking) {
        let why = match error {
            libc::ESRCH => NoStack::Gone,
            libc::EINVAL => match another_than(signal) {
                Ok(another) => {
                    signal = another;
                    continue;
                }
                Err(why) => why,
            },
            other => NoStack::Refused(other),
        };
        SLOT.state.store(IDLE, Relaxed);
        return Err(why);
    }
    let asked = Instant::now();
    // Acquire: pairs with the last store in `answer`.
    while SLOT.state.load(Acquire) != word(DONE) {
        let tired = asked.elapsed() > PATIENCE || poll.load(Relaxed) != expected;
        if tired
            && SLOT
                .state
                .compare_exchange(word(ASKED), IDLE, Relaxed, Relaxed)
                .is_ok()
        {
            return Err(if poll.load(Relaxed) == expected {
                NoStack::NoAnswer
            } else {
                NoStack::Over
            });
        }
        thread::sleep(Duration::from_micros(20));
    }
    let count = SLOT.copied.load(Relaxed);
    let mut registers = [0; REGISTERS];
    for (to, from) in registers.iter_mut().zip(&SLOT.registers) {
        *to = from.load(Relaxed);
    }
    let words = SLOT.words[..count.min(WORDS)].iter();
    let words = words.map(|word| word.load(Relaxed)).collect();
    SLOT.state.store(IDLE, Relaxed);
    if count == usize::MAX {
        return Err(NoStack::Over);
    }
    Ok(Copied {
        sp: usize::try_from(registers[SP]).unwrap_or(0),
        registers,
        words,
    })
}

/// `siginfo_t` of a signal that was queued with a value; the union that follows the three numbers is aligned to 8.
#[repr(C)]
struct Info {
    number: i32,
    errno: i32,
    code: i32,
    _padding: i32,
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: u64,
    _rest: [u64; 12],
}

const _: () = assert!(size_of::<Info>() == size_of::<libc::siginfo_t>());

/// Sends the signal with the number of the question. The error is that of the system.
fn send(thread: &Thread, signal: i32, question: u64) -> Result<(), i32> {
    // SAFETY: always succeeds.
    let pid = unsafe { libc::getpid() };
    // SAFETY: always succeeds.
    let uid = unsafe { libc::getuid() };
    let info = Info {
        number: signal,
        errno: 0,
        code: libc::SI_QUEUE,
        _padding: 0,
        pid,
        uid,
        value: question,
        _rest: [0; 12],
    };
    // SAFETY: the handler is in place, and the information is as the kernel reads it.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            pid,
            thread.id,
            signal,
            ptr::from_ref(&info),
        )
    };
    if sent == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EINVAL))
}

/// The signal whose handler is ours, installed now if need be. The caller holds `ASKING`.
fn our_signal() -> Result<i32, NoStack> {
    let signal = SIGNAL.load(Relaxed);
    if signal != 0 && handler_of(signal) == Some(handler as *const () as usize) {
        return Ok(signal);
    }
    for signal in (libc::SIGRTMIN()..=HIGHEST.load(Relaxed).min(libc::SIGRTMAX())).rev() {
        if handler_of(signal) == Some(libc::SIG_DFL) && install(signal) {
            SIGNAL.store(signal, Relaxed);
            return Ok(signal);
        }
    }
    Err(NoStack::NoSignal)
}

/// The signal cannot be sent, though it took a handler: emulators of another processor have fewer signals than they say.
/// Lets go of it, and takes the next one below. The caller holds `ASKING`.
#[cold]
fn another_than(signal: i32) -> Result<i32, NoStack> {
    // SAFETY: the handler was ours; the process is left without one, as before.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    HIGHEST.store(signal - 1, Relaxed);
    SIGNAL.store(0, Relaxed);
    our_signal()
}

/// What is called for a signal.
fn handler_of(signal: i32) -> Option<usize> {
    let mut action = mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks only, and the place is ours.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled in by the call above, which did not fail.
    Some(unsafe { action.assume_init() }.sa_sigaction)
}

/// Installs the handler, unless somebody else was quicker.
fn install(signal: i32) -> bool {
    let mut action = mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero is a valid value for each field.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // Others wait: an alternate stack has no room for many handlers at once.
    // SAFETY: the set is ours to fill.
    unsafe { libc::sigfillset(&mut action.sa_mask) };
    let mut before = mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the handler keeps the rules for handlers, and the places are ours.
    if unsafe { libc::sigaction(signal, action, before.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: filled in by the call above, which did not fail.
    let before = unsafe { before.assume_init() };
    if before.sa_sigaction == libc::SIG_DFL {
        return true;
    }
    // SAFETY: puts back what was there a moment ago.
    unsafe { libc::sigaction(signal, &before, ptr::null_mut()) };
    false
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid pointer to a handler with `SA_SIGINFO`.
    let info = unsafe { &*info.cast::<Info>() };
    // SAFETY: always succeeds, and may be called in a handler.
    let pid = unsafe { libc::getpid() };
    if info.code == libc::SI_QUEUE && info.pid == pid {
        // SAFETY: as for `info`; the kernel's context is of this type.
        answer(info.value, unsafe { &*context.cast::<libc::ucontext_t>() });
    } else if handler_of(signal) == Some(handler as *const () as usize) {
        // Not ours, and without us there would be no handler.
        // SAFETY: may be called in a handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: may be called in a handler.
        unsafe { libc::raise(signal) };
    }
}

/// The handler's work.
fn answer(question: u64, context: &libc::ucontext_t) {
    let word = |state: u64| question << BITS | state;
    // Acquire: pairs with the store of `ASKED`.
    let mine = SLOT
        .state
        .compare_exchange(word(ASKED), word(COPYING), AcqRel, Relaxed);
    if mine.is_err() {
        return;
    }
    // SAFETY: who asked has borrowed it until the state is `DONE`.
    let poll = unsafe { &*SLOT.poll.load(Relaxed) };
    let count = if poll.load(Relaxed) == SLOT.expected.load(Relaxed) {
        registers::copy(context, &SLOT.registers);
        copy_words()
    } else {
        usize::MAX
    };
    SLOT.copied.store(count, Relaxed);
    // Release: pairs with the load in `copy`.
    SLOT.state.store(word(DONE), Release);
}

/// Copies the stack from its pointer on. Nothing, if the thread is on another stack than its own.
fn copy_words() -> usize {
    let sp = SLOT.registers[SP].load(Relaxed) as usize;
    let (low, top) = (SLOT.low.load(Relaxed), SLOT.top.load(Relaxed));
    if sp < low || sp >= top || !sp.is_multiple_of(size_of::<u64>()) {
        return 0;
    }
    let count = ((top - sp) / size_of::<u64>()).min(WORDS);
    let from = ptr::with_exposed_provenance::<u64>(sp);
    for (index, to) in SLOT.words[..count].iter().enumerate() {
        // SAFETY: inside the stack of this thread, above its pointer, so it is mapped.
        let word = unsafe { from.add(index) };
        // SAFETY: as above, and aligned as `sp` is. It is the memory of frames that know nothing of this.
        to.store(unsafe { registers::load(word) }, Relaxed);
    }
    count
}
