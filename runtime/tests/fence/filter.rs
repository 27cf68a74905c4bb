//! A filter of system calls, as a program may install one that has started its runtime before.
#![expect(unsafe_code, reason = "a filter is installed by system calls")]

use std::io;

/// From now on these two fail in every thread of this process, with `errno`. `false`: no filter can be had, and there is nothing to
/// test.
pub(crate) fn refuse(calls: [libc::c_long; 2], errno: i32) -> bool {
    match install(calls, errno) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("not tested: no filter can be had: {error}");
            false
        }
    }
}

fn install([first, second]: [libc::c_long; 2], errno: i32) -> io::Result<()> {
    let instruction = |code: u32, (jt, jf), k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        // The number of the system call lies at the beginning.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), 0),
        instruction(is, (1, 0), first as u32),
        instruction(is, (0, 1), second as u32),
        instruction(answer, (0, 0), libc::SECCOMP_RET_ERRNO | errno as u32),
        instruction(answer, (0, 0), libc::SECCOMP_RET_ALLOW),
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
