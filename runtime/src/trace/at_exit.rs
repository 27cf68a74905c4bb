//! Something to do when the process ends by itself.
#![expect(unsafe_code, reason = "calls `atexit`")]

/// Has `f` called when `main` has returned, or in `exit`, on the thread that does that, while others still run. It must not
/// unwind: then the process aborts. If the system has no place left for it, it is not called.
pub(super) fn call(f: extern "C" fn()) {
    // SAFETY: may be called from any thread, with a function that lives as long as the program.
    let _ = unsafe { libc::atexit(f) };
}
