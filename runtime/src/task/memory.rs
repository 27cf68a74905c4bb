//! Memory for a task, by its size and without its type, so that the next task can lie in it (`stock.rs`).
#![expect(unsafe_code, reason = "memory without a type")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::mem;
use std::ptr::NonNull;

/// The alignment of all sizes, that of most allocators.
pub(super) const ALIGN: usize = 16;

/// What sizes are a multiple of.
#[cfg(not(rt_loom))]
pub(super) const STEP: usize = ALIGN;
/// In a model all tasks have one size.
#[cfg(rt_loom)]
pub(super) const STEP: usize = 1024;

/// How many sizes there are: up to 1 KiB. The future of a larger task lies in a box of its own (`BOX_FROM`).
pub(super) const SIZES: usize = 1024 / STEP;

/// Smaller than any task, and room for what links free memory.
pub(super) const LEAST: usize = 64;

/// A size of memory in which tasks are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u8);

impl Size {
    /// The size for a `T`; `None` if there is none.
    #[inline]
    #[must_use]
    pub const fn of<T>() -> Option<Self> {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        if size < LEAST || size > SIZES * STEP || align > ALIGN {
            return None;
        }
        Some(Self((size.div_ceil(STEP) - 1) as u8))
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    #[inline]
    pub(super) fn bytes(self) -> usize {
        (self.index() + 1) * STEP
    }

    /// Every size, in the order of [`index`](Self::index).
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..SIZES).map(|index| Self(index as u8))
    }

    fn layout(self) -> Layout {
        match Layout::from_size_align(self.bytes(), ALIGN) {
            Ok(layout) => layout,
            Err(_) => unreachable!("{} bytes are not too many", self.bytes()),
        }
    }
}

/// Memory of one size with nothing in it. Dropped, it goes back to the allocator.
pub struct Memory {
    at: NonNull<u8>,
    size: Size,
}

// SAFETY: bytes that nobody else knows of.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// From the allocator.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let layout = size.layout();
        // SAFETY: no size is zero.
        match NonNull::new(unsafe { alloc(layout) }) {
            Some(at) => Self { at, size },
            None => handle_alloc_error(layout),
        }
    }

    /// Its size.
    #[inline]
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Gives it up; [`from_raw`](Self::from_raw) takes it back.
    #[inline]
    pub(super) fn into_raw(self) -> NonNull<u8> {
        let at = self.at;
        mem::forget(self);
        at
    }

    /// # Safety
    /// `at` comes from `into_raw`, of memory of this size, is taken back once, and nothing is left in it.
    #[inline]
    pub(super) unsafe fn from_raw(at: NonNull<u8>, size: Size) -> Self {
        Self { at, size }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, with the layout of this size.
        unsafe { dealloc(self.at.as_ptr(), self.size.layout()) };
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bytes", &self.size.bytes())
            .finish()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_tasks() {
        #[repr(align(32))]
        struct Aligned(#[expect(dead_code, reason = "for its size")] [u8; 128]);
        fn bytes<T>() -> Option<usize> {
            Size::of::<T>().map(Size::bytes)
        }
        assert_eq!(bytes::<[u8; LEAST - 1]>(), None);
        assert_eq!(bytes::<[u8; LEAST]>(), Some(64));
        assert_eq!(bytes::<[u64; 17]>(), Some(144));
        assert_eq!(bytes::<[u64; 18]>(), Some(144));
        assert_eq!(bytes::<[u64; 19]>(), Some(160));
        assert_eq!(bytes::<[u8; 1024]>(), Some(1024));
        assert_eq!(bytes::<[u8; 1025]>(), None);
        assert_eq!(bytes::<Aligned>(), None);
        for (index, size) in Size::all().enumerate() {
            assert_eq!(size.index(), index);
        }
    }
}
