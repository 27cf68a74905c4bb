//! The registration of one source, made when it is first needed. The race is told in `registered.rs`.

use std::io;
use std::os::fd::RawFd;
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::ready::{Interest, Ready};
use super::source::Source;
use crate::context;

/// Locks for the moment of registration, chosen by address: a lock in every source would cost memory for ever.
static REGISTERING: [Mutex<()>; 16] = [const { Mutex::new(()) }; 16];

/// Empty until the source is registered; deregisters when dropped.
#[derive(Debug, Default)]
pub(super) struct Registration(pub(super) OnceLock<Arc<Source>>);

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(source) = self.0.get() {
            source.handle.deregister(source);
        }
    }
}

/// What a future needs to know of a source to register it.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) registration: &'a Registration,
    pub(super) fd: RawFd,
    pub(super) interest: Interest,
}

impl<'a> Target<'a> {
    #[inline]
    pub(super) fn get(self) -> Option<&'a Arc<Source>> {
        self.registration.0.get()
    }

    /// The source, registered if it is not yet.
    #[inline]
    pub(super) fn source(
        self,
        initial: Ready,
        site: &'static Location<'static>,
    ) -> io::Result<&'a Arc<Source>> {
        match self.get() {
            Some(source) => Ok(source),
            None => self.register(initial, site),
        }
    }

    #[cold]
    fn register(
        self,
        initial: Ready,
        site: &'static Location<'static>,
    ) -> io::Result<&'a Arc<Source>> {
        let (handle, owner) = context::current()?;
        let lock = ptr::from_ref(self.registration).addr() / align_of::<Registration>();
        let guard = REGISTERING[lock % REGISTERING.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = self.get() {
            return Ok(source);
        }
        let source = handle.register(self.fd, self.interest, initial, site)?;
        let source = self.registration.0.get_or_init(|| source);
        drop(guard);
        if !owner {
            handle.registered_by_foreigner();
        }
        Ok(source)
    }
}
