//! How to open a FIFO.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{Receiver, Sender, is_pipe};

/// How to open a FIFO.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Opens for one direction, and checks that the path is a FIFO.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            read_write: false,
            unchecked: false,
        }
    }

    /// Opens for both directions, as Linux allows for FIFOs: a sender then needs no receiver to open, and a receiver
    /// sees no end when the last sender goes.
    pub const fn read_write(&mut self, value: bool) -> &mut Self {
        self.read_write = value;
        self
    }

    /// Does not check that the path is a FIFO.
    pub const fn unchecked(&mut self, value: bool) -> &mut Self {
        self.unchecked = value;
        self
    }

    /// Opens the receiving end. Needs no sender: until the first one comes, reads see the end of the stream.
    ///
    /// # Errors
    /// Those of `open`; `InvalidInput` if the path is no FIFO.
    pub fn open_receiver(&self, path: impl AsRef<Path>) -> io::Result<Receiver> {
        Ok(Receiver::new(
            self.open(path.as_ref(), OFlags::RDONLY)?,
            false,
        ))
    }

    /// Opens the sending end.
    ///
    /// # Errors
    /// Those of `open`: `ENXIO` if nobody has the receiving end open; `InvalidInput` if the path is no FIFO.
    pub fn open_sender(&self, path: impl AsRef<Path>) -> io::Result<Sender> {
        Ok(Sender::new(self.open(path.as_ref(), OFlags::WRONLY)?))
    }

    fn open(&self, path: &Path, access: OFlags) -> io::Result<OwnedFd> {
        let access = if self.read_write {
            OFlags::RDWR
        } else {
            access
        };
        let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        if !self.unchecked && !is_pipe(&fd)? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is not a FIFO", path.display()),
            ));
        }
        Ok(fd)
    }
}
