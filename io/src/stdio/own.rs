//! A description of our own for a standard stream, so that a selector can watch it.
//!
//! `O_NONBLOCK` belongs to the open file description, which standard streams share with the shell and with every
//! process that inherited them: setting it there would make *their* reads fail. So pipes and terminals are opened anew
//! through `/proc/self/fd`, and sockets, which cannot be, are used with a flag per call. What is left (regular files,
//! other devices, systems without `/proc`) is blocking.

use std::io::IsTerminal;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, major, minor, open};
use rustix::io::fcntl_dupfd_cloexec;

/// How a standard stream can be used without blocking.
#[derive(Debug)]
pub(super) enum Own {
    /// Opened anew and non-blocking: a pipe or a terminal.
    Reopened(OwnedFd),
    /// A duplicate of a socket: still shared, so each call says that it must not block.
    Socket(OwnedFd),
}

impl Own {
    /// Finds out what `shared` is. `access` is [`OFlags::RDONLY`] or [`OFlags::WRONLY`]. `None`: only blocking calls
    /// will do.
    pub(super) fn of(shared: BorrowedFd<'_>, access: OFlags) -> Option<Own> {
        let stat = fstat(shared).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo => {}
            // The master side of a pseudo-terminal cannot be opened twice: that would make a new one.
            FileType::CharacterDevice
                if shared.is_terminal()
                    && (major(stat.st_rdev), minor(stat.st_rdev)) != PTY_MASTER => {}
            FileType::Socket => return fcntl_dupfd_cloexec(shared, 0).ok().map(Own::Socket),
            _ => return None,
        }
        let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
        let own = open(path, flags, Mode::empty()).ok()?;
        let own_stat = fstat(&own).ok()?;
        let same = (own_stat.st_dev, own_stat.st_ino) == (stat.st_dev, stat.st_ino);
        same.then_some(Own::Reopened(own))
    }
}

/// Device number of `/dev/ptmx` on Linux.
const PTY_MASTER: (u32, u32) = (5, 2);
