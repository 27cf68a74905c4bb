//! Whether a selector can watch a descriptor at all.
#![expect(
    unsafe_code,
    reason = "what `AsyncFd` wraps tells its descriptor as a number only"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

/// Refuses what the selector would refuse when the first task waits.
pub(super) fn check(inner: &impl AsRawFd) -> io::Result<()> {
    let number = inner.as_raw_fd();
    if number < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: it is not -1, and `inner`, which is borrowed for longer than this, says that the descriptor is open.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::RegularFile | FileType::Directory => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "descriptor {number} is a file or directory: these are always ready, and no selector watches them; use \
                 blocking threads"
            ),
        )),
        _ => Ok(()),
    }
}
